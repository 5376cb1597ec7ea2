//! Members of a group that compute at the same indices in the same turn, as one formula: what several of them read or
//! compute is read and computed once.

use std::collections::HashMap;

use super::{Fused, Output, Source};
use crate::expr::{Id, Node, Tap};
use crate::program::{Boxes, Does, Indices, Stage, around};

/// Members that compute at the same indices in the same turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// The members, in order.
    pub members: Vec<usize>,
    /// The nodes of all their formulas, each once; a tap names no field but a place in `taps`.
    pub nodes: Vec<Node>,
    /// What is tapped, and where a member of an earlier section left it; `None` for device memory.
    pub taps: Vec<(Tap, Option<Source>)>,
    /// The member, the output and the node of each value that is wanted.
    pub outputs: Vec<(usize, usize, Id)>,
}

/// Where members compute: two with the same place may be in one section.
type Place = (usize, [[usize; 2]; 3], Option<Indices>);

impl Fused {
    /// Returns the sections, in an order in which every member follows those from which it takes values. The stages are
    /// the program's.
    pub fn sections(&self, stages: &[Stage], boxes: &Boxes) -> Vec<Section> {
        let mut sections: Vec<(Place, Section, HashMap<Node, Id>)> = Vec::new();
        let mut of: Vec<usize> = Vec::new();
        for (number, member) in self.members.iter().enumerate() {
            let place = (member.lag, member.beyond, around(&boxes.stages[member.stage]));
            // A ring's rows are there after the section that makes them; what is handed on is a node of the formula.
            let earliest = member.sources.iter().map(|&(_, source)| match source {
                Source::Passed(from, _) => of[from],
                Source::Ring(ring) => self.makers(ring, number).map(|from| of[from] + 1).max().unwrap_or(0),
            });
            let earliest = earliest.max().unwrap_or(0);
            let fit = (earliest..sections.len()).find(|&section| sections[section].0 == place);
            let own = fit.unwrap_or_else(|| {
                let empty = Section { members: vec![], nodes: vec![], taps: vec![], outputs: vec![] };
                sections.push((place, empty, HashMap::new()));
                sections.len() - 1
            });
            of.push(own);
            let (_, section, known) = &mut sections[own];
            section.add(self, stages, number, known);
        }
        sections.into_iter().map(|(_, section, _)| section.with_loads_first()).collect()
    }

    /// Returns the members before this one that fill a ring.
    fn makers(&self, ring: usize, before: usize) -> impl Iterator<Item = usize> {
        (0..before).filter(move |&from| self.members[from].outputs.iter().any(|goes| goes.ring == Some(ring)))
    }
}

impl Section {
    /// Returns the section with what it takes from device memory before all else. Compilers leave loads behind the
    /// branches of an exact division, and a thread would wait for each in turn.
    fn with_loads_first(self) -> Section {
        let is_load = |node: &Node| match *node {
            Node::Tap(place) => self.taps[usize::from(place.field)].1.is_none(),
            _ => false,
        };
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        order.sort_by_key(|&id| !is_load(&self.nodes[id]));
        let mut new = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, &id)| new[id] = place as Id);
        let of = |id: Id| new[id as usize];
        let nodes = order.iter().map(|&id| self.nodes[id].map(of)).collect();
        let outputs = self.outputs.iter().map(|&(member, output, id)| (member, output, of(id))).collect();
        Section { nodes, outputs, ..self }
    }

    /// Takes up the formula of a member.
    fn add(&mut self, fused: &Fused, stages: &[Stage], number: usize, known: &mut HashMap<Node, Id>) {
        let member = &fused.members[number];
        let stage = &stages[member.stage];
        let mut own: Vec<Id> = Vec::with_capacity(stage.dag.nodes.len());
        for node in &stage.dag.nodes {
            let node = match *node {
                Node::Tap(tap) => {
                    let source = member.sources.iter().find(|(name, _)| *name == usize::from(tap.field));
                    let source = source.map(|&(_, source)| source);
                    let here = |&&(member, output, _): &&(usize, usize, Id)| {
                        source == Some(Source::Passed(member, output))
                    };
                    if let Some(&(_, _, made)) = self.outputs.iter().find(here) {
                        own.push(made);
                        continue;
                    }
                    let place = self.taps.iter().position(|known| *known == (tap, source));
                    let place = place.unwrap_or_else(|| {
                        self.taps.push((tap, source));
                        self.taps.len() - 1
                    });
                    Node::Tap(Tap { field: place as u16, offset: [0; 3] })
                }
                node => node.map(|operand| own[operand as usize]),
            };
            let id = *known.entry(node).or_insert_with(|| {
                self.nodes.push(node);
                self.nodes.len() as Id - 1
            });
            own.push(id);
        }
        self.members.push(number);
        let is_reduced = matches!(stage.does, Does::Reduce(..));
        for (output, &id) in stage.dag.outputs.iter().enumerate() {
            if is_reduced || member.output(output) != Output::default() {
                self.outputs.push((number, output, own[id as usize]));
            }
        }
    }
}
