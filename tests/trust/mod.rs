//! The reasons to trust the results: one suite, run on every backend.
//!
//! Each check is a function of a [`subject::Subject`], a backend that is present; `suite!` makes it a
//! test of every backend. A backend whose device is absent is skipped by name, unless `ABIDE_REQUIRE` names it.

mod batch;
mod clocks;
mod codes;
mod contract;
mod equivalence;
mod independent;
mod life;
mod models;
mod physics;
mod random;
mod several;
mod subject;

suite! { cpu, wgpu, cuda: {
    equivalence::lines,
    equivalence::planes,
    equivalence::cubes,
    equivalence::models_of_one_axis,
    equivalence::models_of_two_axes,
    equivalence::models_of_three_axes,
    equivalence::every_policy,
    equivalence::many_tiles,
    equivalence::sides_by_their_indices,
    random::exact_formulas,
    random::every_function,
    independent::linear_stencils_equal_a_c_program,
    independent::a_long_run_equals_a_c_program,
    independent::all_boundaries_equal_padded_arrays,
    models::models_obey_their_equations,
    contract::zero_steps_change_nothing,
    contract::a_fixed_domain_without_interior_stays,
    contract::nan_spreads_as_far_as_the_taps_reach,
    contract::a_checkpoint_splits_a_run_without_a_trace,
    contract::windows_are_parts_of_the_whole,
    contract::windows_are_written_alone,
    contract::what_is_not_finite_is_counted_where_it_lies,
    contract::probes_are_the_values_of_each_step,
    contract::parameters_and_fields_can_change_between_steps,
    contract::bad_requests_are_refused,
    clocks::every_way_has_the_bits_of_the_definition,
    clocks::a_clock_costs_no_schedule,
    clocks::conditions_marks_and_records_are_noted,
    clocks::random_programs_have_the_bits_of_the_definition,
    codes::programs_agree_with_the_reference,
    batch::members_have_the_bits_of_single_runs,
    several::slabs_have_the_bits_of_the_whole,
    batch::a_batch_is_changed_and_kept,
    batch::members_have_their_own_scalars,
    batch::bad_batches_are_refused,
    physics::heat_keeps_its_sum,
    physics::heat_modes_decay_as_the_scheme_says,
    physics::waves_turn_as_the_scheme_says,
    physics::acoustic_waves_turn_as_the_scheme_says,
    physics::heat_converges_with_second_order,
    physics::maxwell_keeps_its_energy,
    physics::maxwell_moves_as_the_wave_equation,
    physics::a_wind_of_one_cell_a_step_shifts,
    physics::steady_states_stay,
    life::a_glider_moves_by_one_cell_in_four_generations,
    life::the_r_pentomino_lives_as_elsewhere,
} }
