//! The gallery: scenes that are ready to run.

use crate::drawing::{Drawing, PACKET_COURANT};
use crate::field::look::{ColourMap, Look, Span};
use crate::setup::{Setup, Source};

/// A scene of the gallery.
pub struct Scene {
    /// The scene's name, by which `abide view --scene` finds it.
    pub name: &'static str,
    /// A title of one to three words.
    pub title: &'static str,
    /// A sentence on what makes the picture.
    pub about: &'static str,
    /// The computation.
    pub setup: Setup,
    /// The look of the field.
    pub look: Look,
    /// Steps after which the scene's picture in the gallery was taken.
    pub pictured: u64,
    /// The picture in the gallery, a PNG of [`PICTURE`] pixels.
    pub picture: &'static [u8],
}

/// Width and height of the pictures in the gallery, in pixels.
pub const PICTURE: [usize; 2] = [256, 160];

macro_rules! picture {
    ($file:literal) => {
        include_bytes!(concat!("../pictures/", $file, ".png"))
    };
}

/// Returns all scenes, in the gallery's order.
pub fn all() -> Vec<Scene> {
    let gray = |name, title, feed, kill, picture| Scene {
        name,
        title,
        about: "Gray–Scott, reaction and diffusion",
        setup: sized("gray-scott", "512x512").with("feed", feed).with("kill", kill),
        look: Look::default(),
        pictured: 6000,
        picture,
    };
    let waves =
        Look { map: ColourMap::Diverging, span: Span::Fixed { low: -0.6, high: 0.6 }, ..Look::default() };
    vec![
        gray("mitosis", "Dividing spots", 0.0367, 0.0649, picture!("mitosis")),
        gray("coral", "Coral", 0.0545, 0.062, picture!("coral")),
        gray("fingerprint", "Fingerprint", 0.037, 0.06, picture!("fingerprint")),
        gray("worms", "Worms", 0.058, 0.065, picture!("worms")),
        gray("chaos", "Chaos", 0.026, 0.051, picture!("chaos")),
        gray("holes", "Holes", 0.039, 0.058, picture!("holes")),
        Scene {
            name: "two slits",
            title: "Two slits",
            about: "a wave packet, a wall",
            setup: drawn(
                sized("wave-medium", "512x512").with("courant", PACKET_COURANT),
                Drawing::TwoSlits,
                &["u", "w", "c"],
            ),
            look: waves.clone(),
            pictured: 620,
            picture: picture!("two-slits"),
        },
        Scene {
            name: "obstacle",
            title: "Obstacle",
            about: "heat around insulating walls",
            setup: drawn(sized("heat-conductivity", "384x512"), Drawing::Obstacle, &["u", "kappa"]),
            look: Look { map: ColourMap::Magma, contours: true, ..Look::default() },
            pictured: 6000,
            picture: picture!("obstacle"),
        },
        Scene {
            name: "lens",
            title: "Lens",
            about: "Maxwell: a pulse through glass",
            setup: drawn(sized("fdtd-dielectric", "512x512"), Drawing::Lens, &["ez", "eta"]),
            look: Look { span: Span::Fixed { low: -0.08, high: 0.08 }, ..waves.clone() },
            pictured: 620,
            picture: picture!("lens"),
        },
        Scene {
            name: "life",
            title: "Life",
            about: "Conway's game",
            setup: sized("life", "256x256"),
            look: Look { map: ColourMap::Cividis, ..Look::default() },
            pictured: 300,
            picture: picture!("life"),
        },
        Scene {
            name: "burgers",
            title: "Burgers",
            about: "flow that sharpens to shocks",
            setup: sized("burgers", "512x512"),
            look: Look { map: ColourMap::Magma, ..Look::default() },
            pictured: 900,
            picture: picture!("burgers"),
        },
        Scene {
            name: "box",
            title: "Box",
            about: "a wave in three dimensions",
            setup: sized("wave", "96x96x96").with("courant", 0.4),
            look: waves.clone(),
            pictured: 110,
            picture: picture!("box"),
        },
        Scene {
            name: "islands",
            title: "Islands",
            about: "shallow water, with shores",
            setup: drawn(sized("shallow-water", "320x512"), Drawing::Islands, &["level", "bed"]),
            look: Look::default(),
            pictured: 1500,
            picture: picture!("islands"),
        },
        Scene {
            name: "cavity",
            title: "Cavity",
            about: "lattice Boltzmann, a moving lid",
            setup: sized("lbm-d2q9", "200x320").with("nu", 0.01),
            look: Look {
                map: ColourMap::Magma,
                span: Span::Fixed { low: 0.0, high: 0.06 },
                ..Look::default()
            },
            pictured: 40_000,
            picture: picture!("cavity"),
        },
        Scene {
            name: "seismic shot",
            title: "Seismic shot",
            about: "sound through layers of rock",
            setup: drawn(sized("seismic-shot", "320x512").with("source_x", 0.4), Drawing::Rock, &["c"]),
            look: Look { span: Span::Fixed { low: -0.1, high: 0.1 }, ..waves },
            pictured: 950,
            picture: picture!("seismic-shot"),
        },
        Scene {
            name: "billows",
            title: "Billows",
            about: "Euler: two streams of gas",
            setup: sized("euler", "320x512"),
            look: Look::default(),
            pictured: 2600,
            picture: picture!("billows"),
        },
    ]
}

/// Returns the scene of a name.
pub fn find(name: &str) -> abide::Result<Scene> {
    let known: Vec<&str> = all().iter().map(|scene| scene.name).collect();
    all()
        .into_iter()
        .find(|scene| scene.name == name)
        .ok_or_else(|| abide::Error::unknown("scene", name, known))
}

fn sized(model: &str, size: &str) -> Setup {
    Setup { size: size.to_owned(), ..Setup::model(model) }
}

fn drawn(setup: Setup, drawing: Drawing, fields: &[&str]) -> Setup {
    let inputs = fields.iter().map(|&field| (field.to_owned(), Source::Drawn(drawing))).collect();
    Setup { inputs, ..setup }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scene_is_a_problem() {
        for scene in all() {
            scene
                .setup
                .builder()
                .and_then(abide::Builder::problem)
                .unwrap_or_else(|e| panic!("{}: {e}", scene.name));
        }
        assert!(find("coral").is_ok());
        assert!(find("nothing").is_err());
    }
}
