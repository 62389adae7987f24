//! The tree of a session's entries, with an index that finds the newest custom entry of a type without a walk.

use super::names::Names;
use std::collections::HashMap;

/// The number of an entry, by the order in which entries were pushed.
pub(crate) type Node = u32;

/// The parents of some entries run in a circle, so no branch leads through them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the parents of the entries on this branch run in a circle")]
pub struct ParentCycle;

/// Ids, parents and custom types of a session's entries.
///
/// The rules are Pi's, which are those of any journal that was put together from parts: an entry may lack an id or a
/// parent; a parent that is not there ends the branch; a parent may come after its child; of two entries with one id the
/// later counts, also as the parent of earlier children. Parents may even run in a circle.
///
/// Per entry it takes about 40 bytes and its id, and 4 more for each custom type that was asked for.
#[derive(Debug, Default)]
pub struct Tree {
    nodes: Vec<NodeData>,
    /// Every id that was ever named, as an entry's own or as a parent.
    names: Names,
    /// By the number of the id: the newest entry that has it, or `NONE` where it was only named as a parent.
    holders: Vec<Node>,
    /// Custom types that occur.
    types: Names,
    indexes: HashMap<u32, Vec<Node>>,
    /// Could a circle be there? Only once an id was named before its entry came, or came twice.
    tangled: bool,
    /// Which entries lead into a circle, where some do.
    circular: Option<Vec<bool>>,
}

#[derive(Debug, Clone, Copy)]
struct NodeData {
    /// The number of its id, or `NONE`.
    id: u32,
    /// The number of its parent's id, or `NONE`.
    parent: u32,
    /// The number of its custom type, or `NONE`.
    custom_type: u32,
}

const NONE: u32 = u32::MAX;
/// Types that are indexed at a time. A plugin asks for one or two.
const INDEXES: usize = 16;

impl Tree {
    /// An empty tree.
    pub fn new() -> Tree {
        Tree::default()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Is there no entry?
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds the newest entry.
    ///
    /// # Panics
    ///
    /// At 4,294,967,295 entries, which take 300 GB of memory.
    pub fn push(&mut self, id: Option<&str>, parent: Option<&str>, custom_type: Option<&str>) -> Node {
        let node =
            Node::try_from(self.nodes.len()).ok().filter(|&node| node != NONE).expect("fewer entries than numbers");
        let before = self.nodes.last().map_or(NONE, |before| before.id);
        let parent = match parent {
            // Most often it is the entry before.
            Some(parent) if before != NONE && self.names.get(before) == parent => before,
            Some(parent) => self.name(parent),
            None => NONE,
        };
        let custom_type = custom_type.map_or(NONE, |name| self.types.number(name));
        let known = self.names.len();
        let id = id.map_or(NONE, |id| self.name(id));
        // Was the id named before, by a child or as this very entry's parent, or held by another entry?
        let tangles = id != NONE && ((id as usize) < known || parent == id);
        if id != NONE {
            self.holders[id as usize] = node;
        }
        self.nodes.push(NodeData { id, parent, custom_type });
        if tangles {
            self.tangled = true;
            self.circular = None;
            self.indexes.clear();
        } else {
            if let Some(circular) = &mut self.circular {
                let above = parent_of(&self.nodes, &self.holders, node);
                circular.push(above.is_some_and(|above| circular[above as usize]));
            }
            for (&ty, index) in &mut self.indexes {
                index.push(nearest(&self.nodes, &self.holders, index, node, ty));
            }
        }
        node
    }

    /// The entry of this id: the newest.
    pub fn find(&self, id: &str) -> Option<Node> {
        let holder = self.holders[self.names.find(id)? as usize];
        (holder != NONE).then_some(holder)
    }

    /// The id of an entry, where it has one.
    pub fn id(&self, node: Node) -> Option<&str> {
        let id = self.nodes[node as usize].id;
        (id != NONE).then(|| self.names.get(id))
    }

    /// Was this id ever named, as an entry's own or as a parent? A new entry must take another one.
    pub fn is_named(&self, id: &str) -> bool {
        self.names.find(id).is_some()
    }

    /// The newest entry of this custom type at or above `node`.
    ///
    /// The first question about a type indexes it; later ones, and pushes in between, take the same time at any length.
    ///
    /// # Errors
    ///
    /// [`ParentCycle`]
    pub fn latest(&mut self, node: Node, custom_type: &str) -> Result<Option<Node>, ParentCycle> {
        self.check_branch(node)?;
        let Some(ty) = self.types.find(custom_type) else { return Ok(None) };
        if !self.indexes.contains_key(&ty) {
            if self.indexes.len() == INDEXES {
                self.indexes.clear();
            }
            let index = self.index(ty);
            self.indexes.insert(ty, index);
        }
        let found = self.indexes[&ty][node as usize];
        Ok((found != NONE).then_some(found))
    }

    /// The entry above this one.
    pub fn parent(&self, node: Node) -> Option<Node> {
        parent_of(&self.nodes, &self.holders, node)
    }

    /// The entries from the root to `node`. This one walks.
    ///
    /// # Errors
    ///
    /// [`ParentCycle`]
    pub fn branch(&mut self, node: Node) -> Result<Vec<Node>, ParentCycle> {
        self.check_branch(node)?;
        let mut branch: Vec<Node> = std::iter::successors(Some(node), |&node| self.parent(node)).collect();
        branch.reverse();
        Ok(branch)
    }

    /// Does a branch lead to this entry?
    ///
    /// # Errors
    ///
    /// [`ParentCycle`]
    pub fn check_branch(&mut self, node: Node) -> Result<(), ParentCycle> {
        if self.tangled && self.circular.is_none() {
            self.circular = Some(self.find_circles());
        }
        match &self.circular {
            Some(circular) if circular[node as usize] => Err(ParentCycle),
            _ => Ok(()),
        }
    }

    fn name(&mut self, id: &str) -> u32 {
        let number = self.names.number(id);
        if number as usize == self.holders.len() {
            self.holders.push(NONE);
        }
        number
    }

    /// Which entries lead into a circle.
    fn find_circles(&self) -> Vec<bool> {
        let circular = self.derive_from_roots(|_, above| above);
        circular.into_iter().map(|state| state.unwrap_or(true)).collect()
    }

    /// For each entry the nearest of type `ty` at or above it.
    fn index(&self, ty: u32) -> Vec<Node> {
        let own = |node: Node| (self.nodes[node as usize].custom_type == ty).then_some(node);
        let found = self.derive_from_roots(|node, above: Option<Option<Node>>| match (own(node), above) {
            (Some(node), _) => Some(Some(node)),
            (None, above) => Some(above.flatten()),
        });
        found.into_iter().map(|found| found.flatten().unwrap_or(NONE)).collect()
    }

    /// Derives a value for each entry from that of its parent, wherever in the order the parent stands. Entries that lead
    /// into a circle get none.
    fn derive_from_roots<T: Copy + FromRoot>(&self, derive: impl Fn(Node, Option<T>) -> Option<T>) -> Vec<Option<T>> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            Open,
            OnPath,
            Done,
        }
        let mut values: Vec<Option<T>> = vec![None; self.nodes.len()];
        let mut states = vec![State::Open; self.nodes.len()];
        let mut path = Vec::new();
        for start in 0..self.nodes.len() as Node {
            let mut next = Some(start);
            // Up to what is known, a root, or an entry of this very path.
            while let Some(node) = next.filter(|&node| states[node as usize] == State::Open) {
                states[node as usize] = State::OnPath;
                path.push(node);
                next = self.parent(node);
            }
            let mut above = match next {
                None => Some(T::ROOT),
                Some(known) if states[known as usize] == State::Done => values[known as usize],
                Some(_) => None,
            };
            for node in path.drain(..).rev() {
                states[node as usize] = State::Done;
                if above.is_some() {
                    above = derive(node, above);
                }
                values[node as usize] = above;
            }
        }
        values
    }
}

/// The value above a root.
trait FromRoot {
    const ROOT: Self;
}

impl FromRoot for bool {
    const ROOT: bool = false;
}

impl FromRoot for Option<Node> {
    const ROOT: Option<Node> = None;
}

fn parent_of(nodes: &[NodeData], holders: &[Node], node: Node) -> Option<Node> {
    let name = nodes[node as usize].parent;
    if name == NONE {
        return None;
    }
    let parent = holders[name as usize];
    (parent != NONE).then_some(parent)
}

/// The entry of type `ty` at `node`, or else the one that its parent has.
fn nearest(nodes: &[NodeData], holders: &[Node], index: &[Node], node: Node, ty: u32) -> Node {
    if nodes[node as usize].custom_type == ty {
        return node;
    }
    parent_of(nodes, holders, node).map_or(NONE, |parent| index[parent as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = (Option<&'static str>, Option<&'static str>, Option<&'static str>);

    fn tree(rows: &[Row]) -> Tree {
        let mut tree = Tree::new();
        for (id, parent, custom_type) in rows {
            tree.push(*id, *parent, *custom_type);
        }
        tree
    }

    #[test]
    fn trees_as_pi_reads_them() {
        let p = Some("p");
        for (name, rows, leaf, branch, latest) in [
            (
                "chain",
                &[(Some("a"), None, None), (Some("b"), Some("a"), p), (Some("c"), Some("b"), None)][..],
                2,
                Ok(vec![0, 1, 2]),
                Ok(Some(1)),
            ),
            (
                "side branch",
                &[(Some("a"), None, None), (Some("b"), Some("a"), p), (Some("c"), Some("a"), None)],
                2,
                Ok(vec![0, 2]),
                Ok(None),
            ),
            ("dangling", &[(Some("a"), None, p), (Some("b"), Some("x"), None)], 1, Ok(vec![1]), Ok(None)),
            ("forward", &[(Some("b"), Some("a"), None), (Some("a"), None, p)], 0, Ok(vec![1, 0]), Ok(Some(1))),
            (
                "duplicate",
                &[(Some("a"), None, p), (Some("b"), Some("a"), None), (Some("a"), None, None)],
                1,
                Ok(vec![2, 1]),
                Ok(None),
            ),
            ("without id", &[(Some("a"), None, p), (None, None, None)], 1, Ok(vec![1]), Ok(None)),
            ("circle", &[(Some("a"), Some("b"), p), (Some("b"), Some("a"), p)], 1, Err(ParentCycle), Err(ParentCycle)),
            ("own parent", &[(Some("a"), Some("a"), p)], 0, Err(ParentCycle), Err(ParentCycle)),
            (
                "into a circle",
                &[(Some("a"), Some("b"), p), (Some("b"), Some("a"), p), (Some("c"), Some("b"), p)],
                2,
                Err(ParentCycle),
                Err(ParentCycle),
            ),
            (
                "beside a circle",
                &[(Some("a"), Some("b"), p), (Some("b"), Some("a"), p), (Some("c"), None, p)],
                2,
                Ok(vec![2]),
                Ok(Some(2)),
            ),
            (
                "circle by a duplicate",
                &[(Some("a"), None, p), (Some("b"), Some("a"), None), (Some("a"), Some("b"), None)],
                1,
                Err(ParentCycle),
                Err(ParentCycle),
            ),
        ] {
            let mut tree = tree(rows);
            assert_eq!(tree.branch(leaf), branch, "{name}");
            assert_eq!(tree.latest(leaf, "p"), latest, "{name}");
        }
    }

    /// An index that was built before an entry came says the same as one built after.
    #[test]
    fn an_index_keeps_up() {
        let ids = ["a", "b", "c", "d"];
        let mut seed = 7u64;
        let mut random = |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % n
        };
        for _ in 0..2_000 {
            let mut kept = Tree::new();
            let mut rows: Vec<Row> = Vec::new();
            for _ in 0..8 {
                let pick = |i: usize| ids.get(i).copied();
                rows.push((pick(random(5)), pick(random(5)), [None, Some("p"), Some("q")][random(3)]));
                let (id, parent, ty) = rows[rows.len() - 1];
                kept.push(id, parent, ty);
                for node in 0..rows.len() as Node {
                    for ty in ["p", "q"] {
                        let mut fresh = tree(&rows);
                        let found = kept.latest(node, ty);
                        assert_eq!(found, fresh.latest(node, ty), "{rows:?}, {node}, {ty}");
                        let walked = fresh
                            .branch(node)
                            .map(|branch| branch.into_iter().rev().find(|&n| rows[n as usize].2 == Some(ty)));
                        assert_eq!(found, walked, "{rows:?}, {node}, {ty}");
                    }
                }
            }
        }
    }

    #[test]
    fn many_types_do_not_pile_up_indexes() {
        let mut tree = Tree::new();
        for i in 0..100 {
            tree.push(Some(&i.to_string()), None, Some(&format!("t{i}")));
        }
        for i in 0..100 {
            assert_eq!(tree.latest(i, &format!("t{i}")), Ok(Some(i)));
        }
        assert!(tree.indexes.len() <= INDEXES);
    }
}
