//! Maxwell's equations in three dimensions by Yee's scheme, with layers at all sides that absorb waves: two stages a step.
//!
//! The grid is Yee's (IEEE Trans. Antennas Propag. 14, 1966), the layers are convolutional perfectly matched ones (CPML: Roden &
//! Gedney, Microw. Opt. Technol. Lett. 27, 2000). Components are in the order x, y, z.

use super::Entry;
use super::domain::{declare_extents, extent, is_source};
use crate::error::Result;
use crate::expr::Expr;
use crate::program::{Centring, Definition, Program, Scope, Start};

/// Periods of `duration` between the begin of a run and the peak of the dipole's moment.
const DELAY: f64 = 3.5;

/// Returns Maxwell's equations with a dipole beside a block of glass: the electric field `e`, the magnetic field `h` times the
/// impedance of vacuum, the relative `permittivity`, and the memories of the layers, `pe` for `e` and `ph` for `h`.
///
/// Lengths are in cells and times in steps. `h` lies half a cell up the axes along which its curl differentiates. The dipole
/// stands along z in the cell at `source_z`, `source_y` and `source_x`, which are parts of the axes; its moment is a Gaussian of
/// time. The outermost cells keep their values.
///
/// ```
/// use abide_core::catalogue;
///
/// let program = catalogue::fdtd_3d()?;
/// assert_eq!(program.fields().len(), 19);
/// # Ok::<(), abide_core::Error>(())
/// ```
///
/// # Errors
///
/// None: the definition is complete.
pub fn fdtd_3d() -> Result<Program> {
    let mut p = Definition::new("fdtd-3d", 3);
    p.components("e", 3, Centring::CELL).components("h", 3, Centring::CELL);
    p.field("permittivity", Centring::CELL);
    p.components("pe", 6, Centring::CELL).components("ph", 6, Centring::CELL);
    p.start("permittivity", Start::Corner { inside: 1.0, outside: 2.25, parts: [1.0, 1.0, 0.6] });
    p.shown("e[2]");
    p.parameter("courant", 0.5, "speed of light in vacuum · step / width; stable up to 1/√3");
    p.parameter("layers", 10.0, "cells of the layers that absorb at each side; 0 for none");
    p.parameter("moment", 1.0, "the dipole's largest moment; 0 for no dipole");
    p.parameter("duration", 14.0, "steps in which the dipole's moment falls to 1/e of the largest");
    p.parameter("source_z", 0.5, "the dipole's place as a part of z");
    p.parameter("source_y", 0.5, "the dipole's place as a part of y");
    p.parameter("source_x", 0.35, "the dipole's place as a part of x");
    declare_extents(&mut p);
    p.scalar("time", Some(0.0), "time in steps").scalar("current", Some(0.0), "the dipole's current");
    let mut step = p.step();
    step.compute("current", |s| {
        let (time, duration) = (s.param("time") + 0.5, s.param("duration"));
        let phase = time / duration - DELAY;
        // The derivative of the moment.
        -2.0 * s.param("moment") / duration * phase * (-phase * phase).exp()
    });
    step.stage("magnetic", |s| {
        for (number, curl) in curl(s, "e", "ph", Side::High).into_iter().enumerate() {
            s.set_component("h", number, s.component("h", number).here() - s.param("courant") * curl);
        }
    });
    step.stage("electric", |s| {
        let permittivity = s.field("permittivity").here();
        for (number, curl) in curl(s, "h", "pe", Side::Low).into_iter().enumerate() {
            let mut change = s.param("courant") * curl;
            if number == 2 {
                change = change - is_source(s, 1.0) * s.param("current");
            }
            s.set_component("e", number, s.component("e", number).here() + change / permittivity);
        }
    });
    step.compute("time", |s| s.param("time") + 1.0);
    p.build()
}

/// The neighbour to which a curl takes differences.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Low,
    High,
}

/// Returns the curl of a field, whose derivatives the layers stretch, and sets the layers' memory: two values for each component.
fn curl<'g>(s: &Scope<'g>, of: &str, memory: &str, side: Side) -> [Expr<'g>; 3] {
    let axis = |component: usize| 2 - component;
    let layers = [0, 1, 2].map(|component| layer(s, axis(component), side));
    [0, 1, 2].map(|component| {
        let derivative = |number: usize, along: usize, of_component: usize| {
            let field = s.component(of, of_component);
            let difference = match side {
                Side::High => field.along(axis(along), 1) - field.here(),
                Side::Low => field.here() - field.along(axis(along), -1),
            };
            let (number, (decay, weight)) = (2 * component + number, layers[along]);
            let remembered = decay * s.component(memory, number).here() + weight * difference;
            s.set_component(memory, number, remembered);
            difference + remembered
        };
        let [second, third] = [1, 2].map(|later| (component + later) % 3);
        derivative(0, second, third) - derivative(1, third, second)
    })
}

/// Returns the factors of a layer's memory and of the difference that is added to it.
///
/// The conductivity rises with the cube of the depth, to the best value for waves that arrive at right angles, 0.8 · (3 + 1) / width
/// in units of the impedance of vacuum; the shift of the frequency is 0.05 / width.
fn layer<'g>(s: &Scope<'g>, axis: usize, side: Side) -> (Expr<'g>, Expr<'g>) {
    let (layers, courant) = (s.param("layers"), s.param("courant"));
    let at = match side {
        Side::High => s.coord(axis) + 0.5,
        Side::Low => s.coord(axis),
    };
    let depth = (layers - at).max(at - (extent(s, axis) - 1.0 - layers)).max(0.0).min(layers);
    let depth = depth / layers.max(1.0);
    let conductivity = 3.2 * courant * (depth * depth * depth);
    let shift = 0.05 * courant;
    let decay = (-(conductivity + shift)).exp();
    (decay, conductivity / (conductivity + shift) * (decay - 1.0))
}

/// The model in three dimensions.
pub(super) const ENTRIES: &[Entry] = &[Entry {
    name: "fdtd-3d",
    about: "Maxwell's equations in 3D, Yee's grid: a dipole, glass, and layers that absorb (CPML)",
    dimensions: 3..=3,
    make: |_| Ok(Box::new(fdtd_3d()?)),
}];
