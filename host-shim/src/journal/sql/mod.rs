//! Sessions in an SQL database: SQLite for a host without a journal of its own, PostgreSQL for sessions that many host
//! processes continue (feature `sql`).
//!
//! One code base and one schema serve both, in SQL that CockroachDB and YugabyteDB take too. Payloads of plugins are kept in
//! CBOR; entries of the harness keep their bytes.
//!
//! # What an append is
//!
//! One statement, which is a transaction of its own: it locks the session's row and inserts the entry, where the newest entry is
//! still the one that was last seen. (A transaction of several statements where a branch begins.) Where its answer is lost,
//! the row is locked on a new connection, and then the entry is there or it is not; its *fence* is raised, so that a statement
//! which the server has yet to read inserts nothing any more. Only where that cannot be found out, the append has failed with
//! unknown outcome.
//!
//! # What another opening is
//!
//! A session whose entries are not those any more that were seen: a server that took over without the newest ones, a restored
//! backup, an SQLite file that was moved or replaced.

mod address;
mod append;
mod database;
mod error;
mod query;
mod schema;
mod transfer;

pub use database::{Database, SessionSummary};
pub use error::SqlError;

use query::Found;

use super::{
    AppendError, Appended, CheckedPayload, Durability, Encoding, Entry, Journal, Opening, PAGE_BYTES, Payload,
    Position, ReadError, pi::raw,
};
use address::FileIdentity;
use sqlx::{AnyConnection, Row, any::AnyRow};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A session in a database. Clones are the same opening.
#[derive(Clone)]
pub struct SqlSession {
    inner: Arc<Inner>,
}

struct Inner {
    database: Database,
    name: String,
    session_id: Arc<str>,
    /// Appends of one opening wait for each other here.
    gate: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

/// Where an entry stands.
#[derive(Clone, Copy)]
struct Place {
    line: i64,
    place: i64,
    /// It is known that it is the last entry of its line.
    last: bool,
}

/// Where the session stood when it was last looked at.
#[derive(Clone)]
struct State {
    opening: Opening,
    leaf: Option<Arc<str>>,
    seen: Seen,
    /// Where the leaf stands, once that was found out.
    place: Option<Place>,
    /// Which server it was.
    server: Option<String>,
    /// Which file it was.
    file: Option<FileIdentity>,
    /// Raised by every change of this state.
    version: u64,
}

/// What was seen of a session in the database.
#[derive(Clone, PartialEq, Eq)]
struct Seen {
    /// How many entries it had.
    entries: i64,
    newest: Option<Arc<str>>,
    /// What a statement must know to insert anything.
    fence: i64,
}

impl Seen {
    /// The fence, where the session still has the entries that were seen `before`.
    fn stands_at(&self, before: &Seen) -> Option<i64> {
        (self.entries == before.entries && self.newest == before.newest).then_some(self.fence)
    }
}

impl SqlSession {
    async fn open(database: Database, name: &str, session_id: Arc<str>) -> Result<SqlSession, SqlError> {
        let state = State::load(&database, &session_id, name).await?;
        let inner = Inner {
            database,
            name: name.into(),
            session_id,
            gate: tokio::sync::Mutex::default(),
            state: Mutex::new(state),
        };
        Ok(SqlSession { inner: Arc::new(inner) })
    }

    /// The database that it is in.
    pub fn database(&self) -> &Database {
        &self.inner.database
    }

    /// The name that it was opened by.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The session's own id.
    pub fn session_id(&self) -> &str {
        &self.inner.session_id
    }

    /// Appends an entry of the harness's own below the leaf and moves the leaf to it. Its bytes are kept as they are; no plugin
    /// sees it.
    ///
    /// # Errors
    ///
    /// As [`Journal::append`]; [`AppendError::BranchChanged`] where the session does not stand at `at` any more.
    pub async fn push(&self, at: &Position, bytes: &[u8]) -> Result<Appended, AppendError> {
        self.append_entry(at, append::New::own(bytes)).await
    }

    /// Looks at the session, and at the newest entry of a custom type on the branch of its leaf, as far as one statement tells.
    async fn look(&self, custom_type: Option<&str>) -> Result<(Position, Found), ReadError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            match self.look_once(custom_type).await {
                // A connection that was open for long, to a server that was started again since. There are some of them.
                Err(SqlError::Lost(_)) if attempt <= LOST => {}
                looked => return Ok(looked?),
            }
        }
    }

    async fn look_once(&self, custom_type: Option<&str>) -> Result<(Position, Found), SqlError> {
        let before = self.inner.state().clone();
        let database = &self.inner.database;
        let (pool, on) = database.pool_and_file();
        let query = async {
            let mut connection = pool.acquire().await?;
            query::look(&mut connection, &self.inner.session_id, &before, custom_type).await
        };
        let (file, looked) = tokio::join!(database.file(), query);
        let file = file?;
        if file != before.file || file != on {
            return self.load().await;
        }
        let looked = looked?.ok_or_else(|| SqlError::NoSession(self.inner.name.clone()))?;
        let (other, stands) = {
            let mut state = self.inner.state();
            let untouched = state.version == before.version;
            let other = untouched && !looked.follows(&before.seen);
            // What was found belongs to the leaf from before.
            let stands = untouched && looked.seen.entries == before.seen.entries;
            if looked.seen != state.seen && !other && (untouched || looked.seen.entries > state.seen.entries) {
                let moved = looked.seen.entries != state.seen.entries;
                // Others appended, or an append of ours is about to say so.
                if moved {
                    state.leaf.clone_from(&looked.seen.newest);
                    state.place = None;
                }
                state.seen = looked.seen;
                state.version += 1;
            }
            (other, stands.then(|| self.inner.position(&state)))
        };
        if other {
            return self.load().await;
        }
        Ok(match stands {
            Some(position) => (position, looked.found),
            None => (self.inner.position(&self.inner.state()), Found::Unknown),
        })
    }

    /// Opens the session anew.
    async fn load(&self) -> Result<(Position, Found), SqlError> {
        let state = State::load(&self.inner.database, &self.inner.session_id, &self.inner.name).await?;
        let mut held = self.inner.state();
        let version = held.version + 1;
        *held = State { version, ..state };
        Ok((self.inner.position(&held), Found::Unknown))
    }

    async fn connection(&self) -> Result<sqlx::pool::PoolConnection<sqlx::Any>, ReadError> {
        self.inner.database.pool().acquire().await.map_err(unavailable)
    }

    fn check_opening(&self, at: &Position) -> Result<(), ReadError> {
        if at.opening == self.inner.state().opening { Ok(()) } else { Err(ReadError::SessionChanged) }
    }
}

impl State {
    async fn load(database: &Database, session_id: &str, name: &str) -> Result<State, SqlError> {
        let file = database.file().await?;
        let mut connection = database.pool().acquire().await?;
        let seen = query::seen(&mut connection, session_id).await?;
        let (seen, leaf) = seen.ok_or_else(|| SqlError::NoSession(name.into()))?;
        let server = Database::identity(&mut connection).await;
        Ok(State { opening: Opening::new(), leaf, seen, place: None, server, file, version: 0 })
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn position(&self, state: &State) -> Position {
        Position { session_id: Arc::clone(&self.session_id), opening: state.opening, leaf: state.leaf.clone() }
    }
}

fn unavailable(error: sqlx::Error) -> ReadError {
    ReadError::Unavailable(format!("the database did not answer ({error})"))
}

/// The number of entries in a row that holds the newest one's `ordinal`.
fn count(row: &AnyRow) -> Result<i64, sqlx::Error> {
    Ok(row.try_get::<Option<i64>, _>("ordinal")?.map_or(0, |ordinal| ordinal + 1))
}

/// How many connections may be found lost before that is an error: all that the pool can hold, and a fresh one.
const LOST: usize = 9;

/// How payloads are marked in the table.
mod encoding {
    pub(super) const JSON: i64 = 0;
    pub(super) const CBOR: i64 = 1;
    /// Bytes of the harness, of which nothing is known here.
    pub(super) const OWN: i64 = 2;
    /// The bytes of an entry in a session file of Pi.
    pub(super) const PI: i64 = 3;
}

/// An entry out of a row with `id`, `timestamp_ms`, `encoding` and `payload`.
fn entry(row: &AnyRow) -> Result<Entry, ReadError> {
    let read = || -> Result<(Entry, i64), sqlx::Error> {
        let encoding = row.try_get("encoding")?;
        let bytes = row.try_get("payload")?;
        let timestamp_ms = row.try_get::<Option<i64>, _>("timestamp_ms")?.and_then(|time| time.try_into().ok());
        let payload = Payload { encoding: Encoding::Json, bytes };
        Ok((Entry { id: row.try_get("id")?, timestamp_ms, payload }, encoding))
    };
    let (mut entry, encoding) = read().map_err(unavailable)?;
    entry.payload.encoding = match encoding {
        encoding::JSON => Encoding::Json,
        encoding::CBOR => Encoding::Cbor,
        encoding::PI => {
            let data = raw::data(&entry.payload.bytes);
            entry.payload = data.ok_or_else(|| ReadError::Other(format!("the entry {} holds no data", entry.id)))?;
            Encoding::Json
        }
        _ => return Err(ReadError::Other(format!("the entry {} is in an unknown encoding", entry.id))),
    };
    Ok(entry)
}

/// Where an entry stands: its line, and its place on it.
const PLACE: &str = "SELECT line, place FROM plan_execute_entries WHERE session_id = $1 AND id = $2";

/// Entries of a type on a line, from a place on towards the root.
const ON_LINE: &str = "SELECT id, timestamp_ms, encoding, payload, place FROM plan_execute_entries
    WHERE session_id = $1 AND line = $2 AND custom_type = $3 AND place <= $4
    ORDER BY place DESC LIMIT $5";

/// What a line inherits for a type.
const INHERITED: &str =
    "SELECT entry FROM plan_execute_inherited WHERE session_id = $1 AND line = $2 AND custom_type = $3";

/// The most entries that one statement of a page asks for: their payloads are in memory at once.
const PAGE_STEP: usize = 8;

impl SqlSession {
    /// Where an entry stands. What was found out for the leaf is kept.
    async fn place(&self, connection: &mut AnyConnection, id: &str) -> Result<Option<Place>, ReadError> {
        {
            let state = self.inner.state();
            if state.leaf.as_deref() == Some(id) && state.place.is_some() {
                return Ok(state.place);
            }
        }
        let query = sqlx::query(PLACE).bind(self.inner.session_id.to_string()).bind(id.to_owned());
        let Some(row) = query.fetch_optional(connection).await.map_err(unavailable)? else { return Ok(None) };
        let column = |name| row.try_get(name).map_err(unavailable);
        let place = Place { line: column("line")?, place: column("place")?, last: false };
        let mut state = self.inner.state();
        if state.leaf.as_deref() == Some(id) {
            state.place.get_or_insert(place);
        }
        Ok(Some(place))
    }

    /// Where the search on the branch of a leaf begins.
    async fn leaf_place(&self, connection: &mut AnyConnection, leaf: Option<&str>) -> Result<Option<Place>, ReadError> {
        let Some(leaf) = leaf else { return Ok(None) };
        // An entry that is not there is no branch without a plan.
        let lost = || ReadError::Other(format!("the entry {leaf} is not in the session any more: open it again"));
        self.place(connection, leaf).await?.ok_or_else(lost).map(Some)
    }

    async fn latest_in(
        &self,
        connection: &mut AnyConnection,
        leaf: Option<&str>,
        custom_type: &str,
    ) -> Result<Option<Entry>, ReadError> {
        let mut from = self.leaf_place(connection, leaf).await?;
        while let Some(place) = from {
            if let Some((entry, _)) = self.on_line(connection, place, custom_type, 1).await?.pop() {
                return Ok(Some(entry));
            }
            // A line inherits the entry itself, so this goes on at most once.
            from = self.inherited(connection, place.line, custom_type).await?;
        }
        Ok(None)
    }

    /// Up to `limit` entries of the type from a place on, with the places where they stand.
    async fn on_line(
        &self,
        connection: &mut AnyConnection,
        from: Place,
        custom_type: &str,
        limit: usize,
    ) -> Result<Vec<(Entry, i64)>, ReadError> {
        let query = sqlx::query(ON_LINE).bind(self.inner.session_id.to_string()).bind(from.line);
        let query = query.bind(custom_type.to_owned()).bind(from.place).bind(limit as i64);
        let rows = query.fetch_all(connection).await.map_err(unavailable)?;
        rows.iter().map(|row| Ok((entry(row)?, row.try_get("place").map_err(unavailable)?))).collect()
    }

    /// Where the entry stands that a line inherits for a type.
    async fn inherited(
        &self,
        connection: &mut AnyConnection,
        line: i64,
        custom_type: &str,
    ) -> Result<Option<Place>, ReadError> {
        let query = sqlx::query(INHERITED).bind(self.inner.session_id.to_string()).bind(line);
        let row = query.bind(custom_type.to_owned()).fetch_optional(&mut *connection).await.map_err(unavailable)?;
        match row {
            Some(row) => self.place(connection, &row.try_get::<String, _>("entry").map_err(unavailable)?).await,
            None => Ok(None),
        }
    }

    /// Where the search goes on above an entry of this type on the branch of `leaf`.
    async fn above(
        &self,
        connection: &mut AnyConnection,
        leaf: Option<&str>,
        id: &str,
        custom_type: &str,
    ) -> Result<Option<Place>, ReadError> {
        let not_found =
            || ReadError::NotFound(format!("there is no entry {id} of the type {custom_type} on this branch"));
        let sought = self.place(connection, id).await?.ok_or_else(not_found)?;
        let mut from = self.leaf_place(connection, leaf).await?;
        // From line to line, until the one that it stands on.
        while let Some(place) = from {
            if place.line == sought.line && sought.place <= place.place {
                let found = self.on_line(connection, sought, custom_type, 1).await?;
                // One of another type stands there where this is not the same.
                found.first().filter(|(entry, _)| entry.id == id).ok_or_else(not_found)?;
                return self.next_place(connection, sought, custom_type).await;
            }
            from = self.inherited(connection, place.line, custom_type).await?;
        }
        Err(not_found())
    }

    /// Where the search goes on above a place.
    async fn next_place(
        &self,
        connection: &mut AnyConnection,
        place: Place,
        custom_type: &str,
    ) -> Result<Option<Place>, ReadError> {
        match place.place {
            0 => self.inherited(connection, place.line, custom_type).await,
            above => Ok(Some(Place { place: above - 1, last: false, ..place })),
        }
    }
}

#[async_trait::async_trait]
impl Journal for SqlSession {
    fn durability(&self) -> Durability {
        Durability::Stored
    }

    fn preferred_encoding(&self) -> Encoding {
        Encoding::Cbor
    }

    async fn position(&self) -> Result<Position, ReadError> {
        Ok(self.look(None).await?.0)
    }

    async fn latest(&self, at: &Position, custom_type: &str) -> Result<Option<Entry>, ReadError> {
        self.check_opening(at)?;
        let mut connection = self.connection().await?;
        self.latest_in(&mut connection, at.leaf.as_deref(), custom_type).await
    }

    async fn position_and_latest(
        &self,
        at: &Position,
        custom_type: &str,
    ) -> Result<(Position, Option<Entry>), ReadError> {
        let (position, found) = self.look(Some(custom_type)).await?;
        if position != *at {
            return Ok((position, None));
        }
        let entry = match found {
            Found::Entry(entry) => Some(entry?),
            Found::Unknown => self.latest_in(&mut *self.connection().await?, at.leaf.as_deref(), custom_type).await?,
        };
        Ok((position, entry))
    }

    async fn entries(
        &self,
        at: &Position,
        custom_type: &str,
        before: Option<&str>,
        limit: u32,
    ) -> Result<Vec<Entry>, ReadError> {
        self.check_opening(at)?;
        let mut connection = self.connection().await?;
        let mut from = match (before, at.leaf.as_deref()) {
            (Some(id), leaf) => self.above(&mut connection, leaf, id, custom_type).await?,
            (None, leaf) => self.leaf_place(&mut connection, leaf).await?,
        };
        let limit = limit.max(1) as usize;
        let (mut page, mut bytes) = (Vec::<Entry>::new(), 0);
        while let Some(place) = from {
            let step = PAGE_STEP.min(limit - page.len());
            let found = self.on_line(&mut connection, place, custom_type, step).await?;
            let last = found.last().map(|(_, at)| Place { place: *at, ..place });
            for (entry, _) in found {
                bytes += entry.payload.bytes.len();
                page.push(entry);
                if page.len() == limit || bytes >= PAGE_BYTES {
                    return Ok(page);
                }
            }
            from = match last {
                Some(last) => self.next_place(&mut connection, last, custom_type).await?,
                None => self.inherited(&mut connection, place.line, custom_type).await?,
            };
        }
        Ok(page)
    }

    async fn append(
        &self,
        at: &Position,
        custom_type: &str,
        payload: &CheckedPayload,
    ) -> Result<Appended, AppendError> {
        self.append_entry(at, append::New::custom(custom_type, payload)).await
    }

    async fn branch(&self, entry: Option<&str>) -> Result<Position, ReadError> {
        self.look(None).await?;
        if let Some(id) = entry {
            let mut connection = self.connection().await?;
            let query = sqlx::query("SELECT 1 AS found FROM plan_execute_entries WHERE session_id = $1 AND id = $2");
            let query = query.bind(self.inner.session_id.to_string()).bind(id.to_owned());
            let found = query.fetch_optional(&mut *connection).await.map_err(unavailable)?;
            found.ok_or_else(|| ReadError::from(SqlError::NoEntry(id.into())))?;
        }
        let mut state = self.inner.state();
        *state = State { leaf: entry.map(Into::into), place: None, version: state.version + 1, ..state.clone() };
        Ok(self.inner.position(&state))
    }

    async fn reopen(&self) -> Result<Position, ReadError> {
        // A write that still goes on ends first.
        let _writing = self.inner.gate.lock().await;
        let mut connection = self.connection().await?;
        if connection.backend_name() != "SQLite" {
            // A statement that was given up, and that the server has yet to carry out, inserts nothing any more.
            let fence = sqlx::query("UPDATE plan_execute_sessions SET fence = fence + 1 WHERE id = $1");
            let raised = fence.bind(self.inner.session_id.to_string()).execute(&mut *connection).await;
            raised.map_err(unavailable)?;
        }
        drop(connection);
        Ok(self.load().await?.0)
    }
}
