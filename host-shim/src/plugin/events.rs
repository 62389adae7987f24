//! What a session tells of the entries that plugins saved in it.

use super::plans::{self, Plan};
use crate::journal::{Durability, Entry};
use std::sync::Arc;
use tokio::sync::broadcast::{self, error::RecvError};

/// An entry that a plugin saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The session's id.
    pub session_id: Arc<str>,
    /// The name of the plugin.
    pub plugin: Arc<str>,
    /// The entry's custom type.
    pub custom_type: String,
    /// The entry, which is the leaf now.
    pub entry: Entry,
    /// What its acknowledgement is worth.
    pub durability: Durability,
}

impl Saved {
    /// The plan, where the entry holds one.
    pub fn plan(&self) -> Option<Plan> {
        if self.custom_type == plans::CUSTOM_TYPE { plans::decode(&self.entry.payload) } else { None }
    }
}

/// What a subscription hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// An entry was saved.
    Saved(Saved),
    /// The subscriber was more than 256 entries behind and missed this many. They are in the journal.
    Missed(u64),
}

/// Hears of each entry that a plugin saves in a session, from the moment of subscribing on, in the order of saving.
pub struct Subscription(pub(crate) broadcast::Receiver<Saved>);

impl Subscription {
    /// Waits for the next one; `None` when the session is gone. May be cancelled: nothing is lost.
    pub async fn next(&mut self) -> Option<Event> {
        match self.0.recv().await {
            Ok(saved) => Some(Event::Saved(saved)),
            Err(RecvError::Lagged(missed)) => Some(Event::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }
}
