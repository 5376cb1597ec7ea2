//! Changes of cells by hand.

use std::path::Path;

use abide::{Array, Error, Real, Result, Shape, Simulation, io};

use super::sampling::plane_axes;

/// A stroke of the brush, or a point source, which is a brush of radius 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Touch {
    /// The field.
    pub field: usize,
    /// The axis across the plane in which the brush is a disc.
    pub axis: usize,
    /// The cells over which the brush's middle went.
    pub centres: Vec<[usize; 3]>,
    /// The radius in cells.
    pub radius: f64,
    /// The new value.
    pub value: f64,
}

/// Applies strokes in order; each field is read and written once.
pub fn apply(simulation: &mut Simulation, touches: &[Touch]) -> Result<()> {
    let names = simulation.problem().program.fields().to_vec();
    for (number, name) in names.iter().enumerate() {
        let own: Vec<&Touch> = touches.iter().filter(|touch| touch.field == number).collect();
        if own.is_empty() {
            continue;
        }
        let shape = simulation.problem().shape_of(number)?;
        let mut values = simulation.field(name)?;
        for touch in own {
            match &mut values {
                Array::F32(v) => touch.paint(v, &shape),
                Array::F64(v) => touch.paint(v, &shape),
            }
        }
        simulation.write(name, &values)?;
    }
    Ok(())
}

impl Touch {
    fn paint<T: Real>(&self, values: &mut [T], shape: &Shape) {
        let extents = shape.padded();
        let [rows, columns] = plane_axes(self.axis);
        let reach = self.radius.max(0.0) as usize;
        let value = T::from_f64(self.value);
        for &centre in self.centres.iter().filter(|centre| (0..3).all(|a| centre[a] < extents[a])) {
            let range = |axis: usize| {
                centre[axis].saturating_sub(reach)..(centre[axis] + reach + 1).min(extents[axis])
            };
            for row in range(rows) {
                for column in range(columns) {
                    let away =
                        (row.abs_diff(centre[rows]) as f64).hypot(column.abs_diff(centre[columns]) as f64);
                    if away <= self.radius.max(0.0) {
                        let mut cell = centre;
                        (cell[rows], cell[columns]) = (row, column);
                        values[shape.index(cell)] = value;
                    }
                }
            }
        }
    }
}

/// Fills a field from a file: unchanged where the file has the field's extents, else stretched over the last
/// two axes.
pub fn load(simulation: &mut Simulation, field: &str, path: &Path) -> Result<()> {
    let problem = simulation.problem();
    let (shape, dtype) = (problem.shape_of(problem.program.field(field)?)?, problem.dtype);
    let loaded = io::read(path)?;
    let values = if loaded.shape == shape { loaded.values } else { stretched(path, &loaded, &shape)? };
    simulation.write(field, &values.cast(dtype)?)
}

/// Interpolates bilinearly between the cells of a picture; every plane of a three-dimensional field gets the
/// same values.
fn stretched(path: &Path, picture: &io::Loaded, shape: &Shape) -> Result<Array> {
    let [depth, height, width] = picture.shape.padded();
    if depth > 1 {
        let message = format!("it is a box of {}, the field is {shape}", picture.shape);
        return Err(Error::file(path, message, "give a picture, or a box of the field's extents"));
    }
    let [_, rows, columns] = shape.padded();
    // Pixel centres are mapped onto cell centres.
    let place = |i: usize, cells: usize, pixels: usize| {
        let at = ((i as f64 + 0.5) * pixels as f64 / cells as f64 - 0.5).clamp(0.0, (pixels - 1) as f64);
        (at as usize, (at as usize + 1).min(pixels - 1), at.fract())
    };
    let pixel = |y: usize, x: usize| picture.values.get(y * width + x).unwrap_or(f64::NAN);
    let mut values = Array::zeros(abide::DType::F64, shape.cells())?;
    if let Array::F64(values) = &mut values {
        for (index, value) in values.iter_mut().enumerate() {
            let [_, y, x] = shape.cell(index);
            let ((y0, y1, fy), (x0, x1, fx)) = (place(y, rows, height), place(x, columns, width));
            let mix = |a: f64, b: f64, f: f64| a + (b - a) * f;
            *value = mix(mix(pixel(y0, x0), pixel(y0, x1), fx), mix(pixel(y1, x0), pixel(y1, x1), fx), fy);
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use abide::{Choice, DType, Start};

    fn still(extents: &[usize]) -> Simulation {
        let start = Start::Constant(0.0);
        Simulation::builder("heat")
            .size(extents)
            .dtype(DType::F64)
            .start("u", start)
            .backend(Choice::CPU)
            .build()
            .unwrap()
    }

    #[test]
    fn a_brush_paints_a_disc_in_its_plane_and_nothing_else() {
        let mut simulation = still(&[5, 9, 9]);
        let touch = Touch { field: 0, axis: 1, centres: vec![[2, 4, 4]], radius: 1.5, value: 3.0 };
        apply(&mut simulation, &[touch]).unwrap();
        let values = simulation.field("u").unwrap().to_f64();
        let shape = Shape::new(&[5, 9, 9]).unwrap();
        for (index, value) in values.iter().enumerate() {
            let [z, y, x] = shape.cell(index);
            let inside = y == 4 && z.abs_diff(2).pow(2) + x.abs_diff(4).pow(2) <= 2;
            assert_eq!(*value, if inside { 3.0 } else { 0.0 }, "{z} {y} {x}");
        }
    }

    #[test]
    fn strokes_over_the_edge_and_beyond_it_are_cut() {
        let mut simulation = still(&[1, 1]);
        let touch = |centre, value| Touch { field: 0, axis: 0, centres: vec![centre], radius: 40.0, value };
        apply(&mut simulation, &[touch([0, 0, 0], 1.0), touch([0, 7, 0], 2.0)]).unwrap();
        assert_eq!(simulation.field("u").unwrap().to_f64(), [1.0]);
    }

    #[test]
    fn the_last_nodes_and_faces_can_be_painted_and_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.npy");
        let shape = Shape::new(&[3, 5]).unwrap();
        let values = Array::F64((0..15).map(f64::from).collect());
        io::write(&path, &shape, &[("f", &values)], 0, None).unwrap().commit().unwrap();
        let mut simulation = Simulation::builder("cloverleaf")
            .size(&[3, 4])
            .dtype(DType::F64)
            .backend(Choice::CPU)
            .build()
            .unwrap();
        load(&mut simulation, "vol_flux_x", &path).unwrap();
        assert_eq!(simulation.field("vol_flux_x").unwrap(), values);
        let field = simulation.problem().program.field("xvel0").unwrap();
        let touch = Touch { field, axis: 0, centres: vec![[0, 3, 4]], radius: 0.0, value: 7.0 };
        apply(&mut simulation, &[touch]).unwrap();
        let values = simulation.field("xvel0").unwrap().to_f64();
        assert_eq!((values.len(), values[19]), (20, 7.0));
        assert_eq!(values.iter().filter(|value| **value == 7.0).count(), 1);
    }

    #[test]
    fn a_picture_of_another_size_is_stretched() {
        let picture = io::Loaded {
            values: Array::F64(vec![0.0, 1.0]),
            shape: Shape::new(&[1, 2]).unwrap(),
            members: None,
        };
        let values = stretched(Path::new("p.png"), &picture, &Shape::new(&[2, 4]).unwrap()).unwrap().to_f64();
        assert_eq!(values, [0.0, 0.25, 0.75, 1.0, 0.0, 0.25, 0.75, 1.0]);
        let cube = io::Loaded {
            values: Array::F64(vec![0.0; 8]),
            shape: Shape::new(&[2, 2, 2]).unwrap(),
            members: None,
        };
        assert!(stretched(Path::new("c.npy"), &cube, &Shape::new(&[2, 4]).unwrap()).is_err());
    }
}
