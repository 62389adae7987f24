//! A journal in memory that can be held up: its reading, so that calls pile up behind the one that reads, and its changes.

use async_trait::async_trait;
use plan_execute_host::journal::{
    AppendError, Appended, CheckedPayload, Durability, Encoding, Entry, Journal, Memory, Position, ReadError,
};
use tokio::sync::watch;

/// The journal. Clones are the same.
#[derive(Clone)]
pub struct Gated {
    /// What it holds.
    pub memory: Memory,
    open: watch::Sender<bool>,
    changes: watch::Sender<Changes>,
}

/// The changes so far, and which one is held up.
#[derive(Clone, Copy, Default)]
struct Changes {
    begun: usize,
    held: Option<(usize, Hold)>,
}

/// Where a change is held up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Nothing has been changed yet.
    Before,
    /// All is done but the answer.
    After,
}

impl Default for Gated {
    fn default() -> Self {
        Gated { memory: Memory::default(), open: watch::Sender::new(true), changes: watch::Sender::default() }
    }
}

impl Gated {
    /// From now on whoever reads waits.
    pub fn close(&self) {
        self.open.send_replace(false);
    }

    /// Lets everyone read again.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Holds up one change: an append, or a move of the leaf. 1 is the next one.
    pub fn hold(&self, which: usize, hold: Hold) {
        self.changes.send_modify(|changes| changes.held = Some((changes.begun + which, hold)));
    }

    /// Lets the change go on that is held up.
    pub fn release(&self) {
        self.changes.send_modify(|changes| changes.held = None);
    }

    /// Waits until the change that is to be held up has come.
    pub async fn held(&self) {
        let come = |changes: &Changes| changes.held.is_none_or(|(which, _)| changes.begun >= which);
        // The sender lives as long as this journal.
        let _ = self.changes.subscribe().wait_for(come).await;
    }

    async fn change<T>(&self, change: impl Future<Output = T>) -> T {
        let mut number = 0;
        self.changes.send_modify(|changes| {
            changes.begun += 1;
            number = changes.begun;
        });
        let pass = async |hold| {
            let mut changes = self.changes.subscribe();
            let _ = changes.wait_for(|changes| changes.held != Some((number, hold))).await;
        };
        pass(Hold::Before).await;
        let changed = change.await;
        pass(Hold::After).await;
        changed
    }

    async fn pass(&self) {
        // The sender lives as long as this journal.
        let _ = self.open.subscribe().wait_for(|open| *open).await;
    }
}

#[async_trait]
impl Journal for Gated {
    fn durability(&self) -> Durability {
        self.memory.durability()
    }
    fn preferred_encoding(&self) -> Encoding {
        self.memory.preferred_encoding()
    }
    async fn position(&self) -> Result<Position, ReadError> {
        self.memory.position().await
    }
    async fn latest(&self, at: &Position, custom_type: &str) -> Result<Option<Entry>, ReadError> {
        self.pass().await;
        self.memory.latest(at, custom_type).await
    }
    async fn entries(
        &self,
        at: &Position,
        custom_type: &str,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Entry>, ReadError> {
        self.pass().await;
        self.memory.entries(at, custom_type, before, limit).await
    }
    async fn append(
        &self,
        at: &Position,
        custom_type: &str,
        payload: &CheckedPayload,
    ) -> Result<Appended, AppendError> {
        self.change(self.memory.append(at, custom_type, payload)).await
    }
    async fn branch(&self, entry: Option<&str>) -> Result<Position, ReadError> {
        self.change(self.memory.branch(entry)).await
    }
    async fn reopen(&self) -> Result<Position, ReadError> {
        self.memory.reopen().await
    }
}
