//! The state of a run that a solver's kernels and its host exchange, the same in every language.

use abide_core::solver::{Outcome, Quantity, Status};
use abide_core::{DType, Error, Result};

use crate::record::record;
use crate::text::Text;

record! {
    /// The beginning of the kernels' `State`. The state passes from launch to launch, or from submission to
    /// submission, and back to the host. The values that the method itself remembers stand behind this
    /// beginning.
    State {
        words {
            status "how the run stands",
            quantity "that ended the run",
            length "entries of the history",
            since "the iteration of the least residual; BY_ENERGY: the stretch's first",
        }
        numbers {
            value "of the quantity that ended the run",
            true_square "|b - A x|^2, computed afresh",
            least "the least entry of the history; BY_ENERGY: what the last start left",
            stretch "BY_ENERGY: taken off since iteration `since`",
            before "BY_ENERGY: and before it",
        }
    }
}

impl State {
    /// Returns the bytes of the whole `State` before the first iteration. The last `own` bytes are the
    /// method's. All bytes are zero, except that the least residual is infinite.
    pub fn fresh(dtype: DType, own: usize) -> Vec<u8> {
        let mut bytes = State { least: f64::INFINITY, ..State::default() }.bytes(dtype);
        bytes.resize(bytes.len() + own, 0);
        bytes
    }

    /// Reads the state from `bytes` and returns it with the outcome that it records.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] where the bytes are no state that a kernel leaves.
    pub fn left(backend: &'static str, dtype: DType, bytes: &[u8]) -> Result<(State, Outcome)> {
        State::read(dtype, bytes)
            .and_then(|state| Some((state, state.outcome()?)))
            .ok_or_else(|| Error::device(backend, "reading a solver's state", "it is no such state"))
    }

    fn outcome(&self) -> Option<Outcome> {
        let (status, quantity) = (Status::of(self.status)?, Quantity::of(self.quantity)?);
        Some(Outcome { status, quantity, value: self.value })
    }
}

/// Writes a declaration per status and quantity: `before`, the constant's name, `between`, its number,
/// `after`, and its meaning as a comment.
pub(crate) fn constants(text: &mut Text, [before, between, after]: [&str; 3]) {
    let statuses = Status::ALL.iter().map(|row| (row.constant(), *row as u32, row.words()));
    let quantities = Quantity::ALL.iter().map(|row| (row.constant(), *row as u32, row.words()));
    for (constant, number, words) in statuses.chain(quantities) {
        text.push(format!("{before}{constant}{between}{number}{after} // {words}"));
    }
}

#[cfg(test)]
mod tests {
    use abide_core::DeviceSpec;
    use abide_core::solver::{Matrix, Method, Preconditioning, SolveOptions};
    use abide_solvers::plan::krylov::plan_krylov;
    use abide_solvers::plan::plan_dispatches;
    use abide_solvers::sparse::laplacian_2d;

    use super::*;
    use crate::{cuda, wgsl};

    #[test]
    fn a_state_is_read_as_it_is_written() {
        for dtype in [DType::F32, DType::F64] {
            let own = 8;
            let bytes = State::fresh(dtype, own);
            assert_eq!(bytes.len(), 16 + 5 * dtype.bytes() + own);
            let fresh = State::read(dtype, &bytes).unwrap();
            assert_eq!(fresh, State { least: f64::INFINITY, ..State::default() });
            assert_eq!(fresh.outcome().map(|outcome| outcome.status), Some(Status::Running));
            let status = Status::NotPositive as u32;
            let state = State { status, quantity: 2, length: 9, since: 7, value: -2.5, ..fresh };
            let outcome = Outcome { status: Status::NotPositive, quantity: Quantity::Curvature, value: -2.5 };
            assert_eq!(State::left("cuda", dtype, &state.bytes(dtype)), Ok((state, outcome)));
            for wrong in [State { status: 99, ..state }, State { quantity: 99, ..state }] {
                assert!(State::left("cuda", dtype, &wrong.bytes(dtype)).is_err());
            }
            assert_eq!(State::read(dtype, &bytes[..State::size(dtype) - 1]), None);
        }
    }

    /// Returns the texts of all methods' kernels: CUDA's, then WGSL's.
    fn texts() -> [Vec<String>; 2] {
        let matrix = Matrix::from(laplacian_2d(30, 31, DType::F64).unwrap());
        let device = DeviceSpec::preset("h200").unwrap();
        let mut all = [Vec::new(), Vec::new()];
        for method in Method::all() {
            let options = SolveOptions {
                preconditioner: Preconditioning::Chebyshev { degree: 2 },
                ..SolveOptions::with_method(method)
            };
            let plan = plan_krylov(&matrix, &device, &options).unwrap();
            all[0].push(cuda::krylov(&matrix, &options, plan.krylov().unwrap(), false).unwrap());
            let script = wgsl::krylov::script(&matrix, &options).unwrap();
            let device = DeviceSpec { buffer_bytes: 1 << 27, ..device.clone() };
            let plan = plan_dispatches("wgpu", &matrix, &device, &options, &script.effort()).unwrap();
            let layout = plan.dispatches().unwrap();
            all[1].push(wgsl::krylov::module(&matrix, &options, layout, &script).unwrap());
        }
        all
    }

    /// Each language declares every constant with the host's number, and uses each constant except those that
    /// only the other language needs.
    #[test]
    fn both_languages_have_every_status_and_quantity() {
        let foreign: [&[&str]; 2] = [
            &["ENDED", "SUSPECT", "RENEW", "CONFIRM", "CLOSING"],
            // WGSL needs none of these, because the history tells limits and residuals.
            &["ITERATIONS", "LOST", "OF_RESIDUAL"],
        ];
        let statuses = Status::ALL.iter().map(|row| (row.constant(), *row as u32));
        let quantities = Quantity::ALL.iter().map(|row| (row.constant(), *row as u32));
        let rows: Vec<(&str, u32)> = statuses.chain(quantities).collect();
        let declared: [fn(&str, u32) -> String; 2] = [
            |constant, number| format!("constexpr int {constant} = {number};"),
            |constant, number| format!("const {constant}: u32 = {number}u;"),
        ];
        for ((texts, declared), foreign) in texts().iter().zip(declared).zip(foreign) {
            for &(constant, number) in &rows {
                let declaration = declared(constant, number);
                assert!(texts.iter().all(|text| text.matches(&declaration).count() == 1), "{declaration}");
                let words = |text: &String| {
                    let is_word = |c: char| c.is_alphanumeric() || c == '_';
                    let code = text.lines().filter(|line| !line.starts_with("const"));
                    let code = code.flat_map(|line| line.split("//").next());
                    code.flat_map(|line| line.split(|c| !is_word(c))).any(|word| word == constant)
                };
                // Only the host uses the norm of the right-hand side.
                let expected = !foreign.contains(&constant) && constant != "OF_RIGHT_HAND_SIDE";
                assert_eq!(texts.iter().any(words), expected, "{declaration}");
            }
        }
    }
}
