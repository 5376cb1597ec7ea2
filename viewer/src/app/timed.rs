//! A window that closes by itself: it stays for some seconds, with a screenshot and the rate at its end.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use egui::{ColorImage, Context, ViewportCommand};
use image::ImageEncoder as _;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};

use super::state::State;

/// The time for which the window stays, and the file written at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedWindow {
    /// Seconds from the first frame.
    pub seconds: f64,
    /// A `.png` file for a picture of the window.
    pub screenshot: Option<PathBuf>,
}

/// The window's time, once it has begun.
pub struct Clock {
    timed: TimedWindow,
    begun: Option<Instant>,
    /// The screenshot, once it has been asked for.
    picture: Option<Receiver<Arc<ColorImage>>>,
}

impl Clock {
    /// Returns a time that begins with the first frame.
    pub fn new(timed: TimedWindow) -> Clock {
        Clock { timed, begun: None, picture: None }
    }

    /// Checks the time; at the end prints the rate of the last two seconds shown, writes the screenshot and
    /// closes the window.
    pub fn look(&mut self, ctx: &Context, state: &State) {
        let begun = *self.begun.get_or_insert_with(Instant::now);
        let left = Duration::try_from_secs_f64(self.timed.seconds)
            .unwrap_or_default()
            .saturating_sub(begun.elapsed());
        if !left.is_zero() {
            ctx.request_repaint_after(left);
            return;
        }
        if let Some(path) = self.timed.screenshot.clone() {
            let picture = self.picture.get_or_insert_with(|| {
                let (camera, picture) = mpsc::channel();
                // A window that has gone takes no pictures.
                ctx.request_screenshot(move |image| drop(camera.send(image)));
                picture
            });
            let Ok(picture) = picture.try_recv() else {
                ctx.request_repaint();
                return;
            };
            if let Err(error) = save(&path, &picture) {
                eprintln!("error: {}: {error}", path.display());
            }
        }
        println!("{:.4} GCells/s, step {}", recent(&state.status.history), state.status.step);
        ctx.send_viewport_cmd(ViewportCommand::Close);
        self.timed.seconds = f64::INFINITY;
    }
}

fn save(path: &std::path::Path, picture: &ColorImage) -> image::ImageResult<()> {
    let pixels: Vec<u8> = picture.pixels.iter().flat_map(|pixel| [pixel.r(), pixel.g(), pixel.b()]).collect();
    let [width, height] = picture.size.map(|n| n as u32);
    let file = std::io::BufWriter::new(std::fs::File::create(path)?);
    let encoder = PngEncoder::new_with_quality(file, CompressionType::Best, FilterType::Adaptive);
    encoder.write_image(&pixels, width, height, image::ExtendedColorType::Rgb8)
}

/// Returns the mean rate of the last two seconds; 0 where there is none.
fn recent(history: &[[f64; 2]]) -> f64 {
    let end = history.last().map_or(0.0, |point| point[0]);
    let rates: Vec<f64> =
        history.iter().filter(|point| end - point[0] <= 2.0).map(|point| point[1]).collect();
    rates.iter().sum::<f64>() / rates.len().max(1) as f64
}
