//! Checks of linear solvers on every backend. Each check is a function of a [`subject::Subject`], a backend
//! that is present and solves; `suite!` makes it a test of every backend. A backend whose device is
//! absent is skipped by name, unless `ABIDE_REQUIRE` names it.

mod agreement;
mod chosen;
mod extremes;
#[path = "../../backend-cuda/tests/common/parallel.rs"]
mod parallel;
mod random;
mod refusals;
mod restarts;
mod singular;
mod solutions;
mod stopping;
mod subject;
mod systems;

suite! { cpu, wgpu, cuda: {
    solutions::every_method_and_preconditioner_solves,
    solutions::krylov_methods_solve_harder_systems,
    solutions::nonsymmetric_systems_are_solved,
    solutions::symmetric_systems_of_any_definiteness_are_solved,
    solutions::operators_are_solved_as_their_stored_matrices,
    solutions::mixed_precision_reaches_f64,
    agreement::two_runs_have_the_same_bits_and_the_references_iterations,
    agreement::every_cache_gives_a_solution,
    random::random_definite_systems_are_solved,
    random::random_nonsymmetric_systems_are_solved,
    refusals::matrices_that_cannot_be_solved_have_their_own_errors,
    refusals::vectors_that_do_not_fit_are_refused,
    refusals::breakdowns_are_errors,
    chosen::rounding_is_no_asymmetry,
    chosen::a_matrix_may_be_taken_as_symmetric,
    chosen::gmres_takes_the_place_of_cg_on_an_indefinite_matrix,
    chosen::negative_definite_systems_are_solved_by_their_opposites,
    chosen::cycles_of_small_systems_are_whole,
    extremes::powers_of_two_change_exponents_alone,
    extremes::solutions_below_the_range_are_errors,
    restarts::bicgstab_starts_anew_where_it_breaks_down,
    singular::a_null_space_of_constants_is_taken_away,
    singular::gmres_keeps_the_better_iterate,
    stopping::a_residual_that_rises_for_long_is_no_stagnation,
    stopping::limits_end_a_solve_with_its_history,
    stopping::an_observer_sees_every_iterate_and_may_stop,
    stopping::first_guesses_count,
} }
