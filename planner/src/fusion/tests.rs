//! Searches against optima that are known by enumeration.

use super::cost::Costs;
use super::grouping::Grouping;
use super::loops::{Loop, Loops};
use super::search::{Search, Spread, in_turn};
use super::set::{MOST, Set};
use super::{Found, exhaustive, greedy, search};

/// Makes random loops over some arrays, each of which reads or writes what one before it does.
fn random(random: &mut fastrand::Rng, loops: usize, first_array: usize) -> Vec<Loop> {
    let arrays = (loops + random.usize(..3)).max(3) - 1;
    let array = |random: &mut fastrand::Rng| first_array + random.usize(..arrays);
    let mut all: Vec<Loop> = Vec::new();
    for number in 0..loops {
        let mut own = Loop {
            reads: (0..random.usize(1..=3)).map(|_| array(random)).collect(),
            writes: vec![array(random)],
        };
        if number > 0 {
            own.reads.push(all[random.usize(..number)].writes[0]);
        }
        all.push(own);
    }
    all
}

/// Mixes programs that share nothing, each in its own order.
fn mixed(random: &mut fastrand::Rng, mut programs: Vec<Vec<Loop>>) -> Vec<Loop> {
    programs.iter_mut().for_each(|program| program.reverse());
    let mut all = Vec::new();
    while !programs.is_empty() {
        let chosen = random.usize(..programs.len());
        all.extend(programs[chosen].pop());
        programs.retain(|program| !program.is_empty());
    }
    all
}

/// Returns the bytes of groups by the definition, loop by loop; fails if they are no partition in an order.
fn checked(program: &[Loop], found: &Found, capacity: usize) -> u64 {
    let mut at = vec![usize::MAX; program.len()];
    for (place, group) in found.groups.iter().enumerate() {
        for &own in group {
            assert_eq!(std::mem::replace(&mut at[own], place), usize::MAX, "a loop stands in one group");
        }
    }
    let touches =
        |own: usize, array: &usize| program[own].reads.contains(array) || program[own].writes.contains(array);
    let all_of = |own: usize| program[own].reads.iter().chain(&program[own].writes);
    for later in 0..program.len() {
        for earlier in 0..later {
            let waits = program[earlier].writes.iter().any(|array| touches(later, array))
                || program[earlier].reads.iter().any(|array| program[later].writes.contains(array));
            assert!(!waits || at[earlier] <= at[later], "loop {later} would run before {earlier}");
        }
    }
    let mut bytes = 0;
    for group in &found.groups {
        let mut touched: Vec<usize> = group.iter().flat_map(|&own| all_of(own).copied()).collect();
        touched.sort_unstable();
        touched.dedup();
        assert!(group.len() == 1 || touched.len() <= capacity);
        for array in touched {
            let users: Vec<usize> = group.iter().copied().filter(|&own| touches(own, &array)).collect();
            let is_loaded = users
                .iter()
                .find(|&&own| program[own].reads.contains(&array) || program[own].writes.contains(&array))
                .is_some_and(|&own| program[own].reads.contains(&array));
            bytes += 8 * u64::from(is_loaded);
            let Some(last) = users.iter().rev().find(|&&own| program[own].writes.contains(&array)) else {
                continue;
            };
            // Whoever comes next outside decides: a reader needs the value, and so does the end of the program.
            let outside = (last + 1..program.len()).filter(|own| !group.contains(own));
            let next = outside.clone().find(|&own| touches(own, &array));
            let is_stored = next.is_none_or(|own| program[own].reads.contains(&array));
            let is_rewritten = outside.clone().any(|own| program[own].writes.contains(&array));
            bytes += 8 * u64::from(is_stored || !is_rewritten);
        }
    }
    bytes
}

#[test]
fn the_search_finds_what_enumeration_finds() {
    let mut seeds = fastrand::Rng::with_seed(3);
    for turn in 0..60 {
        let program = random(&mut seeds, 3 + turn % 7, 0);
        let loops = Loops::new(&program, 4 + turn % 4).unwrap();
        let best = exhaustive(&loops).unwrap();
        assert_eq!(checked(&program, &best, 4 + turn % 4), best.bytes);
        let settings = Search { seed: turn as u64, stagnation: 10, ..Search::default() };
        let found = search(&loops, &settings, &in_turn, || true);
        assert_eq!(found.bytes, best.bytes, "turn {turn}: {program:?}");
        assert_eq!(checked(&program, &found, 4 + turn % 4), found.bytes);
        let quick = greedy(&loops);
        assert!(quick.bytes >= best.bytes && checked(&program, &quick, 4 + turn % 4) == quick.bytes);
    }
}

/// Parts that share nothing cannot be fused with each other, so the optimum is the sum of theirs.
#[test]
fn the_search_finds_planted_optima_of_many_loops() {
    let mut seeds = fastrand::Rng::with_seed(4);
    for loops in [20, 43, 142] {
        let (mut programs, mut optimum, mut left, mut arrays) = (Vec::new(), 0, loops, 0);
        while left > 0 {
            let size = seeds.usize(3..=7).min(left);
            let program = random(&mut seeds, size, arrays);
            optimum += exhaustive(&Loops::new(&program, 6).unwrap()).unwrap().bytes;
            left -= program.len();
            arrays += program.len() + 2;
            programs.push(program);
        }
        let program = mixed(&mut seeds, programs);
        let loops = Loops::new(&program, 6).unwrap();
        for seed in 1..=3 {
            let found =
                search(&loops, &Search { seed, stagnation: 12, ..Search::default() }, &in_turn, || true);
            assert_eq!((found.bytes, checked(&program, &found, 6)), (optimum, optimum), "seed {seed}");
        }
    }
}

#[test]
fn threads_change_nothing_and_seeds_do() {
    let program = random(&mut fastrand::Rng::with_seed(5), 60, 0);
    let loops = Loops::new(&program, 8).unwrap();
    let with = |seed, spread: Spread<'_>| {
        search(&loops, &Search { seed, stagnation: 3, ..Search::default() }, spread, || true)
    };
    let all_at_once = |count: usize, work: &(dyn Fn(usize) + Sync)| {
        std::thread::scope(|scope| (0..count).rev().for_each(|own| drop(scope.spawn(move || work(own)))));
    };
    let one = with(7, &in_turn);
    assert_eq!(with(7, &all_at_once), one);
    assert_eq!(with(7, &|count, work| (0..count).rev().for_each(work)), one);
    assert_ne!(with(8, &in_turn).evaluations, one.evaluations);
}

/// Two pairs that wait for each other crosswise: each pair alone is convex, but the two pairs have no valid order.
#[test]
fn groups_that_wait_for_each_other_are_refused() {
    let array = |reads: &[usize], writes: usize| Loop { reads: reads.to_vec(), writes: vec![writes] };
    // 0 → 1 by array 0, 2 → 3 by array 1; 0 and 3 share array 2, 1 and 2 array 3.
    let program = [array(&[2], 0), array(&[0, 3], 4), array(&[3], 1), array(&[1, 2], 5)];
    let loops = Loops::new(&program, 9).unwrap();
    let pairs = [[0, 3], [1, 2]].map(|pair| pair.into_iter().collect::<Set>());
    assert_eq!(loops.ordered(&pairs), None);
    let mut costs = Costs::new(&loops);
    let mut grouping = Grouping::alone(&mut costs);
    grouping.inject(&pairs, &mut costs);
    assert_eq!(grouping.len(), 3, "the second pair falls apart again");
    assert!(loops.ordered(&grouping.groups().copied().collect::<Vec<_>>()).is_some());
}

#[test]
fn limits_are_told() {
    let many = vec![Loop { reads: vec![0], writes: vec![1] }; MOST + 1];
    for (loops, words) in [(&many[..], "513 asked"), (&[], "at least 1")] {
        assert!(Loops::new(loops, 4).unwrap_err().to_string().contains(words));
    }
    let far = [Loop { reads: vec![], writes: vec![MOST] }];
    assert!(Loops::new(&far, 4).unwrap_err().to_string().contains("arrays of a program"));
    assert!(
        exhaustive(&Loops::new(&many[..11], 4).unwrap()).unwrap_err().to_string().contains("take the search")
    );
}
