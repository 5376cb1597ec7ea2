//! Sums over the species of a mixture. All formulas of this crate that run over species are written by these functions,
//! one fused multiply-add a species, in the order of the species or as trees: each a term of its own, or in a loop.

use abide_core::Expr;
use abide_core::expr::{Components, Graph, Index, Table};

/// How sums over species are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sums {
    /// Each species is a term; weights of 0 take no operation.
    #[default]
    Terms,
    /// Loops over all species, and iterations as loops, which a plan keeps or writes out
    /// ([`Lowering`](abide_core::plan::Lowering)). Weights of 0 are weights, unless more than half of a sum's are: its
    /// others are terms then.
    Loops,
    /// The same loops, whose sums are trees of so many lanes, which a team of threads can share
    /// ([`Graph::tree_sums`]). They have other bits than sums in the order of the species.
    Trees(usize),
}

/// What runs over the species of a mixture at a cell.
#[derive(Debug, Clone)]
pub enum Fractions<'g> {
    /// The mole fraction of each species.
    Terms(Vec<Expr<'g>>),
    /// Fractions that are read by an index.
    Loops(Indexed<'g>),
}

/// Mole fractions that are read by an index: components as they are, or each times a weight and a common factor.
#[derive(Clone, Copy)]
pub struct Indexed<'g> {
    components: Components<'g>,
    /// The lanes of sums; 1 in the order of the species.
    lanes: usize,
    scale: Option<(Table<'g>, Expr<'g>)>,
}

impl std::fmt::Debug for Indexed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Indexed({} species)", self.components.len())
    }
}

/// A species: by its number, or by the index of a loop over all.
#[derive(Clone, Copy)]
pub enum At<'g> {
    Number(&'g Graph, usize),
    Index(&'g Graph, Index<'g>),
}

impl<'g> At<'g> {
    /// Returns the species' constant of a list of all.
    pub fn of(self, all: &[f64]) -> Expr<'g> {
        match self {
            At::Number(graph, number) => graph.constant(all[number]),
            At::Index(graph, index) => graph.table(all).at(index),
        }
    }

    /// Returns the species' constant of a list of all, with the opposite sign.
    pub fn opposite(self, all: &[f64]) -> Expr<'g> {
        match self {
            At::Number(graph, number) => graph.constant(-all[number]),
            At::Index(..) => -self.of(all),
        }
    }
}

impl<'g> Indexed<'g> {
    pub fn new(
        components: Components<'g>,
        lanes: usize,
        scale: Option<(Table<'g>, Expr<'g>)>,
    ) -> Indexed<'g> {
        Indexed { components, lanes, scale }
    }

    pub fn at(self, index: Index<'g>) -> Expr<'g> {
        let own = self.components.at(index);
        self.scale.map_or(own, |(weights, factor)| own * weights.at(index) * factor)
    }

    pub fn graph(self) -> &'g Graph {
        self.components.graph()
    }

    pub fn len(self) -> usize {
        self.components.len()
    }
}

impl<'g> Fractions<'g> {
    /// Returns the graph of the formulas.
    pub fn graph(&self) -> &'g Graph {
        match self {
            Fractions::Terms(x) => x[0].graph(),
            Fractions::Loops(x) => x.graph(),
        }
    }

    /// Returns the number of species.
    pub fn len(&self) -> usize {
        match self {
            Fractions::Terms(x) => x.len(),
            Fractions::Loops(x) => x.len(),
        }
    }

    /// Returns the mole fraction of a species.
    pub fn of(&self, at: At<'g>) -> Expr<'g> {
        match (self, at) {
            (Fractions::Terms(x), At::Number(_, number)) => x[number],
            (Fractions::Loops(x), At::Number(graph, number)) => x.at(graph.index(number)),
            (Fractions::Loops(x), At::Index(_, index)) => x.at(index),
            // Without loops there is no index.
            (Fractions::Terms(_), At::Index(graph, _)) => graph.constant(f64::NAN),
        }
    }

    /// Returns the lanes of sums in loops; 1 in the order of the species.
    pub fn lanes(&self) -> usize {
        match self {
            Fractions::Terms(_) => 1,
            Fractions::Loops(x) => x.lanes,
        }
    }

    /// Returns whether sums and iterations are loops.
    pub fn are_looped(&self) -> bool {
        matches!(self, Fractions::Loops(_))
    }

    /// Returns the sum of `x_i w_i` of constant weights; `None` if all of them are 0.
    pub fn weighted(&self, weights: &[f64]) -> Option<Expr<'g>> {
        let graph = self.graph();
        let present: Vec<usize> = (0..self.len()).filter(|&i| weights[i] != 0.0).collect();
        if self.are_looped() && 2 * present.len() > self.len() {
            return self.products(|at| at.of(weights));
        }
        present.into_iter().fold(None, |sum, i| {
            let x = self.of(At::Number(graph, i));
            Some(match sum {
                None => x * weights[i],
                Some(sum) => x.mul_add(weights[i], sum),
            })
        })
    }

    /// Returns the sum of `x_i y_i`; `None` of no species.
    pub fn products(&self, factor: impl Fn(At<'g>) -> Expr<'g>) -> Option<Expr<'g>> {
        let graph = self.graph();
        match self {
            Fractions::Terms(x) => x.iter().enumerate().fold(None, |sum, (i, &x)| {
                let factor = factor(At::Number(graph, i));
                Some(match sum {
                    None => x * factor,
                    Some(sum) => x.mul_add(factor, sum),
                })
            }),
            Fractions::Loops(x) => {
                let factors = |i| [x.at(i), factor(At::Index(graph, i))];
                Some(graph.tree_sum_of_products(x.lanes, 0..x.len(), factors))
            }
        }
    }

    /// Returns what `steps` steps make of a start, one after another.
    pub fn iterated(&self, steps: usize, start: Expr<'g>, step: impl Fn(Expr<'g>) -> Expr<'g>) -> Expr<'g> {
        match self {
            Fractions::Terms(_) => (0..steps).fold(start, |value, _| step(value)),
            Fractions::Loops(_) => self.graph().fold(0..steps, start, |_, value| step(value)),
        }
    }
}

/// Returns the value of a polynomial, `c[0] + c[1] x + …`, by Horner's rule.
pub fn polynomial<'g>(x: Expr<'g>, coefficients: &[Expr<'g>]) -> Expr<'g> {
    let mut all = coefficients.iter().rev().copied();
    let last = all.next().unwrap_or_else(|| x.graph().constant(0.0));
    all.fold(last, |sum, coefficient| sum.mul_add(x, coefficient))
}
