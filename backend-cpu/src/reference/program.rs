//! The definition of a run of any program: stage by stage, value by value.
//!
//! A temporary is not stored. Wherever it is read, it is its formula there, of the values that its inputs had
//! when its stage came.
//!
//! Scalars are f64 in every run: their formulas are evaluated in f64, and stages of fields read them rounded once to the
//! type of the fields.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use abide_core::expr::{Dag, Tap};
use abide_core::program::{Centring, GhostSource, Indices, Reduction, StageKind, Transforms};
use abide_core::reduction::leaf;
use abide_core::{Array, Boundaries, Problem, Real, Result};

/// The state of a run between two stages.
pub(super) struct State<T> {
    /// The values of each field.
    pub fields: Vec<Rc<Vec<T>>>,
    /// The parameters, and then the computed scalars: f64 whatever the type of the fields.
    pub scalars: Vec<f64>,
    /// The steps done, by which the cycle of steps goes on.
    pub steps: u64,
    transforms: Transforms,
}

/// A temporary between the stage that sets it and the end of the step.
struct Set<T> {
    dag: Rc<Dag>,
    /// The grid on which it is.
    grid: Centring,
    output: usize,
    /// The values that its stage read.
    inputs: Rc<Inputs<T>>,
    /// The values that have been asked for.
    known: RefCell<HashMap<[isize; 3], T>>,
}

/// What a stage reads.
struct Inputs<T> {
    fields: Vec<Rc<Vec<T>>>,
    temporaries: Vec<Option<Rc<Set<T>>>>,
    /// The scalars, rounded once to the type of the fields.
    scalars: Vec<T>,
}

impl<T: Real> State<T> {
    /// Returns the state before the first step.
    pub fn new(problem: &Problem, fields: &[Array]) -> Result<Self> {
        let scalars = problem.parameters.iter().chain(&problem.scalars);
        Ok(State {
            fields: fields.iter().filter_map(T::slice).map(|values| Rc::new(values.to_vec())).collect(),
            scalars: scalars.copied().collect(),
            steps: problem.first_step,
            transforms: Transforms::of(problem)?,
        })
    }

    /// Runs the next step of the cycle; after each stage it calls `after` with the stage's number.
    pub fn step(&mut self, problem: &Problem, mut after: impl FnMut(usize, &Self)) {
        let program = &problem.program;
        let mut place = program.first_phase(self.steps);
        loop {
            match program.repeat(place) {
                None => self.stages(problem, program.steps()[place].clone(), &mut after),
                Some(repeat) => {
                    let parameters = problem.parameters.len();
                    let mut turns = 0;
                    while !repeat.ends(turns, |scalar| self.scalars[parameters + scalar]) {
                        self.stages(problem, program.steps()[place].clone(), &mut after);
                        turns += 1;
                    }
                }
            }
            if program.ends_step(place) {
                break;
            }
            place += 1;
        }
        self.steps += 1;
    }

    /// Runs some stages in order.
    fn stages(&mut self, problem: &Problem, stages: Range<usize>, after: &mut impl FnMut(usize, &Self)) {
        let program = &problem.program;
        let names = program.fields().len();
        let mut temporaries: Vec<Option<Rc<Set<T>>>> = program.temporaries().iter().map(|_| None).collect();
        for number in stages {
            let stage = &program.stages()[number];
            let inputs = Rc::new(Inputs {
                fields: self.fields.clone(),
                temporaries: temporaries.clone(),
                scalars: self.scalars.iter().map(|&value| T::from_f64(value)).collect(),
            });
            let grid = program.grid_of(stage);
            let value = |output: usize, at: [isize; 3]| {
                inputs.evaluate(problem, (&stage.dag, grid), at)[stage.dag.outputs[output] as usize]
            };
            match stage.does {
                StageKind::Scalar(scalar) => {
                    let mut values = Vec::with_capacity(stage.dag.nodes.len());
                    stage.dag.evaluate(&mut values, &self.scalars, [0; 3], |_| f64::NAN);
                    self.scalars[scalar] = values[stage.dag.outputs[0] as usize];
                }
                StageKind::Reduce(reduction, region, scalar) => {
                    let indices = problem.indices_of(stage, region);
                    let dimensions = program.dimensions();
                    let value = tree(reduction, &indices, dimensions, &mut |at| value(0, at));
                    self.scalars[scalar] = value.to_f64();
                }
                StageKind::Transform(transform) => {
                    let (target, axis) = (stage.writes[0], transform.axis);
                    let (boundaries, extents) = (problem.boundaries_of(target), problem.extents_of(target));
                    let line = boundaries.computed(axis, extents[axis], program.radius()[axis]);
                    let (matrix, rows) = self.transforms.matrix(problem, number).unwrap_or_default();
                    let mut new = (*inputs.fields[target]).clone();
                    each(&boundaries, extents, program.radius(), |at| {
                        let row = (at[axis] as usize - line.start) * rows;
                        let products = line.clone().zip(&matrix[row..]).map(|(place, &weight)| {
                            let mut other = at;
                            other[axis] = place as isize;
                            (T::from_f64(weight), value(0, other))
                        });
                        let sum = products.fold(T::ZERO, |sum, (weight, value)| weight.mul_add(value, sum));
                        let [z, y, x] = at.map(|i| i as usize);
                        new[(z * extents[1] + y) * extents[2] + x] = sum;
                    });
                    self.fields[target] = Rc::new(new);
                }
                StageKind::Update => {
                    for (output, &target) in stage.writes.iter().enumerate() {
                        let Some(temporary) = target.checked_sub(names) else {
                            let boundaries = problem.boundaries_of(target);
                            let extents = problem.extents_of(target);
                            let mut new = (*inputs.fields[target]).clone();
                            let set = |at: [isize; 3]| {
                                let [z, y, x] = at.map(|i| i as usize);
                                new[(z * extents[1] + y) * extents[2] + x] = value(output, at);
                            };
                            match stage.points.is_empty() {
                                true => each(&boundaries, extents, program.radius(), set),
                                false => stage.points.iter().map(|at| at.map(|i| i as isize)).for_each(set),
                            }
                            self.fields[target] = Rc::new(new);
                            continue;
                        };
                        let (dag, inputs) = (Rc::new(stage.dag.clone()), inputs.clone());
                        let set = Set { dag, grid, output, inputs, known: RefCell::default() };
                        temporaries[temporary] = Some(Rc::new(set));
                    }
                }
            }
            after(number, self);
        }
    }
}

/// Calls `visit` with each index of a field that is computed.
fn each(boundaries: &Boundaries, extents: [usize; 3], radius: [usize; 3], mut visit: impl FnMut([isize; 3])) {
    let [zs, ys, xs] = [0, 1, 2].map(|axis| boundaries.computed(axis, extents[axis], radius[axis]));
    for z in zs {
        for y in ys.clone() {
            xs.clone().for_each(|x| visit([z as isize, y as isize, x as isize]));
        }
    }
}

impl<T: Real> Inputs<T> {
    /// Returns the values of all nodes of a formula at an index.
    fn evaluate(&self, problem: &Problem, (dag, grid): (&Dag, Centring), at: [isize; 3]) -> Vec<T> {
        let mut values = Vec::with_capacity(dag.nodes.len());
        // Coordinates beyond the domain count on; a temporary may be asked for there.
        dag.evaluate(&mut values, &self.scalars, at, |tap| self.tap(problem, (tap, grid), at));
        values
    }

    fn tap(&self, problem: &Problem, (tap, grid): (Tap, Centring), from: [isize; 3]) -> T {
        let field = usize::from(tap.field);
        let levels = grid.to(problem.program.centring(field));
        let at = [0, 1, 2].map(|axis| levels.index(from[axis]) + tap.offset[axis] as isize);
        if let Some(temporary) = field.checked_sub(self.fields.len()) {
            // The program was checked to set every temporary before it reads it.
            let Some(set) = &self.temporaries[temporary] else { return T::from_f64(f64::NAN) };
            let known = set.known.borrow().get(&at).copied();
            return known.unwrap_or_else(|| {
                let values = set.inputs.evaluate(problem, (&set.dag, set.grid), at);
                let value = values[set.dag.outputs[set.output] as usize];
                set.known.borrow_mut().insert(at, value);
                value
            });
        }
        match problem.shown(field, at, &self.scalars) {
            GhostSource::Value(value) => T::from_f64(value),
            GhostSource::At(place, negated) => {
                let [_, rows, cells] = problem.extents_of(field);
                let [z, y, x] = place.map(|i| i as usize);
                let value = self.fields[field][(z * rows + y) * cells + x];
                if negated { -value } else { value }
            }
        }
    }
}

/// Reduces values over a box by the tree of [`abide_core::reduction`], from its definition: an aligned
/// block of two halves, and an empty one is neutral.
fn tree<T: Real>(
    reduction: Reduction,
    indices: &Indices,
    dimensions: usize,
    value: &mut impl FnMut([isize; 3]) -> T,
) -> T {
    let leaf = leaf(dimensions).map(|extent| extent as isize);
    let boxes = [0, 1, 2].map(|axis| (indices[axis].end as usize).div_ceil(leaf[axis] as usize));
    along(reduction, boxes, &mut |number: [isize; 3]| {
        along(reduction, leaf.map(|extent| extent as usize), &mut |place: [isize; 3]| {
            let at = [0, 1, 2].map(|axis| number[axis] * leaf[axis] + place[axis]);
            match (0..3).all(|axis| indices[axis].contains(&at[axis])) {
                true => value(at),
                false => reduction.neutral(),
            }
        })
    })
}

/// Joins along the slowest axis first, then along the next, then along the fastest.
fn along<T: Real>(reduction: Reduction, extents: [usize; 3], value: &mut dyn FnMut([isize; 3]) -> T) -> T {
    let [z, y, x] = extents;
    halves(reduction, 0, x.next_power_of_two(), x, &mut |x| {
        halves(reduction, 0, y.next_power_of_two(), y, &mut |y| {
            halves(reduction, 0, z.next_power_of_two(), z, &mut |z| value([z, y, x].map(|i| i as isize)))
        })
    })
}

fn halves<T: Real>(
    reduction: Reduction,
    first: usize,
    size: usize,
    end: usize,
    value: &mut dyn FnMut(usize) -> T,
) -> T {
    match size {
        _ if first >= end => reduction.neutral(),
        1 => value(first),
        _ => {
            let low = halves(reduction, first, size / 2, end, value);
            let high = halves(reduction, first + size / 2, size / 2, end, value);
            reduction.join(low, high)
        }
    }
}
