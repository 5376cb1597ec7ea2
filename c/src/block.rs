//! Blocks with fringes, as flow codes keep their variables.

use std::ffi::c_void;

use crate::status::{AbideStatus, Outcome, face, invalid};
use crate::text::{given, null, place};
use crate::view::{ABIDE_AXES, AbideView};

/// The variable lies slowest: `q(i, j, k, variable)` in Fortran, `q[variable][k][j][i]` in C.
pub const ABIDE_VARIABLE_SLOWEST: i32 = 0;
/// The variable lies fastest: `q(variable, i, j, k)` in Fortran, `q[k][j][i][variable]` in C.
pub const ABIDE_VARIABLE_FASTEST: i32 = 1;

/// All variables of a block.
pub const ABIDE_ALL_VARIABLES: i64 = -1;

/// An array of several variables on a block of cells with fringes (ghost cells) around it. Of its axes, `i` lies fastest in
/// memory.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct AbideBlock {
    /// The address of the first value, fringes included.
    pub data: *mut c_void,
    /// `ABIDE_F32` or `ABIDE_F64`.
    pub dtype: i32,
    /// `ABIDE_HOST` or `ABIDE_CUDA`.
    pub memory: i32,
    /// The number of the device, for `ABIDE_CUDA`.
    pub device: i32,
    /// `ABIDE_VARIABLE_SLOWEST` or `ABIDE_VARIABLE_FASTEST`.
    pub order: i32,
    /// The number of axes, 1 (`i`) to 3 (`i`, `j`, `k`).
    pub axes: i32,
    /// The number of variables.
    pub variables: i64,
    /// The cells along `i`, `j` and `k`, without fringes.
    pub cells: [i64; 3],
    /// The width of the fringes at both sides, along `i`, `j` and `k`.
    pub fringes: [i64; 3],
}

/// Describes a variable of a block, counted from 0, as an array of its cells; with its fringes where `fringes` is not 0. For
/// `ABIDE_ALL_VARIABLES` the array has one axis more, of the variables, before those of the cells.
///
/// # Safety
///
/// `block` points to a block, and `view` to a view. The values themselves are not touched.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_block_view(
    block: *const AbideBlock,
    variable: i64,
    fringes: i32,
    view: *mut AbideView,
) -> AbideStatus {
    face(|| {
        // SAFETY: as promised.
        let (block, view) = unsafe { (given(block, "block")?, place(view, "view")?) };
        *view = block.view(variable, fringes != 0)?;
        Ok(())
    })
}

impl AbideBlock {
    fn view(&self, variable: i64, with_fringes: bool) -> Outcome<AbideView> {
        let refused = |reason: String, change: &str| Err(invalid("block", reason, change));
        if self.data.is_null() {
            return Err(null("the data of a block"));
        }
        let axes = match self.axes {
            1..=3 => self.axes as usize,
            other => return refused(format!("it has {other} axes"), "describe one to three axes"),
        };
        let is_all = variable == ABIDE_ALL_VARIABLES;
        if !is_all && !(0..self.variables).contains(&variable) {
            let reason = format!("it has no variable {variable} of {}", self.variables);
            return refused(reason, "count variables from 0");
        }
        if (0..axes).any(|axis| self.cells[axis] < 1 || self.fringes[axis] < 0) {
            let reason =
                format!("its cells are {:?}, its fringes {:?}", &self.cells[..axes], &self.fringes[..axes]);
            return refused(reason, "give a cell at least along each axis, and fringes of 0 or more");
        }
        let (mut stride, of_variables) = match self.order {
            ABIDE_VARIABLE_FASTEST => (Some(self.variables), Some(1)),
            ABIDE_VARIABLE_SLOWEST => (Some(1), None),
            other => {
                let change = "give ABIDE_VARIABLE_SLOWEST or ABIDE_VARIABLE_FASTEST";
                return refused(format!("order {other} is none"), change);
            }
        };
        let beyond =
            || invalid("block", "it is larger than addresses can say", "correct its cells and fringes");
        let bytes = crate::view::dtype_of(self.dtype, "block")?.bytes() as i64;
        let (mut extents, mut strides, mut first) = ([0; ABIDE_AXES], [0; ABIDE_AXES], Some(0_i64));
        let behind = usize::from(is_all);
        for axis in 0..axes {
            let own = stride.ok_or_else(beyond)?;
            let (cells, fringe) = (self.cells[axis], self.fringes[axis]);
            let whole = fringe.checked_mul(2).and_then(|both| cells.checked_add(both)).ok_or_else(beyond)?;
            let at = behind + axes - 1 - axis;
            (extents[at], strides[at]) = (if with_fringes { whole } else { cells }, own);
            if !with_fringes {
                first = first.and_then(|first| first.checked_add(fringe.checked_mul(own)?));
            }
            stride = own.checked_mul(whole);
        }
        let between = of_variables.or(stride).ok_or_else(beyond)?;
        match is_all {
            true => (extents[0], strides[0]) = (self.variables, between),
            false => first = first.and_then(|first| first.checked_add(variable.checked_mul(between)?)),
        }
        let offset = first.and_then(|first| first.checked_mul(bytes)).ok_or_else(beyond)?;
        Ok(AbideView {
            data: self.data.wrapping_byte_offset(isize::try_from(offset).map_err(|_| beyond())?),
            dtype: self.dtype,
            memory: self.memory,
            device: self.device,
            axes: (axes + behind) as i32,
            extents,
            strides,
        })
    }
}
