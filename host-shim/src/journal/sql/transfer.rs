//! Moves sessions between files of Pi and a database. Ids, order, branches and bytes stay what they are.

use super::{Database, SqlError, SqlSession, encoding};
use crate::journal::{
    now_ms,
    pi::raw::{self, RawEntry, RawSession},
};
use sqlx::{AssertSqlSafe, Row};
use std::{collections::HashMap, fmt::Write as _, fs::File, io::Write as _, path::Path};

/// How many entries one statement inserts. SQLite takes 32,766 parameters in one.
const BATCH: usize = 200;
/// The columns of an entry.
const COLUMNS: usize = 10;

/// A line that is being put together.
#[derive(Default)]
struct Line {
    length: i64,
    /// For each custom type the places of its entries, in order, with their numbers.
    types: HashMap<String, Vec<(i64, usize)>>,
    /// What it inherits for each type: the number of an entry.
    inherited: HashMap<String, usize>,
}

impl Line {
    /// The newest entry of each type, up to a place.
    fn newest(&self, place: i64) -> HashMap<String, usize> {
        let mut newest = self.inherited.clone();
        for (custom_type, entries) in &self.types {
            let before = entries.partition_point(|(at, _)| *at <= place);
            if let Some((_, number)) = before.checked_sub(1).map(|last| entries[last]) {
                newest.insert(custom_type.clone(), number);
            }
        }
        newest
    }
}

/// The numbers of the entries, each behind its parent, wherever in the file they stand.
fn parents_first(entries: &[RawEntry]) -> Vec<usize> {
    let (mut order, mut placed) = (Vec::with_capacity(entries.len()), vec![false; entries.len()]);
    for number in 0..entries.len() {
        // No parents run in a circle, so this ends.
        let mut path = Vec::new();
        let mut next = Some(number);
        while let Some(number) = next.filter(|&number| !placed[number]) {
            placed[number] = true;
            path.push(number);
            next = entries[number].parent_number;
        }
        order.extend(path.into_iter().rev());
    }
    order
}

/// The lines of some entries, and the line and place of each. Lines count from 1.
fn lay_out(entries: &[RawEntry]) -> (Vec<Line>, Vec<(i64, i64)>) {
    let (mut lines, mut places) = (Vec::<Line>::new(), vec![(0, 0); entries.len()]);
    for number in parents_first(entries) {
        let entry = &entries[number];
        let above = entry.parent_number.map(|parent| places[parent]);
        let line = match above {
            Some((line, place)) if lines[line as usize - 1].length == place + 1 => line as usize - 1,
            _ => {
                let inherited = above.map(|(line, place)| lines[line as usize - 1].newest(place)).unwrap_or_default();
                lines.push(Line { inherited, ..Line::default() });
                lines.len() - 1
            }
        };
        let place = lines[line].length;
        lines[line].length += 1;
        if let Some(custom_type) = &entry.custom_type {
            lines[line].types.entry(custom_type.clone()).or_default().push((place, number));
        }
        places[number] = (line as i64 + 1, place);
    }
    (lines, places)
}

impl Database {
    /// Makes a session out of a session file of Pi. Its entries keep their ids, their order, their branches and their bytes.
    ///
    /// # Errors
    ///
    /// [`SqlError::File`]: the file cannot be taken over, and why. [`SqlError::NameTaken`] where the database has a session
    /// of this name or with the id of the file. [`SqlError::Database`]
    pub async fn import(&self, file: &Path, name: &str) -> Result<SqlSession, SqlError> {
        let file = file.to_owned();
        let session = match tokio::task::spawn_blocking(move || raw::read(&file)).await {
            Ok(Ok(session)) => session,
            Ok(Err(error)) => return Err(SqlError::File(error.to_string())),
            Err(error) => return Err(SqlError::File(format!("the session file cannot be read ({error})"))),
        };
        let RawSession { id, header, entries, tail, leaf } = session;
        let (lines, places) = lay_out(&entries);
        let mut transaction = self.pool().begin().await?;
        let insert = sqlx::query(
            "INSERT INTO plan_execute_sessions (id, name, created_ms, imported, imported_leaf, lines, header, tail)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(id.clone())
        .bind(name.to_owned())
        .bind(now_ms() as i64)
        .bind(entries.len() as i64)
        // Not always the last one: Pi stands before the first entry where the last line has no id.
        .bind(leaf)
        .bind(lines.len() as i64)
        .bind(header)
        .bind(tail);
        match insert.execute(&mut *transaction).await {
            Ok(_) => {}
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {
                return Err(SqlError::NameTaken(format!("{name} (or one with the id {id})")));
            }
            Err(error) => return Err(error.into()),
        }
        for (batch, entries) in entries.chunks(BATCH).enumerate() {
            let mut query = sqlx::query(AssertSqlSafe(insert_rows(entries.len())));
            for (row, entry) in entries.iter().enumerate() {
                let number = batch * BATCH + row;
                query = query
                    .bind(id.clone())
                    .bind(entry.id.clone())
                    .bind(number as i64)
                    .bind(entry.parent.clone())
                    .bind(places[number].0)
                    .bind(places[number].1)
                    .bind(entry.custom_type.clone())
                    .bind(entry.timestamp_ms.and_then(|time| i64::try_from(time).ok()))
                    .bind(encoding::PI)
                    .bind(entry.bytes.clone());
            }
            query.execute(&mut *transaction).await?;
        }
        for (number, line) in lines.iter().enumerate() {
            for (custom_type, entry) in &line.inherited {
                let insert = sqlx::query(
                    "INSERT INTO plan_execute_inherited (session_id, line, custom_type, entry) VALUES ($1, $2, $3, $4)",
                );
                let insert = insert.bind(id.clone()).bind(number as i64 + 1).bind(custom_type.clone());
                insert.bind(entries[*entry].id.clone()).execute(&mut *transaction).await?;
            }
        }
        transaction.commit().await?;
        self.session(name).await
    }

    /// Writes a session into a new session file of Pi. What came out of one is byte for byte what it was.
    ///
    /// # Errors
    ///
    /// [`SqlError::NoSession`], [`SqlError::Database`]; [`SqlError::File`]: the file is there already or cannot be written,
    /// or the session holds entries of a harness that no such file can hold.
    pub async fn export(&self, name: &str, file: &Path) -> Result<(), SqlError> {
        let session = self.session(name).await?;
        let bytes = self.session_file(&session).await?;
        let failed =
            |error: std::io::Error| SqlError::File(format!("the file {} cannot be written ({error})", file.display()));
        // The file comes to be whole or not at all.
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut temporary = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
        temporary.write_all(&bytes).and_then(|()| temporary.as_file().sync_all()).map_err(failed)?;
        temporary.persist_noclobber(file).map_err(|error| failed(error.error))?;
        // Makes the name last, where the system can.
        if let Ok(folder) = File::open(folder) {
            let _ = folder.sync_all();
        }
        Ok(())
    }

    async fn session_file(&self, session: &SqlSession) -> Result<Vec<u8>, SqlError> {
        let mut transaction = self.pool().begin().await?;
        let query = sqlx::query(
            "SELECT s.created_ms, s.header, s.tail, e.ordinal FROM plan_execute_sessions s
             LEFT JOIN plan_execute_entries e ON e.session_id = s.id AND e.ordinal =
                 (SELECT MAX(m.ordinal) FROM plan_execute_entries m WHERE m.session_id = s.id)
             WHERE s.id = $1",
        );
        let row = query.bind(session.session_id().to_owned()).fetch_one(&mut *transaction).await?;
        let created_ms = row.try_get::<i64, _>("created_ms")?.try_into().unwrap_or_default();
        // What is appended from here on is not asked for.
        let count = super::count(&row)?;
        let mut bytes: Vec<u8> = match row.try_get::<Option<Vec<u8>>, _>("header")? {
            Some(header) => header,
            None => raw::header_line(session.session_id(), created_ms).into_bytes(),
        };
        let mut tail: Option<Vec<u8>> = row.try_get("tail")?;
        for from in (0..count).step_by(BATCH) {
            let query = sqlx::query(
                "SELECT id, parent, custom_type, timestamp_ms, encoding, payload FROM plan_execute_entries
                 WHERE session_id = $1 AND ordinal >= $2 AND ordinal < $3 ORDER BY ordinal",
            );
            let query = query.bind(session.session_id().to_owned()).bind(from).bind(count.min(from + BATCH as i64));
            for row in query.fetch_all(&mut *transaction).await? {
                let kind: i64 = row.try_get("encoding")?;
                let payload: Vec<u8> = row.try_get("payload")?;
                if kind == encoding::PI {
                    bytes.extend(payload);
                    continue;
                }
                // Behind what came out of a file, on a line of its own.
                bytes.extend(tail.take().unwrap_or_default());
                if bytes.last().is_some_and(|&byte| byte != b'\n') {
                    bytes.push(b'\n');
                }
                let id: String = row.try_get("id")?;
                let custom_type: Option<String> = row.try_get("custom_type")?;
                let (Some(custom_type), Some(data)) = (custom_type, json(kind, &payload)) else {
                    return Err(SqlError::File(format!(
                        "the entry {id} holds bytes of its harness, which a session file of Pi cannot hold"
                    )));
                };
                let time = row.try_get::<Option<i64>, _>("timestamp_ms")?.unwrap_or_default();
                let parent: Option<String> = row.try_get("parent")?;
                let time = time.try_into().unwrap_or_default();
                bytes.extend(raw::custom_line(&custom_type, &data, &id, parent.as_deref(), time));
            }
        }
        bytes.extend(tail.unwrap_or_default());
        transaction.rollback().await?;
        Ok(bytes)
    }
}

/// The statement that inserts so many entries.
fn insert_rows(rows: usize) -> String {
    let mut sql = String::from(
        "INSERT INTO plan_execute_entries
         (session_id, id, ordinal, parent, line, place, custom_type, timestamp_ms, encoding, payload) VALUES ",
    );
    for row in 0..rows {
        sql.push_str(if row == 0 { "(" } else { ", (" });
        for column in 0..COLUMNS {
            let separator = if column == 0 { "" } else { ", " };
            let _ = write!(sql, "{separator}${}", row * COLUMNS + column + 1);
        }
        sql.push(')');
    }
    sql
}

/// The payload of a plugin as JSON on one line.
fn json(kind: i64, bytes: &[u8]) -> Option<String> {
    match kind {
        encoding::JSON => String::from_utf8(bytes.to_vec()).ok(),
        encoding::CBOR => {
            let value: serde_json::Value = ciborium::from_reader(bytes).ok()?;
            Some(value.to_string())
        }
        _ => None,
    }
}
