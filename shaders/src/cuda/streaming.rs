//! The text of a streaming kernel: each stage is written as the work that is done when a plane arrives.

use abide_core::domain::Axes;
use abide_core::expr::{Dag, Id, Node, Tap};
use abide_core::plan::WarpStreaming;
use abide_core::plan::streaming::carry::{Carry, Slot};
use abide_core::plan::streaming::masks::Masked;
use abide_core::plan::streaming::warp::Edges;
use abide_core::{Problem, Program, Stage};

use super::few::Few;
use super::{COMMON, COPIES, Cuda, constant, constants, list, method, values};
use crate::emit::{Place, part};
use crate::text::Text;

const WINDOW: &str = include_str!("../../kernels/cuda/streaming/window.cuh");
const NOTES: &str = include_str!("../../kernels/cuda/streaming/notes.cuh");
const STREAM: &str = include_str!("../../kernels/cuda/streaming/stream.cuh");
const PASSES: &str = include_str!("../../kernels/cuda/streaming/passes.cuh");
const STREAMING: &str = include_str!("../../kernels/cuda/streaming/streaming.cu");

/// Returns the text of the kernel of a streaming plan; `program` is simplified already.
pub(super) fn streaming(problem: &Problem, program: &Program, streaming: &WarpStreaming) -> String {
    let axes = Axes::of(problem.shape.dimensions());
    let masked = Masked::of(problem, program);
    let stages: Vec<(&Stage, Carry)> =
        masked.stages.iter().map(|stage| (stage, Carry::passing(stage, &masked.passes, axes))).collect();
    let mut text = constants(problem, program);
    let edge_rows = stages.iter().map(|(stage, _)| axes.order(stage.footprint.radius)[1]).max().unwrap_or(0);
    for (name, value) in [
        ("WARPS", streaming.warps),
        ("OWN_Y", streaming.cells_per_thread[0]),
        ("OWN_X", streaming.cells_per_thread[1]),
        ("STAGES", stages.len()),
        ("LEVELS", stages.len() * streaming.depth),
        ("LAG", usize::from(streaming.lag)),
        ("AHEAD", streaming.ahead),
        ("MARGIN_S", streaming.margin[0]),
        ("MARGIN_Y", streaming.margin[1]),
        ("MARGIN_X", streaming.margin[2]),
        ("TILES_Y", streaming.tiles[0]),
        ("TILES_X", streaming.tiles[1]),
        ("SHARES", streaming.shares),
        ("FILL", streaming.fill),
        ("MIDDLE_COST", streaming.window_costs[0]),
        ("SIDE_COST", streaming.window_costs[1]),
        ("EDGE_Y", edge_rows),
        ("NEAR", streaming.carried_registers),
        ("FAR", streaming.carried_shared),
        ("BLOCKS_PER_MULTIPROCESSOR", streaming.blocks_per_multiprocessor),
        ("MASKS", masked.conditions.len()),
        ("PASSING", masked.passes.iter().filter(|&&passes| passes).count()),
    ] {
        constant(&mut text, name, value);
    }
    text.file(COMMON);
    text.push("// The place of a field among those that go through the levels.");
    let before = |field: usize| masked.passes[..field].iter().filter(|&&passes| passes).count();
    let places: Vec<String> = (0..masked.passes.len()).map(|field| before(field).to_string()).collect();
    text.push(format!(
        "__device__ constexpr int passing(int f) {{ constexpr int list[] = {{{}}}; return list[f]; }}",
        places.join(", ")
    ));
    let mut choices = 0;
    for (number, (stage, carry)) in stages.iter().enumerate() {
        choices = arriving(&mut text, problem, stage, carry, number, choices);
        text.push("};");
    }
    stage_types(&mut text, stages.len());
    conditions(&mut text, problem, &masked.conditions);
    text.push(format!("constexpr bool CHAINED = {};", streaming.chained));
    text.push(format!("constexpr bool SUMS_CELLS = {};", streaming.sums_cells));
    edges(&mut text, streaming.edges.as_ref());
    for file in [COPIES, WINDOW, NOTES, STREAM, PASSES, STREAMING] {
        text.file(file);
    }
    text.into()
}

/// Writes the stages by their numbers.
pub(super) fn stage_types(text: &mut Text, stages: usize) {
    text.blank();
    text.push("// The stages by their numbers.");
    text.push("template <int N> struct StageAt;");
    for number in 0..stages {
        text.push(format!("template <> struct StageAt<{number}> {{ typedef Stage{number} type; }};"));
    }
}

/// Writes the function that asks which conditions of coefficients alone hold at a cell.
fn conditions(text: &mut Text, problem: &Problem, conditions: &[Dag]) {
    text.blank();
    text.push("// Whether conditions hold, which the values of coefficients at a cell alone decide.");
    text.push("template <class View>");
    text.push("__device__ __forceinline__ void ask(const View& u, bool (&mask)[MASKS > 0 ? MASKS : 1])\n{");
    for (number, dag) in conditions.iter().enumerate() {
        let now = |tap: Tap| format!("u.template now<{}, 0, 0>()", tap.field);
        let body = part(&dag.nodes, &dag.outputs, |_| None, &Cuda::PLAIN, problem.dtype, now);
        text.push("{");
        text.extend(&body.statements);
        text.extend(body.outputs.iter().map(|value| format!("mask[{number}] = {value} != real(0);")));
        text.push("}");
    }
    text.push("}");
}

/// Writes which planes are stored, and which of them into the memory of neighbours, too.
fn edges(text: &mut Text, edges: Option<&Edges>) {
    let [first, last] = match edges {
        Some(edges) => [edges.own.start, edges.own.end].map(|plane| plane.to_string()),
        None => ["0".to_owned(), "EXTENT_S".to_owned()],
    };
    let [low, high] = edges.map_or([0; 2], |edges| edges.given);
    text.push(format!("constexpr bool GIVES = {};", edges.is_some()));
    text.push(format!("constexpr Offset OWN_FIRST = {first}, OWN_LAST = {last};"));
    text.push(format!("constexpr Offset GIVEN_LOW = {low}, GIVEN_HIGH = {high};"));
}

/// The most choices at single planes of all stages: a window has a bit for each.
const MOST_CHOICES: usize = 32;

/// Writes the struct of a stage, without its end: how far the stage taps, what it carries, where it makes choices, and what it
/// does when a plane arrives. Stages before it make `choices`; returns how many there are with its own.
pub(super) fn arriving(
    text: &mut Text,
    problem: &Problem,
    stage: &Stage,
    carry: &Carry,
    number: usize,
    choices: usize,
) -> usize {
    let axes = Axes::of(problem.shape.dimensions());
    let [_, ry, rx] = axes.order(stage.footprint.radius);
    text.blank();
    text.push(format!("// {}", stage.name));
    text.push(format!("struct Stage{number} {{"));
    text.push(format!(
        "static constexpr int NUMBER = {number}, RADIUS_Y = {ry}, RADIUS_X = {rx}, WRITES = {};",
        stage.writes.len()
    ));
    text.push("// The result lags behind what arrives by DELAY planes and needs BACK planes before its own.");
    text.push(format!(
        "static constexpr int DELAY = {}, BACK = {}, CARRIED = {};",
        carry.planes[1],
        -carry.planes[0],
        carry.slots.len()
    ));
    text.push(list("writes", &stage.writes));
    reaches(text, carry, axes, [ry, rx]);
    let body = |chooses: bool| {
        let mut body = Text::default();
        let mut places = Vec::new();
        for plane in (carry.planes[0]..=carry.planes[1]).rev() {
            let few = Few::new(problem, stage, axes, plane, chooses && plane == carry.planes[1]);
            places.extend(arrival(&mut body, problem, carry, axes, plane, few));
        }
        (body, places)
    };
    let (mut arrivals, mut places) = body(true);
    let is_told = |place: &Place| place.iter().flatten().all(|&index| problem.dtype.tells_indices(index + 1));
    if choices + places.len() > MOST_CHOICES || !places.iter().all(is_told) {
        (arrivals, places) = body(false);
    }
    text.push(
        "// Where the formula makes choices in single planes: indices along S (0), Y and X; -1 for any.",
    );
    let last = choices + places.len();
    text.push(format!("static constexpr int FIRST_CHOICE = {choices}, CHOICES = {};", places.len()));
    let ordered: Vec<String> = places.iter().map(|place| braced(axes.order(*place))).collect();
    let rows = if ordered.is_empty() { "{-1, -1, -1}".to_owned() } else { ordered.join(", ") };
    text.push(format!(
        "__device__ static constexpr Offset choice(int i, int axis) {{ constexpr Offset list[][3] = {{{rows}}}; return list[i][axis]; }}"
    ));
    text.push("// CHOOSES: whether any of the cells that the body is for makes a choice at a single plane; AT_…: whether any may lie");
    text.push("// at a side of the domain along the axis.");
    let told = "<bool CHOOSES, bool AT_S, bool AT_Y, bool AT_X, class View>";
    text.push(method("arrive", "FIELDS").replacen("<class View>", told, 1));
    text.push(&arrivals);
    aged(text, carry);
    text.push("}");
    last
}

fn braced(place: Place) -> String {
    let [s, y, x] = place.map(|index| index.map_or(-1, |index| index as i64));
    format!("{{{s}, {y}, {x}}}")
}

/// Writes the part of the formula that is computed when a plane arrives, for the cell from which that plane
/// lies at offset `plane`. Returns where it makes choices at single planes, where these are told.
fn arrival(
    text: &mut Text,
    problem: &Problem,
    carry: &Carry,
    axes: Axes,
    plane: i32,
    few: Few,
) -> Vec<Place> {
    let (wanted, kept) = carry.wanted(plane);
    let known = |id: Id| carry.known(id, plane, axes).map(|slot| format!("u.template carried<{slot}>()"));
    let language = Cuda { plane: Some(plane), few: Some(few), ..Cuda::PLAIN };
    let now = |tap: Tap| {
        let [_, y, x] = axes.order(tap.offset);
        match usize::from(tap.field).checked_sub(carry.values.len()) {
            Some(mask) => format!("real(u.template mask<{mask}, {plane}>())"),
            None => format!("u.template now<{}, {y}, {x}>()", tap.field),
        }
    };
    let body = part(&carry.nodes, &wanted, known, &language, problem.dtype, now);
    if wanted.is_empty() {
        return Vec::new();
    }
    text.push(format!("{{ // The cell from which the plane lies at {plane:+}."));
    text.extend(&body.statements);
    let (new, carried) = body.outputs.split_at(wanted.len() - kept.len());
    text.extend(values(new));
    text.extend(
        kept.iter().zip(carried).map(|(slot, value)| format!("u.template carried<{slot}>() = {value};")),
    );
    text.push("}");
    body.places
}

/// Writes the assignments by which raw values grow older by a plane.
fn aged(text: &mut Text, carry: &Carry) {
    let mut raw: Vec<(i32, usize, String)> = Vec::new();
    for (slot, what) in carry.slots.iter().enumerate() {
        if let Slot::Raw { field, age, across } = *what {
            let younger = Slot::Raw { field, age: age - 1, across };
            let from = match carry.slots.iter().position(|&other| other == younger) {
                Some(from) if age > 0 => format!("u.template carried<{from}>()"),
                _ => format!("u.template now<{field}, {}, {}>()", across[0], across[1]),
            };
            raw.push((age, slot, from));
        }
    }
    raw.sort_by_key(|(age, ..)| std::cmp::Reverse(*age));
    text.extend(raw.iter().map(|(_, slot, from)| format!("u.template carried<{slot}>() = {from};")));
}

/// Writes the functions that return how far taps reach beside a thread's own cells, so that no more is
/// fetched.
fn reaches(text: &mut Text, carry: &Carry, axes: Axes, radius: [usize; 2]) {
    let taps: Vec<(u16, [i32; 3])> = carry
        .nodes
        .iter()
        .filter_map(|node| match node {
            Node::Tap(tap) => Some((tap.field, axes.order(tap.offset))),
            _ => None,
        })
        .collect();
    let fields = carry.values.len() as u16;
    let per_field = |of: &dyn Fn(u16) -> i32| -> String {
        (0..fields)
            .map(|f| (f, of(f)))
            .filter(|(_, reach)| *reach != 0)
            .map(|(f, r)| format!("f == {f} ? {r} : "))
            .collect()
    };
    let y_of = |f: u16| taps.iter().filter(move |(field, _)| *field == f).map(|(_, [_, y, _])| *y);
    let low = per_field(&|f| y_of(f).min().unwrap_or(0).min(0));
    let high = per_field(&|f| y_of(f).max().unwrap_or(0).max(0));
    text.push("// The rows before and behind its own that a field is tapped on.");
    text.push(format!("__device__ static constexpr int low_y(int f) {{ return {low}0; }}"));
    text.push(format!("__device__ static constexpr int high_y(int f) {{ return {high}0; }}"));
    let mut sides = [String::new(), String::new()];
    for f in 0..fields {
        for dy in -(radius[0] as i32)..=radius[0] as i32 {
            let x_of =
                || taps.iter().filter(|(field, [_, y, _])| *field == f && *y == dy).map(|(_, [_, _, x])| *x);
            let reach = [-x_of().min().unwrap_or(0).min(0), x_of().max().unwrap_or(0).max(0)];
            for (side, reach) in sides.iter_mut().zip(reach) {
                if reach > 0 {
                    side.push_str(&format!("f == {f} && dy == {dy} ? {reach} : "));
                }
            }
        }
    }
    let [left, right] = sides;
    text.push("// How far along X taps in row `dy` reach to the left or right.");
    text.push(format!(
        "__device__ static constexpr int side(int f, int dy, bool left) \
         {{ return left ? ({left}0) : ({right}0); }}"
    ));
}
