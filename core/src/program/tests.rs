//! What a definition refuses, and the text that helps.

use std::sync::Arc;

use super::{
    Centring, Definition, MAX_COMPONENTS, Precision, Problem, Reduction, Region, Solve, SolveMethod, Stage,
    Start, Wall,
};
use crate::domain::{Boundary, BoundaryText, Shape, Sides};
use crate::error::{Error, Result};
use crate::expr::{Node, Unary};
use crate::real::DType;

/// Returns the message of the fault that a definition on two axes has; it begins with cells `u`, `v`, nodes
/// `w`, a temporary `t` and a scalar `c`.
fn fault(define: impl FnOnce(&mut Definition)) -> String {
    match begun(define).build() {
        Ok(_) => "no fault".to_owned(),
        Err(fault) => fault.to_string(),
    }
}

fn begun(define: impl FnOnce(&mut Definition)) -> Definition {
    let mut p = Definition::new("faulty", 2);
    p.field("u", Centring::CELL).field("v", Centring::CELL).field("w", Centring::NODE);
    p.temporary("t", Centring::CELL).scalar("c", None, "a scalar").parameter("k", 1.0, "a parameter");
    define(&mut p);
    p
}

/// Returns the fault on a domain of 4×5 cells.
fn fault_on_a_domain(define: impl FnOnce(&mut Definition)) -> String {
    let on = |p: Definition| -> Result<Problem> {
        Problem::new(Arc::new(p.build()?), Shape::new(&[4, 5])?, DType::F64)
    };
    match on(begun(define)) {
        Ok(_) => "no fault".to_owned(),
        Err(fault) => fault.to_string(),
    }
}

/// Checks that a message has each of these parts.
fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

#[test]
fn a_sound_definition_has_no_fault() {
    let sound = |p: &mut Definition| {
        let mut step = p.step();
        step.stage("set", |s| s.set("t", s.field("u").here() + s.param("k")));
        step.reduce("c", Reduction::Max, Centring::CELL, |s| s.field("t").here());
        step.stage("use", |s| s.set("v", s.field("t").here() * s.param("c")));
    };
    assert_eq!(fault(sound), "no fault");
    assert_eq!(fault_on_a_domain(sound), "no fault");
}

#[test]
fn here_is_where_the_values_stand() {
    let message = fault(|p| {
        p.step().stage("mixed", |s| s.set("u", s.field("w").here()));
    });
    says(&message, &["stencil mixed", "reads w", "nodes of y and x", "stand on cells", "say by `at`"]);
    let message = fault(|p| {
        p.step().reduce("c", Reduction::Sum, Centring::NODE, |s| s.field("u").here());
    });
    says(&message, &["stage c", "reads u, which stands on cells", "say by `at`"]);
}

#[test]
fn outputs_of_a_stage_stand_alike() {
    let message = fault(|p| {
        p.step().stage("both", |s| {
            s.set("u", s.constant(1.0));
            s.set("w", s.constant(1.0));
        });
    });
    says(&message, &["stencil both", "sets u, which stands on cells, and w", "a stage for each"]);
}

#[test]
fn a_reduction_has_values() {
    let message = fault(|p| {
        p.step().reduce("c", Reduction::Sum, Centring::CELL, |s| s.param("k"));
    });
    says(&message, &["stage c", "reduction of nothing: the formula reads no field", "read a field"]);
    let message = fault_on_a_domain(|p| {
        let inner = Region::from(Centring::CELL).without(2, 3, 2);
        p.step().reduce("c", Reduction::Min, inner, |s| s.field("u").here());
    });
    says(&message, &["stage c", "reduction of nothing: the margins leave none", "choose a larger size"]);
}

#[test]
fn scalars_are_made_before_they_are_used() {
    let message = fault(|p| {
        p.step().stage("early", |s| s.set("u", s.field("u").here() * s.param("c")));
    });
    says(&message, &["stage early", "the scalar c before a stage has made it", "before this one"]);
    let message = fault(|p| {
        p.step().compute("c", |s| s.param("c") + 1.0);
    });
    says(&message, &["stage c", "the scalar c before a stage has made it"]);
    // Made in the first step of the cycle, it is there in the second.
    let message = fault(|p| {
        p.step().compute("c", |s| s.param("k") + 1.0);
        p.step().stage("late", |s| s.set("u", s.field("u").here() * s.param("c")));
    });
    assert_eq!(message, "no fault");
}

#[test]
fn scalars_are_functions_of_scalars_and_stages_make_computed_ones() {
    let message = fault(|p| {
        p.step().compute("c", |s| s.field("u").here());
    });
    says(&message, &["stage c", "no function of the field u", "reduce the field to a scalar first"]);
    let message = fault(|p| {
        p.step().compute("c", |s| s.coord(0));
    });
    says(&message, &["stage c", "no function of a coordinate"]);
    let message = fault(|p| {
        p.step().compute("k", |s| s.constant(1.0));
    });
    says(&message, &["computed scalar", "k", "c"]);
}

#[test]
fn temporaries_are_made_in_the_step_before_they_are_read() {
    let message = fault(|p| {
        p.step().stage("early", |s| s.set("u", s.field("t").at([0, 1])));
    });
    says(&message, &["stage early", "the temporary t before a stage has made it", "before this one"]);
    // What another step of the cycle made is gone.
    let message = fault(|p| {
        p.step().stage("make", |s| s.set("t", s.field("u").here()));
        p.step().stage("late", |s| s.set("u", s.field("t").here()));
    });
    says(&message, &["stage late", "the temporary t before a stage has made it"]);
    let message = fault(|p| {
        p.step().stage("itself", |s| s.set("t", s.field("t").at([0, 1]) + 1.0));
    });
    says(&message, &["stage itself", "defines the temporary t by t itself", "make it a field"]);
}

#[test]
fn names_are_known_and_stand_for_one_thing() {
    for twice in ["u", "t", "c", "k", ""] {
        let message = fault(|p| {
            p.field(twice, Centring::CELL);
        });
        says(&message, &["program faulty", &format!("the name `{twice}` is empty or stands for two things")]);
    }
    let message = fault(|p| {
        p.extent("k", 0, "a name taken");
    });
    says(&message, &["the name `k` is empty or stands for two things", "a name of its own"]);
    let message = fault(|p| {
        p.boundary_of("q", "x=mirror");
    });
    says(&message, &["field", "`q`", "u", "v", "w"]);
    // A temporary has no boundary and no start.
    for message in [
        fault(|p| {
            p.boundary_of("t", "x=mirror");
        }),
        fault(|p| {
            p.start("t", Start::Constant(1.0));
        }),
    ] {
        says(&message, &["field", "`t`", "u"]);
    }
    let message = fault(|p| {
        p.boundary_of("u", "x=open");
    });
    says(&message, &["open", "mirror", "reflect"]);
    let message = fault(|p| {
        p.shown("t").step().compute("c", |s| s.constant(1.0));
    });
    says(&message, &["field", "`t`"]);
    let message = fault(|p| {
        p.step().stage("lost", |s| s.set("u", s.field("q").here()));
    });
    says(&message, &["field", "`q`"]);
}

#[test]
fn a_field_is_set_once_a_stage() {
    let message = fault(|p| {
        p.step().stage("twice", |s| {
            s.set("u", s.constant(1.0));
            s.set("u", s.constant(2.0));
        });
    });
    says(&message, &["field u", "set twice in one stage", "set each field once a stage"]);
    let message = fault(|p| {
        p.step().stage("none", |_| ());
    });
    says(&message, &["stencil none", "sets no field"]);
}

#[test]
fn steps_have_stages() {
    says(&fault(|_| ()), &["program faulty", "no step", "Definition::step"]);
    says(
        &fault(|p| {
            p.step();
        }),
        &["program faulty", "a step has no stages"],
    );
}

#[test]
fn fixed_sides_have_no_ghost_values() {
    // The outermost values, as many as the program's radius, are not computed; a field that is mirrored is
    // computed up to its sides, and reads a fixed one beyond.
    let reads_beyond = |p: &mut Definition| {
        p.boundary_of("u", "mirror");
        p.step().stage("beyond", |s| s.set("u", s.field("v").at([0, -1])));
    };
    let message = fault_on_a_domain(reads_beyond);
    says(&message, &["stage beyond", "reads v beyond the low side of axis x", "another boundary there"]);
    let message = fault_on_a_domain(|p| {
        reads_beyond(p);
        p.boundary_of("v", "x-=mirror");
    });
    assert_eq!(message, "no fault");
}

/// An extent is the domain's number of cells, whatever stands on them.
#[test]
fn extents_are_the_domains() -> Result<()> {
    let program = Arc::new({
        let mut p = begun(|p| {
            p.extent("rows", 0, "cells along y").extent("columns", 1, "cells along x");
            p.step().stage("last", |s| s.set("u", s.coord(1).eq(s.param("columns") - 1.0)));
        });
        p.step().compute("c", |s| s.param("rows") * s.param("columns"));
        p.build()?
    });
    let shape = Shape::new(&[4, 5])?;
    let mut problem = Problem::new(program.clone(), shape, DType::F64)?;
    let scalar = |problem: &Problem, name: &str| problem.scalars[program.scalar(name).unwrap_or(0)];
    assert_eq!((scalar(&problem, "rows"), scalar(&problem, "columns")), (4.0, 5.0));
    assert!(!program.is_plain());
    problem.shape = Shape::new(&[4, 6])?;
    let message = problem.check().err().map(|fault: Error| fault.to_string()).unwrap_or_default();
    says(&message, &["scalar columns", "it is 5, and the domain has 6 cells along its axis", "anew"]);

    let message = fault(|p| {
        p.extent("layers", 2, "cells along a third axis");
    });
    says(&message, &["axis of the extent layers", "use an axis of the program"]);
    let message = fault(|p| {
        p.extent("rows", 0, "cells along y").step().compute("rows", |s| s.constant(1.0));
    });
    says(&message, &["computed scalar", "rows"]);
    Ok(())
}

#[test]
fn edges_lie_along_their_axis() {
    assert_eq!(Centring::edge(2, 0), Centring::face(2, 1));
    assert_eq!(Centring::edge(3, 0).to_string(), "nodes of y and x");
    let shape = Shape::new(&[2, 3, 4]).unwrap();
    let boundaries = crate::domain::Boundaries::all(Boundary::Mirror);
    assert_eq!(Centring::edge(3, 2).extents(&shape, &boundaries), [3, 4, 4]);
}

#[test]
fn points_are_points_of_fields() {
    let at = |points: &'static [[usize; 2]]| {
        move |p: &mut Definition| {
            p.step().points("source", points, |s| s.set("w", s.field("w").here() + s.param("k")));
        }
    };
    assert_eq!(fault_on_a_domain(at(&[[0, 0], [4, 5]])), "no fault");
    says(&fault_on_a_domain(at(&[[1, 6]])), &["point of stage source", "[1, 6]", "[5, 6] values of w"]);
    says(&fault(at(&[[1, 2], [0, 0], [1, 2]])), &["stage source", "the point [1, 2] is given twice"]);
    says(&fault(at(&[])), &["it has 0 points", "give a point at least"]);
    let message = fault(|p| {
        p.step().points("line", &[[3]], |s| s.set("u", s.constant(1.0)));
    });
    says(&message, &["1 points of 1 indices on 2 axes"]);
    let message = fault(|p| {
        p.step().points("beside", &[[3, 3]], |s| s.set("t", s.constant(1.0)));
    });
    says(&message, &["stage beside", "sets a temporary"]);
}

#[test]
fn components_are_fields_that_share_what_is_said_of_their_name() {
    let mut p = Definition::new("species", 1);
    p.components("Y", 3, Centring::CELL).field("u", Centring::CELL);
    p.boundary_of("Y", "x=mirror").start("Y", Start::Constant(0.25)).boundary_of("Y[2]", "x=clamp");
    p.step().stage("mix", |s| {
        let all = s.sum(0..3, |i| s.component("Y", i).here());
        (0..3).for_each(|i| s.set_component("Y", i, s.component("Y", i).here() / all));
    });
    let program = p.build().unwrap();
    assert_eq!(program.fields(), ["Y[0]", "Y[1]", "Y[2]", "u"]);
    assert_eq!(program.fields_of("Y").unwrap(), [0, 1, 2]);
    assert_eq!(program.fields_of("Y[1]").unwrap(), [1]);
    says(&program.fields_of("Y[3]").unwrap_err().to_string(), &["no field is named `Y[3]`"]);
    let sides = |field: usize| program.kinds()[field].sides.to_string();
    assert_eq!([sides(1), sides(2), sides(3)], ["x-=mirror,x+=mirror", "x-=clamp,x+=clamp", ""]);
    assert_eq!(program.start(2), &Start::Constant(0.25));
    let text: BoundaryText = "Y:x=periodic".parse().unwrap();
    let own = text.of_fields(program.fields(), 1).unwrap();
    assert_eq!(own[2].to_string(), "x-=periodic,x+=periodic");
    assert_eq!(own[3], Sides::default());
    let none = |p: &mut Definition| {
        p.components("none", 0, Centring::CELL);
    };
    says(&fault(none), &["components of field none"]);
}

#[test]
fn parts_are_added_to_a_program() {
    let wave = crate::catalogue::find("wave").unwrap().program(2).unwrap();
    let mut p = Definition::of(&wave);
    let (name, default) = (wave.parameters()[0].name.clone(), wave.parameters()[0].default);
    p.scalar("time", Some(0.0), "time");
    p.vary(&name, |s| 0.1 + 0.01 * s.param("time")).extend(0).compute("time", |s| s.param("time") + 1.0);
    let program = p.build().unwrap();
    assert_eq!((program.fields(), program.kinds()), (wave.fields(), wave.kinds()));
    assert_eq!(program.parameters().len() + 1, wave.parameters().len());
    let varying = &program.scalars()[program.scalar(&name).unwrap()];
    assert_eq!(varying.initial, Some(default));
    let names: Vec<&str> = program.stages().iter().map(|stage| &*stage.name).collect();
    assert_eq!((names[0], names[names.len() - 1]), (&*name, "time"));

    let varied = |p: &mut Definition| {
        p.vary("c", |s| s.constant(1.0));
    };
    says(&fault(varied), &["no parameter is named `c`", "k"]);
    let extended = |p: &mut Definition| {
        p.extend(0);
    };
    says(&fault(extended), &["step of program faulty", "Definition::step"]);
}

#[test]
fn ghost_values_of_a_scalar_need_one_that_has_a_value() {
    let with = |text: &'static str| {
        fault_on_a_domain(move |p| {
            p.boundary_of("u", text).scalar("time", Some(0.0), "time").step().stage("set", |s| {
                s.set("v", s.field("u").at([0, -1]));
            });
        })
    };
    assert_eq!(with("x-=constant=k,x+=constant=time,y=clamp"), "no fault");
    says(&with("x=constant=q"), &["no scalar is named `q`", "k, c, time"]);
    says(&with("x=constant=c"), &["boundary constant=c", "no value before the first step"]);
    let text: BoundaryText = "constant=time".parse().unwrap();
    assert_eq!(text.resolve(Boundary::Fixed, 2).unwrap().describe(2), "constant=time");
    for bad in ["constant=inf", "constant=1x", "constant=", "constant=a b"] {
        assert!(bad.parse::<Boundary>().unwrap_err().to_string().contains("name of a scalar"), "{bad}");
    }
    assert!("constant=a_name_that_is_longer_than_thirty_one".parse::<Boundary>().is_err());
}

#[test]
fn thousands_of_components_are_arrays_of_a_plain_program() {
    let define = |count: usize, is_plain: bool| {
        let mut p = Definition::new("wide", 1);
        p.components("x", 100, Centring::CELL).field("u", Centring::CELL).components(
            "y",
            count,
            Centring::CELL,
        );
        if !is_plain {
            p.scalar("time", Some(0.0), "steps done");
        }
        p.step().stage("all", |s| {
            let x = s.components("x");
            s.set_components("y", |i| x.at(i.plus(0)) * 2.0);
            s.set("u", x.at(s.graph().index(3)));
        });
        p
    };
    // Few are each an array; many are one, but a field alone keeps its own.
    let few = define(20, true).build().unwrap();
    assert_eq!(few.arrays().len(), 121);
    let stage = &few.stages()[0];
    assert_eq!((stage.set_alone(), &stage.writes[..3]), (&[100][..], &[100, 101, 102][..]));
    let many = define(100, true).build().unwrap();
    assert_eq!(many.arrays(), [0..100, 100..101, 101..201]);
    let message = |p: Definition| p.build().unwrap_err().to_string();
    assert!(message(define(100, false)).contains("128"), "of a program that is not plain");
    let mut p = Definition::new("too wide", 1);
    p.components("x", MAX_COMPONENTS + 1, Centring::CELL);
    p.step().stage("all", |s| s.set_component("x", 0, s.constant(0.0)));
    assert!(message(p).contains("8192"));
    // Components that are set one by one are not of one array.
    let mut p = Definition::new("scattered", 1);
    p.components("x", 300, Centring::CELL);
    p.step().stage("all", |s| {
        (0..300).step_by(2).for_each(|number| s.set_component("x", number, s.constant(0.0)));
    });
    assert!(message(p).contains("split the program"));
    let mut p = Definition::new("twice", 1);
    p.components("x", 3, Centring::CELL);
    p.step().stage("all", |s| {
        s.set_component("x", 1, s.constant(0.0));
        s.set_components("x", |i| i.value());
    });
    assert!(message(p).contains("set twice"));
    let mut p = Definition::new("rows", 1);
    p.components("x", 10, Centring::CELL);
    p.step().stage("all", |s| s.set_components_of("x", 3, |i, _| i.value()));
    assert!(message(p).contains("a divisor of its 10 components"));
}

/// Of a rule for ghost cells and a condition at one side of a field, the later one holds.
#[test]
fn the_later_of_a_rule_and_a_condition_holds() {
    let walls = |define: &dyn Fn(&mut Definition)| {
        let mut p = Definition::new("walls", 2);
        p.field("u", Centring::CELL).boundary(Boundary::Mirror);
        define(&mut p);
        p.step().stage("step", |s| s.set("u", s.field("u").here() + s.field("u").laplacian()));
        p.build().unwrap().words_of_walls()
    };
    let one = |p: &mut Definition| {
        p.wall("u", "y+", |s| Wall::dirichlet(s.constant(1.0)));
    };
    let expected = ["u y+: dirichlet"];
    assert_eq!(walls(&one), expected);
    assert_eq!(
        walls(&|p| {
            p.boundary_of("u", "x=constant=0,y=-mirror").boundaries("u:y+=reflect");
            one(p);
        }),
        expected
    );
    assert!(
        walls(&|p| {
            one(p);
            p.boundary_of("u", "y=-mirror");
        })
        .is_empty()
    );
}

/// A copy within a precision needs no rounding where it reads no boundary, whose values are none of the precision.
#[test]
fn copies_are_rounded_where_they_may_read_a_boundary() {
    let mut p = Definition::new("copies", 1);
    p.boundary(Boundary::Mirror).field("u", Centring::CELL).field("v", Centring::CELL);
    p.field("f", Centring::face(1, 0)).boundary_of("u", "constant=0.1");
    for name in ["u", "v", "f"] {
        p.precision(name, Precision::F16);
    }
    p.step()
        .stage("beside", |s| s.set("v", s.field("u").here()))
        .stage("faces", |s| s.set("f", s.field("u").at([0])))
        .stage("moved", |s| s.set("v", s.field("u").at([1])));
    let program = p.build().unwrap();
    let is_rounded = |stage: &Stage| {
        let output = stage.dag.outputs[0] as usize;
        matches!(stage.dag.nodes[output], Node::Unary(Unary::RoundF16, _))
    };
    assert_eq!(program.stages().iter().map(is_rounded).collect::<Vec<_>>(), [false, true, true]);
}

/// Precisions decide what formulas compute, so that they come first, and a system's residual needs all bits of its unknown.
#[test]
fn precisions_that_come_late_and_of_unknowns_are_refused() {
    let with_u = || {
        let mut p = Definition::new("late", 2);
        p.field("u", Centring::CELL).field("v", Centring::CELL);
        p
    };
    let refused = |p: Definition| p.build().unwrap_err().to_string();
    let mut late = with_u();
    late.step().stage("read", |s| s.set("v", s.field("u").here()));
    late.precision("u", Precision::F32);
    assert!(refused(late).contains("a stage before reads or sets the field"));
    for method in [SolveMethod::Cg, SolveMethod::Multigrid, SolveMethod::BiCgStab] {
        let mut p = with_u();
        p.precision("u", Precision::F32);
        let how = Solve { method, ..Solve::default() };
        p.step()
            .solve("u", &how, &|s| s.field("u").here() - s.field("u").laplacian(), &|s| s.field("v").here());
        let error = refused(p);
        assert!(error.contains("unknown u of a solve") && error.contains("rounded to f32"), "{error}");
    }
}
