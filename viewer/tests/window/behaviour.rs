//! The controls, found by their labels.

use abide_viewer::app::Opening;
use abide_viewer::app::state::{Screen, Slicing, Tab, Tool};
use abide_viewer::engine::{Order, Speed, Tempo};
use abide_viewer::field::look::{ColourMap, Span};
use abide_viewer::solve::Question;
use egui::Key;
use egui_kittest::kittest::Queryable;

use crate::rig::{gallery, open, paused, paused_at, press, setup, until, until_at, until_shown, values};

#[test]
fn a_scene_of_the_gallery_starts_and_the_gallery_comes_back() {
    let mut harness = gallery();
    harness.get_by_label("Scene life").click();
    until(&mut harness, "life to run", |app| app.state().status.step > 3);
    assert_eq!(harness.state().state().draft.model, "life");
    harness.get_by_label("Gallery").click();
    until(&mut harness, "the gallery", |app| app.state().screen == Screen::Gallery);
    until(&mut harness, "the run to be let go", |app| app.state().status.tempo == Tempo::Empty);
}

#[test]
fn it_starts_pauses_steps_and_starts_over() {
    let mut harness = paused(setup("gray-scott", "48x64"));
    assert_eq!(harness.state().state().status.tempo, Tempo::Paused);
    let start = values(&harness);
    harness.get_by_label("Step").click();
    until_at(&mut harness, 1);
    harness.get_by_label("Run").click();
    until(&mut harness, "steps", |app| app.state().status.step > 50);
    harness.get_by_label("Pause").click();
    until(&mut harness, "a pause", |app| app.state().status.tempo == Tempo::Paused);
    harness.run_steps(3);
    let step = harness.state().state().status.step;
    std::thread::sleep(std::time::Duration::from_millis(50));
    harness.run_steps(3);
    assert_eq!(harness.state().state().status.step, step, "it waits");
    assert!(harness.query_by_label(&format!("step {step}")).is_some());
    assert_ne!(values(&harness), start);
    harness.get_by_label("Reset").click();
    until_at(&mut harness, 0);
    assert_eq!(values(&harness), start);
}

#[test]
fn a_number_of_steps_a_frame() {
    let mut harness = paused(setup("life", "32x32"));
    harness.get_by_label("as fast as possible").click();
    harness.run_steps(2);
    assert_eq!(harness.state().state().speed, Speed::PerFrame(1));
    harness.key_press(Key::Space);
    let begun = std::time::Instant::now();
    until(&mut harness, "30 steps", |app| app.state().status.step >= 30);
    assert!(begun.elapsed().as_secs_f64() > 0.3, "60 a second at most");
}

#[test]
fn a_parameter_acts_from_the_next_step_on() {
    let mut harness = paused(setup("heat", "24x24"));
    let start = values(&harness);
    let state = harness.state_mut().state_mut();
    state.orders.push(abide_viewer::engine::Order::Parameter { name: "kappa".to_owned(), value: 0.0 });
    harness.get_by_label("Step").click();
    until_at(&mut harness, 1);
    assert_eq!(values(&harness), start, "nothing flows without conductivity");
    // Sets the slider's own number, by keyboard.
    harness.get_by_role_and_label(egui::accesskit::Role::Slider, "kappa").focus();
    harness.step();
    harness.key_press(Key::ArrowRight);
    until(&mut harness, "the order", |app| {
        app.state().draft.parameters.iter().any(|(n, v)| n == "kappa" && *v > 0.0)
    });
    harness.get_by_label("Step").click();
    until_at(&mut harness, 2);
    assert_ne!(values(&harness), start);
}

#[test]
fn the_brush_paints_where_it_is_and_reset_restores() {
    let mut harness = paused(setup("heat", "40x40"));
    let start = values(&harness);
    harness.key_press(Key::B);
    harness.state_mut().state_mut().hand.radius = 2.0;
    harness.state_mut().state_mut().hand.value = 7.0;
    harness.step();
    let place = harness.get_by_label("Field u").rect();
    // The plane is as high as its place and in the middle of it. The pointer goes to the cell at row 10,
    // column 30.
    let scale = place.height() / 40.0;
    let at = place.center() + egui::vec2((30.5 - 20.0) * scale, (10.5 - 20.0) * scale);
    harness.hover_at(at);
    harness.step();
    harness.drag_at(at);
    harness.step();
    harness.drop_at(at);
    until(&mut harness, "paint", |app| {
        app.state().frame.as_ref().is_some_and(|f| f.images[0].values.contains(&7.0))
    });
    let now = values(&harness);
    for (i, (new, old)) in now.iter().zip(&start).enumerate() {
        let (row, column) = (i / 40, i % 40);
        let inside = row.abs_diff(10).pow(2) + column.abs_diff(30).pow(2) <= 4;
        assert_eq!(*new, if inside { 7.0 } else { *old }, "{row} {column}");
    }
    harness.get_by_label("Reset").click();
    until(&mut harness, "the start", |app| {
        app.state().frame.as_ref().is_some_and(|f| f.images[0].values == start)
    });
}

#[test]
fn a_point_source_is_one_cell_by_keyboard_too() {
    let mut harness = paused(setup("heat", "17x23"));
    harness.key_press(Key::Num3);
    harness.run_steps(2);
    assert_eq!(harness.state().state().tab, Tab::Touch);
    harness.state_mut().state_mut().hand.at = [0, 3, 4];
    harness.state_mut().state_mut().hand.value = -5.0;
    harness.run_steps(2);
    harness.get_by_label("Point source here").click();
    until(&mut harness, "the point", |app| {
        app.state().frame.as_ref().is_some_and(|f| f.images[0].values[3 * 23 + 4] == -5.0)
    });
    assert_eq!(values(&harness).iter().filter(|v| **v == -5.0).count(), 1);
}

#[test]
fn the_value_under_the_pointer_is_told() {
    let mut harness = paused(setup("heat", "40x40"));
    let place = harness.get_by_label("Field u").rect();
    harness.hover_at(place.center() + egui::vec2(1.0, 1.0));
    until(&mut harness, "the value", |app| {
        app.state().frame.as_ref().is_some_and(|f| f.probe == Some(([0, 20, 20], 1.0)))
    });
    harness.run_steps(2);
    assert!(harness.query_by_label_contains("u[20, 20] = 1.0000000").is_some());
}

#[test]
fn another_model_and_size_by_one_click_and_errors_in_words() {
    let mut harness = paused(setup("heat", "16x16"));
    let draft = &mut harness.state_mut().state_mut().draft;
    draft.model = "life".to_owned();
    draft.size = "20x30".to_owned();
    harness.run_steps(2);
    harness.get_by_label("Restart").click();
    until(&mut harness, "life", |app| app.state().run.as_ref().is_some_and(|run| run.setup.model == "life"));
    assert!(harness.state().state().run.as_ref().unwrap().problem.shape.to_string() == "20x30");
    harness.state_mut().state_mut().draft.size = "20xabc".to_owned();
    harness.run_steps(2);
    harness.get_by_label("Restart").click();
    until(&mut harness, "an error", |app| app.state().notices.has_errors());
    harness.run_steps(2);
    assert!(harness.query_by_label_contains("not a list of whole numbers").is_some());
    assert_eq!(harness.state().state().run.as_ref().unwrap().setup.model, "life", "what ran goes on");
    harness.get_by_label("Dismiss").click();
    harness.run_steps(2);
    assert!(!harness.state().state().notices.has_errors());
}

/// The model is shown as text; a formula that is changed runs, and a fault is reported at once.
#[test]
fn formulas_are_edited_and_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut harness = paused_at(setup("heat", "16x16"), [1280.0, 1400.0], 1.0);
    press(&mut harness, "Edit formulas");
    let text = harness.state().state().draft.formulas.clone().unwrap();
    assert!(
        text.contains("u = \"fma(kappa, fma(u, -4.0, u[-1,0] + u[0,-1] + u[0,1] + u[1,0]), u)\""),
        "{text}"
    );
    let line = text.lines().position(|line| line.starts_with("u = \"fma")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[line] = "u = \"u + w\"";
    let faulty = lines.join("\n");
    lines[line] = "u = \"u + 1\"";
    let changed = lines.join("\n").replace("name = \"heat\"", "name = \"rising\"");
    harness.state_mut().state_mut().draft.formulas = Some(faulty);
    harness.run_steps(2);
    press(&mut harness, "Restart");
    until(&mut harness, "an error", |app| app.state().notices.has_errors());
    let place = format!("formulas, line {}, column 10: no value is named `w`", line + 1);
    until_shown(&mut harness, &place);
    press(&mut harness, "Dismiss");
    harness.state_mut().state_mut().draft.formulas = Some(changed.clone());
    harness.run_steps(2);
    press(&mut harness, "Restart");
    until(&mut harness, "rising", |app| {
        app.state().run.as_ref().is_some_and(|run| run.setup.model == "rising")
    });
    until_at(&mut harness, 0);
    let before = values(&harness);
    harness.state_mut().state_mut().orders.push(abide_viewer::engine::Order::Advance(3));
    until_at(&mut harness, 3);
    assert!(before.iter().zip(values(&harness)).all(|(before, after)| before + 1.0 + 1.0 + 1.0 == after));
    // The command line runs the formulas' file.
    harness.state_mut().state_mut().folder.folder = folder.path().display().to_string();
    harness.state_mut().state_mut().tab = Tab::Keep;
    harness.run_steps(2);
    press(&mut harness, "Copy command line");
    until(&mut harness, "the line", |app| !app.state().folder.command.is_empty());
    let line = harness.state().state().folder.command.clone();
    assert!(line.contains("rising-00000003.toml --steps 3 --size 16x16 --dtype f32"), "{line}");
    assert_eq!(std::fs::read_to_string(folder.path().join("rising-00000003.toml")).unwrap(), changed);
}

#[test]
fn keys_do_what_the_help_says() {
    let mut harness = paused(setup("gray-scott", "12x14x16"));
    let press = |harness: &mut egui_kittest::Harness<'_, abide_viewer::app::App>, key| {
        harness.key_press(key);
        harness.run_steps(2);
    };
    press(&mut harness, Key::C);
    press(&mut harness, Key::L);
    press(&mut harness, Key::K);
    press(&mut harness, Key::I);
    press(&mut harness, Key::H);
    press(&mut harness, Key::Z);
    press(&mut harness, Key::X);
    press(&mut harness, Key::PageUp);
    press(&mut harness, Key::N);
    press(&mut harness, Key::O);
    press(&mut harness, Key::Num5);
    press(&mut harness, Key::Plus);
    {
        let state = harness.state().state();
        assert_eq!(state.look.map, ColourMap::Magma);
        assert!(state.look.log && state.look.contours && state.look.smooth);
        assert!(matches!(state.look.span, Span::Fixed { .. }));
        assert_eq!((state.show.slicing, state.show.axis, state.show.at[1]), (Slicing::Three, 1, 8));
        assert_eq!((state.show.field, state.hand.tool, state.tab), (0, Tool::Point, Tab::Keep));
        assert!(state.show.sights.iter().any(Option::is_some), "zoomed");
    }
    press(&mut harness, Key::F);
    press(&mut harness, Key::F1);
    let state = harness.state().state();
    assert!(state.help && state.show.sights.iter().all(Option::is_none));
    press(&mut harness, Key::Escape);
    press(&mut harness, Key::Period);
    until_at(&mut harness, 1);
    press(&mut harness, Key::R);
    until_at(&mut harness, 0);
    press(&mut harness, Key::G);
    assert_eq!(harness.state().state().screen, Screen::Gallery);
}

#[test]
fn files_are_kept_and_can_be_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut harness = paused(setup("life", "20x30"));
    harness.state_mut().state_mut().folder.folder = folder.path().display().to_string();
    harness.state_mut().state_mut().folder.every = 5;
    harness.key_press(Key::Num5);
    harness.run_steps(2);
    for button in ["Picture", "Field .npy", "Fields .vti", "Checkpoint", "Record"] {
        press(&mut harness, button);
    }
    until(&mut harness, "a recording", |app| app.state().status.recorded == Some(1));
    harness.state_mut().state_mut().orders.push(abide_viewer::engine::Order::Advance(12));
    until_at(&mut harness, 12);
    assert_eq!(harness.state().state().status.recorded, Some(3));
    press(&mut harness, "End recording");
    until(&mut harness, "its end", |app| app.state().status.recorded.is_none());
    let file = |ending: &str| folder.path().join(format!("life-00000000{ending}"));
    let picture = image::open(file(".png")).unwrap();
    assert_eq!((picture.width(), picture.height()), (30, 20));
    assert_eq!(abide::io::read(&file(".npy")).unwrap().shape.to_string(), "20x30");
    assert!(std::fs::read_to_string(file(".vti")).unwrap().contains("VTKFile"));
    assert_eq!(abide::Simulation::resume(file(".npz")).unwrap().step(), 0);
    let movie = gif::DecodeOptions::new().read_info(std::fs::File::open(file(".gif")).unwrap()).unwrap();
    assert_eq!((movie.width(), movie.height()), (30, 20));
}

/// Every field of a program on cells, faces and nodes is shown, painted and written by its own extents.
#[test]
fn fields_on_cells_faces_and_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let mut harness = paused(setup("cloverleaf", "12x17"));
    harness.state_mut().state_mut().folder.folder = folder.path().display().to_string();
    harness.state_mut().state_mut().tab = Tab::Keep;
    let names = harness.state().state().problem().unwrap().program.fields().to_vec();
    for (number, name) in names.iter().enumerate() {
        until(&mut harness, name, |app| {
            app.state().frame.as_ref().is_some_and(|frame| frame.view.field == number)
        });
        let rows = 12 + usize::from(name.contains("vel") || name.ends_with("_y"));
        let columns = 17 + usize::from(name.contains("vel") || name.ends_with("_x"));
        let state = harness.state_mut().state_mut();
        assert_eq!(state.frame.as_ref().unwrap().images[0].plane, [rows, columns], "{name}");
        let last = [0, rows - 1, columns - 1];
        (state.hand.tool, state.hand.value) = (Tool::Point, 3.0);
        state.paint(0, vec![last]);
        until(&mut harness, "the point", |app| {
            app.state().frame.as_ref().is_some_and(|f| f.images[0].values.last() == Some(&3.0))
        });
        harness.state_mut().state_mut().hand.tool = Tool::Move;
        for button in ["Field .npy", "Fields .vti"] {
            press(&mut harness, button);
        }
        let path = folder.path().join("cloverleaf-00000000.npy");
        let begun = std::time::Instant::now();
        while !path.with_extension("vti").exists() || !path.exists() {
            assert!(begun.elapsed().as_secs() < 60, "waited for the files of {name}");
            harness.step();
        }
        let shape = abide::io::read(&path).unwrap().shape.to_string();
        assert_eq!(shape, format!("{rows}x{columns}"), "{name}");
        let text = String::from_utf8_lossy(&std::fs::read(path.with_extension("vti")).unwrap()).into_owned();
        for (other, of_other) in names.iter().enumerate() {
            let problem = harness.state().state().problem().unwrap();
            let alike = problem.extents_of(other) == problem.extents_of(number);
            assert_eq!(text.contains(&format!("Name=\"{of_other}\"")), alike, "{name} and {of_other}");
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::remove_file(path.with_extension("vti")).unwrap();
        harness.key_press(Key::N);
    }
    assert!(!harness.state().state().notices.has_errors());
}

#[test]
fn curves_follow_the_run_from_its_start_and_begin_again_with_it() {
    let mut harness = paused(setup("cloverleaf", "16x16"));
    let steps = |app: &abide_viewer::app::App| -> Vec<u64> {
        app.state().status.scalars.rows().map(|(step, _)| step).collect()
    };
    until(&mut harness, "the start", |app| steps(app) == [0]);
    // No step has made dt_stable.
    until_shown(&mut harness, "none yet");
    let orders = [Order::Speed(Speed::PerFrame(3)), Order::Advance(7)];
    harness.state_mut().state_mut().orders.extend(orders);
    until_at(&mut harness, 7);
    assert_eq!(steps(harness.state()), [0, 3, 6, 7]);
    let mut same = harness.state().state().draft.builder().unwrap().build().unwrap();
    same.advance(7).unwrap();
    let expected: Vec<f64> = same.scalars().unwrap().into_iter().map(|(_, value)| value).collect();
    let newest = harness.state().state().status.scalars.rows().last().unwrap().1.to_vec();
    assert_eq!(newest, expected);
    // Names choose the curves, and a key the panel.
    assert_eq!(harness.state().state().curves.hidden, ["time"]);
    press(&mut harness, "dt_stable");
    press(&mut harness, "time");
    assert_eq!(harness.state().state().curves.hidden, ["dt_stable"]);
    harness.key_press(Key::S);
    harness.run_steps(2);
    assert!(harness.query_by_label("dt_stable").is_none());
    harness.key_press(Key::S);
    harness.key_press(Key::R);
    until(&mut harness, "the start", |app| steps(app) == [0]);
    // A program without scalars has no such panel.
    harness.state_mut().state_mut().draft.model = "heat".to_owned();
    harness.state_mut().state_mut().draft.parameters.clear();
    harness.run_steps(2);
    press(&mut harness, "Restart");
    until(&mut harness, "heat", |app| {
        app.state().run.as_ref().is_some_and(|run| run.setup.model == "heat") && steps(app).is_empty()
    });
    harness.run_steps(2);
    assert!(harness.query_by_label("dt_stable").is_none());
}

#[test]
fn the_command_line_repeats_the_run_and_a_touched_run_goes_by_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let mut harness = paused(setup("life", "20x30"));
    harness.state_mut().state_mut().folder.folder = folder.path().display().to_string();
    harness.key_press(Key::Num5);
    harness.state_mut().state_mut().orders.push(abide_viewer::engine::Order::Advance(7));
    until_at(&mut harness, 7);
    press(&mut harness, "Copy command line");
    until(&mut harness, "the line", |app| !app.state().folder.command.is_empty());
    let line = "abide run life --steps 7 --size 20x30 --backend cpu --output life.png";
    assert_eq!(harness.state().state().folder.command, line);
    let state = harness.state_mut().state_mut();
    state.folder.command.clear();
    state.hand.tool = Tool::Point;
    state.paint(0, vec![[0, 1, 1]]);
    harness.run_steps(2);
    press(&mut harness, "Copy command line");
    until(&mut harness, "the line", |app| !app.state().folder.command.is_empty());
    assert!(harness.state().state().folder.command.contains("--resume"));
    assert_eq!(abide::Simulation::resume(folder.path().join("life-00000007.npz")).unwrap().step(), 7);
}

#[test]
fn two_ways_are_compared() {
    // The window is high enough for the whole page.
    let mut harness = paused_at(setup("heat", "64x64"), [1280.0, 1400.0], 1.0);
    harness.state_mut().state_mut().tab = Tab::Speed;
    harness.state_mut().state_mut().versus.variants[1].backend = abide::Choice::CPU;
    harness.run_steps(2);
    harness.get_by_label("Run both in turn").click();
    until(&mut harness, "the result", |app| app.state().versus.comparison.as_ref().is_some_and(|c| c.done));
    let comparison = harness.state().state().versus.comparison.clone().unwrap();
    // The ratio is not compared with 1, because other tests run beside this one.
    assert_eq!(comparison.ways[0], comparison.ways[1]);
    let [first, second] = comparison.gcells_per_s;
    assert!(first > 0.0 && second > 0.0 && comparison.ratio() == Some(second / first), "{comparison:?}");
}

#[test]
fn a_system_is_solved_and_another_after_it() {
    let opening = Opening { solve: Some(Question::new("laplacian2d:40x50")), ..Opening::default() };
    let mut harness = open(opening, [1280.0, 800.0], 1.0, Box::new(|_| None));
    let ended = |app: &abide_viewer::app::App| app.solve.as_ref().is_some_and(|page| page.outcome.is_some());
    until(&mut harness, "the solution", ended);
    let page = harness.state().solve.as_ref().unwrap();
    assert!(page.outcome.as_ref().unwrap().is_ok(), "{:?}", page.outcome);
    let (first, last) = (page.residuals[0], *page.residuals.last().unwrap());
    assert!(last <= 1e-8 * first, "{first} to {last}");
    assert!(harness.query_by_label_contains("2000×2000").is_some());
    harness.state_mut().solve.as_mut().unwrap().draft.matrix = "no-such".to_owned();
    harness.run_steps(2);
    harness.get_by_role_and_label(egui::accesskit::Role::Button, "Solve").click();
    until(&mut harness, "the error", |app| {
        app.solve.as_ref().is_some_and(|page| page.outcome.as_ref().is_some_and(|o| o.is_err()))
    });
    harness.run_steps(2);
    assert!(harness.query_by_label_contains("no matrix is named").is_some());
    harness.get_by_label("Gallery").click();
    until(&mut harness, "the gallery", |app| app.state().screen == Screen::Gallery);
}

/// The loops of each step of the cycle, in a window that a key opens and closes.
#[test]
fn loops_are_drawn_with_what_they_wait_for() {
    let mut harness = paused(setup("cloverleaf", "24x32"));
    harness.key_press(Key::D);
    until_shown(&mut harness, "0 ideal gas");
    let explained = "No groups are planned here. One colour: 33 loops as ";
    assert!(harness.query_by_label_contains(explained).is_some(), "a CPU's plan has no groups");
    press(&mut harness, "step 1 of the cycle");
    assert_eq!(harness.state().state().loops.step, 1);
    assert!(harness.query_by_label_contains("0 ideal gas").is_some());
    harness.key_press(Key::Escape);
    harness.run_steps(2);
    assert!(!harness.state().state().loops.open && harness.query_by_label_contains("0 ideal gas").is_none());
    // A program of one stencil has one loop and one step.
    let mut harness = paused(setup("heat", "24x24"));
    harness.key_press(Key::Num4);
    harness.run_steps(2);
    press(&mut harness, "Loops");
    until_shown(&mut harness, "0 heat");
    assert!(harness.query_by_label_contains("of the cycle").is_none());
    assert!(harness.query_by_label_contains("no loops would move fewer bytes together").is_some());
}
