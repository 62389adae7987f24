//! What was passed over, for whoever wants to know how complete an answer is.

use serde::Serialize;

/// How much was passed over, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Folders and files that could not be looked into.
    #[serde(skip_serializing_if = "is_zero")]
    pub places: u64,
    /// Sessions that could not be read at all.
    #[serde(skip_serializing_if = "is_zero")]
    pub sessions: u64,
    /// Sessions of which only a part was read: the storage failed, or they go on after 1 GiB.
    #[serde(skip_serializing_if = "is_zero")]
    pub cut: u64,
    /// Lines that are no JSON object, in the sessions that were read.
    #[serde(skip_serializing_if = "is_zero")]
    pub lines: u64,
    /// Lines of more than 16 MiB.
    #[serde(skip_serializing_if = "is_zero")]
    pub long_lines: u64,
    /// Plan entries that hold no plan; plan files and answers that hold more than is read.
    #[serde(skip_serializing_if = "is_zero")]
    pub plans: u64,
    /// Quotes whose plan was too far back to look for their section.
    #[serde(skip_serializing_if = "is_zero")]
    pub quotes: u64,
}

impl Skipped {
    /// Adds what was passed over elsewhere.
    pub fn add(&mut self, more: Skipped) {
        self.places += more.places;
        self.sessions += more.sessions;
        self.cut += more.cut;
        self.lines += more.lines;
        self.long_lines += more.long_lines;
        self.plans += more.plans;
        self.quotes += more.quotes;
    }

    /// Was nothing passed over?
    pub fn is_none(&self) -> bool {
        *self == Skipped::default()
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
