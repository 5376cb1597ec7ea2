//! A picture of the field, made for as many pixels as the screen has for it.

use abide::{Array, Error, Real, Result, Simulation};

use super::OnDevice;

/// The part of a field that is shown; axes are the three padded ones, slowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// One slice across an axis. Domains of one or two axes have one slice, across axis 0 at index 0.
    Slice {
        /// The axis across which the slice lies.
        axis: usize,
        /// The place of the slice along that axis.
        index: usize,
    },
    /// A slice across each axis, through this cell.
    Three([usize; 3]),
    /// The largest value along an axis.
    Maximum {
        /// The axis of the line of sight.
        axis: usize,
    },
}

/// The contents of frames.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// The number of the field.
    pub field: usize,
    /// The part of the domain.
    pub cut: Section,
    /// The cells of a single plane that are in view, `[low, high)` of (rows, columns); `None` for all cells.
    pub window: Option<[[usize; 2]; 2]>,
    /// Rows and columns of pixels that show the window.
    pub pixels: [usize; 2],
    /// A cell whose exact value is wanted.
    pub probe: Option<[usize; 3]>,
}

impl Default for View {
    fn default() -> Self {
        View {
            field: 0,
            cut: Section::Slice { axis: 0, index: 0 },
            window: None,
            pixels: [512; 2],
            probe: None,
        }
    }
}

/// One plane, or a window of it, at most as fine as the pixels.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// The axis across which the plane lies.
    pub axis: usize,
    /// Rows and columns of cells of the whole plane.
    pub plane: [usize; 2],
    /// The first row and column of cells shown.
    pub low: [usize; 2],
    /// One past the last row and column of cells shown.
    pub high: [usize; 2],
    /// Rows and columns of cells per value; each value is the mean of these cells.
    pub factor: [usize; 2],
    /// Rows and columns of values.
    pub size: [usize; 2],
    /// The first cell along the axis and one past the last; the image shows the largest value of these cells.
    pub depth: [usize; 2],
    /// The values, rows from the top. Finite values beyond the range of `f32` become its largest value. Empty
    /// in a glance.
    pub values: Vec<f32>,
}

/// The extremes of the finite values of a frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extremes {
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// The smallest value above zero.
    pub positive: Option<f64>,
}

/// The field after some step, as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The step.
    pub step: u64,
    /// The number of the run, which counts up with every start.
    pub run: u64,
    /// The contents of the frame.
    pub view: View,
    /// One image, or three for [`Section::Three`].
    pub images: Vec<Image>,
    /// The field where the window's device can draw it; otherwise the values are in the images.
    pub field: Option<OnDevice>,
    /// The extremes of the finite values shown; `None` where no value is finite. A glance has those of the
    /// last look.
    pub extremes: Option<Extremes>,
    /// Number of values shown that are NaN or infinite. A glance has that of the last look.
    pub non_finite: usize,
    /// The cell that was asked for, and its value.
    pub probe: Option<([usize; 3], f64)>,
}

impl Section {
    /// Returns the cut nearest to this one in a field of these extents.
    pub fn within(self, extents: [usize; 3]) -> Section {
        let last = |axis: usize| extents[axis].saturating_sub(1);
        match self {
            Section::Slice { axis, index } if axis < 3 => {
                Section::Slice { axis, index: index.min(last(axis)) }
            }
            Section::Three(at) => Section::Three(std::array::from_fn(|axis| at[axis].min(last(axis)))),
            Section::Maximum { axis } if axis < 3 => self,
            _ => Section::Slice { axis: 0, index: 0 },
        }
    }
}

/// Returns the axes of a plane's rows and columns, across `axis`.
pub fn plane_axes(axis: usize) -> [usize; 2] {
    match axis {
        0 => [1, 2],
        1 => [0, 2],
        _ => [0, 1],
    }
}

/// The results of a look at the values, which a glance repeats.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    extremes: Option<Extremes>,
    non_finite: usize,
}

impl Seen {
    /// Returns the results in this frame.
    pub fn of(frame: &Frame) -> Seen {
        Seen { extremes: frame.extremes, non_finite: frame.non_finite }
    }
}

/// Reads the values that a view shows, and reduces them to its pixels.
pub fn frame(simulation: &mut Simulation, run: u64, view: &View) -> Result<Frame> {
    look(simulation, run, view, None)
}

/// Makes a frame without values, for a field that the window's device draws by itself: only the probe is
/// read.
pub fn glance(simulation: &mut Simulation, run: u64, view: &View, seen: &Seen) -> Result<Frame> {
    look(simulation, run, view, Some(seen))
}

fn look(simulation: &mut Simulation, run: u64, view: &View, seen: Option<&Seen>) -> Result<Frame> {
    let problem = simulation.problem();
    let extents = problem.extents_of(view.field);
    let names = problem.program.fields();
    let name =
        names.get(view.field).ok_or_else(|| Error::unknown("field", view.field.to_string(), names))?.clone();
    let cut = view.cut.within(extents);
    let mut view = View { cut, ..view.clone() };
    let mut images = Vec::new();
    let mut probed = None;
    let mut add = |axis: usize, along: [usize; 2], window: Option<[[usize; 2]; 2]>| -> Result<()> {
        let [rows, columns] = plane_axes(axis);
        let plane = [extents[rows], extents[columns]];
        let [low, high] = clamped(window, plane);
        let mut from = [0; 3];
        let mut to = [0; 3];
        [from[axis], to[axis]] = along;
        [from[rows], from[columns]] = low;
        [to[rows], to[columns]] = high;
        let cells: [usize; 2] = std::array::from_fn(|a| high[a] - low[a]);
        let factor: [usize; 2] = std::array::from_fn(|a| cells[a].div_ceil(view.pixels[a].max(1)).max(1));
        let size: [usize; 2] = std::array::from_fn(|a| cells[a].div_ceil(factor[a]));
        let mut image = Image { axis, plane, low, high, factor, size, depth: along, values: Vec::new() };
        let inside = |cell: &[usize; 3]| (0..3).all(|a| (from[a]..to[a]).contains(&cell[a]));
        let probe = view.probe.filter(inside);
        if seen.is_some() {
            if let Some(cell) = probe {
                let value = simulation.window(&name, cell, cell.map(|at| at + 1))?;
                probed = value.get(0).map(|value| (cell, value));
            }
        } else {
            let values = simulation.window(&name, from, to)?;
            let boxed: [usize; 3] = std::array::from_fn(|a| to[a] - from[a]);
            if let Some(cell) = probe {
                let index =
                    ((cell[0] - from[0]) * boxed[1] + cell[1] - from[1]) * boxed[2] + cell[2] - from[2];
                probed = values.get(index).map(|value| (cell, value));
            }
            image.values = reduce(&values, boxed, &image);
        }
        images.push(image);
        Ok(())
    };
    match cut {
        Section::Slice { axis, index } => add(axis, [index, index + 1], view.window)?,
        Section::Three(at) => (0..3).try_for_each(|axis| add(axis, [at[axis], at[axis] + 1], None))?,
        Section::Maximum { axis } => add(axis, [0, extents[axis]], view.window)?,
    }
    let Seen { extremes, non_finite } = seen.cloned().unwrap_or_else(|| extremes(&images));
    if matches!(cut, Section::Three(_)) {
        view.window = None;
    }
    Ok(Frame { step: simulation.step(), run, view, images, field: None, extremes, non_finite, probe: probed })
}

/// Returns the window's part inside the plane, at least one cell.
fn clamped(window: Option<[[usize; 2]; 2]>, plane: [usize; 2]) -> [[usize; 2]; 2] {
    let [low, high] = window.unwrap_or([[0, 0], plane]);
    let low: [usize; 2] = std::array::from_fn(|a| low[a].min(plane[a].saturating_sub(1)));
    [low, std::array::from_fn(|a| high[a].clamp(low[a] + 1, plane[a].max(1)))]
}

/// Returns the means over blocks of cells; each cell has the largest value along the axis.
fn reduce(values: &Array, extents: [usize; 3], image: &Image) -> Vec<f32> {
    let stride = [extents[1] * extents[2], extents[2], 1];
    let [rows, columns] = plane_axes(image.axis);
    let layout = Layout {
        cells: std::array::from_fn(|a| image.high[a] - image.low[a]),
        factor: image.factor,
        size: image.size,
        depth: extents[image.axis],
        along: stride[image.axis],
        row: stride[rows],
        column: stride[columns],
    };
    abide::with_array!(values, v => layout.reduce(v))
}

/// The layout of a plane's cells in an array, and of the blocks that they are reduced to.
struct Layout {
    cells: [usize; 2],
    factor: [usize; 2],
    size: [usize; 2],
    depth: usize,
    along: usize,
    row: usize,
    column: usize,
}

impl Layout {
    fn reduce<T: Real>(&self, values: &[T]) -> Vec<f32> {
        let mut means = Vec::with_capacity(self.size[0] * self.size[1]);
        let mut sums = vec![0.0f64; self.size[1]];
        for block in 0..self.size[0] {
            sums.fill(0.0);
            let rows = block * self.factor[0]..((block + 1) * self.factor[0]).min(self.cells[0]);
            let height = rows.len();
            for row in rows {
                for (number, sum) in sums.iter_mut().enumerate() {
                    let columns = number * self.factor[1]..((number + 1) * self.factor[1]).min(self.cells[1]);
                    for column in columns {
                        *sum += self.largest(values, row * self.row + column * self.column);
                    }
                }
            }
            for (number, sum) in sums.iter().enumerate() {
                let width = self.factor[1].min(self.cells[1] - number * self.factor[1]);
                means.push(narrowed(sum / (height * width) as f64));
            }
        }
        means
    }

    /// Returns the largest value along the axis; NaN where any value is NaN.
    fn largest<T: Real>(&self, values: &[T], first: usize) -> f64 {
        let at = |i: usize| values[first + i * self.along].to_f64();
        (1..self.depth).map(at).fold(at(0), |most, x| if x > most || x.is_nan() { x } else { most })
    }
}

/// Converts a value to f32; a finite value stays finite.
fn narrowed(value: f64) -> f32 {
    if value.is_finite() {
        value.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32
    } else {
        value as f32
    }
}

fn extremes(images: &[Image]) -> Seen {
    let mut found: Option<Extremes> = None;
    let mut non_finite = 0;
    for &value in images.iter().flat_map(|image| &image.values) {
        let x = f64::from(value);
        if !x.is_finite() {
            non_finite += 1;
            continue;
        }
        let e = found.get_or_insert(Extremes { low: x, high: x, positive: None });
        e.low = e.low.min(x);
        e.high = e.high.max(x);
        if x > 0.0 {
            e.positive = Some(e.positive.map_or(x, |p| p.min(x)));
        }
    }
    Seen { extremes: found, non_finite }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide::{Choice, DType, Shape};

    /// Returns a simulation of `heat` whose values count the cells.
    fn counting(extents: &[usize]) -> Simulation {
        let cells = Shape::new(extents).unwrap().cells();
        let values: Vec<f64> = (0..cells).map(|i| i as f64).collect();
        Simulation::builder("heat")
            .size(extents)
            .dtype(DType::F64)
            .input("u", values)
            .backend(Choice::CPU)
            .build()
            .unwrap()
    }

    fn shown(simulation: &mut Simulation, view: View) -> Frame {
        frame(simulation, 0, &view).unwrap()
    }

    #[test]
    fn a_small_plane_is_shown_cell_by_cell() {
        let frame = shown(&mut counting(&[3, 5]), View::default());
        assert_eq!(frame.images[0].values, (0..15).map(|i| i as f32).collect::<Vec<_>>());
        assert_eq!(frame.extremes, Some(Extremes { low: 0.0, high: 14.0, positive: Some(1.0) }));
    }

    #[test]
    fn a_large_plane_is_shown_by_means_that_keep_the_whole_mean() {
        let view = View { pixels: [2, 3], ..View::default() };
        let frame = shown(&mut counting(&[4, 9]), view);
        let image = &frame.images[0];
        assert_eq!((image.factor, image.size), ([2, 3], [2, 3]));
        // The cells are 0 1 2 and 9 10 11.
        assert_eq!(image.values[0], 5.5);
        let mean = image.values.iter().sum::<f32>() / 6.0;
        assert_eq!(mean, 17.5);
    }

    #[test]
    fn windows_slices_and_projections_are_the_cells_they_say() {
        let mut cube = counting(&[2, 3, 4]);
        let index = |z: usize, y: usize, x: usize| ((z * 3 + y) * 4 + x) as f32;
        for axis in 0..3 {
            let cut = Section::Slice { axis, index: 1 };
            let image = shown(&mut cube, View { cut, window: Some([[1, 0], [2, 2]]), ..View::default() })
                .images
                .remove(0);
            let expected = match axis {
                0 => [index(1, 1, 0), index(1, 1, 1)],
                1 => [index(1, 1, 0), index(1, 1, 1)],
                _ => [index(1, 0, 1), index(1, 1, 1)],
            };
            assert_eq!(image.values, expected, "axis {axis}");
        }
        let image =
            shown(&mut cube, View { cut: Section::Maximum { axis: 0 }, ..View::default() }).images.remove(0);
        assert_eq!(image.values[0], index(1, 0, 0));
        let three = shown(
            &mut cube,
            View { cut: Section::Three([9, 9, 9]), probe: Some([1, 2, 3]), ..View::default() },
        );
        assert_eq!(three.images.iter().map(|i| i.size).collect::<Vec<_>>(), [[3, 4], [2, 4], [2, 3]]);
        assert_eq!(three.probe, Some(([1, 2, 3], 23.0)));
    }

    #[test]
    fn fields_on_faces_and_nodes_are_shown_by_their_own_extents() {
        let counting = |name: &str, extents: &[usize]| {
            let values = (0..extents.iter().product()).map(|i| i as f64).collect::<Vec<_>>();
            let mut simulation =
                Simulation::builder("cloverleaf-3d").size(&[2, 3, 4]).dtype(DType::F64).backend(Choice::CPU);
            simulation = simulation.input(name, values);
            simulation.build().unwrap()
        };
        for (name, [depth, height, width]) in [
            ("density0", [2, 3, 4]),
            ("yvel0", [3, 4, 5]),
            ("vol_flux_x", [2, 3, 5]),
            ("vol_flux_z", [3, 3, 4]),
        ] {
            let mut simulation = counting(name, &[depth, height, width]);
            let field = simulation.problem().program.field(name).unwrap();
            let at = [depth - 1, height - 1, width - 1];
            let last = (depth * height * width - 1) as f32;
            let cut = Section::Three([9, 9, 9]);
            let frame = shown(&mut simulation, View { field, cut, probe: Some(at), ..View::default() });
            assert_eq!(frame.view.cut, Section::Three(at), "{name}");
            let sizes: Vec<[usize; 2]> = frame.images.iter().map(|image| image.size).collect();
            assert_eq!(sizes, [[height, width], [depth, width], [depth, height]], "{name}");
            assert!(frame.images.iter().all(|image| image.values.last() == Some(&last)), "{name}");
            assert_eq!(frame.probe, Some((at, f64::from(last))), "{name}");
            let cut = Section::Maximum { axis: 0 };
            let frame = shown(&mut simulation, View { field, cut, ..View::default() });
            assert_eq!(frame.images[0].values[0], ((depth - 1) * height * width) as f32, "{name}");
        }
    }

    #[test]
    fn what_is_not_finite_stays_so_and_large_numbers_do_not_become_infinite() {
        let values = vec![f64::NAN, 1e300, f64::NEG_INFINITY, -3.0];
        let mut simulation = Simulation::builder("heat")
            .size(&[2, 2])
            .dtype(DType::F64)
            .input("u", values)
            .backend(Choice::CPU)
            .build()
            .unwrap();
        let frame = shown(&mut simulation, View::default());
        assert_eq!(frame.non_finite, 2);
        assert_eq!(
            frame.extremes,
            Some(Extremes { low: -3.0, high: f64::from(f32::MAX), positive: Some(f64::from(f32::MAX)) })
        );
        let frame = shown(&mut simulation, View { pixels: [0, 0], ..View::default() });
        assert!(frame.images[0].values[0].is_nan());
    }

    #[test]
    fn a_single_cell_and_windows_beyond_the_domain_are_shown() {
        let frame = shown(&mut counting(&[1, 1]), View { window: Some([[7, 7], [9, 9]]), ..View::default() });
        assert_eq!(frame.images[0].values, [0.0]);
    }
}
