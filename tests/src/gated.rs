//! A journal in memory whose reading can be held up, so that calls pile up behind the one that reads.

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
}

impl Default for Gated {
    fn default() -> Self {
        Gated { memory: Memory::default(), open: watch::Sender::new(true) }
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
        self.memory.append(at, custom_type, payload).await
    }
    async fn branch(&self, entry: Option<&str>) -> Result<Position, ReadError> {
        self.memory.branch(entry).await
    }
    async fn reopen(&self) -> Result<Position, ReadError> {
        self.memory.reopen().await
    }
}
