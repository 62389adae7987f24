//! The tables, and how a database comes to have them.
//!
//! Entries that follow one another stand on one *line*, each at its *place*. An entry below any but the last one of a line
//! begins a new line, which notes the newest entry of each custom type that it inherits. So the newest entry of a type
//! on a branch is found in two steps at any length: on the line itself, or among what the line inherits.

use super::error::SqlError;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor, Row};
use std::time::Duration;

/// What each version adds. `BYTES` stands for the name that the database has for a sequence of bytes.
const VERSIONS: [&[&str]; 2] = [FIRST, SECOND];

const FIRST: &[&str] = &[
    "CREATE TABLE plan_execute_sessions (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        created_ms BIGINT NOT NULL,
        entries BIGINT NOT NULL,
        lines BIGINT NOT NULL,
        newest TEXT,
        header BYTES,
        tail BYTES
    )",
    "CREATE TABLE plan_execute_entries (
        session_id TEXT NOT NULL REFERENCES plan_execute_sessions (id) ON DELETE CASCADE,
        id TEXT NOT NULL,
        ordinal BIGINT NOT NULL,
        parent TEXT,
        line BIGINT NOT NULL,
        place BIGINT NOT NULL,
        custom_type TEXT,
        timestamp_ms BIGINT,
        encoding BIGINT NOT NULL,
        payload BYTES NOT NULL,
        PRIMARY KEY (session_id, id)
    )",
    "CREATE UNIQUE INDEX plan_execute_entries_order ON plan_execute_entries (session_id, ordinal)",
    "CREATE UNIQUE INDEX plan_execute_entries_line ON plan_execute_entries (session_id, line, place)",
    "CREATE INDEX plan_execute_entries_type ON plan_execute_entries (session_id, line, custom_type, place)",
    "CREATE TABLE plan_execute_inherited (
        session_id TEXT NOT NULL REFERENCES plan_execute_sessions (id) ON DELETE CASCADE,
        line BIGINT NOT NULL,
        custom_type TEXT NOT NULL,
        entry TEXT NOT NULL,
        PRIMARY KEY (session_id, line, custom_type)
    )",
];

/// What was counted in a session's row is asked of its entries, so that an append is one statement; the row keeps what was
/// counted when the session was taken over. The fence is raised to keep out a statement whose sender gave it up.
const SECOND: &[&str] = &[
    "ALTER TABLE plan_execute_sessions RENAME COLUMN entries TO imported",
    "ALTER TABLE plan_execute_sessions RENAME COLUMN newest TO imported_leaf",
    "ALTER TABLE plan_execute_sessions ADD COLUMN fence BIGINT NOT NULL DEFAULT 0",
];

/// How often making the tables is tried, where others are at it too.
const ATTEMPTS: u64 = 10;

/// Brings the tables to the newest version, where `create` allows to make them at all. Programs may do this at once: the one
/// that comes too late finds them there when it looks again.
pub(super) async fn prepare(connection: &mut AnyConnection, create: bool) -> Result<(), SqlError> {
    let mut attempt = 0;
    loop {
        let prepared = prepare_once(connection, create).await;
        if !again(&prepared, &mut attempt).await {
            return prepared;
        }
    }
}

/// Has SQLite write ahead into a log, which it does from then on. Only for a file of ours: another program's is left as it is.
pub(super) async fn log_ahead(connection: &mut AnyConnection) -> Result<(), SqlError> {
    let mut attempt = 0;
    loop {
        // Nobody may have the file open in the other mode at that moment, and SQLite does not wait for that.
        let set = connection.execute("PRAGMA journal_mode = WAL").await.map(drop).map_err(SqlError::from);
        if !again(&set, &mut attempt).await {
            return set;
        }
    }
}

/// Waits where something is worth another attempt.
async fn again(result: &Result<(), SqlError>, attempt: &mut u64) -> bool {
    *attempt += 1;
    let again = matches!(result, Err(SqlError::Database(_))) && *attempt < ATTEMPTS;
    if again {
        tokio::time::sleep(Duration::from_millis(20 * *attempt)).await;
    }
    again
}

async fn prepare_once(connection: &mut AnyConnection, create: bool) -> Result<(), SqlError> {
    let newest = VERSIONS.len() as i64;
    let tables = tables(connection).await?;
    if tables.iter().any(|name| name == "plan_execute_schema") {
        let row = sqlx::query("SELECT MAX(version) AS version FROM plan_execute_schema").fetch_one(&mut *connection);
        let version: i64 = row.await?.try_get("version")?;
        return match version {
            _ if version == newest => Ok(()),
            _ if version > newest => Err(SqlError::NewerSchema { found: version, known: newest }),
            _ => add(connection, version as usize).await,
        };
    }
    let sqlite = connection.backend_name() == "SQLite";
    match tables.first() {
        // A file belongs to one program; a server may have room for several.
        Some(other) if sqlite || !create => Err(SqlError::OtherProgram(other.clone())),
        None if !create => Err(SqlError::NoSchema),
        _ => add(connection, 0).await,
    }
}

/// The names of all tables.
async fn tables(connection: &mut AnyConnection) -> Result<Vec<String>, SqlError> {
    let query = match connection.backend_name() {
        "SQLite" => "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
        _ => {
            "SELECT CAST(table_name AS TEXT) AS name FROM information_schema.tables
             WHERE table_schema = current_schema() ORDER BY table_name"
        }
    };
    let rows = sqlx::query(query).fetch_all(connection).await?;
    rows.iter().map(|row| Ok(row.try_get("name")?)).collect()
}

/// Adds the versions from `have` on, in one transaction.
async fn add(connection: &mut AnyConnection, have: usize) -> Result<(), SqlError> {
    let bytes = if connection.backend_name() == "SQLite" { "BLOB" } else { "BYTEA" };
    let mut transaction = connection.begin().await?;
    if have == 0 {
        // Of two programs that begin at once one finds the table there.
        sqlx::query("CREATE TABLE plan_execute_schema (version BIGINT PRIMARY KEY)").execute(&mut *transaction).await?;
    }
    for (number, version) in VERSIONS.iter().enumerate().skip(have) {
        for statement in *version {
            let statement = AssertSqlSafe(statement.replace("BYTES", bytes));
            sqlx::query(statement).execute(&mut *transaction).await?;
        }
        let insert = sqlx::query("INSERT INTO plan_execute_schema (version) VALUES ($1)").bind(number as i64 + 1);
        insert.execute(&mut *transaction).await?;
    }
    Ok(transaction.commit().await?)
}
