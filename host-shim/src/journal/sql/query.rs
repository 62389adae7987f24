//! The one look at a session that most calls need.

use super::{Place, Seen, State, entry};
use crate::journal::{Entry, ReadError};
use sqlx::{AnyConnection, Row, any::AnyRow};
use std::sync::Arc;

/// The session's row beside its newest entry, and beside the entry that was the newest one before. Each part names the session by
/// its parameter and orders an index, so that no database walks entries to find the last one, whatever it knows of the table.
macro_rules! look {
    ($columns:literal, $join:literal) => {
        concat!(
            "SELECT s.fence, s.imported, s.imported_leaf, e.ordinal, e.id AS newest, k.id AS known",
            $columns,
            " FROM plan_execute_sessions s
             LEFT JOIN plan_execute_entries e ON e.session_id = $1 AND e.ordinal =
                 (SELECT m.ordinal FROM plan_execute_entries m WHERE m.session_id = $1 ORDER BY m.ordinal DESC LIMIT 1)
             LEFT JOIN plan_execute_entries k ON k.session_id = $1 AND k.ordinal = $2 ",
            $join,
            " WHERE s.id = $1"
        )
    };
}

const LOOK: &str = look!("", "");

/// The same, beside the newest entry of a type on a line, up to a place.
const LOOK_LATEST: &str = look!(
    ", t.id, t.timestamp_ms, t.encoding, t.payload",
    "LEFT JOIN plan_execute_entries t ON t.session_id = $1 AND t.line = $3 AND t.custom_type = $4 AND t.place =
         (SELECT n.place FROM plan_execute_entries n
          WHERE n.session_id = $1 AND n.line = $3 AND n.custom_type = $4 AND n.place <= $5
          ORDER BY n.place DESC LIMIT 1)"
);

/// What a look found.
pub(super) struct Looked {
    pub(super) seen: Seen,
    /// The entry that stands where the newest one stood before.
    known: Option<String>,
    pub(super) found: Found,
}

/// The newest entry of the type that was asked for.
pub(super) enum Found {
    Entry(Result<Entry, ReadError>),
    /// There is none, or it stands on another line.
    Unknown,
}

impl Looked {
    /// Do these entries go on from those that were seen before?
    pub(super) fn follows(&self, before: &Seen) -> bool {
        self.known.as_deref() == before.newest.as_deref()
    }
}

/// Looks at a session; `None` where it is not there.
pub(super) async fn look(
    connection: &mut AnyConnection,
    session_id: &str,
    before: &State,
    custom_type: Option<&str>,
) -> Result<Option<Looked>, sqlx::Error> {
    let last = before.seen.entries - 1;
    let row = match (custom_type, before.place) {
        (Some(custom_type), Some(Place { line, place, .. })) => {
            let query = sqlx::query(LOOK_LATEST).bind(session_id.to_owned()).bind(last);
            let query = query.bind(line).bind(custom_type.to_owned()).bind(place);
            query.fetch_optional(connection).await?.map(|row| {
                let found =
                    row.try_get::<Option<String>, _>("id")?.map_or(Found::Unknown, |_| Found::Entry(entry(&row)));
                Ok::<_, sqlx::Error>((row, found))
            })
        }
        _ => {
            let query = sqlx::query(LOOK).bind(session_id.to_owned()).bind(last);
            query.fetch_optional(connection).await?.map(|row| Ok((row, Found::Unknown)))
        }
    };
    let Some((row, found)) = row.transpose()? else { return Ok(None) };
    Ok(Some(Looked { seen: read(&row)?, known: row.try_get("known")?, found }))
}

/// What there is to see of a session, and where somebody stands who opens it; `None` where it is not there.
pub(super) async fn seen(
    connection: &mut AnyConnection,
    session_id: &str,
) -> Result<Option<(Seen, Option<Arc<str>>)>, sqlx::Error> {
    let query = sqlx::query(LOOK).bind(session_id.to_owned()).bind(-1_i64);
    let Some(row) = query.fetch_optional(connection).await? else { return Ok(None) };
    let seen = read(&row)?;
    let leaf = match row.try_get::<i64, _>("imported")? == seen.entries {
        true => row.try_get::<Option<String>, _>("imported_leaf")?.map(Arc::from),
        false => seen.newest.clone(),
    };
    Ok(Some((seen, leaf)))
}

fn read(row: &AnyRow) -> Result<Seen, sqlx::Error> {
    let newest = row.try_get::<Option<String>, _>("newest")?.map(Arc::from);
    Ok(Seen { entries: super::count(row)?, newest, fence: row.try_get("fence")? })
}
