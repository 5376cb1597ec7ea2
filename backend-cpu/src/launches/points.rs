//! A stage at points alone: value by value, by one thread.

use abide_core::expr::Dag;
use abide_core::program::Launch;
use abide_core::{Real, Stage};

use super::field_rows::FieldRows;
use crate::shared::Shared;

/// Computes the new values of a stage at its points.
pub fn update<T: Real>(
    field_rows: &FieldRows,
    stage: &Stage,
    dag: &Dag,
    scalars: &[T],
    launch: &Launch,
    buffers: &[Shared<'_, T>],
) {
    let reads: Vec<Option<Shared<'_, T>>> =
        launch.reads.iter().map(|read| read.map(|buffer| buffers[buffer])).collect();
    let (mut nodes, mut new) = (Vec::new(), Vec::with_capacity(stage.points.len() * dag.outputs.len()));
    for point in &stage.points {
        let at = point.map(|index| index as isize);
        dag.evaluate(&mut nodes, scalars, at, |tap| {
            let [z, y, x] = [0, 1, 2].map(|axis| at[axis] + tap.offset[axis] as isize);
            let name = usize::from(tap.field);
            let mut value = [T::ZERO];
            field_rows.gather(field_rows.line(name, [z, y]), &reads, x, 0, &mut value);
            value[0]
        });
        new.extend(dag.outputs.iter().map(|&output| nodes[output as usize]));
    }
    for (output, (&name, target)) in stage.writes.iter().zip(&launch.writes).enumerate() {
        let Some(target) = *target else { continue };
        let kind = field_rows.kind(name);
        // SAFETY: nobody else uses the buffers between two launches, and every value has been read.
        unsafe {
            if let Some(old) = launch.reads[name].filter(|&old| old != target) {
                buffers[target].write(0..kind.len()).copy_from_slice(buffers[old].read(0..kind.len()));
            }
            for (point, new) in stage.points.iter().zip(new.chunks_exact(dag.outputs.len())) {
                let place = kind.position(point.map(|index| index as isize));
                buffers[target].write(place..place + 1)[0] = new[output];
            }
        }
    }
}
