//! The state that passes from launch to launch.

use abide_core::solver::Outcome;
use abide_core::{DType, Result};
use abide_shaders::cuda::KRYLOV_STATE_OWN;
use abide_shaders::state::State;

/// Returns the bytes of the kernels' `State`.
pub fn state_bytes() -> usize {
    State::size(DType::F64) + KRYLOV_STATE_OWN
}

/// Returns the state before the first launch: no residual yet.
pub fn fresh() -> Vec<u8> {
    State::fresh(DType::F64, KRYLOV_STATE_OWN)
}

/// Reads the state that a launch left.
pub fn left(bytes: &[u8]) -> Result<(State, Outcome)> {
    State::left("cuda", DType::F64, bytes)
}
