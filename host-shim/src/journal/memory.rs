//! A journal in memory: for tests, and for runtimes that keep no sessions.

use super::{
    AppendError, Appended, CheckedPayload, Durability, Encoding, Entry, Journal, Opening, PAGE_BYTES, Payload,
    Position, ReadError, Tree, now_ms,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// One session in memory. Clones are the same session.
#[derive(Clone)]
pub struct Memory {
    encoding: Encoding,
    session: Arc<Mutex<Session>>,
}

struct Session {
    position: Position,
    tree: Tree,
    /// In the order of the tree's numbers.
    entries: Vec<Stored>,
}

struct Stored {
    custom_type: Option<String>,
    entry: Entry,
}

impl Default for Memory {
    fn default() -> Self {
        Memory::new(Encoding::Json)
    }
}

impl Memory {
    /// An empty session that prefers payloads in `encoding` and takes both.
    pub fn new(encoding: Encoding) -> Memory {
        let session_id = Uuid::now_v7().to_string().into();
        let position = Position { session_id, opening: Opening::new(), leaf: None };
        Memory { encoding, session: Arc::new(Mutex::new(Session { position, tree: Tree::new(), entries: Vec::new() })) }
    }

    /// Appends an entry of the harness's own below the leaf and moves the leaf to it. Plugins see it where `custom_type` is
    /// one that they were granted; `None` is an entry that no plugin sees, such as a message.
    pub fn push(&self, custom_type: Option<&str>, payload: Payload) -> String {
        self.lock().push(custom_type, payload, now_ms())
    }

    /// Every custom entry of the session with its type, on whatever branch, in the order of appending.
    pub fn custom_entries(&self) -> Vec<(String, Entry)> {
        let session = self.lock();
        session.entries.iter().filter_map(|s| Some((s.custom_type.clone()?, s.entry.clone()))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    fn push(&mut self, custom_type: Option<&str>, payload: Payload, now: u64) -> String {
        let id = Uuid::now_v7().to_string();
        self.tree.push(Some(&id), self.position.leaf.as_deref(), custom_type);
        let entry = Entry { id: id.clone(), timestamp_ms: Some(now), payload };
        self.entries.push(Stored { custom_type: custom_type.map(str::to_owned), entry });
        self.position.leaf = Some(id.as_str().into());
        id
    }

    /// The node that `at` stands on.
    fn node(&self, at: &Position) -> Result<Option<u32>, ReadError> {
        if at.opening != self.position.opening {
            return Err(ReadError::SessionChanged);
        }
        Ok(at.leaf.as_deref().and_then(|leaf| self.tree.find(leaf)))
    }
}

/// The parents of entries made here never run in a circle; the type of the index allows for it.
fn circle(error: super::ParentCycle) -> ReadError {
    ReadError::Other(error.to_string())
}

#[async_trait::async_trait]
impl Journal for Memory {
    fn durability(&self) -> Durability {
        Durability::Memory
    }

    fn preferred_encoding(&self) -> Encoding {
        self.encoding
    }

    async fn position(&self) -> Result<Position, ReadError> {
        Ok(self.lock().position.clone())
    }

    async fn latest(&self, at: &Position, custom_type: &str) -> Result<Option<Entry>, ReadError> {
        let mut session = self.lock();
        let Some(node) = session.node(at)? else { return Ok(None) };
        let found = session.tree.latest(node, custom_type).map_err(circle)?;
        Ok(found.map(|node| session.entries[node as usize].entry.clone()))
    }

    async fn entries(
        &self,
        at: &Position,
        custom_type: &str,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Entry>, ReadError> {
        let mut session = self.lock();
        let mut next = session.node(at)?;
        let mut found = before.is_none();
        let (mut page, mut bytes) = (Vec::new(), 0);
        while let Some(node) = next {
            let Some(node) = session.tree.latest(node, custom_type).map_err(circle)? else { break };
            let entry = &session.entries[node as usize].entry;
            if found {
                bytes += entry.payload.bytes.len();
                page.push(entry.clone());
                if page.len() >= limit.max(1) as usize || bytes >= PAGE_BYTES {
                    return Ok(page);
                }
            }
            found |= before == Some(entry.id.as_str());
            next = session.tree.parent(node);
        }
        if !found {
            return Err(ReadError::NotFound(format!(
                "no entry {} of this type on the branch",
                before.unwrap_or_default()
            )));
        }
        Ok(page)
    }

    async fn append(
        &self,
        at: &Position,
        custom_type: &str,
        payload: &CheckedPayload,
    ) -> Result<Appended, AppendError> {
        let mut session = self.lock();
        if at.opening != session.position.opening {
            return Err(AppendError::SessionChanged);
        }
        if at.leaf != session.position.leaf {
            return Err(AppendError::BranchChanged);
        }
        let timestamp_ms = now_ms();
        let id = session.push(Some(custom_type), payload.as_payload().clone(), timestamp_ms);
        Ok(Appended { id, timestamp_ms, durability: Durability::Memory })
    }

    async fn branch(&self, entry: Option<&str>) -> Result<Position, ReadError> {
        let mut session = self.lock();
        if let Some(id) = entry
            && session.tree.find(id).is_none()
        {
            return Err(ReadError::NotFound(format!("no entry {id} in this session")));
        }
        session.position.leaf = entry.map(Into::into);
        Ok(session.position.clone())
    }

    async fn reopen(&self) -> Result<Position, ReadError> {
        let mut session = self.lock();
        session.position.opening = Opening::new();
        session.position.leaf = session.entries.last().map(|stored| stored.entry.id.as_str().into());
        Ok(session.position.clone())
    }
}
