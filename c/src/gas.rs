//! Properties of real-gas mixtures at the points of the caller's arrays.

use std::ffi::c_char;
use std::path::Path;

use abide::gas::{
    Basis, Chung, Interactions, Mixture, Points, Property, Species, States, Sums, Table, check_points,
};
use abide::io::bounded;
use abide::{Array, Choice, Error};

use crate::handle::{Guarded, free};
use crate::options::{self, AbideOptions, Given, flag};
use crate::status::{AbideStatus, Outcome, face, invalid};
use crate::text::{given, hand_out, place, text};
use crate::view::{AbideView, Checked, Memory};

/// A mixture of species whose properties can be computed.
pub struct AbideGas {
    guarded: Guarded<State>,
}

struct State {
    mixture: Mixture,
    choice: Choice,
    /// How states are given.
    given: States,
    /// The program that computes the properties of these names, at so many points at once.
    points: Option<(String, Points)>,
}

/// Makes a mixture of species by their names with commas between them, as in `CH4,O2`. `options` may be null; they are those of
/// `abide gas`: `species` and `kij` (files), `chung`, `kappa`, `closure`, `mass` (fractions are of mass), `backend`; and `given`,
/// the quantities that give a state: `Tp` (temperature and pressure, unless given), `Trho`, `hp` or `rhoe`. `abide_gas_free` frees
/// it.
///
/// # Safety
///
/// `species` is a string; `options` is null or a handle; `gas` is the address of a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_gas_new(
    species: *const c_char,
    options: *const AbideOptions,
    gas: *mut *mut AbideGas,
) -> AbideStatus {
    face(|| {
        // SAFETY: as promised.
        let (species, own) = unsafe { (text(species, "the species")?, options::of(options)?) };
        let made = AbideGas { guarded: Guarded::new("the gas", State::new(species, &own)?) };
        // SAFETY: as promised.
        unsafe { hand_out(made, gas, "gas") }
    })
}

/// Returns the number of species.
///
/// # Safety
///
/// `gas` is a handle; `count` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_gas_species(gas: *const AbideGas, count: *mut usize) -> AbideStatus {
    face(|| {
        // SAFETY: as promised.
        unsafe {
            given(gas, "gas")?.guarded.with(|state| {
                *place(count, "count")? = state.mixture.len();
                Ok(())
            })
        }
    })
}

/// Computes properties at points from two quantities, temperature (K) and pressure (Pa) unless the gas was made with another
/// `given`, and fractions. `properties` are names with commas between them, in SI units and per kilogram: `rho`, `h`, `s`, `cp`,
/// `cv`, `c`, `mu`, `lambda`, `e`, `T`, `p`, `M`, `Z`, `roots`; derivatives `p_T`, `p_rho`, `e_rho`, `rho_T`, `rho_p`, `h_p`,
/// `beta`, `kappa`; of each species `D` (diffusivity), `rho_Y`, `h_Y`, `v_Y`; of each pair of species `Dij`.
///
/// `first` and `second` have one to three axes of the same extents. `fractions` has one axis before those, of the species, and
/// `values` one of the properties, of which those of each species or pair take as many; for one species `fractions` may be null.
/// All are `ABIDE_F64` in the host's memory, with any strides. A point that has no properties is refused by its indices, and no
/// value is written.
///
/// # Safety
///
/// `gas` is a handle; `properties` is a string; the views describe arrays, and nobody else uses that of `values`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_gas_properties(
    gas: *mut AbideGas,
    properties: *const c_char,
    first: *const AbideView,
    second: *const AbideView,
    fractions: *const AbideView,
    values: *const AbideView,
) -> AbideStatus {
    face(|| {
        // SAFETY: as promised.
        unsafe {
            let (gas, names) = (given(gas, "gas")?, text(properties, "the properties")?);
            let (first, second) =
                (given(first, "the first quantity")?, given(second, "the second quantity")?);
            let (fractions, values) = (fractions.as_ref(), given(values, "the values of properties")?);
            gas.guarded.with(|state| {
                let wanted = Wanted::new(state, names, [first, second, values], fractions)?;
                let states = wanted.states(state)?;
                let results = state.compute(&wanted, &states)?;
                for (number, column) in results.into_iter().enumerate() {
                    wanted.values.part(number).scatter(&Array::F64(column))?;
                }
                Ok(())
            })
        }
    })
}

/// Frees a gas. A null pointer is ignored. One that is at work is not freed, and `abide_last_error` says so.
///
/// # Safety
///
/// `gas` is null, or a handle that is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn abide_gas_free(gas: *mut AbideGas) {
    // SAFETY: as promised.
    unsafe { free(gas, |gas| &gas.guarded) }
}

impl State {
    fn new(species: &str, own: &Given) -> Outcome<State> {
        let last =
            |name: &str| own.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let is_set = |name: &str| last(name).map_or(Ok(false), |value| flag(name, value));
        if let Some((name, _)) = own.iter().find(|(name, _)| !options::GAS.contains(&name.as_str())) {
            return Err(Error::unknown("option of a gas", name.as_str(), options::GAS).into());
        }
        let read = |path: &str| {
            bounded::text(Path::new(path), bounded::LARGEST_TABLE, "give a table of species or interactions")
        };
        let (table, known) = match last("species") {
            None => (Table::builtin()?, Interactions::default()),
            Some(path) if path.ends_with(".yaml") || path.ends_with(".yml") => {
                Table::from_cantera(&read(path)?)?
            }
            Some(path) => (Table::from_csv(&read(path)?)?, Interactions::default()),
        };
        let interactions = match last("kij") {
            Some(path) => Interactions::from_csv(&table, &read(path)?)?,
            None => known,
        };
        let names = species.split(',').map(str::trim);
        let mut all = names.map(|name| table.find(name).cloned()).collect::<abide::Result<Vec<Species>>>()?;
        if is_set("closure")? {
            all = all.into_iter().map(Species::closed).collect::<abide::Result<_>>()?;
        }
        let chung: Chung = last("chung").unwrap_or("poling").parse()?;
        let mixture =
            Mixture::new(all)?.interactions(&interactions).chung(chung).association(is_set("kappa")?);
        Ok(State {
            mixture: mixture.fewest_operations(),
            choice: last("backend").unwrap_or("auto").parse()?,
            given: States {
                given: last("given").unwrap_or("Tp").parse()?,
                basis: if is_set("mass")? { Basis::Mass } else { Basis::Mole },
                sums: Sums::Loops,
            },
            points: None,
        })
    }

    /// Computes the properties of states, a column of values for each.
    fn compute(&mut self, wanted: &Wanted, states: &[Vec<f64>]) -> Outcome<Vec<Vec<f64>>> {
        // Blocks of other sizes find the program ready.
        let needed = Points::batch(states[0].len(), states.len() + wanted.columns);
        let points = match self.points.take() {
            Some((names, points))
                if names == wanted.names && (needed..=4 * needed).contains(&points.count()) =>
            {
                points
            }
            _ => Points::new(&self.mixture, self.given, &wanted.properties, needed, self.choice)?,
        };
        let (_, points) = self.points.insert((wanted.names.clone(), points));
        Ok(points.evaluate_all(states)?)
    }
}

/// What a call asks for.
struct Wanted {
    names: String,
    properties: Vec<Property>,
    /// Their columns.
    columns: usize,
    given: [Checked; 2],
    fractions: Option<Checked>,
    values: Checked,
}

impl Wanted {
    fn new(
        state: &State,
        names: &str,
        [first, second, values]: [&AbideView; 3],
        fractions: Option<&AbideView>,
    ) -> Outcome<Wanted> {
        let properties = Property::named(&names.split(',').map(str::trim).collect::<Vec<_>>())?;
        let checked = |view: &AbideView, what: &str| {
            let checked = view.checked(what)?;
            let is_usable = checked.memory == Memory::Host && checked.dtype == abide::DType::F64;
            let refused = || {
                invalid(
                    what,
                    "it is no ABIDE_F64 in the host's memory",
                    "give an array of doubles of the host's",
                )
            };
            is_usable.then_some(checked).ok_or_else(refused)
        };
        let [of_first, of_second] = state.given.given.quantities.map(|name| format!("the values of {name}"));
        let first = checked(first, &of_first)?;
        let extents = first.extents().to_vec();
        if extents.len() > 3 {
            let change = "describe the points by one to three axes";
            return Err(Error::limit(format!("axes of {of_first}"), extents.len(), 3, change).into());
        }
        let with = |first: usize| [&[first], &extents[..]].concat();
        let second = checked(second, &of_second)?;
        second.expect(&extents, &of_second)?;
        let species = state.mixture.len();
        let fractions = match fractions {
            Some(view) => {
                let fractions = checked(view, "the fractions")?;
                fractions.expect(&with(species), "the fractions")?;
                Some(fractions)
            }
            None if species == 1 => None,
            None => return Err(crate::text::null("the fractions of several species")),
        };
        let values = checked(values, "the values of properties")?;
        let columns = properties.iter().map(|property| property.columns(&state.mixture).len()).sum();
        values.expect(&with(columns), "the values of properties")?;
        values.check_places("the values of properties")?;
        Ok(Wanted { names: names.to_owned(), properties, columns, given: [first, second], fractions, values })
    }

    /// Copies the states, checks them, and returns their columns: the two given quantities, fractions.
    ///
    /// # Safety
    ///
    /// The arrays have values at their places.
    unsafe fn states(&self, state: &State) -> Outcome<Vec<Vec<f64>>> {
        let copied = |view: &Checked| -> Outcome<Vec<f64>> {
            // SAFETY: as promised.
            match unsafe { view.gather() }? {
                Array::F64(values) => Ok(values),
                Array::F32(_) => Ok(Vec::new()),
            }
        };
        let mut columns = vec![copied(&self.given[0])?, copied(&self.given[1])?];
        let (species, count) = (state.mixture.species(), columns[0].len());
        match &self.fractions {
            None => columns.push(vec![1.0; count]),
            Some(fractions) => {
                for number in 0..species.len() {
                    columns.push(copied(&fractions.part(number))?);
                }
            }
        }
        check_points(species, &state.given, &columns, self.given[0].extents())?;
        Ok(columns)
    }
}
