//! Sets of small numbers: loops of a program, or its arrays.

/// The most loops, and the most arrays, that a program may have.
pub const MOST: usize = 64 * WORDS;

const WORDS: usize = 8;

/// A set of numbers below [`MOST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Set([u64; WORDS]);

impl Set {
    /// The set of one number.
    pub fn of(number: usize) -> Set {
        let mut set = Set::default();
        set.insert(number);
        set
    }

    /// Adds a number.
    pub fn insert(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    /// Takes a number out.
    pub fn remove(&mut self, number: usize) {
        self.0[number / 64] &= !(1 << (number % 64));
    }

    /// Returns whether a number is in the set.
    pub fn has(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 == 1
    }

    /// Returns how many numbers there are.
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// Returns the smallest.
    pub fn first(&self) -> Option<usize> {
        let word = self.0.iter().position(|word| *word != 0)?;
        Some(64 * word + self.0[word].trailing_zeros() as usize)
    }

    /// Returns the largest.
    pub fn last(&self) -> Option<usize> {
        let word = self.0.iter().rposition(|word| *word != 0)?;
        Some(64 * word + 63 - self.0[word].leading_zeros() as usize)
    }

    fn zip(&self, other: &Set, of: impl Fn(u64, u64) -> u64) -> Set {
        let mut set = *self;
        for (word, other) in set.0.iter_mut().zip(&other.0) {
            *word = of(*word, *other);
        }
        set
    }

    /// Returns the numbers of either set.
    pub fn or(&self, other: &Set) -> Set {
        self.zip(other, |a, b| a | b)
    }

    /// Returns the numbers of both sets.
    pub fn and(&self, other: &Set) -> Set {
        self.zip(other, |a, b| a & b)
    }

    /// Returns the numbers that the other set does not have.
    pub fn without(&self, other: &Set) -> Set {
        self.zip(other, |a, b| a & !b)
    }

    /// Returns whether the sets have a number in common.
    pub fn meets(&self, other: &Set) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    /// Returns the numbers above one.
    pub fn above(&self, number: usize) -> Set {
        let mut set = *self;
        for (index, word) in set.0.iter_mut().enumerate() {
            let first = 64 * index;
            *word &= match number + 1 {
                least if least <= first => u64::MAX,
                least if least >= first + 64 => 0,
                least => u64::MAX << (least - first),
            };
        }
        set
    }

    /// Returns the numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        let mut rest = *self;
        std::iter::from_fn(move || {
            let first = rest.first()?;
            rest.remove(first);
            Some(first)
        })
    }
}

impl FromIterator<usize> for Set {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> Set {
        let mut set = Set::default();
        numbers.into_iter().for_each(|number| set.insert(number));
        set
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn sets_are_sets() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..200 {
            let mut numbers =
                || -> BTreeSet<usize> { (0..random.usize(..40)).map(|_| random.usize(..MOST)).collect() };
            let (a, b) = (numbers(), numbers());
            let (x, y): (Set, Set) = (a.iter().copied().collect(), b.iter().copied().collect());
            let same = |set: Set, expected: BTreeSet<usize>| {
                assert_eq!(set.iter().collect::<BTreeSet<_>>(), expected)
            };
            same(x.or(&y), &a | &b);
            same(x.and(&y), &a & &b);
            same(x.without(&y), &a - &b);
            assert_eq!(
                (x.len(), x.is_empty(), x.first(), x.last()),
                (a.len(), a.is_empty(), a.first().copied(), a.last().copied())
            );
            assert_eq!(x.meets(&y), !a.is_disjoint(&b));
            for number in [0, 1, 62, 63, 64, 65, 127, MOST - 1] {
                same(x.above(number), a.iter().copied().filter(|n| *n > number).collect());
                assert_eq!(x.has(number), a.contains(&number));
            }
        }
    }
}
