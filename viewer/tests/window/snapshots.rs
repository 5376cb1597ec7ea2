//! Pictures of the window. Runs are stopped at fixed steps, and no picture shows a time, a rate or a
//! machine's name.
//!
//! `UPDATE_SNAPSHOTS=1` writes the pictures anew. Rasterisers may differ by a shade at the edges of letters
//! and lines: a pixel may be off by 0.6 in egui_kittest's measure, and 40 of a million may be off by more.

use std::sync::Arc;

use abide::Plan;
use abide::program::Problem;
use abide_viewer::app::Opening;
use abide_viewer::app::state::{Slicing, State, Tab, Tool};
use abide_viewer::engine::{Comparison, History, Order, Speed, Started};
use abide_viewer::field::look::{ColourMap, Look, Span};
use abide_viewer::panels;
use abide_viewer::scenes;
use abide_viewer::setup::Setup;
use abide_viewer::solve::Question;
use egui_kittest::{Harness, SnapshotOptions};

use crate::rig::{gallery, open, paused, paused_at, setup, until, until_at};

fn same(harness: &mut Harness<'_, impl Sized>, name: &str) {
    harness.snapshot_options(name, &SnapshotOptions::new().threshold(0.6).max_failed_pixels(40_usize));
}

/// Opens Gray–Scott after some steps.
fn spots() -> Harness<'static, abide_viewer::app::App> {
    let mut harness = paused(setup("gray-scott", "96x128"));
    harness.state_mut().state_mut().orders.push(Order::Advance(1500));
    until_at(&mut harness, 1500);
    harness
}

#[test]
fn the_first_screen() {
    let mut harness = gallery();
    harness.run_steps(3);
    same(&mut harness, "gallery-dark");
    harness.set_size(egui::vec2(700.0, 600.0));
    harness.run_steps(3);
    same(&mut harness, "gallery-narrow");
}

#[test]
fn the_first_screen_in_light() {
    let mut harness = Harness::builder()
        .with_size(egui::vec2(1280.0, 800.0))
        .with_theme(egui::Theme::Light)
        .wgpu()
        .build_eframe(|cc| abide_viewer::app::App::new(cc, Opening::default()));
    harness.run_steps(3);
    same(&mut harness, "gallery-light");
}

#[test]
fn formulas_of_a_model() {
    let mut harness = paused_at(setup("gray-scott", "96x128"), [1280.0, 1100.0], 1.0);
    harness.state_mut().state_mut().orders.push(Order::Advance(1500));
    until_at(&mut harness, 1500);
    let draft = &mut harness.state_mut().state_mut().draft;
    draft.formulas = draft.program().and_then(|program| abide::text::write(&program)).ok();
    harness.run_steps(3);
    same(&mut harness, "scene-formulas");
}

#[test]
fn a_scene_after_fixed_steps_and_its_pages() {
    let mut harness = spots();
    same(&mut harness, "scene-model");
    for (tab, name) in [(Tab::View, "scene-view"), (Tab::Touch, "scene-touch")] {
        harness.state_mut().state_mut().tab = tab;
        harness.run_steps(3);
        same(&mut harness, name);
    }
}

#[test]
fn a_scene_in_light() {
    let mut harness = spots();
    harness.key_press(egui::Key::T);
    harness.run_steps(3);
    same(&mut harness, "scene-light");
}

#[test]
fn a_scene_at_twice_the_scale() {
    let mut harness = paused_at(setup("gray-scott", "96x128"), [640.0, 400.0], 2.0);
    harness.state_mut().state_mut().orders.push(Order::Advance(500));
    until_at(&mut harness, 500);
    same(&mut harness, "scene-200-percent");
}

#[test]
fn contours_in_a_diverging_map() {
    let mut harness = paused(setup("wave", "101x131"));
    let state = harness.state_mut().state_mut();
    state.look = Look { map: ColourMap::Diverging, contours: true, smooth: true, ..Look::default() };
    state.orders.push(Order::Advance(60));
    until_at(&mut harness, 60);
    same(&mut harness, "scene-contours");
}

#[test]
fn a_logarithmic_scale_with_a_fixed_range() {
    let mut harness = paused(setup("heat", "64x64"));
    let state = harness.state_mut().state_mut();
    state.look = Look {
        map: ColourMap::Magma,
        log: true,
        span: Span::Fixed { low: 1e-6, high: 1.0 },
        ..Look::default()
    };
    state.tab = Tab::View;
    state.orders.push(Order::Advance(30));
    until_at(&mut harness, 30);
    same(&mut harness, "scene-log");
}

#[test]
fn a_box_in_three_slices_and_by_its_maximum() {
    let mut harness = paused(setup("gray-scott", "30x41x52"));
    harness.state_mut().state_mut().orders.push(Order::Advance(200));
    harness.state_mut().state_mut().tab = Tab::View;
    harness.state_mut().state_mut().show.slicing = Slicing::Three;
    until(&mut harness, "three planes", |app| {
        app.state().frame.as_ref().is_some_and(|frame| frame.images.len() == 3)
    });
    until_at(&mut harness, 200);
    same(&mut harness, "box-three");
    harness.state_mut().state_mut().show.slicing = Slicing::Maximum;
    until(&mut harness, "one plane", |app| {
        app.state().frame.as_ref().is_some_and(|frame| frame.images.len() == 1)
    });
    harness.run_steps(3);
    same(&mut harness, "box-maximum");
}

/// A step an epoch, so that the curves have a value of every step.
#[test]
fn computed_scalars_are_curves_below_the_field() {
    let mut harness = paused(setup("cloverleaf", "60x80"));
    let state = harness.state_mut().state_mut();
    state.tab = Tab::View;
    state.look = Look { map: ColourMap::Magma, ..Look::default() };
    state.orders.extend([Order::Speed(Speed::PerFrame(1)), Order::Advance(90)]);
    until_at(&mut harness, 90);
    same(&mut harness, "scene-scalars");
    let state = harness.state_mut().state_mut();
    (state.show.field, state.curves.over_time) = (7, true);
    state.curves.hidden.push("dt_stable".to_owned());
    until(&mut harness, "the velocity", |app| {
        app.state().frame.as_ref().is_some_and(|frame| frame.view.field == 7)
    });
    harness.run_steps(3);
    same(&mut harness, "scene-scalars-time");
}

#[test]
fn a_line_is_a_curve() {
    let mut harness = paused(setup("wave", "400"));
    harness.state_mut().state_mut().orders.push(Order::Advance(150));
    until_at(&mut harness, 150);
    same(&mut harness, "line");
}

#[test]
fn values_that_are_not_finite_are_marked() {
    let mut harness = paused(setup("heat", "40x60"));
    let state = harness.state_mut().state_mut();
    state.hand.tool = Tool::Brush;
    (state.hand.value, state.hand.radius) = (f64::NAN, 5.0);
    state.paint(0, vec![[0, 12, 20]]);
    state.hand.value = f64::INFINITY;
    state.paint(0, vec![[0, 28, 44]]);
    state.hand.value = 1.0;
    state.hand.tool = Tool::Move;
    until(&mut harness, "marks", |app| {
        app.state().frame.as_ref().is_some_and(|frame| frame.non_finite > 100)
    });
    harness.run_steps(3);
    same(&mut harness, "not-finite");
}

#[test]
fn an_error_in_words() {
    let mut harness = open(
        Opening {
            error: Some(
                "boundary of axis y: only one side is periodic; make both sides periodic or neither"
                    .to_owned(),
            ),
            ..Opening::default()
        },
        [1280.0, 800.0],
        1.0,
        Box::new(|_| None),
    );
    harness.run_steps(3);
    same(&mut harness, "error");
}

/// The solve is stopped before it converges, because the time that it took would be another each run.
#[test]
fn a_system_and_its_residual() {
    let question =
        Question { tolerance: 1e-16, method: "no-method".to_owned(), ..Question::new("laplacian2d:30x40") };
    let opening = Opening { solve: Some(question), ..Opening::default() };
    let mut harness = open(opening, [1280.0, 800.0], 1.0, Box::new(|_| None));
    until(&mut harness, "an error", |app| app.solve.as_ref().is_some_and(|page| page.outcome.is_some()));
    harness.state_mut().solve.as_mut().unwrap().residuals =
        (0..120).map(|i| 35.0 * 0.8f64.powi(i) * (1.0 + 0.3 * (f64::from(i) * 0.9).sin())).collect();
    harness.run_steps(3);
    same(&mut harness, "solve");
}

#[test]
fn the_keys() {
    let mut harness = gallery();
    harness.key_press(egui::Key::F1);
    harness.run_steps(4);
    same(&mut harness, "keys");
}

/// Compares the pages with figures, for a run that never took place.
fn figures(name: &str, show: impl Fn(&mut egui::Ui, &mut State)) {
    drawn(name, [360.0, 900.0], made_up(), show);
}

/// Compares what is shown of a state on an empty background of this size.
fn drawn(name: &str, size: [f32; 2], mut state: State, show: impl Fn(&mut egui::Ui, &mut State)) {
    let mut harness = Harness::builder()
        .with_size(egui::vec2(size[0], size[1]))
        .with_context_setup(abide_viewer::app::style::apply)
        .wgpu()
        .build_ui(move |ui| {
            egui::Frame::central_panel(ui.style())
                .fill(abide_viewer::app::style::background(ui.ctx().theme()))
                .show(ui, |ui| show(ui, &mut state));
        });
    harness.run_steps(3);
    same(&mut harness, name);
}

/// Returns a run that never took place.
fn started(setup: Setup, problem: Problem, plan: Plan) -> Started {
    Started { run: 1, setup, problem, plan: Arc::new(plan), backend: "cuda", notes: Vec::new(), step: 0 }
}

fn made_up() -> State {
    use abide::plan::{Schedule, plan_stepwise};
    use abide_viewer::engine::{Status, Tempo};

    let setup = scenes::find("coral").unwrap().setup;
    let problem = setup.builder().and_then(abide::Builder::problem).unwrap();
    let device = abide::DeviceSpec::preset("a100").unwrap();
    let mut plan = plan_stepwise(&problem, &device, &abide::Options::default()).unwrap();
    // The planner's choice may change; the picture must stay the same.
    if let Schedule::Stepwise(tiles) = &mut plan.schedule {
        (tiles.tile, tiles.threads, tiles.shared_bytes) = ([1, 32, 64], [1, 8, 32], vec![18_000]);
    }
    let report = abide::RunReport::new("cuda", &plan, 1000, 1000, 2.5e-3);
    let mut state = State::default();
    state.status = Status {
        tempo: Tempo::Running,
        step: 1000,
        recent: Some(report),
        history: (0..80).map(|i| [f64::from(i) * 0.1, 100.0 + 8.0 * (f64::from(i) * 0.4).sin()]).collect(),
        scalars: History::default(),
        recorded: None,
    };
    state.run = Some(started(setup, problem, plan));
    state.versus.comparison = Some(Comparison {
        ways: [
            "cuda: stepwise, tiles of 1×8×64, 256 threads".to_owned(),
            "cuda: persistent, cache mixed".to_owned(),
        ],
        gcells_per_s: [61.0, 104.5],
        done: true,
    });
    state
}

#[test]
fn the_page_of_rates() {
    figures("page-speed", panels::throughput::show);
}

#[test]
fn the_page_of_files() {
    figures("page-keep", panels::keep::show);
}

/// CloverLeaf's loops in groups that stay the same, whatever a planner would choose.
#[test]
fn loops_in_their_groups() {
    use abide::plan::fused::Partition;
    use abide::plan::{Schedule, plan_stepwise};
    use abide::program::Groups;

    let setup = setup("cloverleaf", "960x960");
    let problem = setup.builder().and_then(abide::Builder::problem).unwrap();
    let device = abide::DeviceSpec::preset("h200").unwrap();
    let mut plan = plan_stepwise(&problem, &device, &abide::Options::default()).unwrap();
    let mut groups = Groups::alone(&problem.program);
    for step in &mut groups.steps {
        let stages: Vec<usize> = step.iter().flatten().copied().collect();
        // Three stages a group, every fourth of them alone.
        *step = stages.chunks(4).flat_map(|own| own.chunks(3).map(<[usize]>::to_vec)).collect();
    }
    if let Schedule::Stepwise(tiles) = &mut plan.schedule {
        tiles.partition = Partition::of(groups, |_| None);
    }
    let mut state = State::default();
    state.run = Some(started(setup, problem, plan));
    state.loops.open = true;
    drawn("loops", [1280.0, 800.0], state, |ui, state| {
        ui.allocate_space(ui.available_size());
        panels::loops::show(ui.ctx(), state);
    });
}

#[test]
fn plans_as_pictures() {
    use abide::plan::{Schedule, plan_persistent, plan_stepwise, plan_streaming};
    let problem = setup("2d5pt", "2304x2304").builder().and_then(abide::Builder::problem).unwrap();
    let device = abide::DeviceSpec::preset("a100").unwrap();
    let options = abide::Options::default();
    let cpu = abide::backend::open("cpu").unwrap();
    let mut rows = abide::backend::plan(&cpu, &problem, &options).unwrap();
    // The picture has the same number of threads on every machine.
    if let Schedule::Cpu(rows) = &mut rows.schedule {
        rows.threads = 6;
    }
    let mut plans = [plan_stepwise, plan_persistent, plan_streaming]
        .map(|plan| plan(&problem, &device, &options).unwrap());
    // The planner's choice may change; the pictures must stay the same.
    for plan in &mut plans {
        match &mut plan.schedule {
            Schedule::Stepwise(tiles) => (tiles.tile, tiles.shared_bytes) = ([1, 32, 64], vec![18_000]),
            Schedule::Persistent(persistent) => {
                (persistent.planes, persistent.planes_registers, persistent.planes_shared) = ([20, 20], 9, 7);
                let cells = plan.traffic.cells;
                (plan.traffic.cached_registers, plan.traffic.cached_shared) = (0.45 * cells, 0.35 * cells);
            }
            Schedule::WarpStreaming(stream) => {
                (stream.depth, stream.margin, stream.cells_per_thread) = (6, [0, 0, 8], [1, 4]);
            }
            _ => {}
        }
    }
    let mut harness = Harness::builder()
        .with_size(egui::vec2(360.0, 860.0))
        .with_context_setup(abide_viewer::app::style::apply)
        .wgpu()
        .build_ui(move |ui| {
            egui::Frame::central_panel(ui.style())
                .fill(abide_viewer::app::style::background(ui.ctx().theme()))
                .show(ui, |ui| {
                    panels::plan::picture(ui, &rows);
                    for plan in &plans {
                        ui.separator();
                        panels::plan::picture(ui, plan);
                    }
                });
        });
    harness.run_steps(3);
    same(&mut harness, "plans");
}
