//! Times a batch whose members run side by side against one member alone, which is the rate of a batch that runs one
//! member after another.
//!
//! `batches STENCIL SIZE MEMBERS`, as in `batches 2d5pt 64x64 4096`. `MANY` (1) of the plans that the planner finds
//! best are timed in each type, `BOUNDARY` names another boundary than the stencil's own. Each line has the rate in
//! GCells/s, how often it is that of a member alone, the estimate, whether the first and the last member have the bits
//! of runs alone, and the plan.

use abide_planner::resident;
use std::sync::Arc;

use abide_core::plan::Options;
use abide_core::{
    Array, Backend, Boundaries, DType, Plan, Problem, Result, Session, Shape, Start, catalogue,
};
use abide_cuda::CudaBackend;

/// Steps whose results are compared.
const STEPS: u64 = 29;

/// Returns the rate of a session in GCells/s, the median of five runs of about a fifth of a second.
fn rate(session: &mut dyn Session, cells: usize) -> Result<f64> {
    let first = session.advance(100)?.max(1e-6);
    let steps = (20.0 / first).clamp(100.0, 1e6) as u64;
    let mut seconds = (0..5).map(|_| session.advance(steps)).collect::<Result<Vec<_>>>()?;
    seconds.sort_by(f64::total_cmp);
    Ok(cells as f64 * steps as f64 / seconds[2] / 1e9)
}

fn words(plan: &Plan) -> String {
    let Some(tiles) = plan.resident() else { return plan.summary() };
    let report = plan.compiled.first().map_or((0, 0), |report| (report.registers, report.spill_bytes));
    format!(
        "{} blocks per SM of {} warps, {} planes ({} in registers) of {:?} cells; {} registers, {} bytes spilled{}",
        tiles.blocks_per_multiprocessor,
        tiles.warps,
        tiles.planes,
        tiles.planes_registers,
        tiles.cells_per_thread,
        report.0,
        report.1,
        plan.notes.iter().map(|note| format!("; {note}")).collect::<String>(),
    )
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [stencil, size, members] = arguments.as_slice() else {
        println!("usage: batches STENCIL SIZE MEMBERS");
        return Ok(());
    };
    let (shape, members): (Shape, usize) = (size.parse()?, members.parse().unwrap_or(0));
    let many = std::env::var("MANY").ok().and_then(|many| many.parse().ok()).unwrap_or(1);
    let program = Arc::new(catalogue::find(stencil)?.program(shape.dimensions())?);
    let backend = CudaBackend::new()?;
    for dtype in [DType::F64, DType::F32] {
        let mut problem = Problem::new(program.clone(), shape, dtype)?;
        if let Ok(text) = std::env::var("BOUNDARY") {
            problem.boundaries = Boundaries::all(text.parse()?);
        }
        problem.repeat(members)?;
        let start = |field: usize, member: usize| {
            let seed = (program.fields().len() * member + field) as u64;
            Start::Random { seed, low: 0.0, high: 1.0 }.fill(&shape, dtype)
        };
        let fields = 0..program.fields().len();
        let one = problem.member(0);
        let alone = backend.plan(&one, &Options::default())?;
        let mut expected = Vec::new();
        let mut best = 0.0;
        for member in [0, members - 1] {
            let own = fields.clone().map(|field| start(field, member)).collect::<Result<_>>()?;
            let mut session = backend.open(&one, &alone, own)?;
            session.advance(STEPS)?;
            expected.push(fields.clone().map(|field| session.read(field)).collect::<Result<Vec<_>>>()?);
            best = rate(&mut *session, shape.cells())?.max(best);
        }
        println!("{stencil} {size} {dtype}: alone {best:.2} GCells/s, {}", alone.summary());
        for plan in resident::batch_plans(&problem, backend.device(), &Options::default())?.iter().take(many)
        {
            let all = fields.clone().map(|field| {
                let parts = (0..members).map(|member| start(field, member));
                Array::join(dtype, members * shape.cells(), parts)
            });
            let mut session = backend.open(&problem, plan, all.collect::<Result<_>>()?)?;
            session.advance(STEPS)?;
            let mut same = true;
            for field in fields.clone() {
                let (all, cells) = (session.read(field)?, shape.cells());
                for (member, own) in [0, members - 1].into_iter().zip(&expected) {
                    same &= all.part(member * cells..(member + 1) * cells)?.same_bits(&own[field]);
                }
            }
            let rate = rate(&mut *session, members * shape.cells())?;
            let predicted = shape.cells() as f64 / plan.estimated_seconds / 1e9;
            println!(
                "{rate:8.1} GCells/s, {:6.1} times as many, predicted {predicted:8.1}, {}, {}",
                rate / best,
                if same { "ok" } else { "WRONG BITS" },
                words(session.plan())
            );
        }
    }
    Ok(())
}
