//! The program's loops in a window of their own: which waits for which, and in colours those that run as one
//! kernel.

use abide::Result;
use abide::fusion::{Drawing, Form, Graph, Loops, Order, Picture, Placed, USUAL_ARRAYS, greedy};
use abide::plan::fused::Group;
use egui::epaint::CubicBezierShape;
use egui::{
    Align2, Color32, Context, CornerRadius, FontId, Pos2, Rect, Response, RichText, ScrollArea, Sense, Shape,
    Stroke, StrokeKind, TextStyle, Ui, Vec2, Window, vec2,
};

use crate::app::state::State;
use crate::engine::Started;

/// Space around the picture, and beside a title in its box, in points.
const MARGIN: f32 = 10.0;
const BESIDE: f64 = 14.0;

/// The window's width at first, and what it leaves of the screen's height, in points.
const WIDTH: f32 = 560.0;
const AROUND: f32 = 80.0;

/// The size of an arrow's head along and across it.
const HEAD: [f32; 2] = [7.0, 3.0];

/// Ink on the light colours of boxes.
const INK: Color32 = Color32::from_gray(24);

/// The window: whether it is open, and of which step of the program's cycle.
#[derive(Default)]
pub struct LoopsWindow {
    /// Whether it is shown.
    pub open: bool,
    /// The step of the cycle whose loops it shows.
    pub step: usize,
    drawn: Option<Drawn>,
}

/// The loops of a step of a run, or why they cannot be drawn.
struct Drawn {
    run: u64,
    step: usize,
    outcome: std::result::Result<Sheet, String>,
}

struct Sheet {
    picture: Picture,
    /// Of each loop, what it reads and writes, and where it runs.
    about: Vec<String>,
    /// What the colours mean.
    meaning: String,
}

/// Shows the window, if it is open.
pub fn show(ctx: &Context, state: &mut State) {
    let State { run: Some(run), loops: window, .. } = state else { return };
    let mut open = window.open;
    // Programs are longer than they are wide.
    let height = (ctx.content_rect().height() - AROUND).max(0.0);
    Window::new("Loops").open(&mut open).default_size([WIDTH, height]).show(ctx, |ui| {
        let steps = run.problem.program.steps().len();
        window.step = window.step.min(steps.saturating_sub(1));
        if steps > 1 {
            ui.horizontal_wrapped(|ui| {
                for step in 0..steps {
                    ui.selectable_value(&mut window.step, step, format!("step {step} of the cycle"));
                }
            });
        }
        let is_newest = |drawn: &Drawn| (drawn.run, drawn.step) == (run.run, window.step);
        if !window.drawn.as_ref().is_some_and(is_newest) {
            let outcome = sheet(ui, run, window.step).map_err(|why| why.to_string());
            window.drawn = Some(Drawn { run: run.run, step: window.step, outcome });
        }
        match window.drawn.as_ref().map(|drawn| &drawn.outcome) {
            Some(Ok(sheet)) => {
                ui.label(RichText::new(&sheet.meaning).weak());
                ScrollArea::both().auto_shrink(false).show(ui, |ui| draw(ui, sheet));
            }
            Some(Err(why)) => {
                ui.label(why);
            }
            None => {}
        }
    });
    window.open = open;
}

/// The loops of a step in groups.
struct Grouped {
    /// The loops of each group; after those that run, one for each loop that does not.
    groups: Vec<Vec<usize>>,
    /// How many of them the plan runs; `None` where it has no groups and these are a proposal.
    planned: Option<usize>,
    /// What the colours mean.
    meaning: String,
}

impl Grouped {
    /// Takes the groups that run, or else those that the greedy search finds.
    fn of(graph: &Graph, run: &Started, step: usize) -> Result<Grouped> {
        let planned = run.plan.stages().map(|tiles| &tiles.partition);
        let planned = planned.filter(|partition| partition.all().any(|group| group.stages.len() > 1));
        match planned.and_then(|partition| partition.steps.get(step)) {
            Some(groups) => Ok(Grouped::planned(graph, groups)),
            None => Grouped::proposed(graph),
        }
    }

    fn planned(graph: &Graph, planned: &[Group]) -> Grouped {
        let of = |stage: &usize| graph.loops.iter().position(|own| own.stage == *stage);
        let mut groups: Vec<Vec<usize>> =
            planned.iter().map(|group| group.stages.iter().filter_map(of).collect()).collect();
        // Nobody reads what the others make.
        let idle: Vec<usize> =
            (0..graph.loops.len()).filter(|own| !groups.iter().flatten().any(|known| known == own)).collect();
        let left = match idle.len() {
            0 => String::new(),
            count => {
                let one = "makes what nobody reads and does not run";
                format!("; {}", of_count(count, one, "make what nobody reads and do not run"))
            }
        };
        groups.extend(idle.into_iter().map(|own| vec![own]));
        let loops = of_count(graph.loops.len(), "loop", "loops");
        let kernels = of_count(planned.len(), "kernel", "kernels");
        let meaning =
            format!("{loops} as {kernels}, as they run. One colour: one kernel; grey: alone{left}.");
        Grouped { groups, planned: Some(planned.len()), meaning }
    }

    fn proposed(graph: &Graph) -> Result<Grouped> {
        let loops = Loops::of(graph, USUAL_ARRAYS)?;
        let found = greedy(&loops);
        let meaning = if found.groups.len() == graph.loops.len() {
            "No groups are planned here, and no loops would move fewer bytes together.".to_owned()
        } else {
            format!(
                "No groups are planned here. One colour: {} loops as {} of {USUAL_ARRAYS} arrays at most \
                 would move {} bytes a cell and not {}; grey: alone.",
                graph.loops.len(),
                of_count(found.groups.len(), "kernel", "kernels"),
                found.bytes,
                loops.unfused(),
            )
        };
        Ok(Grouped { groups: found.groups, planned: None, meaning })
    }

    /// Says where a group runs.
    fn place(&self, group: usize) -> String {
        match self.planned {
            Some(planned) if group >= planned => "does not run".to_owned(),
            Some(_) => format!("runs in group {group}"),
            None => format!("would run in group {group}"),
        }
    }
}

/// Returns a number and what there are so many of.
fn of_count(count: usize, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// Lays the loops of a step out, in their groups.
fn sheet(ui: &Ui, run: &Started, step: usize) -> Result<Sheet> {
    let problem = run.plan.split_problem(&run.problem)?;
    let graph = Graph::of(&problem, &Form { step: Some(step), ..Form::default() })?;
    let grouped = Grouped::of(&graph, run, step)?;
    let order = Order::of(&graph);
    let drawing = Drawing { graph: &graph, order: &order, groups: &grouped.groups, title: &graph.name };
    let font = font(ui);
    let width = |title: &str| {
        let galley = ui.painter().layout_no_wrap(title.to_owned(), font.clone(), INK);
        BESIDE + f64::from(galley.size().x)
    };
    let picture = drawing.picture(width);
    let described =
        |(own, placed): (usize, &Placed)| format!("{}\n{}", about(&graph, own), grouped.place(placed.group));
    let about = picture.loops.iter().enumerate().map(described).collect();
    Ok(Sheet { picture, about, meaning: grouped.meaning })
}

/// Returns the arrays that a loop reads and writes, in words.
fn about(graph: &Graph, own: usize) -> String {
    let accesses = &graph.loops[own].accesses;
    let names = |counts: &dyn Fn(&abide::fusion::Access) -> bool| {
        let all = accesses.iter().filter(|access| counts(access));
        all.map(|access| graph.arrays[access.array].label()).collect::<Vec<_>>().join(", ")
    };
    let (reads, writes) = (names(&|access| access.reads.is_some()), names(&|access| access.writes));
    let nothing = |names: String| if names.is_empty() { "nothing".to_owned() } else { names };
    format!("reads {}\nwrites {}", nothing(reads), nothing(writes))
}

fn font(ui: &Ui) -> FontId {
    TextStyle::Small.resolve(ui.style())
}

/// Draws the loops and the arrows between them; those of the loop under the pointer are strong.
fn draw(ui: &mut Ui, sheet: &Sheet) {
    let picture = &sheet.picture;
    let size = vec2(picture.size[0] as f32, picture.size[1] as f32);
    let needed = size + Vec2::splat(2.0 * MARGIN);
    let room = vec2(needed.x.max(ui.available_width()), needed.y);
    let (place, _) = ui.allocate_exact_size(room, Sense::hover());
    let corner = Rect::from_center_size(place.center(), size).min;
    let at = |[x, y]: [f64; 2]| -> Pos2 { corner + vec2(x as f32, y as f32) };
    let boxes: Vec<(Rect, Response)> = picture
        .loops
        .iter()
        .enumerate()
        .map(|(number, own)| {
            let size = vec2(own.width as f32, Picture::HEIGHT as f32);
            let rect = Rect::from_center_size(at(own.centre), size);
            let response = ui.interact(rect, ui.scope_id().with(("loop", number)), Sense::hover());
            response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Label, true, &own.title));
            (rect, response)
        })
        .collect();
    let pointed = boxes.iter().position(|(_, response)| response.hovered());
    let (painter, ink) =
        (ui.painter().with_clip_rect(place.intersect(ui.clip_rect())), ui.visuals().text_color());
    for arrow in &picture.arrows {
        let is_strong = pointed.is_some_and(|own| own == arrow.from || own == arrow.to);
        let colour = if is_strong { ink } else { ink.gamma_multiply(0.5) };
        let stroke = Stroke::new(if is_strong { 2.0 } else { 1.0 }, colour);
        for curve in arrow.curves() {
            let shape =
                CubicBezierShape::from_points_stroke(curve.map(at), false, Color32::TRANSPARENT, stroke);
            painter.add(shape);
        }
        if let Some(&end) = arrow.points.last() {
            let tip = at(end);
            let head = [vec2(0.0, 0.0), vec2(-HEAD[1], -HEAD[0]), vec2(HEAD[1], -HEAD[0])];
            painter.add(Shape::convex_polygon(head.map(|by| tip + by).to_vec(), colour, Stroke::NONE));
        }
    }
    let font = font(ui);
    for (number, (own, (rect, response))) in picture.loops.iter().zip(boxes).enumerate() {
        let [red, green, blue] = own.colour;
        let corner = CornerRadius::same(9);
        painter.rect_filled(rect, corner, Color32::from_rgb(red, green, blue));
        let width = if pointed == Some(number) { 2.0 } else { 1.0 };
        painter.rect_stroke(rect, corner, Stroke::new(width, Color32::from_gray(119)), StrokeKind::Inside);
        painter.text(rect.center(), Align2::CENTER_CENTER, &own.title, font.clone(), INK);
        response.on_hover_text(&sheet.about[number]);
    }
}
