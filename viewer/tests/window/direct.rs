//! Fields drawn where they lie on the window's device, against the same values read and uploaded.

use std::sync::Arc;

use abide::{Choice, DType};
use abide_viewer::app::App;
use abide_viewer::app::state::{Slicing, Tool};
use abide_viewer::engine::Order;
use abide_viewer::field::look::Look;
use abide_viewer::setup::Setup;
use egui_kittest::Harness;

use crate::rig::{setup, sharing, until, until_at};

fn on_wgpu(model: &str, size: &str) -> Setup {
    Setup { backend: Choice::WGPU, ..setup(model, size) }
}

/// Draws the window, then the same frame from its values, and compares the pictures.
fn compare(harness: &mut Harness<'_, App>, what: &str) {
    harness.run_steps(3);
    let state = harness.state().state();
    let frame = state.frame.clone().unwrap();
    assert!(frame.field.is_some(), "{what}: the field is drawn where it lies");
    let direct = harness.render().unwrap();
    let state = harness.state_mut().state_mut();
    state.frame = Some(Arc::new(abide_viewer::engine::Frame { field: None, ..(*frame).clone() }));
    state.serial += 1;
    harness.step();
    let uploaded = harness.render().unwrap();
    let differences = direct
        .pixels()
        .zip(uploaded.pixels())
        .map(|(a, b)| a.0.iter().zip(b.0).map(|(&a, b)| a.abs_diff(b)).max().unwrap_or(0));
    // A sum of means in f32, and a rounding from f64, may fall on either side of a shade.
    assert!(differences.max() <= Some(6), "{what}");
    let colours: std::collections::HashSet<_> = direct.pixels().collect();
    assert!(colours.len() > 50, "{what}: there is something to see: {}", colours.len());
    let state = harness.state_mut().state_mut();
    state.frame = Some(frame);
    state.serial += 1;
}

#[test]
fn a_plane_of_single_cells() {
    let mut harness = sharing(on_wgpu("gray-scott", "96x131"), Look::default());
    harness.state_mut().state_mut().orders.push(Order::Advance(300));
    until_at(&mut harness, 300);
    compare(&mut harness, "whole");
    harness.state_mut().state_mut().look =
        Look { smooth: true, contours: true, ..harness.state().state().look.clone() };
    compare(&mut harness, "interpolated, with lines");
}

#[test]
fn a_plane_of_more_cells_than_pixels() {
    let mut harness = sharing(on_wgpu("wave", "1501x1203"), Look::default());
    harness.state_mut().state_mut().orders.push(Order::Advance(40));
    until_at(&mut harness, 40);
    let frame = harness.state().state().frame.clone().unwrap();
    assert!(frame.images[0].factor[0] > 1, "{:?}", frame.images[0].factor);
    compare(&mut harness, "means");
}

#[test]
fn slices_and_projections_of_both_types() {
    for dtype in [DType::F32, DType::F64] {
        let mut harness = sharing(Setup { dtype, ..on_wgpu("heat", "18x26x35") }, Look::default());
        harness.state_mut().state_mut().orders.push(Order::Advance(20));
        until_at(&mut harness, 20);
        for slicing in [Slicing::Slice, Slicing::Three, Slicing::Maximum] {
            for axis in 0..3 {
                let show = &mut harness.state_mut().state_mut().show;
                (show.slicing, show.axis, show.at) = (slicing, axis, [7, 9, 11]);
                let cut = harness.state().state().cut();
                until(&mut harness, "the cut", |app| {
                    app.state().frame.as_ref().is_some_and(|frame| frame.view.cut == cut)
                });
                compare(&mut harness, &format!("{dtype} {cut:?}"));
            }
        }
    }
}

#[test]
fn what_is_not_finite_is_marked() {
    let mut harness = sharing(on_wgpu("heat", "40x60"), Look::default());
    let state = harness.state_mut().state_mut();
    state.hand.tool = Tool::Brush;
    (state.hand.value, state.hand.radius) = (f64::NAN, 5.0);
    state.paint(0, vec![[0, 12, 20]]);
    state.hand.value = f64::INFINITY;
    state.paint(0, vec![[0, 28, 44]]);
    state.hand.tool = Tool::Move;
    until(&mut harness, "marks", |app| {
        app.state().frame.as_ref().is_some_and(|frame| frame.non_finite > 100)
    });
    compare(&mut harness, "marks");
}

/// While the field runs, most frames read nothing but the cell under the pointer.
#[test]
fn a_running_field_is_glanced_at() {
    let mut harness = sharing(on_wgpu("life", "64x64"), Look::default());
    // The window is small, so that frames come more often than looks are due even where the machine's cores
    // draw them.
    harness.set_size(egui::vec2(640.0, 300.0));
    harness.run_steps(2);
    harness.key_press(egui::Key::Space);
    until(&mut harness, "a glance", |app| {
        let frame = app.state().frame.as_ref();
        frame.is_some_and(|frame| {
            frame.images[0].values.is_empty() && frame.step > 10 && frame.extremes.is_some()
        })
    });
    harness.key_press(egui::Key::Space);
    until(&mut harness, "a look at the end", |app| {
        app.state().frame.as_ref().is_some_and(|frame| !frame.images[0].values.is_empty())
    });
    compare(&mut harness, "at the end");
}

#[test]
fn a_field_on_another_device_is_uploaded() {
    let harness = crate::rig::paused(on_wgpu("heat", "20x30"));
    let frame = harness.state().state().frame.clone().unwrap();
    assert!(frame.field.is_none() && frame.images[0].values.len() == 600);
}
