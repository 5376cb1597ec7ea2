//! What a clock does from one reduction of fields to the next, for devices that do it without the host.

use super::timed::Timed;

/// All that a clock makes after a reduction, up to the next one.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    /// The scalar, after the parameters, that the reduction before it made.
    pub after: usize,
    /// Parts of steps in order, each so many times.
    pub parts: Vec<(u64, Vec<Timed>)>,
    /// The reduction that ends it.
    pub reduction: usize,
    /// Whether the fields of the last reduction's step are set before it.
    pub is_behind: bool,
}

impl Stretch {
    /// Returns the stretches of a cycle, in the order of the reductions that they follow; none where a step sets no field or nothing
    /// is reduced.
    pub(super) fn of(steps: &[Vec<Timed>]) -> Vec<Stretch> {
        let sets = |step: &Vec<Timed>| step.iter().any(|stage| matches!(stage, Timed::Fields(_)));
        if !steps.iter().all(sets) {
            return Vec::new();
        }
        // The cycle twice over: the last stretch ends in the next one.
        let count = reductions(steps.iter().flatten()).count();
        let mut all: Vec<Stretch> = Vec::new();
        let mut open: Option<Stretch> = None;
        for step in steps.iter().chain(steps) {
            let mut is_behind = false;
            let parts = step.split_inclusive(|stage| matches!(stage, Timed::Reduction(..)));
            for part in parts {
                let (last, stages) = match part {
                    [stages @ .., Timed::Reduction(number, scalar)] => (Some((*number, *scalar)), stages),
                    stages => (None, stages),
                };
                is_behind |= stages.iter().any(|stage| matches!(stage, Timed::Fields(_)));
                if let Some(open) = &mut open {
                    match open.parts.last_mut() {
                        _ if stages.is_empty() => {}
                        Some((times, known)) if known == stages => *times += 1,
                        _ => open.parts.push((1, stages.to_vec())),
                    }
                }
                if let Some((reduction, after)) = last {
                    let next = Stretch { after, parts: Vec::new(), reduction: 0, is_behind: false };
                    all.extend(open.replace(next).map(|ended| Stretch { reduction, is_behind, ..ended }));
                }
            }
        }
        all.truncate(count);
        all
    }

    /// Returns the steps whose fields it sets.
    pub fn steps(&self) -> u64 {
        let sets = |part: &Vec<Timed>| part.iter().any(|stage| matches!(stage, Timed::Fields(_)));
        self.parts.iter().filter(|(_, part)| sets(part)).map(|(times, _)| times).sum()
    }

    /// Returns the stages of fields in all these steps.
    pub fn stages(&self) -> u64 {
        let fields = |part: &[Timed]| part.iter().filter(|stage| matches!(stage, Timed::Fields(_))).count();
        self.parts.iter().map(|(times, part)| times * fields(part) as u64).sum()
    }
}

/// Returns the reductions among stages.
fn reductions<'a>(stages: impl Iterator<Item = &'a Timed>) -> impl Iterator<Item = &'a Timed> {
    stages.filter(|stage| matches!(stage, Timed::Reduction(..)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Timed::{Fields, Reduction};

    fn set() -> Timed {
        Fields(Vec::new())
    }

    /// A cycle of four steps with a reduction in the second, before its fields, and two in the third, behind them.
    #[test]
    fn a_cycle_is_cut_at_its_reductions() {
        let steps = [
            vec![set()],
            vec![Reduction(0, 3), set()],
            vec![set(), Reduction(1, 4), Reduction(0, 5)],
            vec![set()],
        ];
        let found = Stretch::of(&steps);
        let short = found.iter().map(|own| (own.after, own.steps(), own.reduction, own.is_behind));
        assert_eq!(short.collect::<Vec<_>>(), [(3, 2, 1, true), (4, 0, 0, true), (5, 2, 0, false)]);
        // Steps that do the same are counted.
        assert_eq!(found[0].parts, [(2, vec![set()])]);
        assert_eq!(found[2].stages(), 2);
    }

    #[test]
    fn a_step_without_fields_is_none() {
        assert!(Stretch::of(&[vec![Reduction(0, 1)], vec![set()]]).is_empty());
        assert!(Stretch::of(&[vec![set()]]).is_empty());
    }
}
