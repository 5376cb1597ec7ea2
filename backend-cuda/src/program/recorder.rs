//! The rows of a record on their way from the device, whose memory holds a limited number of them.

use abide_core::program::{Record, Rows};
use abide_core::{Array, Problem, Result};

/// Bytes of rows in device memory.
const BYTES: usize = 4 << 20;

/// The host's side of a record.
pub struct Recorder {
    record: Record,
    /// Rows that the device has room for.
    room: u64,
    /// The most rows that the device may hold now.
    pending: u64,
    /// The step, counted from the start, up to which rows have been added.
    added: u64,
    rows: Rows,
}

impl Recorder {
    /// Makes the recorder of a problem, with room for the rows of at least `steps` steps. The first row records these
    /// initial fields. `None` if the problem records nothing.
    pub fn new(problem: &Problem, fields: &[Array], steps: u64) -> Result<Option<Recorder>> {
        let Some(record) = problem.record.clone() else { return Ok(None) };
        let rows = record.first(problem, fields)?;
        let room = ((BYTES / size_of::<f64>() / record.width().max(1)) as u64).max(steps + 1);
        Ok(Some(Recorder { record, room, pending: 0, added: problem.first_step, rows }))
    }

    /// Returns the values that device memory must have room for.
    pub fn values(&self) -> usize {
        self.values_of(self.room)
    }

    /// Returns the values of so many rows.
    pub fn values_of(&self, rows: u64) -> usize {
        rows as usize * self.record.width()
    }

    /// Returns the steps from one, counted from the start, to the next row.
    pub fn until_due(&self, step: u64) -> u64 {
        self.record.until_due(step)
    }

    /// Returns whether the device has room for the rows of the steps after `from` up to `to`.
    pub fn has_room(&self, from: u64, to: u64) -> bool {
        self.pending + self.record.due_between(from, to) <= self.room
    }

    /// Notes that the steps after `from` up to `to` were launched.
    pub fn launched(&mut self, from: u64, to: u64) {
        self.pending += self.record.due_between(from, to);
    }

    /// Returns whether the device may hold rows.
    pub fn has_pending(&self) -> bool {
        self.pending > 0
    }

    /// Adds all rows that the device held.
    pub fn add(&mut self, values: &[f64]) -> Result<()> {
        for row in values.chunks_exact(self.record.width().max(1)) {
            self.added += self.record.until_due(self.added);
            self.rows.push(self.added, row.iter().copied())?;
        }
        self.pending = 0;
        Ok(())
    }

    /// Returns the rows added since the last call.
    pub fn take(&mut self) -> Rows {
        self.rows.take()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use abide_core::catalogue::cloverleaf;
    use abide_core::{DType, Shape};

    use super::*;

    /// Rows that come in parts, after a start in the middle, have the steps at which they were due; the device
    /// is never asked to hold more than it has room for.
    #[test]
    fn rows_get_their_steps() {
        let shape = Shape::new(&[3, 4]).unwrap();
        let mut problem = Problem::new(Arc::new(cloverleaf().unwrap()), shape, DType::F64).unwrap();
        problem.first_step = 37;
        problem.record = Some(Record::new(&problem.program, 5, Vec::new()));
        let fields: Vec<Array> = (0..problem.program.fields().len())
            .map(|field| Array::zeros(DType::F64, problem.values_of(field)).unwrap())
            .collect();
        let mut recorder = Recorder::new(&problem, &fields, 3).unwrap().unwrap();
        recorder.room = 4;
        let (mut step, mut held, mut found) = (37, 0, Vec::new());
        for _ in 0..100 {
            let now = 1 + step % 7;
            if !recorder.has_room(step, step + now) {
                recorder.add(&vec![0.5; recorder.values_of(held)]).unwrap();
                held = 0;
                continue;
            }
            recorder.launched(step, step + now);
            held += recorder.record.due_between(step, step + now);
            assert!(held <= 4);
            step += now;
        }
        recorder.add(&vec![0.5; recorder.values_of(held)]).unwrap();
        found.extend(recorder.take().iter().map(|(step, _)| step));
        let expected: Vec<u64> =
            std::iter::once(37).chain((38..=step).filter(|step| step % 5 == 0)).collect();
        assert_eq!(found, expected);
        assert!(recorder.take().is_empty() && !recorder.has_pending());
    }
}
