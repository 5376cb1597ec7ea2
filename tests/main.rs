//! What must hold on every backend, as one program, which is small enough to be copied to a machine with a GPU.

#[path = "../examples/cloverleaf/deck.rs"]
#[allow(dead_code)]
mod deck;

/// Makes a module of each backend, in which each check is a test, beside a module `subject` that opens the backend.
macro_rules! checks {
    ($backend:ident { $($module:ident::$check:ident),* $(,)? }) => {
        mod $backend {
            $(
                #[test]
                fn $check() {
                    super::subject::check(stringify!($backend), super::$module::$check);
                }
            )*
        }
    };
}

/// Returns whether a backend's longest checks have all their cases: on wgpu, whose software driver takes longest, where
/// `ABIDE_ALL` is set, as `cargo xtask test --full` does.
fn has_all_cases(backend: &str) -> bool {
    backend != "wgpu" || std::env::var_os("ABIDE_ALL").is_some()
}

/// Returns all cases, or an eighth where the backend does not have all.
fn sampled<T>(backend: &str, cases: impl IntoIterator<Item = T>) -> Vec<T> {
    let is_chosen = |number| has_all_cases(backend) || abide_random::is_one_in(8, number);
    let numbered = cases.into_iter().enumerate();
    numbered.filter(|&(number, _)| is_chosen(number)).map(|(_, case)| case).collect()
}

/// Makes a suite of checks that runs on each of these backends, which must be all there are.
macro_rules! suite {
    ($($backend:ident),*: $checks:tt) => {
        $(checks! { $backend $checks })*

        #[test]
        fn every_backend_is_a_subject() {
            let mut names: Vec<&str> = abide::backend::names().collect();
            let mut subjects = vec![$(stringify!($backend)),*];
            names.sort_unstable();
            subjects.sort_unstable();
            assert_eq!(names, subjects, "add the backend to the list in {}", file!());
        }
    };
}

mod cloverleaf;
mod codes;
mod draws;
mod models;
mod solvers;
mod trust;
mod walls;
