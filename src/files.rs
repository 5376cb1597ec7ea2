//! The files of a simulation in progress, which all processes write that have a part of it.

use std::path::Path;

use abide_core::backend::Part;

use crate::Result;
use crate::backend::Session;
use crate::io::parts::{Whole, agree};
use crate::io::{Provenance, Range, Staged, checkpoint, npy, npz};
use crate::program::Problem;

/// Does something with this process's part of a domain, which is all of it where there is one process.
fn with_part<R>(problem: &Problem, session: &mut dyn Session, work: impl FnOnce(&mut dyn Part) -> R) -> R {
    match session.part() {
        Some(part) => work(part),
        None => work(&mut Whole { problem, read: |field| session.read(field) }),
    }
}

/// Writes a checkpoint and has `put` put it in its place; returns in all processes how that ended.
pub(crate) fn write_checkpoint(
    problem: &Problem,
    session: &mut dyn Session,
    step: u64,
    pictured: Option<Range>,
    path: &Path,
    put: impl FnOnce(Staged) -> Result<()>,
) -> Result<()> {
    let (mut scalars, mut problem) = (session.scalars()?, problem.clone());
    let own = problem.program.scalars().len();
    for (member, scalars) in problem.batch.iter_mut().zip(scalars.chunks_exact(own.max(1))) {
        member.scalars = scalars.to_vec();
    }
    scalars.truncate(own);
    problem.scalars = scalars;
    with_part(&problem, session, |part| {
        let staged = checkpoint::write_pictured(path, &problem, step, pictured, part)?;
        agree(part, path, staged.map_or(Ok(()), put).map(|()| Vec::new())).map(drop)
    })
}

/// Writes a field to a `.npy` file beside its place; `None` in all processes but the first.
pub(crate) fn write_npy(
    problem: &Problem,
    session: &mut dyn Session,
    name: &str,
    path: &Path,
) -> Result<Option<Staged>> {
    let field = problem.program.field(name)?;
    with_part(problem, session, |part| npy::write_parts(path, problem, field, part))
}

/// Writes fields to a `.npz` file beside its place; `None` in all processes but the first.
pub(crate) fn write_npz(
    problem: &Problem,
    session: &mut dyn Session,
    names: &[String],
    provenance: Option<&Provenance>,
    path: &Path,
) -> Result<Option<Staged>> {
    let fields = names.iter().map(|name| problem.program.field(name)).collect::<Result<Vec<_>>>()?;
    with_part(problem, session, |part| npz::write_parts(path, problem, &fields, provenance, part))
}
