//! Numbers for texts: each text once, all of them in one piece of memory.

use foldhash::fast::RandomState;
use hashbrown::{HashTable, hash_table::Entry};
use std::hash::BuildHasher;

/// Texts and their numbers, from 0 on.
#[derive(Debug, Default)]
pub(super) struct Names {
    texts: String,
    /// Where each text ends.
    ends: Vec<usize>,
    /// Numbers with the hashes of their texts, so that growing and most comparisons need not look at the texts.
    table: HashTable<(u32, u32)>,
    hasher: RandomState,
}

impl Names {
    /// How many texts there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The text of this number.
    pub(super) fn get(&self, number: u32) -> &str {
        text(&self.texts, &self.ends, number)
    }

    /// The number of this text.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        let hash = hash(&self.hasher, name);
        let same = |&(number, other): &(u32, u32)| other == hash && self.get(number) == name;
        self.table.find(spread(hash), same).map(|&(number, _)| number)
    }

    /// The number of this text, which gets the next one where it has none.
    ///
    /// # Panics
    ///
    /// At 4,294,967,295 texts.
    pub(super) fn number(&mut self, name: &str) -> u32 {
        let Names { texts, ends, table, hasher } = self;
        let hash = hash(hasher, name);
        let same = |&(number, other): &(u32, u32)| other == hash && text(texts, ends, number) == name;
        match table.entry(spread(hash), same, |&(_, other)| spread(other)) {
            Entry::Occupied(found) => found.get().0,
            Entry::Vacant(place) => {
                let number = u32::try_from(ends.len()).ok().filter(|&number| number != u32::MAX);
                let number = number.expect("fewer texts than numbers");
                place.insert((number, hash));
                texts.push_str(name);
                ends.push(texts.len());
                number
            }
        }
    }
}

fn hash(hasher: &RandomState, name: &str) -> u32 {
    hasher.hash_one(name) as u32
}

/// The table takes a place from the lower bits and a mark from the upper ones.
fn spread(hash: u32) -> u64 {
    u64::from(hash) | u64::from(hash) << 32
}

fn text<'a>(texts: &'a str, ends: &[usize], number: u32) -> &'a str {
    let number = number as usize;
    let start = if number == 0 { 0 } else { ends[number - 1] };
    &texts[start..ends[number]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_has_one_number() {
        let mut names = Names::default();
        for round in 0..2 {
            for i in 0..1_000u32 {
                let name = if i == 500 { String::new() } else { format!("ü{i}") };
                assert_eq!(names.number(&name), i, "round {round}");
                assert_eq!((names.get(i), names.find(&name)), (name.as_str(), Some(i)));
            }
        }
        assert_eq!((names.len(), names.find("x")), (1_000, None));
    }
}
