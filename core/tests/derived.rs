//! Parameters that are formulas of other parameters.

use std::sync::Arc;

use abide_core::program::{Centring, Definition, Program};
use abide_core::{DType, Parameter, Problem, Shape};

fn program() -> Program {
    let mut p = Definition::new("derived", 1);
    p.field("u", Centring::CELL).parameter("dt", 0.1, "").parameter("dx", 0.5, "");
    p.derived("courant", "steps a cell", |s| s.param("dt") / s.param("dx"));
    p.derived("square", "", |s| s.param("courant") * s.param("courant"));
    p.parameter("k", 2.0, "");
    p.step().stage("move", |s| s.set("u", s.field("u").here() * s.param("square") + s.param("k")));
    p.build().unwrap()
}

#[test]
fn formulas_of_parameters_follow_them() {
    let program = program();
    let values = |parameters: &[Parameter]| -> Vec<f64> {
        parameters.iter().map(|parameter| parameter.default).collect()
    };
    assert_eq!(values(program.parameters()), [0.1, 0.5, 0.1 / 0.5, (0.1 / 0.5) * (0.1 / 0.5), 2.0]);
    let mut own = values(program.parameters());
    own[0] = 0.3;
    program.derive(&mut own);
    assert_eq!(own[2..4], [0.3 / 0.5, (0.3 / 0.5) * (0.3 / 0.5)]);
    assert_eq!(program.dependents(&[1]), [1, 2, 3]);
    assert_eq!(program.dependents(&[4]), [4]);
    own[1] = 0.0;
    program.derive(&mut own);
    let error = program.check_derived(&own, DType::F64).unwrap_err().to_string();
    assert!(error.contains("courant") && error.contains("dt = 0.3 and dx = 0.0"), "{error}");
    let error = program.settable("courant").unwrap_err().to_string();
    assert!(error.contains("set dt, dx"), "{error}");
    assert_eq!(program.settable("k"), Ok(4));
    let problem = Problem::new(Arc::new(program), Shape::new(&[5]).unwrap(), DType::F32).unwrap();
    assert_eq!(problem.parameters[2], 0.2);
}

/// A program that is extended keeps them, and its numbers.
#[test]
fn they_stay_in_a_program_that_is_extended() {
    let before = program();
    let mut p = Definition::of(&before);
    p.scalar("time", Some(0.0), "");
    p.vary("k", |s| s.param("time"));
    p.extend(0).compute("time", |s| s.param("time") + s.param("dt"));
    let after = p.build().unwrap();
    assert_eq!(after.derived(), before.derived());
    let mut p = Definition::of(&before);
    p.scalar("time", Some(0.0), "").vary("dt", |s| s.param("time"));
    let error = p.build().unwrap_err().to_string();
    assert!(error.contains("courant") && error.contains("dt"), "{error}");
}

#[test]
fn other_values_are_refused() {
    let error = |define: fn(&mut Definition)| {
        let mut p = Definition::new("derived", 1);
        p.field("u", Centring::CELL).scalar("time", Some(0.0), "");
        define(&mut p);
        p.step().stage("move", |s| s.set("u", s.field("u").here()));
        p.build().unwrap_err().to_string()
    };
    assert!(error(|p| _ = p.derived("d", "", |s| s.param("time"))).contains("time"));
    assert!(error(|p| _ = p.derived("d", "", |s| s.field("u").here())).contains("field u"));
    assert!(error(|p| _ = p.derived("d", "", |s| s.coord(0))).contains("coordinate"));
    assert!(error(|p| _ = p.derived("d", "", |s| s.param("d"))).contains("`d`"));
}
