//! What is beyond the sides of a domain.

use abide_core::Result;
use abide_core::domain::axis_name;
use abide_core::program::Definition;

use super::{Flow, Uniform, start};

/// What is beyond a side of a flow's domain.
#[derive(Debug, Clone, PartialEq)]
pub enum Side {
    /// The other side.
    Periodic,
    /// A wall along which the gas slips, without a flux of heat.
    Slip,
    /// A wall at which the gas rests, without a flux of heat.
    NoSlip,
    /// The flow goes on as it is at the side.
    Outflow,
    /// The flow goes on as it is at the side, at this pressure in Pa.
    Pressure(f64),
    /// A flow of this state comes in.
    Inflow(Uniform),
}

/// Gives the fields of a flow their boundaries.
pub(super) fn declare(p: &mut Definition, flow: &Flow) -> Result<()> {
    if flow.sides.iter().flatten().all(|side| *side == Side::Periodic) {
        return Ok(());
    }
    let names = flow.names();
    let mut texts: Vec<(String, Vec<String>)> =
        start::names(flow).into_iter().map(|name| (name, Vec::new())).collect();
    for (axis, sides) in flow.sides.iter().enumerate() {
        for (what, sign) in sides.iter().zip(["-", "+"]) {
            let values = match what {
                Side::Inflow(state) => flow.uniform(state)?,
                _ => Vec::new(),
            };
            for (name, text) in &mut texts {
                let is_velocity = (0..flow.axes).any(|other| names.velocity(other) == name);
                let is_normal = names.velocity(axis) == name;
                let value = values.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
                let rule = match (what, value) {
                    (Side::Periodic, _) => "periodic".to_owned(),
                    (Side::Slip, _) if is_normal => "-mirror".to_owned(),
                    (Side::NoSlip, _) if is_velocity => "-mirror".to_owned(),
                    (Side::Slip | Side::NoSlip, _) => "mirror".to_owned(),
                    (Side::Pressure(pressure), _) if name == "p" => format!("constant={pressure}"),
                    (Side::Inflow(_), Some(value)) => format!("constant={value}"),
                    _ => "clamp".to_owned(),
                };
                text.push(format!("{}{sign}={rule}", axis_name(3 - flow.axes + axis)));
            }
        }
    }
    for (name, text) in texts {
        p.boundary_of(&name, &text.join(","));
    }
    Ok(())
}
