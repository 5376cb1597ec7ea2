//! An error in a model file states its line and column, and what to change.

const MODEL: &str = "\
name = \"m\"
axes = 2
[fields]
u = \"random:1\"
f = { on = \"x-faces\" }
[parameters]
k = 0.1
[scalars]
time = 0.0
[[stages]]
a = \"u[-1,0] + k\"
u = \"u + a\"
[[stages]]
time = \"time + k\"
";

/// Reads the model with a part replaced, and returns the error.
fn fault(part: &str, other: &str) -> String {
    assert!(MODEL.contains(part), "{part}");
    abide_text::read(&MODEL.replacen(part, other, 1), "m.toml").unwrap_err().to_string()
}

#[test]
fn the_model_itself_is_read() {
    let model = abide_text::read(MODEL, "m.toml").unwrap();
    assert_eq!((model.program.stages().len(), model.program.scalars().len()), (2, 1));
}

/// What is made once in several steps is a reduction, in so many steps as a cycle may have.
#[test]
fn every_is_of_reductions() {
    let last = "[[stages]]\ntime = \"time + k\"";
    for (stage, at, said) in [
        ("[[stages]]\nevery = 4\ntime = \"time + k\"", "line 15, column 9", "the stage reduces nothing"),
        ("[[stages]]\nevery = 0\ntime = \"max(u)\"", "line 16, column 1", "0 asked, the limit is 1 to 1024"),
        (
            "[[stages]]\nevery = 1025\ntime = \"max(u)\"",
            "line 16, column 1",
            "1025 asked, the limit is 1 to 1024",
        ),
        (
            "[[stages]]\nevery = 4\nu = \"u\"",
            "line 15, column 9",
            "a stage of fields is computed in each step",
        ),
        (
            "[[stages]]\nevery = 31\ntime = \"max(u)\"\n[[stages]]\nevery = 37\nq = \"max(u)\"",
            "",
            "come round together",
        ),
    ] {
        let model = MODEL.replacen("time = 0.0", "time = 0.0\nq = 0.0", 1).replacen(last, stage, 1);
        let error = abide_text::read(&model, "m.toml").unwrap_err().to_string();
        assert!(error.contains(said) && error.contains(at), "{error}");
    }
    let model = MODEL.replacen(last, "[[stages]]\nevery = 4\ntime = \"max(u)\"", 1);
    let program = abide_text::read(&model, "m.toml").unwrap().program;
    let stages: Vec<usize> = program.steps().iter().map(ExactSizeIterator::len).collect();
    assert_eq!(stages, [2, 1, 1, 1]);
}

#[test]
fn faults_have_places_and_words() {
    let faults = [
        // The part, what stands there, where the fault is, and what is said.
        (
            "u[-1,0] + k",
            "u[-1,0] + q",
            "line 11, column 16",
            "no value is named `q`; use one of u, f, k, time",
        ),
        ("u[-1,0] + k", "u[-1] + k", "line 11, column 7", "the offset has 1 numbers, the model 2 axes"),
        ("u[-1,0] + k", "u[-1,0] +", "line 11, column 15", "the formula ends where a value should be"),
        ("u[-1,0] + k", "u[-1,0] k", "line 11, column 14", "`k` stands where an operator"),
        ("u[-1,0] + k", "u^2", "line 11, column 7", "write a power as u**2"),
        ("u[-1,0] + k", "(u < k < 2)*u", "line 11, column 13", "two relations follow each other"),
        ("u[-1,0] + k", "k[1,0]", "line 11, column 7", "k is no field"),
        ("u[-1,0] + k", "sqrt(u, k)", "line 11, column 6", "sqrt has 2 operands, and takes 1"),
        ("u[-1,0] + k", "root(u)", "line 11, column 6", "no function is named `root`; use one of abs, sqrt"),
        ("u[-1,0] + k", "sum(u)", "line 11, column 6", "sum is a reduction"),
        ("u[-1,0] + k", "u + max(u)", "line 11, column 10", "max of one value is a reduction"),
        ("u[-1,0] + k", "coord(z)", "line 11, column 6", "no axis is named `z`; use one of y, x"),
        ("u[-1,0] + k", "u[-1,0][1,0]", "line 11, column 13", "a second offset"),
        ("u[-1,0] + k", "u[99999999999,0]", "line 11, column 8", "is no offset in cells"),
        ("u[-1,0] + k", "u[9999,0]", "line 10", "offset of a tap: 9999 asked, the limit is 1024"),
        ("u[-1,0] + k", "f + k", "line 10", "stands on faces normal to x"),
        ("u[-1,0] + k", "((", "line 11, column 8", "the formula ends where a value should be"),
        ("u[-1,0] + k", "1.2.3", "line 11", "where an operator or the end should be"),
        ("a = \"u", "k = \"u", "line 11, column 1", "k is a parameter, which the run sets"),
        ("a = \"u", "time = \"u", "line 11, column 1", "the stage sets fields, and the scalar time"),
        ("time = \"time", "time = \"u", "line 14, column 1", "a scalar is no function of the field u"),
        ("time = \"time + k\"", "b = \"time\"", "line 13", "the stage sets no field and no scalar"),
        ("time = \"time + k\"", "time = 3", "line 14, column 8", "integer stands where a text in quotes"),
        ("time = 0.0", "time = {}", "line 1, column 1", "before a stage has made it"),
        ("axes = 2", "axes = 4", "line 2, column 8", "1 to 3 axes, not 4"),
        ("axes = 2", "axes = -1", "line 2, column 8", "a smaller whole number"),
        ("axes = 2", "", "line 1, column 1", "how many axes"),
        ("axes = 2", "axis = 2", "line 2, column 1", "no key of a model is named `axis`"),
        ("axes = 2", "axes = 2\nboundary = \"open\"", "line 3, column 12", "open"),
        ("axes = 2", "axes = 2\nshown = \"v\"", "line 1, column 1", "no field is named `v`"),
        ("\"random:1\"", "\"noise\"", "line 4, column 5", "no start is named `noise`"),
        ("\"random:1\"", "{ start = {} }", "line 4, column 15", "it names no kind of start"),
        ("\"random:1\"", "{ begin = 1 }", "line 4, column 7", "no key of a field is named `begin`"),
        ("\"x-faces\"", "\"z-faces\"", "line 5, column 12", "y-faces"),
        ("k = 0.1", "u = 0.1", "line 7, column 1", "stands for two things"),
        ("k = 0.1", "k = { about = \"none\" }", "line 7, column 1", "k has no default"),
        ("name = \"m\"", "name = ", "line 1, column 8", "TOML"),
        ("name = \"m\"", "base = \"none\"", "line 1, column 8", "no stencil is named `none`"),
    ];
    for (part, other, place, words) in faults {
        let error = fault(part, other);
        println!("{other}: {error}");
        assert!(error.starts_with("m.toml, ") && error.contains(place), "{other}: {error}");
        assert!(error.contains(words), "{other}: {error}");
    }
}

#[test]
fn what_would_take_the_stack_is_refused() {
    for deep in ["(".repeat(100_000), "-".repeat(100_000), "2**".repeat(100_000), "abs(".repeat(70)] {
        assert!(fault("u[-1,0] + k", &deep).contains("m.toml, line 11"));
    }
    let long = format!("u{}", " + u".repeat(50_000));
    assert!(abide_text::read(&MODEL.replace("u[-1,0] + k", &long), "m.toml").is_ok());
    let large = format!("{MODEL}# {}", "a".repeat(abide_text::MOST_BYTES));
    assert!(abide_text::read(&large, "m.toml").unwrap_err().to_string().contains("bytes of m.toml"));
}
