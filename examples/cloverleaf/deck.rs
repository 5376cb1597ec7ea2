//! CloverLeaf's input decks: the mesh, the time steps and the initial states.

use std::path::Path;

use abide::{Array, Error, Result};

/// The built-in test, which runs where no deck is given.
pub const BUILT_IN: &str = "*clover
 state 1 density=0.2 energy=1.0
 state 2 density=1.0 energy=2.5 geometry=rectangle xmin=0.0 xmax=5.0 ymin=0.0 ymax=2.0
 x_cells=10
 y_cells=2
 xmin=0.0
 ymin=0.0
 xmax=10.0
 ymax=2.0
 initial_timestep=0.04
 timestep_rise=1.5
 max_timestep=0.04
 end_time=3.0
*endclover";

/// The longest line that the reference reads.
const LONGEST: usize = 100;

/// Returns whether the reference reads all that a line says. It cuts a long line, which may take digits from
/// the last number that change nothing.
fn is_read_whole(line: &str) -> bool {
    let cut: String = line.chars().take(LONGEST).collect();
    let words = |line: &str| -> Vec<String> {
        line.replace('=', " ").split_whitespace().map(str::to_owned).collect()
    };
    let same = |a: &String, b: &String| a == b || a.parse::<f64>().is_ok_and(|a| Ok(a) == b.parse::<f64>());
    let (all, read) = (words(line), words(&cut));
    all.len() == read.len() && all.iter().zip(&read).all(|(a, b)| same(a, b))
}

/// A deck; axes are in the order z, y, x, and a deck of two dimensions has no z.
#[derive(Debug, Clone)]
pub struct Deck {
    /// Cells along each axis.
    pub cells: Vec<usize>,
    /// The low and the high end of each axis.
    pub ends: Vec<[f64; 2]>,
    pub initial_timestep: f64,
    pub timestep_rise: f64,
    pub max_timestep: f64,
    pub end_time: f64,
    pub end_step: u64,
    /// Steps between two summaries; 0 for none but the first and the last.
    pub summary_frequency: u64,
    states: Vec<State>,
}

/// A region and the gas in it; the first state fills the domain.
#[derive(Debug, Clone, Default)]
struct State {
    geometry: String,
    /// The low and the high end of the region along z, y, x.
    ends: [[f64; 2]; 3],
    radius: f64,
    density: f64,
    energy: f64,
    /// Along z, y, x.
    velocity: [f64; 3],
}

/// The initial values of a field, by its name.
pub type Initial = Vec<(&'static str, Array)>;

impl Deck {
    pub fn read(path: &Path) -> Result<Deck> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::file(path, error, "give a deck that can be read"))?;
        Deck::parse(&text)
    }

    pub fn parse(text: &str) -> Result<Deck> {
        let mut numbers: Vec<(String, f64)> = Vec::new();
        let mut states = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let fault = |reason: String, change: &str| {
                Error::invalid(format!("line {} of the deck", number + 1), reason, change)
            };
            let line = line.split('!').next().unwrap_or("").trim_end();
            if line.trim_start().starts_with('*') {
                continue;
            }
            if !is_read_whole(line) {
                let reason = format!("it is longer than {LONGEST} characters");
                return Err(fault(reason, "split it, because the reference cuts it silently"));
            }
            let spaced = line.replace('=', " ");
            let mut words = spaced.split_whitespace();
            let value = |key: &str, word: Option<&str>| {
                word.and_then(|word| word.replace(['d', 'D'], "e").parse::<f64>().ok())
                    .filter(|value| value.is_finite())
                    .ok_or_else(|| fault(format!("{key} has no number"), "write it as in x_cells=960"))
            };
            while let Some(key) = words.next() {
                match key {
                    "state" => {
                        let expected = states.len() + 1;
                        if value("state", words.next())? != expected as f64 {
                            let reason = format!("state {expected} is the next one");
                            return Err(fault(reason, "number the states 1, 2, 3 …"));
                        }
                        let mut state = State::default();
                        while let Some(key) = words.next() {
                            match key {
                                "geometry" => state.geometry = words.next().unwrap_or("").to_owned(),
                                _ => match state.value(key) {
                                    Some(place) => *place = value(key, words.next())?,
                                    None => {
                                        let reason = format!("a state has no `{key}`");
                                        return Err(fault(reason, "use density, energy, xvel, xmin …"));
                                    }
                                },
                            }
                        }
                        states.push(state);
                    }
                    _ if is_ignored(key) => {
                        // A switch has no value, or one that does not matter here.
                        break;
                    }
                    _ if KEYS.contains(&key) => numbers.push((key.to_owned(), value(key, words.next())?)),
                    _ => return Err(fault(format!("no key is named `{key}`"), "see the keys of CloverLeaf")),
                }
            }
        }
        Deck::of(&numbers, states)
    }

    fn of(numbers: &[(String, f64)], states: Vec<State>) -> Result<Deck> {
        let find = |key: &str| numbers.iter().rfind(|(name, _)| name == key).map(|(_, value)| *value);
        let is_3d = find("z_cells").is_some();
        let number = |key: &str, default: f64| find(key).unwrap_or(default);
        let axes: &[&str] = if is_3d { &["z", "y", "x"] } else { &["y", "x"] };
        let whole = |key: &str, default: f64, least: f64| {
            let value = number(key, default);
            match value >= least && value.fract() == 0.0 && value < 1e15 {
                true => Ok(value as u64),
                false => Err(Error::invalid(
                    format!("{key} of the deck"),
                    format!("it is {value}"),
                    format!("give a whole number of at least {least}"),
                )),
            }
        };
        let deck = Deck {
            cells: axes
                .iter()
                .map(|axis| Ok(whole(&format!("{axis}_cells"), 10.0, 1.0)? as usize))
                .collect::<Result<_>>()?,
            ends: axes
                .iter()
                .map(|axis| [number(&format!("{axis}min"), 0.0), number(&format!("{axis}max"), 100.0)])
                .collect(),
            initial_timestep: number("initial_timestep", 0.1),
            timestep_rise: number("timestep_rise", if is_3d { 1.05 } else { 1.5 }),
            max_timestep: number("max_timestep", 1.0),
            end_time: number("end_time", 10.0),
            end_step: whole("end_step", 640_000.0, 0.0)?,
            summary_frequency: whole("summary_frequency", 10.0, 0.0)?,
            states,
        };
        let invalid = |reason: String, change: &str| Err(Error::invalid("the deck", reason, change));
        if let Some(axis) = (0..axes.len()).find(|&axis| deck.ends[axis][0] >= deck.ends[axis][1]) {
            return invalid(format!("{0}max is not above {0}min", axes[axis]), "give the axis an extent");
        }
        if deck.states.is_empty() {
            return invalid("it has no state".to_owned(), "write `state 1 density=… energy=…`");
        }
        let known: &[&str] =
            if is_3d { &["cuboid", "sphere", "point"] } else { &["rectangle", "circle", "point"] };
        if let Some(state) = deck.states[1..].iter().find(|state| !known.contains(&&*state.geometry)) {
            let reason = format!("no geometry of {} axes is named `{}`", axes.len(), state.geometry);
            return invalid(reason, &format!("use {}", known.join(", ")));
        }
        Ok(deck)
    }

    /// Returns the extents of a cell.
    pub fn widths(&self) -> Vec<f64> {
        self.ends.iter().zip(&self.cells).map(|([low, high], &n)| (high - low) / n as f64).collect()
    }

    /// Returns the initial densities, energies and velocities.
    pub fn generate(&self) -> Initial {
        let axes = self.cells.len();
        // Two ghost cells at each side count too, because their nodes may belong to the domain.
        let mut boxes = [1; 3];
        boxes[3 - axes..].copy_from_slice(&self.cells);
        let ghosts = [0, 1, 2].map(|axis| if axis + axes >= 3 { 2 } else { 0 });
        let extents = |more: usize| {
            [0, 1, 2].map(|axis| boxes[axis] + 2 * ghosts[axis] + if ghosts[axis] > 0 { more } else { 0 })
        };
        let (cells, nodes) = (extents(0), extents(1));
        let index = |extents: [usize; 3], at: [usize; 3]| (at[0] * extents[1] + at[1]) * extents[2] + at[2];
        let all = |extents: [usize; 3]| {
            (0..extents.iter().product()).map(move |i: usize| {
                [i / (extents[1] * extents[2]), i / extents[2] % extents[1], i % extents[2]]
            })
        };
        let first = &self.states[0];
        let mut density = vec![first.density; cells.iter().product()];
        let mut energy = vec![first.energy; cells.iter().product()];
        let mut velocity = first.velocity.map(|value| vec![value; nodes.iter().product()]);
        for state in &self.states[1..] {
            for at in all(cells).filter(|&at| self.is_in(state, at)) {
                density[index(cells, at)] = state.density;
                energy[index(cells, at)] = state.energy;
                for corner in 0..1 << axes {
                    let node = [0, 1, 2].map(|axis| at[axis] + (corner >> (2 - axis) & 1));
                    for (values, value) in velocity.iter_mut().zip(state.velocity) {
                        values[index(nodes, node)] = value;
                    }
                }
            }
        }
        let inner = |values: &[f64], stored: [usize; 3], more: usize| {
            let own = [0, 1, 2].map(|axis| boxes[axis] + if ghosts[axis] > 0 { more } else { 0 });
            let at = |at: [usize; 3]| values[index(stored, [0, 1, 2].map(|axis| at[axis] + ghosts[axis]))];
            Array::F64(all(own).map(at).collect())
        };
        let mut initial =
            vec![("density0", inner(&density, cells, 0)), ("energy0", inner(&energy, cells, 0))];
        for (name, values) in ["zvel0", "yvel0", "xvel0"].into_iter().zip(&velocity).skip(3 - axes) {
            initial.push((name, inner(values, nodes, 1)));
        }
        initial
    }

    /// Returns whether a cell, counted from the second ghost cell, lies in a state's region. The region is
    /// smaller by a hundredth of a cell at each side, and a circle's centre has moved as much.
    fn is_in(&self, state: &State, at: [usize; 3]) -> bool {
        let (axes, widths) = (self.cells.len(), self.widths());
        let vertex = |axis: usize, i: usize| self.ends[axis][0] + widths[axis] * (i as f64 - 2.0);
        let low = |axis: usize| state.ends[3 - axes + axis][0] + widths[axis] / 100.0;
        let high = |axis: usize| state.ends[3 - axes + axis][1] - widths[axis] / 100.0;
        let place = |axis: usize| at[3 - axes + axis];
        match &*state.geometry {
            "rectangle" | "cuboid" => (0..axes).all(|axis| {
                vertex(axis, place(axis) + 1) >= low(axis) && vertex(axis, place(axis)) < high(axis)
            }),
            "circle" | "sphere" => {
                // Squares are added along x first.
                let square = |axis: usize| {
                    let centre = 0.5 * (vertex(axis, place(axis)) + vertex(axis, place(axis) + 1));
                    (centre - low(axis)) * (centre - low(axis))
                };
                let sum = (0..axes).rev().map(square).reduce(|sum, square| sum + square);
                sum.is_some_and(|sum| sum.sqrt() <= state.radius)
            }
            // A point never matches, because its place has moved.
            _ => (0..axes).all(|axis| vertex(axis, place(axis)) == low(axis)),
        }
    }
}

/// The keys that have a number.
const KEYS: [&str; 15] = [
    "x_cells",
    "y_cells",
    "z_cells",
    "xmin",
    "xmax",
    "ymin",
    "ymax",
    "zmin",
    "zmax",
    "end_time",
    "end_step",
    "initial_timestep",
    "timestep_rise",
    "max_timestep",
    "summary_frequency",
];

/// Returns whether a key says how other implementations run, which changes no value.
fn is_ignored(key: &str) -> bool {
    matches!(key, "profiler_on" | "test_problem" | "visit_frequency")
        || (key.starts_with("use_") && key.ends_with("_kernels"))
        || key.starts_with("tiles_per_")
}

impl State {
    /// Returns the place of a key's number.
    fn value(&mut self, key: &str) -> Option<&mut f64> {
        let axis = |letter: &str| ["z", "y", "x"].iter().position(|name| *name == letter);
        Some(match key {
            "density" => &mut self.density,
            "energy" => &mut self.energy,
            "radius" => &mut self.radius,
            _ if key.ends_with("vel") => &mut self.velocity[axis(key.strip_suffix("vel")?)?],
            _ if key.ends_with("min") => &mut self.ends[axis(key.strip_suffix("min")?)?][0],
            _ => &mut self.ends[axis(key.strip_suffix("max")?)?][1],
        })
    }
}
