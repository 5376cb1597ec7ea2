//! A stage as a function of what arrives and what the stage carries.

use abide_core::Boundary;
use abide_core::expr::{Id, Tap};
use abide_core::plan::streaming::carry::Slot;
use abide_core::plan::streaming::portable::Arrival;

use super::Writer;
use crate::emit::part;
use crate::text::{LETTERS, Text};
use crate::wgsl::language::Wgsl;
use crate::wgsl::moved;
use crate::wgsl::overlapped::coordinates;

impl Writer<'_> {
    /// Writes the function of a stage that is called when a plane arrives. It computes the plane's part of
    /// the formula of each cell that taps the plane.
    pub(super) fn function(&self, text: &mut Text, number: usize) {
        let (stage, arrival) = (&self.stages[number], &self.arrivals[number]);
        let carry = &arrival.carry;
        let letters = self.axes.padded(LETTERS);
        let coordinates = coordinates(stage).into_iter().map(|axis| format!("{}: i32", letters[axis][1]));
        let taps = (0..arrival.taps.len()).map(|tap| format!("t{tap}: real"));
        let slots = (0..carry.slots.len()).map(|slot| format!("k{slot}: real"));
        let level = self.varies().then(|| "level: i32".to_owned());
        let arguments: Vec<String> = taps.chain(slots).chain(coordinates).chain(level).collect();
        text.push(format!("struct Arrived{number} {{"));
        text.extend((0..self.fields()).map(|field| format!("v{field}: real,")));
        text.extend((0..carry.slots.len()).map(|slot| format!("k{slot}: real,")));
        text.push("}");
        text.push(format!("// {:?}", stage.name));
        text.push(format!("fn arrive{number}({}) -> Arrived{number} {{", arguments.join(", ")));
        text.push(format!("var arrived: Arrived{number};"));
        for plane in (carry.planes[0]..=carry.planes[1]).rev() {
            self.part(text, arrival, plane);
        }
        for (slot, what) in carry.slots.iter().enumerate() {
            if let Slot::Raw { field, age, across } = *what {
                let younger = Slot::Raw { field, age: age - 1, across };
                let from = match carry.slots.iter().position(|&other| other == younger) {
                    Some(from) if age > 0 => format!("k{from}"),
                    _ => self.tap(arrival, field, [0, across[0], across[1]]),
                };
                text.push(format!("arrived.k{slot} = {from};"));
            }
        }
        text.push("return arrived;");
        text.push("}");
        text.blank();
    }

    /// Writes the part of the formula that is computed when a plane arrives, for the cell from which that
    /// plane lies at offset `plane`.
    fn part(&self, text: &mut Text, arrival: &Arrival, plane: i32) {
        let (carry, axes) = (&arrival.carry, self.axes);
        let (wanted, kept) = carry.wanted(plane);
        if wanted.is_empty() {
            return;
        }
        let known = |id: Id| carry.known(id, plane, axes).map(|slot| format!("k{slot}"));
        let tap = |tap: Tap| {
            let [_, row, column] = axes.order(tap.offset);
            self.tap(arrival, tap.field, [0, row, column])
        };
        let language = Wgsl { index: self.index_of(plane), ..Wgsl::of(&self.problem.program) };
        let body = part(&carry.nodes, &wanted, known, &language, self.problem.dtype, tap);
        text.push(format!("{{ // The cell from which the plane lies at {plane:+}."));
        text.extend(&body.statements);
        let (new, carried) = body.outputs.split_at(wanted.len() - kept.len());
        text.extend(new.iter().enumerate().map(|(field, value)| format!("arrived.v{field} = {value};")));
        text.extend(kept.iter().zip(carried).map(|(slot, value)| format!("arrived.k{slot} = {value};")));
        text.push("}");
    }

    /// Returns the argument that holds a cell of the arriving plane.
    fn tap(&self, arrival: &Arrival, field: u16, offset: [i32; 3]) -> String {
        let tap = Tap { field, offset: self.axes.padded(offset) };
        format!("t{}", arrival.taps.iter().position(|&other| other == tap).unwrap_or_default())
    }

    /// Returns the coordinates of the cell from which the arriving plane lies at offset `plane`. For an image
    /// of a cell they are those of the cell itself.
    fn index_of(&self, plane: i32) -> [String; 3] {
        let moved = [moved(-plane as isize), String::new(), String::new()];
        let index = |axis: usize| {
            let [upper, letter] = LETTERS[axis];
            let index = format!("{letter}{}", moved[axis]);
            if self.sides[axis][0] == Boundary::Periodic && self.radius[axis] > 0 {
                return format!("source({index}, EXTENT_{upper}, LOW_{upper}, HIGH_{upper})");
            }
            index
        };
        self.axes.padded([index(0), index(1), index(2)])
    }
}
