//! Initial fields that only a picture can describe: obstacles, slits, lenses, and the waves that run into
//! them.
//!
//! All are functions of the place in the domain, so that they fit any extents.

use abide::{Array, DType, Error, Result, Shape};
use serde::{Deserialize, Serialize};

/// A scene's material and waves; each knows which fields it draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Drawing {
    /// For `wave-medium`: a wall with two slits, and a packet of plane waves that runs towards it.
    TwoSlits,
    /// For `heat-conductivity`: hot spots beside insulating walls.
    Obstacle,
    /// For `fdtd-dielectric`: a pulse beside a lens of glass.
    Lens,
    /// For `shallow-water`: a column of water that falls into a sea with three islands.
    Islands,
    /// For `seismic-shot`: folded layers around a dome of salt.
    Rock,
}

/// Courant number for which the packet of [`Drawing::TwoSlits`] runs one way.
pub const PACKET_COURANT: f64 = 0.5;

/// The permittivity of the lens over the vacuum's.
const GLASS: f64 = 2.25;

impl Drawing {
    /// Returns the values of a field; an error where the drawing has none for it.
    pub fn values(self, field: &str, shape: &Shape, dtype: DType) -> Result<Array> {
        let value: fn(Place) -> f64 = match (self, field) {
            (Drawing::TwoSlits, "c") => two_slits,
            (Drawing::TwoSlits, "u") => |at| packet(at, 0.0),
            // The level before: the packet where it was one step earlier.
            (Drawing::TwoSlits, "w") => |at| packet(at, PACKET_COURANT),
            (Drawing::Obstacle, "kappa") => walls,
            (Drawing::Obstacle, "u") => hot_spots,
            (Drawing::Lens, "eta") => lens,
            (Drawing::Lens, "ez") => pulse,
            (Drawing::Islands, "bed") => islands,
            (Drawing::Islands, "level") => column,
            (Drawing::Rock, "c") => rock,
            _ => {
                return Err(Error::invalid(
                    format!("drawing {self:?}"),
                    format!("it has nothing for a field {field}"),
                    "start the field by a name or a file",
                ));
            }
        };
        let mut values = Array::zeros(dtype, shape.cells())?;
        let [_, height, width] = shape.padded();
        let fill = |set: &mut dyn FnMut(usize, f64)| {
            for index in 0..shape.cells() {
                let [_, y, x] = shape.cell(index);
                set(
                    index,
                    value(Place { x: x as f64, y: y as f64, width: width as f64, height: height as f64 }),
                );
            }
        };
        match &mut values {
            Array::F32(v) => fill(&mut |i, x| v[i] = x as f32),
            Array::F64(v) => fill(&mut |i, x| v[i] = x),
        }
        Ok(values)
    }
}

/// A cell of the domain, and the domain's extents.
#[derive(Clone, Copy)]
struct Place {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Place {
    /// Returns the place as shares of the extents, 0 to 1.
    fn shares(self) -> (f64, f64) {
        ((self.x + 0.5) / self.width, (self.y + 0.5) / self.height)
    }
}

/// Returns 0 in the wall, 1 elsewhere.
fn two_slits(at: Place) -> f64 {
    let (x, y) = at.shares();
    let slit = |centre: f64| (y - centre).abs() < 0.022;
    if (x - 0.36).abs() < 0.008 && !slit(0.43) && !slit(0.57) { 0.0 } else { 1.0 }
}

/// Returns some waves of about 20 cells under a bell, `shift` cells further on; waves run towards larger x.
fn packet(at: Place, shift: f64) -> f64 {
    let length = (at.width / 22.0).max(4.0);
    let from = at.x + shift - 0.17 * at.width;
    let bell = (-0.5 * (from / length).powi(2)).exp();
    // The packet must be exactly 0 behind the wall and beyond the bell, because a wall keeps its values.
    if bell < 1e-3 { 0.0 } else { bell * (std::f64::consts::TAU * from / length).cos() }
}

/// Returns the conductivity: poor in two walls with gaps, good elsewhere.
fn walls(at: Place) -> f64 {
    let (x, y) = at.shares();
    let first = (x - 0.4).abs() < 0.02 && (y - 0.25).abs() > 0.06;
    let second = (x - 0.65).abs() < 0.02 && (y - 0.75).abs() > 0.06;
    let disc = (x - 0.52).hypot(y - 0.5) < 0.06;
    if first || second || disc { 0.0005 } else { 0.24 }
}

fn hot_spots(at: Place) -> f64 {
    let (x, y) = at.shares();
    let spot = |cx: f64, cy: f64, radius: f64| (x - cx).hypot(y - cy) < radius;
    f64::from(spot(0.18, 0.3, 0.1) || spot(0.2, 0.72, 0.07))
}

fn lens(at: Place) -> f64 {
    let (x, y) = at.shares();
    // The lens lies between two circles; the aspect is the picture's.
    let inside = |centre: f64| (x - centre).hypot(y - 0.5) < 0.36;
    if inside(0.86) && inside(0.3) { 1.0 / GLASS } else { 1.0 }
}

fn pulse(at: Place) -> f64 {
    let (x, y) = (at.x - 0.2 * at.width, at.y - 0.5 * at.height);
    let radius = (at.width.min(at.height) / 48.0).max(1.5);
    (-0.5 * (x * x + y * y) / (radius * radius)).exp()
}

/// Returns the ground's height: three hills.
fn islands(at: Place) -> f64 {
    let hills = [(0.5, 0.45, 0.16, 0.9), (0.8, 0.75, 0.09, 0.75), (0.75, 0.2, 0.08, 0.65)];
    let hill = |(x, y, radius, height): (f64, f64, f64, f64)| {
        let (dx, dy) = (at.x - x * at.width, at.y - y * at.height);
        height * (-(dx * dx + dy * dy) / (radius * at.height).powi(2)).exp()
    };
    hills.into_iter().map(hill).sum()
}

/// Returns the water's level: a column beside the islands stands above the sea.
fn column(at: Place) -> f64 {
    let (dx, dy) = (at.x - 0.17 * at.width, at.y - 0.6 * at.height);
    if dx.hypot(dy) < 0.12 * at.height { 1.4 } else { 0.45 }
}

/// Returns the speed of sound in m/s.
fn rock(at: Place) -> f64 {
    let (x, y) = at.shares();
    let dome = ((x - 0.66) / 0.14).powi(2) + ((y - 0.72) / 0.2).powi(2);
    if dome < 1.0 {
        return 3900.0;
    }
    // The dome has lifted the layers above it.
    let lift = 0.1 * (-((x - 0.66) / 0.16).powi(2)).exp() * y;
    let depth = y + lift + 0.05 * (7.0 * x).sin() * y - 0.08 * x;
    let layers = [(0.24, 1700.0), (0.42, 2100.0), (0.58, 2600.0), (0.76, 3000.0)];
    layers.into_iter().find(|(bottom, _)| depth < *bottom).map_or(3400.0, |(_, speed)| speed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawings_fit_any_extents_and_refuse_other_fields() {
        for extents in [&[1, 1][..], &[3, 200], &[61, 47]] {
            let shape = Shape::new(extents).unwrap();
            for (drawing, fields) in [
                (Drawing::TwoSlits, ["c", "u", "w"]),
                (Drawing::Obstacle, ["kappa", "u", "u"]),
                (Drawing::Lens, ["eta", "ez", "ez"]),
                (Drawing::Islands, ["bed", "level", "level"]),
                (Drawing::Rock, ["c", "c", "c"]),
            ] {
                for field in fields {
                    let values = drawing.values(field, &shape, DType::F64).unwrap();
                    assert_eq!((values.len(), values.non_finite()), (shape.cells(), 0));
                }
                assert!(drawing.values("hx", &shape, DType::F32).is_err());
            }
        }
    }

    /// The values inside the wall must start as 0, or the wall would ring.
    #[test]
    fn no_wave_starts_in_the_wall() {
        let shape = Shape::new(&[512, 512]).unwrap();
        let field = |name| Drawing::TwoSlits.values(name, &shape, DType::F64).unwrap().to_f64();
        let (speed, now, before) = (field("c"), field("u"), field("w"));
        assert!(speed.contains(&0.0) && speed.contains(&1.0));
        for ((c, u), w) in speed.iter().zip(&now).zip(&before) {
            assert!(*c > 0.0 || (*u == 0.0 && *w == 0.0));
        }
    }
}
