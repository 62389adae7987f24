//! The tables, and how a database comes to have them.
//!
//! Entries that follow one another stand on one *line*, each at its *place*. An entry below any but the last one of a line
//! begins a new line, which notes the newest entry of each custom type that it inherits. So the newest entry of a type
//! on a branch is found in two steps at any length: on the line itself, or among what the line inherits.

use super::error::SqlError;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};

/// What each version adds. `BYTES` stands for the name that the database has for a sequence of bytes.
const VERSIONS: [&[&str]; 1] = [&[
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
]];

/// Brings the tables to the newest version, where `create` allows to make them at all.
pub(super) async fn prepare(connection: &mut AnyConnection, create: bool) -> Result<(), SqlError> {
    let newest = VERSIONS.len() as i64;
    if let Some(version) = version(connection).await? {
        return match version {
            _ if version == newest => Ok(()),
            _ if version > newest => Err(SqlError::NewerSchema { found: version, known: newest }),
            _ => add(connection, version as usize).await,
        };
    }
    let others = tables(connection).await?;
    let sqlite = connection.backend_name() == "SQLite";
    match others.first() {
        // A file belongs to one program; a server may have room for several.
        Some(other) if sqlite || !create => Err(SqlError::OtherProgram(other.clone())),
        None if !create => Err(SqlError::NoSchema),
        _ => add(connection, 0).await,
    }
}

/// The version of the tables, where there are any.
async fn version(connection: &mut AnyConnection) -> Result<Option<i64>, SqlError> {
    if !tables(connection).await?.iter().any(|name| name == "plan_execute_schema") {
        return Ok(None);
    }
    let row = sqlx::query("SELECT MAX(version) AS version FROM plan_execute_schema").fetch_one(connection).await?;
    Ok(row.try_get("version")?)
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
