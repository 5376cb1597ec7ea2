use std::sync::Arc;
use std::time::Instant;

use abide_core::backend::Backend;
use abide_core::plan::blocks::{Form, plan_form};
use abide_core::{Array, Boundaries, Boundary, DType, Problem, Shape, catalogue};
use abide_wgpu::WgpuBackend;

fn main() {
    let a: Vec<String> = std::env::args().collect();
    let num = |i: usize| a[i].split('x').map(|n| n.parse().unwrap()).collect::<Vec<usize>>();
    let backend = WgpuBackend::new().unwrap();
    let extents = num(2);
    let dtype: DType = a[3].parse().unwrap();
    let mut problem = Problem::new(
        Arc::new(catalogue::find(&a[1]).unwrap().program(extents.len()).unwrap()),
        Shape::new(&extents).unwrap(),
        dtype,
    )
    .unwrap();
    problem.boundaries = Boundaries::parse(&a[4], Boundary::Fixed).unwrap();
    let threads: [usize; 3] = num(5).try_into().unwrap();
    let cells: [usize; 3] = num(6).try_into().unwrap();
    let form = Form { depth: a[7].parse().unwrap(), threads, cells, double: a[8] == "2" };
    let plan = plan_form(&problem, backend.device(), &form).expect("no fit");
    println!("{}", plan.summary());
    let fields: Vec<Array> = (0..problem.program.fields().len())
        .map(|_| Array::from_fn(dtype, problem.shape.cells(), |i| (i % 7) as f64 * 0.1))
        .collect();
    let k = abide_shaders::wgsl::kernels(&problem, &plan).unwrap();
    if a.len() > 9 {
        println!("{}", k[0].text);
        return;
    }
    println!("text {} lines", k[0].text.lines().count());
    let t = Instant::now();
    let mut s = backend.open(&problem, &plan, fields).unwrap();
    println!("open {:.2} s", t.elapsed().as_secs_f64());
    let t = Instant::now();
    s.advance(plan.depth as u64).unwrap();
    println!("run {:.3} s", t.elapsed().as_secs_f64());
}
