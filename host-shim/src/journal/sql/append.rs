//! An append: one transaction, and what is known when its end was not heard.

use super::{
    Database, Place, Seen, SqlSession, State, encoding,
    error::{SqlError, lost},
    query,
};
use crate::journal::{AppendError, Appended, CheckedPayload, Durability, Encoding, Position, ReadError, now_ms};
use sqlx::{AnyConnection, Connection, Row};
use std::{sync::Arc, time::Duration};
use uuid::Uuid;

/// How often a transaction that collided with others is tried again.
const ATTEMPTS: usize = 10;
/// How long finding out what became of an entry may take.
const SETTLE: Duration = Duration::from_secs(4);

/// Inserts an entry where the newest one is still the one that was seen and nobody has raised the fence.
macro_rules! insert {
    ($lock:literal) => {
        concat!(
            "INSERT INTO plan_execute_entries
             (session_id, id, ordinal, parent, line, place, custom_type, timestamp_ms, encoding, payload)
             SELECT s.id, $2, $3, $4, $5, $6, $7, $8, $9, $10 FROM plan_execute_sessions s
             WHERE s.id = $1 AND s.fence = $11 AND ($3 = 0 OR EXISTS (SELECT 1 FROM plan_execute_entries k
                 WHERE k.session_id = $1 AND k.ordinal = $3 - 1 AND k.id = $12))",
            $lock
        )
    };
}

/// SQLite has one writer at a time.
const INSERT: &str = insert!("");
/// Elsewhere the session's row is locked.
const INSERT_AND_LOCK: &str = insert!(" FOR UPDATE OF s");

/// Why a transaction did not end well.
enum Fault {
    /// Nothing was written, for certain.
    Refused(AppendError),
    /// It collided with another one and may be tried again.
    Collided(sqlx::Error),
    /// The session is not where it was last seen, or behind another fence.
    Elsewhere,
    /// The answer to the statement that commits was lost.
    Unknown(sqlx::Error),
}

impl SqlSession {
    pub(super) async fn append_entry(&self, at: &Position, new: New<'_>) -> Result<Appended, AppendError> {
        let _writing = self.inner.gate.lock().await;
        let state = self.inner.state().clone();
        if at.opening != state.opening {
            return Err(AppendError::SessionChanged);
        }
        if at.leaf != state.leaf {
            return Err(AppendError::BranchChanged);
        }
        let (mut attempt, mut fence) = (0, state.seen.fence);
        let place = loop {
            attempt += 1;
            let (file, inserted) = tokio::join!(self.inner.database.file(), self.insert(&state, fence, &new));
            match inserted {
                Ok(_) if file.as_ref().ok() != Some(&state.file) => {
                    return Err(AppendError::Failed("the file of the database was moved or replaced meanwhile".into()));
                }
                Ok(place) => break Some(place),
                Err(Fault::Refused(error)) => return Err(error),
                Err(Fault::Collided(error)) => {
                    if attempt == ATTEMPTS {
                        let reason = format!("the database was busy with other transactions ({error})");
                        return Err(AppendError::Unavailable(reason));
                    }
                    tokio::time::sleep(Duration::from_millis(1 << attempt.min(6))).await;
                    // Most often it collided with an append that has moved the session.
                    if let Ok(there) = self.there().await {
                        fence = there.stands_at(&state.seen).ok_or(AppendError::BranchChanged)?;
                    }
                }
                Err(Fault::Elsewhere) => {
                    let there = self.there().await.map_err(ReadError::from)?;
                    let raised = there.stands_at(&state.seen).filter(|there| *there != fence && attempt < ATTEMPTS);
                    // Whoever raised the fence gave up a statement of its own; the session stands where it stood.
                    fence = raised.ok_or(AppendError::BranchChanged)?;
                }
                Err(Fault::Unknown(error)) => {
                    self.settle(&state, &new.id, error).await?;
                    break None;
                }
            }
        };
        let mut held = self.inner.state();
        // Others may have been seen meanwhile; then the leaf has moved on already.
        if held.opening == state.opening && held.seen.entries <= state.seen.entries + 1 {
            let newest: Option<Arc<str>> = Some(new.id.as_str().into());
            let seen = Seen { entries: state.seen.entries + 1, newest: newest.clone(), fence };
            let version = held.version + 1;
            *held = State { leaf: newest, seen, place, version, ..state };
        }
        Ok(Appended { id: new.id, timestamp_ms: new.timestamp_ms, durability: Durability::Stored })
    }

    /// What there is to see of the session now.
    async fn there(&self) -> Result<Seen, SqlError> {
        let mut connection = self.inner.database.pool().acquire().await?;
        let seen = query::seen(&mut connection, &self.inner.session_id).await?;
        Ok(seen.ok_or_else(|| SqlError::NoSession(self.inner.name.clone()))?.0)
    }

    /// Inserts the entry, and returns where it stands.
    async fn insert(&self, state: &State, fence: i64, new: &New<'_>) -> Result<Place, Fault> {
        let mut connection = self.inner.database.pool().acquire().await.map_err(before_commit)?;
        if let Some(Place { line, place, last: true }) = state.place {
            let place = Place { line, place: place + 1, last: true };
            // The statement is the whole transaction.
            self.insert_at(&mut connection, state, fence, new, place).await.map_err(|error| match error {
                Some(error) => at_commit(error),
                None => Fault::Elsewhere,
            })?;
            return Ok(place);
        }
        let mut transaction = connection.begin().await.map_err(before_commit)?;
        let lock = sqlx::query("UPDATE plan_execute_sessions SET lines = lines WHERE id = $1 AND fence = $2");
        let lock = lock.bind(self.inner.session_id.to_string()).bind(fence);
        // The row is ours from here on.
        if lock.execute(&mut *transaction).await.map_err(before_commit)?.rows_affected() == 0 {
            return Err(Fault::Elsewhere);
        }
        let place = find_place(&mut transaction, &self.inner.session_id, state.leaf.as_deref()).await;
        let (line, place) = place.map_err(before_commit)?.ok_or(Fault::Elsewhere)?;
        let place = Place { line, place, last: true };
        self.insert_at(&mut transaction, state, fence, new, place).await.map_err(|error| match error {
            Some(error) => before_commit(error),
            None => Fault::Elsewhere,
        })?;
        transaction.commit().await.map_err(at_commit)?;
        Ok(place)
    }

    /// Inserts the entry at a place, where the newest entry is still the one that was seen; `None` where it is not.
    async fn insert_at(
        &self,
        connection: &mut AnyConnection,
        state: &State,
        fence: i64,
        new: &New<'_>,
        Place { line, place, .. }: Place,
    ) -> Result<(), Option<sqlx::Error>> {
        let sqlite = connection.backend_name() == "SQLite";
        let insert = sqlx::query(if sqlite { INSERT } else { INSERT_AND_LOCK });
        let insert = insert
            .bind(self.inner.session_id.to_string())
            .bind(new.id.clone())
            .bind(state.seen.entries)
            .bind(state.leaf.as_deref().map(str::to_owned))
            .bind(line)
            .bind(place)
            .bind(new.custom_type.map(str::to_owned))
            .bind(i64::try_from(new.timestamp_ms).unwrap_or(i64::MAX))
            .bind(new.encoding)
            .bind(new.bytes.to_vec())
            .bind(fence)
            .bind(state.seen.newest.as_deref().unwrap_or_default().to_owned());
        match insert.execute(connection).await {
            Ok(inserted) if inserted.rows_affected() == 1 => Ok(()),
            Ok(_) => Err(None),
            // Someone else has taken the number.
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Err(None),
            Err(error) => Err(Some(error)),
        }
    }

    /// Finds out what became of an entry whose COMMIT was not answered.
    async fn settle(&self, state: &State, id: &str, error: sqlx::Error) -> Result<(), AppendError> {
        let unknown =
            |why: &str| AppendError::Failed(format!("the answer to the commit was lost ({error}), and {why}"));
        let look = async {
            let mut connection = self.inner.database.connect().await?;
            if connection.backend_name() == "SQLite" {
                // Its file was being written by this very process.
                return Ok(None);
            }
            // A server that does not tell who it is may be another one.
            if state.server.is_none() || Database::identity(&mut connection).await != state.server {
                return Ok(None);
            }
            // Whoever holds the row has ended before this is answered, and whoever comes for it later is kept out. The look is a
            // transaction of its own: at a stricter isolation than the usual one it would not see what was waited for.
            let lock = sqlx::query("UPDATE plan_execute_sessions SET fence = fence + 1 WHERE id = $1");
            lock.bind(self.inner.session_id.to_string()).execute(&mut connection).await?;
            let find = sqlx::query("SELECT 1 AS found FROM plan_execute_entries WHERE session_id = $1 AND id = $2");
            let find = find.bind(self.inner.session_id.to_string()).bind(id.to_owned());
            Ok::<_, SqlError>(Some(find.fetch_optional(&mut connection).await?.is_some()))
        };
        match tokio::time::timeout(SETTLE, look).await {
            Ok(Ok(Some(true))) => Ok(()),
            Ok(Ok(Some(false))) => Err(AppendError::Unavailable(format!(
                "the connection to the database was lost before the entry was committed ({error})"
            ))),
            Ok(Ok(None)) => Err(unknown("the database cannot tell what became of it")),
            Ok(Err(later)) => Err(unknown(&format!("{later}"))),
            Err(_) => Err(unknown(&format!("the session was not free within {SETTLE:?}"))),
        }
    }
}

/// An entry that is about to be written.
pub(super) struct New<'a> {
    id: String,
    timestamp_ms: u64,
    custom_type: Option<&'a str>,
    encoding: i64,
    bytes: &'a [u8],
}

impl<'a> New<'a> {
    /// One of a plugin.
    pub(super) fn custom(custom_type: &'a str, payload: &'a CheckedPayload) -> New<'a> {
        let payload = payload.as_payload();
        let encoding = match payload.encoding {
            Encoding::Json => encoding::JSON,
            Encoding::Cbor => encoding::CBOR,
        };
        New { custom_type: Some(custom_type), encoding, ..New::own(&payload.bytes) }
    }

    /// One of the harness.
    pub(super) fn own(bytes: &'a [u8]) -> New<'a> {
        let id = Uuid::now_v7().to_string();
        New { id, timestamp_ms: now_ms(), custom_type: None, encoding: encoding::OWN, bytes }
    }
}

/// Where an entry below `leaf` stands: behind it, or on a new line. `None` where there is no such leaf.
async fn find_place(
    transaction: &mut AnyConnection,
    session_id: &str,
    leaf: Option<&str>,
) -> Result<Option<(i64, i64)>, sqlx::Error> {
    let mut branching = None;
    if let Some(leaf) = leaf {
        let query = sqlx::query(
            "SELECT l.line, l.place, (SELECT MAX(e.place) FROM plan_execute_entries e
                 WHERE e.session_id = l.session_id AND e.line = l.line) AS last
             FROM plan_execute_entries l WHERE l.session_id = $1 AND l.id = $2",
        );
        let row = query.bind(session_id.to_owned()).bind(leaf.to_owned()).fetch_optional(&mut *transaction).await?;
        let Some(row) = row else { return Ok(None) };
        let (line, place, last): (i64, i64, i64) = (row.try_get("line")?, row.try_get("place")?, row.try_get("last")?);
        if place == last {
            return Ok(Some((line, place + 1)));
        }
        branching = Some((line, place));
    }
    let query = sqlx::query("UPDATE plan_execute_sessions SET lines = lines + 1 WHERE id = $1 RETURNING lines");
    let new: i64 = query.bind(session_id.to_owned()).fetch_one(&mut *transaction).await?.try_get("lines")?;
    if let Some((line, place)) = branching {
        let own = sqlx::query(
            "INSERT INTO plan_execute_inherited (session_id, line, custom_type, entry)
             SELECT e.session_id, $2, e.custom_type, e.id FROM plan_execute_entries e
             WHERE e.session_id = $1 AND e.line = $3 AND e.place <= $4 AND e.custom_type IS NOT NULL
                 AND e.place = (SELECT MAX(n.place) FROM plan_execute_entries n WHERE n.session_id = e.session_id
                     AND n.line = e.line AND n.custom_type = e.custom_type AND n.place <= $4)",
        );
        own.bind(session_id.to_owned()).bind(new).bind(line).bind(place).execute(&mut *transaction).await?;
        let further = sqlx::query(
            "INSERT INTO plan_execute_inherited (session_id, line, custom_type, entry)
             SELECT i.session_id, $2, i.custom_type, i.entry FROM plan_execute_inherited i
             WHERE i.session_id = $1 AND i.line = $3 AND NOT EXISTS (SELECT 1 FROM plan_execute_inherited n
                 WHERE n.session_id = i.session_id AND n.line = $2 AND n.custom_type = i.custom_type)",
        );
        further.bind(session_id.to_owned()).bind(new).bind(line).execute(&mut *transaction).await?;
    }
    Ok(Some((new, 0)))
}

/// An error before COMMIT was sent: whatever it was, the transaction is not committed.
fn before_commit(error: sqlx::Error) -> Fault {
    if collided(&error) {
        return Fault::Collided(error);
    }
    Fault::Refused(AppendError::Unavailable(format!("the database did not take the entry ({error})")))
}

fn at_commit(error: sqlx::Error) -> Fault {
    if collided(&error) {
        return Fault::Collided(error);
    }
    if lost(&error) {
        return Fault::Unknown(error);
    }
    let sqlx::Error::Database(database) = &error else { return Fault::Unknown(error) };
    match database.code().as_deref() {
        // SQLite has no room: what it wrote of the transaction does not count.
        Some("13") => {
            Fault::Refused(AppendError::Unavailable(format!("the database has no room for the entry ({error})")))
        }
        // SQLite did not begin: others write, or nobody may.
        Some("5" | "8" | "14" | "261" | "517" | "1032") => before_commit(error),
        // PostgreSQL refused the statement: integrity, permissions, resources, a read-only server.
        Some(code)
            if code.len() == 5 && ["22", "23", "25", "42", "53", "55"].iter().any(|class| code.starts_with(class)) =>
        {
            before_commit(error)
        }
        _ => Fault::Unknown(error),
    }
}

/// A serialisation failure or a deadlock: the database asks to try again. It has taken the transaction back.
fn collided(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else { return false };
    matches!(error.code().as_deref(), Some("40001" | "40P01"))
}
