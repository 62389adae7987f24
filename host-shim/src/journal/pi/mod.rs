//! Session files of the Pi coding agent.
//!
//! The format is a JSON object per line: a header, then entries with an id and the id of their parent. Nothing in the file
//! says which entry the session stands on; after opening, it is the last line. Versions 1 to 3 are read, and newer ones as
//! Pi reads them. Entries are appended to versions 2 and 3.
//!
//! This journal never rewrites a byte that it did not write. It passes over what Pi passes over (damaged lines are
//! [counted](PiSession::damage)), and refuses the files that Pi refuses.
//!
//! # Beside a running Pi
//!
//! Pi takes no lock, and it does not look at the file again after opening it. What it writes, this journal sees before its
//! next operation. What this journal writes, a *running* Pi does not see: its next entry hangs below the last one that it
//! knows, and leaves our plan off the branch. Inside a running Pi the extension is the way.

mod disk;
mod file;
mod header;
mod lease;
mod line;
mod lines;
#[cfg(feature = "sql")]
pub(crate) mod raw;
mod records;
mod write;

pub use file::{Damage, OpenError};

use super::{
    AppendError, Appended, CheckedPayload, Durability, Encoding, Entry, Journal, Opening, PAGE_BYTES, ParentCycle,
    Payload, Position, ReadError,
};
use disk::Disk as _;
use file::{Found, GoneOn, Loaded, load, load_from, open_regular};
use header::{NewSession, iso};
use jiff::Timestamp;
use lease::Lease;
use line::Content;
use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use uuid::Uuid;
use write::Outcome;

/// How long an append waits for another process of our kind.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// The longest line of an entry that is read again for a plugin, in bytes. What a plugin gets is bounded further by
/// [`Limits::payload_read`](crate::Limits::payload_read).
const MAX_ENTRY: usize = 8 * 1024 * 1024;

/// A session file. Clones are the same opening.
#[derive(Clone)]
pub struct PiSession {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    /// Whoever waits for the storage waits here, where waiting costs no thread and can be given up.
    gate: Arc<tokio::sync::Mutex<()>>,
    state: Mutex<State>,
}

enum State {
    /// The file holds a session.
    Loaded(Box<Loaded>),
    /// There is no file yet, or an empty one. The first append writes the header.
    New { opening: Opening, session: NewSession },
}

impl PiSession {
    /// Opens the session file at `path`. An empty file is a session without entries.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: in particular, files that Pi refuses. They stay as they are.
    pub async fn open(path: impl Into<PathBuf>) -> Result<PiSession, OpenError> {
        let path = path.into();
        blocking(move || {
            let state = State::from(load(&path)?);
            Ok(PiSession::with(path, state))
        })
        .await
    }

    /// Opens the session file at `path`, or makes a session where there is none. In a folder it makes one with the name
    /// that Pi would give. The file itself is written with the first entry, as Pi does it.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: the file is no session, or the folder that it should stand in is missing.
    pub async fn open_or_create(path: impl Into<PathBuf>) -> Result<PiSession, OpenError> {
        let path = path.into();
        blocking(move || {
            let session = NewSession::new();
            if path.is_dir() {
                let file = path.join(session.file_name());
                return Ok(PiSession::with(file, State::New { opening: Opening::new(), session }));
            }
            match load(&path) {
                Err(OpenError::Missing(_)) => {
                    let folder =
                        if path.as_os_str().to_string_lossy().ends_with('/') { &path } else { folder_of(&path) };
                    if !folder.is_dir() {
                        return Err(OpenError::NoFolder(folder.into()));
                    }
                    Ok(PiSession::with(path, State::New { opening: Opening::new(), session }))
                }
                found => {
                    let state = State::from(found?);
                    Ok(PiSession::with(path, state))
                }
            }
        })
        .await
    }

    /// The session file. It may not be there yet.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// The lines that could not be read when the file was last looked at. A torn last line is none of them.
    pub fn damage(&self) -> Damage {
        match &*self.inner.state() {
            State::Loaded(loaded) => loaded.damage.clone(),
            State::New { .. } => Damage::default(),
        }
    }

    /// The ids of the entries from the root to where the session stands, as far as they have ids. This one walks the
    /// branch.
    ///
    /// # Errors
    ///
    /// As [`Journal::latest`].
    pub async fn branch_ids(&self) -> Result<Vec<String>, ReadError> {
        self.run(|inner| inner.branch_ids()).await
    }

    fn with(path: PathBuf, state: State) -> PiSession {
        PiSession { inner: Arc::new(Inner { path, gate: Arc::default(), state: Mutex::new(state) }) }
    }

    async fn run<T: Send + 'static>(&self, operation: impl FnOnce(&Inner) -> T + Send + 'static) -> T {
        let inner = Arc::clone(&self.inner);
        let gate = Arc::clone(&inner.gate).lock_owned().await;
        blocking(move || {
            let _gate = gate;
            operation(&inner)
        })
        .await
    }
}

/// Runs what blocks where it may. A panic goes on in the caller.
async fn blocking<T: Send + 'static>(operation: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(operation).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only a runtime that shuts down cancels it; nobody polls this future then.
            Err(_) => std::future::pending().await,
        },
    }
}

#[async_trait::async_trait]
impl Journal for PiSession {
    fn durability(&self) -> Durability {
        Durability::Stored
    }

    fn preferred_encoding(&self) -> Encoding {
        Encoding::Json
    }

    async fn position(&self) -> Result<Position, ReadError> {
        self.run(|inner| inner.look()?.position()).await
    }

    async fn latest(&self, at: &Position, custom_type: &str) -> Result<Option<Entry>, ReadError> {
        let (at, custom_type) = (at.clone(), custom_type.to_owned());
        self.run(move |inner| inner.latest(&at, &custom_type)).await
    }

    async fn position_and_latest(
        &self,
        at: &Position,
        custom_type: &str,
    ) -> Result<(Position, Option<Entry>), ReadError> {
        let (at, custom_type) = (at.clone(), custom_type.to_owned());
        self.run(move |inner| inner.position_and_latest(&at, &custom_type)).await
    }

    async fn entries(
        &self,
        at: &Position,
        custom_type: &str,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Entry>, ReadError> {
        let (at, custom_type, before) = (at.clone(), custom_type.to_owned(), before.map(str::to_owned));
        self.run(move |inner| inner.entries(&at, &custom_type, before.as_deref(), limit)).await
    }

    async fn append(
        &self,
        at: &Position,
        custom_type: &str,
        payload: &CheckedPayload,
    ) -> Result<Appended, AppendError> {
        // It was written out anew as one line, so no payload can forge an entry.
        let data = payload.as_json()?.to_owned();
        let (at, custom_type) = (at.clone(), custom_type.to_owned());
        self.run(move |inner| inner.append(&at, &custom_type, &data)).await
    }

    async fn branch(&self, entry: Option<&str>) -> Result<Position, ReadError> {
        let entry = entry.map(str::to_owned);
        self.run(move |inner| inner.branch(entry.as_deref())).await
    }

    async fn reopen(&self) -> Result<Position, ReadError> {
        self.run(|inner| {
            let mut state = inner.state();
            // A session that was never written is still the same.
            match (load(&inner.path), &mut *state) {
                (Ok(Found::Empty) | Err(OpenError::Missing(_)), State::New { opening, .. }) => {
                    *opening = Opening::new()
                }
                (Ok(found), state) => *state = found.into(),
                (Err(error), _) => return Err(unusable(error)),
            }
            state.position()
        })
        .await
    }
}

impl From<Found> for State {
    fn from(found: Found) -> Self {
        match found {
            Found::Session(loaded) => State::Loaded(loaded),
            Found::Empty => State::New { opening: Opening::new(), session: NewSession::new() },
        }
    }
}

impl State {
    fn opening(&self) -> Opening {
        match self {
            State::Loaded(loaded) => loaded.opening,
            State::New { opening, .. } => *opening,
        }
    }

    fn position(&self) -> Result<Position, ReadError> {
        let (session_id, leaf) = match self {
            State::Loaded(loaded) => (loaded.header.id.as_str(), loaded.leaf.clone()),
            State::New { session, .. } => (session.id.as_str(), None),
        };
        Ok(Position { session_id: session_id.into(), opening: self.opening(), leaf })
    }

    /// The loaded session that `at` is of, and the entry that it stands on.
    fn at(&mut self, at: &Position) -> Result<Option<(&mut Loaded, u32)>, ReadError> {
        if at.opening != self.opening() {
            return Err(ReadError::SessionChanged);
        }
        let State::Loaded(loaded) = self else { return Ok(None) };
        let node = at.leaf.as_deref().and_then(|leaf| loaded.tree.find(leaf));
        Ok(node.map(|node| (&mut **loaded, node)))
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads on, and returns where that led.
    fn look(&self) -> Result<MutexGuard<'_, State>, ReadError> {
        Ok(self.look_into()?.0)
    }

    /// The same, with the file, where there is one.
    fn look_into(&self) -> Result<(MutexGuard<'_, State>, Option<File>), ReadError> {
        let mut state = self.state();
        match open_regular(&self.path, false) {
            Ok(file) => {
                self.read_on(&mut state, &file)?;
                Ok((state, Some(file)))
            }
            Err(OpenError::Missing(_)) if matches!(&*state, State::New { .. }) => Ok((state, None)),
            Err(error) => Err(unusable(error)),
        }
    }

    /// Takes what the file holds by now.
    fn read_on(&self, state: &mut State, file: &File) -> Result<(), ReadError> {
        let found = match state {
            State::Loaded(loaded) => match loaded.go_on(&self.path, file).map_err(unusable)? {
                GoneOn::Same => return Ok(()),
                GoneOn::Replaced => load_from(&self.path, file).map_err(unusable)?,
            },
            State::New { .. } => match load_from(&self.path, file).map_err(unusable)? {
                Found::Empty => return Ok(()),
                found => found,
            },
        };
        *state = found.into();
        Ok(())
    }

    fn latest(&self, at: &Position, custom_type: &str) -> Result<Option<Entry>, ReadError> {
        self.latest_in(&mut self.state(), None, at, custom_type)
    }

    fn position_and_latest(&self, at: &Position, custom_type: &str) -> Result<(Position, Option<Entry>), ReadError> {
        let (mut state, file) = self.look_into()?;
        let position = state.position()?;
        let entry = if position == *at { self.latest_in(&mut state, file.as_ref(), at, custom_type)? } else { None };
        Ok((position, entry))
    }

    /// `file`: what was just read on in; without it, the file is opened.
    fn latest_in(
        &self,
        state: &mut State,
        file: Option<&File>,
        at: &Position,
        custom_type: &str,
    ) -> Result<Option<Entry>, ReadError> {
        let Some((loaded, leaf)) = state.at(at)? else { return Ok(None) };
        match (loaded.tree.latest(leaf, custom_type).map_err(circle)?, file) {
            (Some(node), Some(file)) => self.entry(loaded, file, node, custom_type).map(Some),
            (Some(node), None) => self.entry(loaded, &self.open_for(loaded)?, node, custom_type).map(Some),
            (None, _) => Ok(None),
        }
    }

    fn entries(
        &self,
        at: &Position,
        custom_type: &str,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Entry>, ReadError> {
        let mut state = self.state();
        let not_found =
            |id: &str| ReadError::NotFound(format!("there is no entry {id} of the type {custom_type} on this branch"));
        let Some((loaded, leaf)) = state.at(at)? else {
            return before.map_or(Ok(Vec::new()), |id| Err(not_found(id)));
        };
        let mut next = loaded.tree.latest(leaf, custom_type).map_err(circle)?;
        // What comes before an entry of this type hangs above it, if it lies on this branch at all.
        if let Some(id) = before {
            let sought = loaded.tree.find(id).ok_or_else(|| not_found(id))?;
            loop {
                let node = next.ok_or_else(|| not_found(id))?;
                next = above(loaded, node, custom_type)?;
                if node == sought {
                    break;
                }
            }
        }
        let (mut page, mut bytes) = (Vec::new(), 0);
        let mut file = None;
        while let Some(node) = next {
            if page.len() >= limit.max(1) as usize || bytes >= PAGE_BYTES {
                break;
            }
            let file = match &mut file {
                Some(file) => file,
                none => none.insert(self.open_for(loaded)?),
            };
            let entry = self.entry(loaded, file, node, custom_type)?;
            bytes += entry.payload.bytes.len();
            page.push(entry);
            next = above(loaded, node, custom_type)?;
        }
        Ok(page)
    }

    /// Opens the file that was read, to read a line again.
    fn open_for(&self, loaded: &Loaded) -> Result<File, ReadError> {
        let file = open_regular(&self.path, false).map_err(unusable)?;
        let metadata = file.metadata().map_err(|e| unusable(OpenError::io(&self.path, e)))?;
        if loaded.is_of(&metadata) { Ok(file) } else { Err(self.moved()) }
    }

    /// Reads one entry from the line where it stood.
    fn entry(&self, loaded: &Loaded, file: &File, node: u32, custom_type: &str) -> Result<Entry, ReadError> {
        let (offset, length) = loaded.place(node);
        if length > MAX_ENTRY {
            return Err(ReadError::Other(format!(
                "an entry at byte {offset} of {} is {length} bytes long, more than {MAX_ENTRY}: branch before it, or start a new session",
                self.path.display()
            )));
        }
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.moved(),
            _ => unusable(OpenError::io(&self.path, error)),
        })?;
        let text = line::decode(&bytes);
        let Content::Object(line) = line::parse(&text) else { return Err(self.moved()) };
        let id = loaded.tree.id(node).unwrap_or_default().to_owned();
        let same = loaded.header.is_linear() || line.id().as_deref() == Some(&id);
        if !same || line.custom_type().as_deref() != Some(custom_type) {
            return Err(self.moved());
        }
        Ok(Entry { id, timestamp_ms: line.timestamp_ms(), payload: Payload::json(line.data()) })
    }

    /// The file was rewritten between two looks at it. The next operation finds out.
    fn moved(&self) -> ReadError {
        ReadError::Unavailable(format!("{} was written anew while it was read", self.path.display()))
    }

    fn branch(&self, entry: Option<&str>) -> Result<Position, ReadError> {
        let mut state = self.look()?;
        match (&mut *state, entry) {
            (State::Loaded(loaded), Some(id)) => {
                let node = loaded.tree.find(id).ok_or_else(|| self.no_entry(id))?;
                loaded.tree.check_branch(node).map_err(circle)?;
                loaded.leaf = Some(id.into());
            }
            (State::Loaded(loaded), None) => loaded.leaf = None,
            (State::New { .. }, Some(id)) => return Err(self.no_entry(id)),
            (State::New { .. }, None) => {}
        }
        state.position()
    }

    fn no_entry(&self, id: &str) -> ReadError {
        ReadError::NotFound(format!("there is no entry {id} in {}: name one of its entries", self.path.display()))
    }

    fn branch_ids(&self) -> Result<Vec<String>, ReadError> {
        let mut state = self.look()?;
        let at = state.position()?;
        let Some((loaded, leaf)) = state.at(&at)? else { return Ok(Vec::new()) };
        let branch = loaded.tree.branch(leaf).map_err(circle)?;
        Ok(branch.into_iter().filter_map(|node| loaded.tree.id(node)).map(str::to_owned).collect())
    }

    /// The steps of an append, as the project's design lists them.
    fn append(&self, at: &Position, custom_type: &str, data: &str) -> Result<Appended, AppendError> {
        let mut state = self.state();
        if at.opening != state.opening() {
            return Err(AppendError::SessionChanged);
        }
        // A file that we make is taken away again where nothing came to stand in it: under the lock, so that nobody else is
        // about to write to it.
        let (file, made) = self.open_to_append(&state)?;
        self.lock(&file)?;
        let result = self.append_to(&mut state, &file, made, at, custom_type, data);
        if made && !matches!(result, Ok(_) | Err(AppendError::Failed(_))) && file.size().is_ok_and(|size| size == 0) {
            // If this fails an empty file stays, which is a session without a plan as well.
            let _ = fs::remove_file(&self.path);
        }
        result
    }

    fn open_to_append(&self, state: &State) -> Result<(File, bool), AppendError> {
        match open_regular(&self.path, true) {
            Ok(file) => Ok((file, false)),
            Err(OpenError::Missing(_)) if matches!(state, State::New { .. }) => {
                let mut options = File::options();
                options.read(true).append(true);
                // The system makes no new file through a symbolic link, unless it may take one that is there.
                match fs::symlink_metadata(&self.path) {
                    Ok(link) if link.is_symlink() => options.create(true),
                    _ => options.create_new(true),
                };
                match options.open(&self.path) {
                    Ok(file) => Ok((file, true)),
                    Err(error) => Err(AppendError::Unavailable(format!(
                        "the session file {} cannot be made ({error})",
                        self.path.display()
                    ))),
                }
            }
            Err(OpenError::Io { error, .. }) => Err(AppendError::Unavailable(format!(
                "the session file {} cannot be written ({error})",
                self.path.display()
            ))),
            Err(error) => Err(unusable(error).into()),
        }
    }

    fn append_to(
        &self,
        state: &mut State,
        file: &File,
        made: bool,
        at: &Position,
        custom_type: &str,
        data: &str,
    ) -> Result<Appended, AppendError> {
        let unavailable = |what: &str, error: io::Error| {
            AppendError::Unavailable(format!("the session file {} {what} ({error})", self.path.display()))
        };
        let lease = Lease::take(file);
        // Another file may have been put in this one's place while we waited for the lock.
        let named = fs::metadata(&self.path).map_err(|e| unavailable("is gone", e))?;
        let opened = file.metadata().map_err(|e| unavailable("cannot be looked at", e))?;
        if file::Identity::of(&named) != file::Identity::of(&opened) {
            return Err(AppendError::SessionChanged);
        }
        self.read_on(state, file)?;
        let position = state.position()?;
        if position.opening != at.opening {
            return Err(AppendError::SessionChanged);
        }
        if position.leaf != at.leaf {
            return Err(AppendError::BranchChanged);
        }
        let size = file.size().map_err(|e| unavailable("cannot be looked at", e))?;
        let (mut bytes, id) = match &mut *state {
            State::New { session, .. } => (session.header_line().into_bytes(), new_id(|_| false)),
            State::Loaded(loaded) => {
                if let Some(reason) = loaded.header.why_read_only() {
                    return Err(AppendError::Other(reason));
                }
                if let Some(leaf) = at.leaf.as_deref().and_then(|leaf| loaded.tree.find(leaf)) {
                    loaded.tree.check_branch(leaf).map_err(circle)?;
                }
                let line_feed = loaded.line_feed_needed(size, file).map_err(|e| unavailable("cannot be read", e))?;
                let start = if line_feed { b"\n".to_vec() } else { Vec::new() };
                (start, new_id(|id| loaded.tree.is_named(id)))
            }
        };
        let now = Timestamp::now();
        let timestamp_ms = now.as_millisecond().try_into().unwrap_or_default();
        bytes.extend(entry_line(custom_type, data, &id, at.leaf.as_deref(), now));
        match write::write(file, lease.is_some(), size, &bytes) {
            Outcome::Kept => {}
            Outcome::Nothing(reason) => return Err(AppendError::Unavailable(reason)),
            Outcome::Unknown(reason) => return Err(AppendError::Failed(reason)),
        }
        // Written to a file that no longer has this name, it would be lost.
        let named = fs::metadata(&self.path).ok();
        let Some(named) = named.filter(|named| file::Identity::of(named) == file::Identity::of(&opened)) else {
            return Err(AppendError::Failed("the session file was replaced while it was written to".into()));
        };
        if made && let Err(error) = sync_folder(&self.path) {
            return Err(AppendError::Failed(format!(
                "the folder of the new session file could not be synced ({error})"
            )));
        }
        let alone = named.len() == size + bytes.len() as u64;
        self.take_own(state, file, &id, alone.then_some((size, bytes)))?;
        Ok(Appended { id, timestamp_ms, durability: Durability::Stored })
    }

    /// Takes the entry that was just written, as everything else is taken. The opening stays the same, also where there was
    /// nothing before it. What others wrote behind it moves the leaf, as ever.
    ///
    /// `written`: where nothing stands behind it, the length of the file before and the bytes, so that they need not be read.
    fn take_own(
        &self,
        state: &mut State,
        file: &File,
        id: &str,
        written: Option<(u64, Vec<u8>)>,
    ) -> Result<(), AppendError> {
        let failed = |reason: String| {
            AppendError::Failed(format!("the entry was written, but the file cannot be read on ({reason})"))
        };
        if let (State::Loaded(loaded), Some((size, bytes))) = (&mut *state, written)
            && loaded.take_written(&self.path, size, bytes).map_err(|error| failed(error.to_string()))?
        {
            return Ok(());
        }
        let first = match state {
            State::New { opening, .. } => Some(*opening),
            State::Loaded(_) => None,
        };
        if let Err(error) = self.read_on(state, file) {
            return Err(failed(error.to_string()));
        }
        match state {
            State::Loaded(loaded) if loaded.tree.find(id).is_some() => {
                loaded.opening = first.unwrap_or(loaded.opening);
                Ok(())
            }
            _ => Err(failed("the entry is not in it".into())),
        }
    }

    /// Locks the file against others of our kind. The lock goes with the open file.
    fn lock(&self, file: &File) -> Result<(), AppendError> {
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::WouldBlock) if started.elapsed() < LOCK_WAIT => {
                    std::thread::sleep(Duration::from_millis(2))
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(AppendError::Unavailable(format!(
                        "another process has held the lock on {} for {LOCK_WAIT:?}",
                        self.path.display()
                    )));
                }
                // A file system without locks: the check of the leaf and the read-back still tell.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => return Ok(()),
                Err(TryLockError::Error(error)) => {
                    return Err(AppendError::Unavailable(format!(
                        "{} cannot be locked ({error})",
                        self.path.display()
                    )));
                }
            }
        }
    }
}

/// The next entry of this type above `node`.
fn above(loaded: &mut Loaded, node: u32, custom_type: &str) -> Result<Option<u32>, ReadError> {
    match loaded.tree.parent(node) {
        Some(parent) => loaded.tree.latest(parent, custom_type).map_err(circle),
        None => Ok(None),
    }
}

fn circle(error: ParentCycle) -> ReadError {
    ReadError::Other(format!("{error}: start a new session, or branch at an entry outside the circle"))
}

fn unusable(error: OpenError) -> ReadError {
    match error {
        OpenError::Io { .. } | OpenError::Missing(_) => ReadError::Unavailable(error.to_string()),
        _ => ReadError::Other(error.to_string()),
    }
}

/// An entry's line, with its line feed. Keys in the order in which Pi writes them. `data` is JSON on one line.
fn entry_line(custom_type: &str, data: &str, id: &str, parent: Option<&str>, now: Timestamp) -> Vec<u8> {
    let json = |text: &str| serde_json::Value::from(text).to_string();
    format!(
        "{{\"type\":\"custom\",\"customType\":{},\"data\":{data},\"id\":{},\"parentId\":{},\"timestamp\":{}}}\n",
        json(custom_type),
        json(id),
        parent.map_or("null".into(), json),
        json(&iso(now)),
    )
    .into_bytes()
}

/// A new entry id as Pi makes it: eight characters of a random UUID, a whole one when a hundred were taken.
fn new_id(taken: impl Fn(&str) -> bool) -> String {
    let short = || Uuid::new_v4().to_string()[..8].to_owned();
    std::iter::repeat_with(short).take(100).find(|id| !taken(id)).unwrap_or_else(|| Uuid::new_v4().to_string())
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => path,
    }
}

/// Makes a new file's name last.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        match File::open(folder_of(&fs::canonicalize(path)?)) {
            Ok(folder) => folder.sync_all()?,
            // A folder that may be written to but not read: the name is as safe there as it can be.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
