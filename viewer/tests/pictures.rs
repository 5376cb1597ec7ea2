//! Makes the pictures of the gallery anew where a scene has changed:
//! `cargo test --release -p abide-viewer --test pictures -- --ignored`, for some scenes alone with
//! `ABIDE_SCENES=coral,life`.

use std::path::Path;

use abide::Choice;
use abide_viewer::engine::Section;
use abide_viewer::engine::sampling::{self, View};
use abide_viewer::scenes::{self, PICTURE};

#[test]
#[ignore = "writes the pictures that are in the repository; some minutes"]
fn the_gallerys_pictures() {
    let wanted = std::env::var("ABIDE_SCENES").ok();
    let is_wanted =
        |name: &str| wanted.as_ref().is_none_or(|names| names.split(',').any(|wanted| wanted == name));
    for scene in scenes::all().into_iter().filter(|scene| is_wanted(scene.name)) {
        let mut simulation = scene.setup.builder().unwrap().backend(Choice::CPU).build().unwrap();
        simulation.advance(scene.pictured).unwrap();
        let shown = simulation.problem().program.shown();
        let shape = simulation.problem().extents_of(shown);
        // The largest part of the plane with the picture's proportions, as wide as the plane.
        let (height, width) = (shape[1], shape[2]);
        let rows = (width * PICTURE[1] / PICTURE[0]).min(height);
        let low = [(height - rows) / 2, 0];
        let view = View {
            field: shown,
            cut: Section::Slice { axis: 0, index: shape[0] / 2 },
            window: Some([low, [low[0] + rows, width]]),
            pixels: [usize::MAX; 2],
            probe: None,
        };
        let frame = sampling::frame(&mut simulation, 0, &view).unwrap();
        let (shown, scale) = (&frame.images[0], scene.look.scale(frame.extremes));
        let pixels = shown.values.iter().flat_map(|&value| scene.look.colour(scale, value)).collect();
        let picture = image::RgbImage::from_raw(shown.size[1] as u32, shown.size[0] as u32, pixels).unwrap();
        let filter = if width < PICTURE[0] { image::imageops::Nearest } else { image::imageops::Triangle };
        let picture = image::imageops::resize(&picture, PICTURE[0] as u32, PICTURE[1] as u32, filter);
        let name = format!("{}.png", scene.name.replace(' ', "-"));
        picture.save(Path::new(env!("CARGO_MANIFEST_DIR")).join("pictures").join(name)).unwrap();
    }
}
