//! The graph of the steps: an edge leads from a step to each of its prerequisites.

use crate::plan::Step;
use petgraph::{
    algo::{astar, tarjan_scc},
    graph::DiGraph,
};

/// One cycle among the steps, or nothing: the steps in order, each waiting for the next, the first repeated last.
///
/// Of several it is one through the step of the lowest number that lies on any, and of those a shortest.
pub fn cycle(steps: &[Step]) -> Option<Vec<u32>> {
    // Each step has the node of its number; node 0 has no edges.
    let edges = steps.iter().flat_map(|step| step.prerequisites().iter().map(|&prerequisite| (step.id, prerequisite)));
    let graph: DiGraph<(), ()> = DiGraph::from_edges(edges);
    let knotted = tarjan_scc(&graph).into_iter().filter(|component| component.len() > 1);
    let start = knotted.flatten().min()?;
    // The neighbour that was added first wins among equals.
    let mut neighbours: Vec<_> = graph.neighbors(start).collect();
    neighbours.reverse();
    neighbours
        .into_iter()
        .filter_map(|next| astar(&graph, next, |step| step == start, |_| 1, |_| 0))
        .min_by_key(|(length, _)| *length)
        .map(|(_, way_back)| [start].into_iter().chain(way_back).map(|node| node.index() as u32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Status;

    fn found(depends_on: &[&[u32]]) -> Option<Vec<u32>> {
        let steps: Vec<Step> = (1..)
            .zip(depends_on)
            .map(|(id, list)| Step { id, title: "x".into(), status: Status::Pending, depends_on: Some(list.to_vec()) })
            .collect();
        cycle(&steps)
    }

    #[test]
    fn cycles() {
        for (depends_on, expected) in [
            (&[&[][..], &[1]][..], None),
            (&[&[2], &[]], None),
            (&[&[2], &[1]], Some(vec![1, 2, 1])),
            (&[&[3], &[1], &[2]], Some(vec![1, 3, 2, 1])),
            // The shortest through the lowest step, and not the steps that only lead there.
            (&[&[2], &[3, 4], &[4], &[2]], Some(vec![2, 4, 2])),
            // Two separate ones.
            (&[&[], &[5], &[4], &[3], &[2]], Some(vec![2, 5, 2])),
            // A diamond is none.
            (&[&[2, 3], &[4], &[4], &[]], None),
        ] {
            assert_eq!(found(depends_on), expected, "{depends_on:?}");
        }
    }

    #[test]
    fn a_cycle_through_all_fifty_steps() {
        let lists: Vec<Vec<u32>> = (1..=50).map(|id| vec![id % 50 + 1]).collect();
        let lists: Vec<&[u32]> = lists.iter().map(Vec::as_slice).collect();
        let expected: Vec<u32> = (1..=50).chain([1]).collect();
        assert_eq!(found(&lists), Some(expected));
    }
}
