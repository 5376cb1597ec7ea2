//! Loops and solves of model files: they are what Rust says, and what is wrong about them has its place.

use abide_core::program::{Centring, Definition, Solve, SolveMethod};

const MODEL: &str = "axes = 2
boundary = 'mirror'

[fields]
u = 0
f = 1

[scalars]
change = { start = 1 }

[[stages]]
change = '1'

[[stages]]
repeat = 40
until = 'change <= 0.01'

[[stages.stages]]
name = 'sweep'
u = '0.25*(u[-1,0] + u[1,0] + u[0,-1] + u[0,1])'

[[stages.stages]]
change = '0.5*change'

[[stages]]
solve = 'u'
operator = 'u - 0.5*(u[-1,0] + u[1,0] - 2*u)'
rhs = 'f'
method = 'bicgstab'
tolerance = 1e-6
most = 50
";

#[test]
fn a_model_file_says_what_rust_says() {
    let mut p = Definition::new("loops", 2);
    p.boundary(abide_core::Boundary::Mirror).field("u", Centring::CELL).field("f", Centring::CELL);
    p.scalar("change", Some(1.0), "");
    let mut step = p.step();
    step.compute("change", |s| s.constant(1.0));
    step.repeat(40, Some("change <= 0.01"), |turn| {
        turn.stage("sweep", |s| {
            let u = s.field("u");
            s.set("u", 0.25 * (u.at([-1, 0]) + u.at([1, 0]) + u.at([0, -1]) + u.at([0, 1])));
        });
        turn.compute("change", |s| 0.5 * s.param("change"));
    });
    let how = Solve { method: SolveMethod::BiCgStab, tolerance: 1e-6, most: 50, ..Solve::default() };
    step.solve(
        "u",
        &how,
        &|s| {
            let u = s.field("u");
            u.here() - 0.5 * (u.at([-1, 0]) + u.at([1, 0]) - 2.0 * u.here())
        },
        &|s| s.field("f").here(),
    );
    let program = p.build().unwrap();
    let read = abide_text::read(MODEL, "loops.toml").unwrap().program;
    assert_eq!(read.phases(), program.phases());
    assert_eq!(read.kinds(), program.kinds());
    assert_eq!(read.steps(), program.steps());
    assert_eq!(abide_text::formulas(&read), abide_text::formulas(&program));
    // What is written of it is the same again.
    let written = abide_text::write(&read).unwrap();
    let again = abide_text::read(&written, "again.toml").unwrap().program;
    assert_eq!((again.phases(), again.kinds()), (read.phases(), read.kinds()), "{written}");
    assert_eq!(abide_text::formulas(&again), abide_text::formulas(&read));
}

#[test]
fn what_is_made_once_is_written_again() {
    let model = "axes = 1

[fields]
u = 1
k = 0

[[stages]]
once = true

[[stages.stages]]
k = '0.5*x'

[[stages]]
u = 'k*u'
";
    let read = abide_text::read(model, "once.toml").unwrap().program;
    assert_eq!(
        read.phases().iter().map(|phase| phase.repeat.is_some_and(|own| own.once)).collect::<Vec<_>>(),
        [true, false]
    );
    let written = abide_text::write(&read).unwrap();
    assert!(written.contains("once = true"), "{written}");
    let again = abide_text::read(&written, "again.toml").unwrap().program;
    assert_eq!((again.phases(), again.steps()), (read.phases(), read.steps()));
    for (to, words) in [("once = false", "it is not true"), ("once = true\nrepeat = 3", "are not repeated")] {
        let error = abide_text::read(&model.replace("once = true", to), "once.toml").unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("once.toml"), "{to}: {error}");
    }
}

/// A system that is solved directly is written as its transforms, and read again.
#[test]
fn transforms_are_written_again() {
    let model = "axes = 2
boundary = 'mirror'

[fields]
u = 0
f = 'random:1'

[[stages]]
solve = 'u'
operator = '5*u - u[-1,0] - u[1,0] - u[0,-1] - u[0,1]'
rhs = 'f'
method = 'direct'
";
    let read = abide_text::read(model, "direct.toml").unwrap().program;
    let written = abide_text::write(&read).unwrap();
    assert!(
        written.contains("transform = \"backward\"\nalong = \"y\"\nu_amplitudes = \"u_waves\""),
        "{written}"
    );
    let again = abide_text::read(&written, "again.toml").unwrap().program;
    assert_eq!((again.phases(), again.kinds(), again.steps()), (read.phases(), read.kinds(), read.steps()));
    assert_eq!(abide_text::formulas(&again), abide_text::formulas(&read));
    let stage =
        "[[stages]]\ntransform = 'forward'\nalong = 'x'\nu = 'f'\noperator = 'u[0,1] + u[0,-1] - 2*u'\n";
    let model = model[..model.find("[[stages]]").unwrap()].to_owned() + stage;
    abide_text::read(&model, "own.toml").unwrap();
    for (from, to, words) in [
        ("'forward'", "'sideways'", "forward"),
        ("along = 'x'", "along = 'w'", "none of the axes"),
        ("along = 'x'\n", "", "has no `along`"),
        ("u = 'f'", "u = 'f + 1'", "is no field"),
        ("u = 'f'", "u = 'f'\nf = 'u'", "sets one field"),
        ("+ u[0,-1]", "+ f[0,-1]", "coefficients change"),
        ("u[0,1]", "u[0,2]", "no neighbour along an axis"),
        ("u[0,1] + ", "uniform(1)*u[0,1] + ", "random"),
    ] {
        assert!(model.contains(from), "{from}");
        let error = abide_text::read(&model.replace(from, to), "own.toml").unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("own.toml"), "{to}: {error}");
    }
}

#[test]
fn what_is_wrong_has_its_place() {
    for (from, to, words) in [
        ("repeat = 40", "turns = 40", "key of a loop"),
        ("repeat = 40", "repeat = 0", "it has no turns"),
        ("repeat = 40\n", "", "does not say how often"),
        ("until = 'change <= 0.01'", "until = 'changes <= 0.01'", "changes"),
        ("rhs = 'f'\n", "", "has no `rhs`"),
        ("rhs = 'f'", "rhs = 'g'", "g"),
        ("operator = 'u - ", "operator = 'u*f + 1 - ", "not linear in u"),
        ("method = 'bicgstab'", "method = 'gauss'", "bicgstab"),
        ("tolerance = 1e-6", "tolerance = 0", "tolerance"),
        ("solve = 'u'", "solve = 'w'", "w"),
        ("most = 50", "null_space = 1", "neither true nor false"),
    ] {
        assert!(MODEL.contains(from), "{from}");
        let error = abide_text::read(&MODEL.replace(from, to), "loops.toml").unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("loops.toml"), "{to}: {error}");
    }
    // Terms are counted through the stages of a loop too.
    let all = "f = 'sum(sum(i*j for j in range(100)) for i in range(400)) + f'\n";
    let stage = "[[stages.stages]]\n";
    let text = MODEL.replacen(stage, &format!("{stage}{all}\n{stage}"), 1);
    assert_ne!(text, MODEL);
    let error = abide_text::read(&text, "loops.toml").unwrap_err().to_string();
    assert!(error.contains("terms of a model with each turn of its loops"), "{error}");
}
