//! Conway's game of life against known patterns, and against the rule on a set of cells.

use std::collections::{BTreeSet, HashMap};

use abide::{Boundary, DType, Options, Problem, Result};

use crate::trust::subject::{Subject, entry, field};

type Cells = BTreeSet<(i64, i64)>;

/// Applies the rule, on an endless plane of cells, each a (row, column).
fn generation(alive: &Cells) -> Cells {
    let mut neighbours: HashMap<(i64, i64), usize> = HashMap::new();
    for &(row, column) in alive {
        for (dr, dc) in [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)] {
            *neighbours.entry((row + dr, column + dc)).or_default() += 1;
        }
    }
    let lives = |cell: &(i64, i64), count: usize| count == 3 || (count == 2 && alive.contains(cell));
    neighbours.into_iter().filter(|(cell, count)| lives(cell, *count)).map(|(cell, _)| cell).collect()
}

fn pattern(rows: &[&str]) -> Cells {
    let cells = rows
        .iter()
        .enumerate()
        .flat_map(|(r, row)| row.chars().enumerate().map(move |(c, mark)| (r, c, mark)));
    cells.filter(|(_, _, mark)| *mark == '#').map(|(r, c, _)| (r as i64, c as i64)).collect()
}

fn moved(cells: &Cells, by: (i64, i64)) -> Cells {
    cells.iter().map(|(r, c)| (r + by.0, c + by.1)).collect()
}

/// Returns the living cells after some generations on the torus of the problem's domain.
fn run(subject: &Subject, problem: &Problem, start: &Cells, generations: u64) -> Result<Cells> {
    let start = field(problem, |[_, r, c]| f64::from(start.contains(&(r as i64, c as i64))));
    let end = subject.run(problem, &Options::default(), &[start], generations)?;
    let values = end[0].to_f64();
    assert!(values.iter().all(|&value| value == 0.0 || value == 1.0), "cells are alive or dead");
    let cell = |i: usize| (problem.shape.cell(i)[1] as i64, problem.shape.cell(i)[2] as i64);
    Ok((0..values.len()).filter(|&i| values[i] == 1.0).map(cell).collect())
}

pub fn a_glider_moves_by_one_cell_in_four_generations(subject: &Subject) -> Result<()> {
    let glider = pattern(&[".#.", "..#", "###"]);
    for dtype in subject.dtypes() {
        let problem = entry("life", &[29, 23], dtype, Boundary::Periodic)?;
        assert_eq!(run(subject, &problem, &moved(&glider, (3, 5)), 4)?, moved(&glider, (4, 6)));
        // The glider goes once around the torus in both directions and is back after 4 · 29 · 23 generations.
        assert_eq!(run(subject, &problem, &glider, 4 * 29 * 23)?, glider);
    }
    Ok(())
}

pub fn the_r_pentomino_lives_as_elsewhere(subject: &Subject) -> Result<()> {
    let pentomino = moved(&pattern(&[".##", "##.", ".#."]), (110, 113));
    let expected = (0..100).fold(pentomino.clone(), |alive, _| generation(&alive));
    assert_eq!(expected.len(), R_PENTOMINO_AFTER_100);
    // In 100 generations nothing travels farther than 100 cells, so the torus is as good as the plane.
    let problem = entry("life", &[223, 227], DType::F32, Boundary::Periodic)?;
    assert_eq!(run(subject, &problem, &pentomino, 100)?, expected);
    Ok(())
}

/// The population of the R-pentomino after 100 generations.
const R_PENTOMINO_AFTER_100: usize = 121;
