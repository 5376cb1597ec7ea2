//! Places for the nodes of an acyclic graph: every edge points downwards, from layer to layer (Sugiyama et al., 1981).

/// The distance of two layers.
const LAYER: f64 = 46.0;

/// The least distance between two nodes of a layer.
const GAP: f64 = 16.0;

/// The width that an edge takes where it passes a layer.
const PASS: f64 = 4.0;

/// Rounds in which nodes move towards those that they are joined to.
const ROUNDS: usize = 24;

/// Where nodes and edges lie.
pub(super) struct Layout {
    /// The centre of each node.
    pub nodes: Vec<[f64; 2]>,
    /// The points of each edge, from its first node to its second.
    pub routes: Vec<Vec<[f64; 2]>>,
    /// The extents of the whole.
    pub size: [f64; 2],
}

/// A node of the graph, or a place where an edge passes a layer.
struct Place {
    layer: usize,
    width: f64,
    x: f64,
    above: Vec<usize>,
    below: Vec<usize>,
}

/// Lays a graph out. Edges go from nodes of smaller numbers to nodes of larger ones.
pub(super) fn layered(widths: &[f64], edges: &[(usize, usize)]) -> Layout {
    let mut places: Vec<Place> = widths
        .iter()
        .map(|&width| Place { layer: 0, width, x: 0.0, above: Vec::new(), below: Vec::new() })
        .collect();
    for node in 0..widths.len() {
        for &(_, to) in edges.iter().filter(|edge| edge.0 == node) {
            places[to].layer = places[to].layer.max(places[node].layer + 1);
        }
    }
    let chains: Vec<Vec<usize>> = edges.iter().map(|&(from, to)| chain(&mut places, from, to)).collect();
    let depth = places.iter().map(|place| place.layer + 1).max().unwrap_or(0);
    let mut layers: Vec<Vec<usize>> = vec![Vec::new(); depth];
    (0..places.len()).for_each(|own| layers[places[own].layer].push(own));
    for layer in &layers {
        arrange(&mut places, layer, |_, _| 0.0);
    }
    // Nodes change their order in the first half of the rounds, and keep it in the second.
    for round in 0..ROUNDS {
        let downwards = round % 2 == 0;
        for step in 0..depth {
            let own = if downwards { step } else { depth - 1 - step };
            let towards = |places: &[Place], own: usize| {
                let place = &places[own];
                let joined: Vec<usize> = match round {
                    _ if round + 4 > ROUNDS => place.above.iter().chain(&place.below).copied().collect(),
                    _ if downwards => place.above.clone(),
                    _ => place.below.clone(),
                };
                match joined.is_empty() {
                    true => place.x,
                    false => joined.iter().map(|&other| places[other].x).sum::<f64>() / joined.len() as f64,
                }
            };
            if round < ROUNDS / 2 {
                let wanted: Vec<f64> = (0..places.len()).map(|own| towards(&places, own)).collect();
                layers[own].sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
            }
            arrange(&mut places, &layers[own], towards);
        }
    }
    let left = places.iter().map(|place| place.x - place.width / 2.0).fold(0.0, f64::min);
    let right = places.iter().map(|place| place.x + place.width / 2.0).fold(0.0, f64::max);
    let at = |own: usize| [places[own].x - left, LAYER * (places[own].layer as f64 + 0.5)];
    Layout {
        nodes: (0..widths.len()).map(at).collect(),
        routes: chains.iter().map(|chain| chain.iter().map(|&own| at(own)).collect()).collect(),
        size: [right - left, LAYER * depth as f64],
    }
}

/// Joins two nodes by way of a place in each layer between them, and returns all of them.
fn chain(places: &mut Vec<Place>, from: usize, to: usize) -> Vec<usize> {
    let mut chain = vec![from];
    for layer in places[from].layer + 1..places[to].layer {
        places.push(Place { layer, width: PASS, x: 0.0, above: Vec::new(), below: Vec::new() });
        chain.push(places.len() - 1);
    }
    chain.push(to);
    for pair in chain.windows(2) {
        places[pair[0]].below.push(pair[1]);
        places[pair[1]].above.push(pair[0]);
    }
    chain
}

/// Moves the nodes of a layer, whose order stays, as near as possible to where they want to be: the least sum of squares.
fn arrange(places: &mut [Place], layer: &[usize], wanted: impl Fn(&[Place], usize) -> f64) {
    // Runs of nodes that touch: the sum of what they want, less their distance from the first, and their number.
    let mut runs: Vec<(f64, usize)> = Vec::new();
    let (mut offsets, mut offset) = (Vec::new(), 0.0);
    for (at, &own) in layer.iter().enumerate() {
        if at > 0 {
            offset += (places[layer[at - 1]].width + places[own].width) / 2.0 + GAP;
        }
        offsets.push(offset);
        runs.push((wanted(places, own) - offset, 1));
        while let [.., before, last] = &runs[..]
            && before.0 / before.1 as f64 >= last.0 / last.1 as f64
        {
            let joined = (before.0 + last.0, before.1 + last.1);
            runs.truncate(runs.len() - 2);
            runs.push(joined);
        }
    }
    let firsts = runs.iter().flat_map(|&(sum, count)| std::iter::repeat_n(sum / count as f64, count));
    for ((&own, offset), first) in layer.iter().zip(offsets).zip(firsts) {
        places[own].x = first + offset;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_point_down_and_nodes_do_not_touch() {
        let mut random = fastrand::Rng::with_seed(2);
        for turn in 0..40 {
            let count = 1 + turn % 17;
            let widths: Vec<f64> = (0..count).map(|_| 20.0 + random.f64() * 100.0).collect();
            let mut edges = Vec::new();
            for to in 1..count {
                for _ in 0..random.usize(..3) {
                    edges.push((random.usize(..to), to));
                }
            }
            edges.sort_unstable();
            edges.dedup();
            let layout = layered(&widths, &edges);
            for (&(from, to), route) in edges.iter().zip(&layout.routes) {
                assert!(layout.nodes[from][1] < layout.nodes[to][1]);
                assert_eq!((route[0], route[route.len() - 1]), (layout.nodes[from], layout.nodes[to]));
                assert!(route.windows(2).all(|pair| pair[1][1] - pair[0][1] == LAYER));
            }
            for (own, at) in layout.nodes.iter().enumerate() {
                let [low, high] = [at[0] - widths[own] / 2.0, at[0] + widths[own] / 2.0];
                assert!(low > -1e-6 && high < layout.size[0] + 1e-6);
                for (other, beside) in
                    layout.nodes.iter().enumerate().filter(|(_, beside)| beside[1] == at[1])
                {
                    let apart = (beside[0] - at[0]).abs() - (widths[own] + widths[other]) / 2.0;
                    assert!(other == own || apart > GAP - 1e-6, "turn {turn}");
                }
            }
        }
    }
}
