use abide_core::plan::Schedule;
use abide_core::*;
use abide_cpu::CpuBackend;
use std::sync::Arc;
#[test]
#[ignore]
fn timing() {
    let n = 960;
    let mut problem = Problem::unchecked(
        Arc::new(catalogue::cloverleaf().unwrap()),
        Shape::new(&[n, n]).unwrap(),
        DType::F64,
    );
    problem.parameters = vec![10.0 / n as f64, 10.0 / n as f64, 1.5, 0.04];
    problem.scalars[0] = 0.04;
    let backend = CpuBackend::with_threads(2).unwrap();
    for chunk in [544, 96, 128, 160, 192, 256, 320, 384, 544] {
        let fields: Vec<Array> = problem
            .program
            .fields()
            .iter()
            .enumerate()
            .map(|(f, name)| {
                let v = problem.values_of(f);
                Array::from_fn(DType::F64, v, |i| {
                    let (y, x) = (i / n, i % n);
                    let inside = y < n / 5 && x < n / 2;
                    match name.as_str() {
                        "density0" => {
                            if inside {
                                1.0
                            } else {
                                0.2
                            }
                        }
                        "energy0" => {
                            if inside {
                                2.5
                            } else {
                                1.0
                            }
                        }
                        _ => 0.0,
                    }
                })
            })
            .collect();
        let mut plan = backend.plan(&problem, &Options::default()).unwrap();
        if let Schedule::Cpu(cpu) = &mut plan.schedule {
            cpu.chunk = chunk;
        }
        let mut session = backend.open(&problem, &plan, fields).unwrap();
        session.advance(2).unwrap();
        let mut best = f64::MAX;
        for _ in 0..4 {
            best = best.min(session.advance(2).unwrap() / 2.0);
        }
        println!("chunk {chunk}: {:.1} ms a step", best * 1e3);
    }
}
