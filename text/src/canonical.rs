//! Programs in one form each, to be compared.

use std::collections::HashMap;
use std::fmt::Write;

use abide_core::domain::{Sides, axis_name};
use abide_core::expr::{Dag, Id, Tap};
use abide_core::program::{Centring, Program, Repeat, Stage, StageKind};

use crate::print::{Names, lines};

/// Returns what a program computes as lines of text, the same for programs that compute the same by the same formulas:
/// fields with the places of their values, boundaries, parameters, scalars, and the formulas of all stages.
///
/// Values that a run or its checkpoint brings are left out: starts, defaults of parameters, scalars before the first
/// step, the condition that ends a run. So are names of stages and words of explanation. The order in which a formula's
/// parts were defined, and loops or the same turns written out, make no difference.
pub fn formulas(program: &Program) -> String {
    described(program, false)
}

/// Returns all of a program as [`formulas`] does, with values, names and words.
pub(crate) fn whole(program: &Program) -> String {
    described(program, true)
}

/// Says the grid in space and the conditions at walls, which the formulas of a problem already hold.
fn described_space(program: &Program, line: &mut impl FnMut(String)) {
    let scalars = scalars(program);
    let names =
        Names { dimensions: program.dimensions(), fields: &[], scalars: &scalars, stands_alike: &|_| true };
    for (what, formulas) in [("spacing", &program.grid().spacing), ("origin", &program.grid().origin)] {
        for (axis, dag) in formulas.iter().enumerate().filter_map(|(axis, dag)| Some((axis, dag.as_ref()?))) {
            line(format!("{what} {}: {}", axis_name(axis), joined(dag, &["value"], &names)));
        }
    }
    for wall in program.walls() {
        let (field, side) = (&program.fields()[wall.field], wall.side_name());
        let values = &["a", "b", "c"][..wall.condition.values()];
        line(format!("{field} {side}: {} {}", wall.condition.name(), joined(&wall.dag, values, &names)));
    }
}

fn described(program: &Program, is_whole: bool) -> String {
    let axes = program.dimensions();
    let mut text = String::new();
    let mut line = |words: String| {
        // A name cannot begin a line of its own.
        text.extend(words.escape_debug());
        text.push('\n');
    };
    line(format!("axes: {axes}"));
    line(format!("boundary: {}", program.boundaries().describe(axes)));
    if is_whole {
        described_space(program, &mut line);
    }
    if is_whole {
        line(format!("name: {}", program.name()));
        line(format!("shown: {}", program.fields()[program.shown()]));
        line(format!("until: {}", program.until().map_or(String::new(), |until| until.describe(program))));
    }
    for (number, (name, kind)) in program.fields().iter().zip(program.kinds()).enumerate() {
        let mut words = format!("field {name}: on {}", kind.centring.words(axes));
        if let Some((other, how)) = kind.follows {
            write!(words, ", {} {}", how.word(), program.fields()[other]).ok();
        }
        if let Some(precision) = kind.precision {
            write!(words, ", precision {precision}").ok();
        }
        if kind.sides != Sides::default() {
            write!(words, ", boundary {}", kind.sides).ok();
        }
        if is_whole {
            write!(words, ", start {:?}", program.start(number)).ok();
        }
        line(words);
    }
    for temporary in program.temporaries() {
        line(format!("temporary {}: on {}", temporary.name, temporary.centring.words(axes)));
    }
    let (fields, scalars) = (program.names(), scalars(program));
    let names = Names { dimensions: axes, fields: &fields, scalars: &scalars, stands_alike: &|_| true };
    for (number, parameter) in program.parameters().iter().enumerate() {
        let derived = program.derived().iter().find(|derived| derived.parameter == number);
        let mut words = format!("parameter {}", parameter.name);
        if let Some(derived) = derived {
            write!(words, ": {}", joined(&derived.dag, &[&parameter.name], &names)).ok();
        } else if is_whole {
            write!(words, ": {:?}", parameter.default).ok();
        }
        if is_whole {
            write!(words, ", about {}", parameter.about).ok();
        }
        line(words);
    }
    for scalar in program.scalars() {
        let mut words = format!("scalar {}", scalar.name);
        if let Some(axis) = scalar.extent {
            write!(words, ": the extent of {}", axis_name(3 - axes + axis)).ok();
        }
        if is_whole {
            write!(words, ", start {:?}, about {}", scalar.initial, scalar.about).ok();
        }
        line(words);
    }
    let mut number = 0;
    for (place, step) in program.steps().iter().enumerate() {
        if let Some(Repeat { most, until, .. }) = program.repeat(place) {
            let until = until.map_or(String::new(), |until| format!(" until {}", until.describe(program)));
            line(format!("step {}, repeat {most}{until}: {} stages", number + 1, step.len()));
        }
        for stage in &program.stages()[step.clone()] {
            line(format!(
                "step {}{}",
                number + 1,
                stage_words(program, stage, [&fields, &scalars], is_whole)
            ));
        }
        number += usize::from(program.ends_step(place));
    }
    text
}

/// Returns what a stage computes and where, with the names of fields and scalars.
fn stage_words(
    program: &Program,
    stage: &Stage,
    [fields, scalars]: [&[String]; 2],
    is_whole: bool,
) -> String {
    let axes = program.dimensions();
    let mut words = String::new();
    if is_whole && stage.does == StageKind::Update {
        write!(words, ", stage {}", stage.name).ok();
    }
    if !stage.points.is_empty() {
        write!(words, ", points {:?}", stage.points).ok();
    }
    if let StageKind::Reduce(reduction, region, _) = stage.does {
        let on = region.centring.words(axes);
        write!(words, ", {reduction:?} over {on} without {:?}", region.margins).ok();
        if let Some(tap) = counted(program, stage) {
            write!(words, ", as many as {} has", fields[usize::from(tap.field)]).ok();
        }
    }
    if let StageKind::Transform(transform) = stage.does {
        write!(words, ", {} along {}", transform.matrix.name(), axis_name(transform.axis)).ok();
    }
    let sets: Vec<&str> = match stage.does.scalar() {
        None if stage.transformed().is_some() => vec![&fields[stage.writes[0]], "operator"],
        Some(scalar) => vec![&scalars[scalar]],
        None => {
            let mut writes = stage.writes.clone();
            writes.sort_unstable();
            writes.into_iter().map(|field| &*fields[field]).collect()
        }
    };
    let own = place(program, stage);
    let stands_alike = |field: usize| program.centring(field) == own;
    let names = Names { dimensions: axes, fields, scalars, stands_alike: &stands_alike };
    let formulas = joined(&sorted(stage), &sets, &names);
    write!(words, ": {formulas}").ok();
    words
}

/// Returns where the values of a stage stand.
pub(crate) fn place(program: &Program, stage: &Stage) -> Centring {
    match stage.does {
        StageKind::Update | StageKind::Transform(_) => program.centring(stage.writes[0]),
        StageKind::Reduce(_, region, _) => region.centring,
        StageKind::Scalar(_) => Centring::CELL,
    }
}

/// Returns the tap whose field says how many values a reduction takes, where fields that stand alike may have more or
/// fewer of them: the first that the formula meets.
pub(crate) fn counted(program: &Program, stage: &Stage) -> Option<Tap> {
    let StageKind::Reduce(_, region, _) = stage.does else { return None };
    let kind = |tap: &Tap| program.kinds().get(usize::from(tap.field));
    let stands_there = |tap: &Tap| kind(tap).is_some_and(|kind| kind.centring == region.centring);
    let mut taps = stage.dag.taps().filter(stands_there);
    let first = taps.next().filter(|_| !region.centring.is_cell())?;
    taps.any(|tap| tap.field != first.field).then_some(first)
}

/// Returns the names of parameters and computed scalars, by their numbers in formulas.
pub(crate) fn scalars(program: &Program) -> Vec<String> {
    let parameters = program.parameters().iter().map(|parameter| &parameter.name);
    parameters.chain(program.scalars().iter().map(|scalar| &scalar.name)).cloned().collect()
}

/// Returns a formula in one line, with the names of its values.
fn joined(dag: &Dag, sets: &[&str], names: &Names<'_>) -> String {
    let dag = canonical(dag);
    let Ok(lines) = lines(&dag, names) else {
        // No text can be read back here, and any text that distinguishes formulas will do.
        return format!("{sets:?} = {dag:?}");
    };
    let locals = lines.locals.iter().map(|(name, formula)| (&**name, formula));
    let sets = sets.iter().copied().zip(&lines.outputs);
    let all: Vec<String> = locals.chain(sets).map(|(name, formula)| format!("{name} = {formula}")).collect();
    all.join("; ")
}

/// Returns the formula of a stage with its results in the order of the fields' numbers.
fn sorted(stage: &Stage) -> Dag {
    let mut order: Vec<usize> = (0..stage.dag.outputs.len()).collect();
    if stage.writes.len() == order.len() {
        order.sort_by_key(|&output| stage.writes[output]);
    }
    stage.dag.restricted(&order)
}

/// Returns a formula with its nodes in the order in which they are met from the outputs: the same for equal formulas, in
/// whatever order their nodes were made.
fn canonical(dag: &Dag) -> Dag {
    let (mut nodes, mut known) = (Vec::new(), HashMap::<Id, Id>::new());
    let mut waiting: Vec<Id> = dag.outputs.iter().rev().copied().collect();
    while let Some(&id) = waiting.last() {
        let node = dag.nodes[id as usize];
        let missing: Vec<Id> = node.operands().filter(|operand| !known.contains_key(operand)).collect();
        if missing.is_empty() {
            waiting.pop();
            known.entry(id).or_insert_with(|| {
                nodes.push(node);
                (nodes.len() - 1) as Id
            });
        } else {
            waiting.extend(missing.into_iter().rev());
        }
    }
    let nodes = nodes.into_iter().map(|node| node.map(|operand| known[&operand])).collect();
    Dag { nodes, outputs: dag.outputs.iter().map(|id| known[id]).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;

    fn of(text: &str) -> String {
        formulas(&read(text, "m").unwrap_or_else(|error| panic!("{error}")).program)
    }

    /// What makes no other values makes no other text.
    #[test]
    fn the_same_formulas_are_the_same_text() {
        let one = of(
            "axes = 1\n[fields]\nu = 1\nv = 2\n[parameters]\nk = 0.1\n[[stages]]\na = 'u[-1]*k'\nb = 'v + k'\n\
                      u = 'a + b'\nv = 'b*2'\n",
        );
        let other =
            of("axes = 1\nname = 'other'\n[fields]\nu = 'random'\nv = {}\n[parameters]\nk = 3\n[[stages]]\n\
                        name = 'x'\nb = 'v + k'\nv = 'b*2'\nc = 'u[-1]*k'\nu = 'c + b'\n");
        assert_eq!(one, other);
    }

    #[test]
    fn each_part_of_a_program_is_in_the_text() {
        let text = "axes = 2\nboundary = 'x-=mirror'\n[fields]\nu = 1\nv = { boundary = 'y=clamp' }\n[parameters]\nk = 0.1\nh = 2\n\
                    kh = { formula = 'k*h' }\n[scalars]\nm = {}\nn = { extent = 'x' }\n[[stages]]\nover = { x = [1, 0] }\nm = 'max(u)'\n\
                    [[stages]]\npoints = [[1, 2]]\nu = 'kh*m*n'\nv = 'u'\n";
        let changes = [
            ("x-=mirror", "x+=mirror"),
            ("y=clamp", "y=mirror"),
            ("k*h'", "h*k'"),
            ("extent = 'x'", "extent = 'y'"),
            ("x = [1, 0]", "x = [0, 1]"),
            ("max(u)", "min(u)"),
            ("[[1, 2]]", "[[1, 3]]"),
            ("kh*m*n", "k*h*m*n"),
            ("v = 'u'", "v = 'u + 0'"),
            ("u = 1", "u = { on = 'x-faces' }"),
        ];
        for (from, to) in changes {
            assert!(text.contains(from), "{from}");
            let changed = text.replace(from, to);
            // Values on faces are set alone, and reduced alone.
            let changed = if to.contains("faces") {
                changed.replace("v = 'u'\n", "").replace("over = { x", "over = { on = 'x-faces', x")
            } else {
                changed
            };
            assert_ne!(of(text), of(&changed), "{to}");
        }
    }
}
