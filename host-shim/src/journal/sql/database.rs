//! A database, and the sessions in it.

use super::{
    SqlSession,
    address::{Address, FileIdentity},
    error::SqlError,
    schema,
};
use crate::journal::now_ms;
use sqlx::{
    AnyConnection, AnyPool, Connection, Executor, Row,
    any::{AnyConnectOptions, AnyPoolOptions},
};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use uuid::Uuid;

/// How long reaching the database may take.
const CONNECT: Duration = Duration::from_secs(5);
/// The most connections that one database has open. Calls of one session take one.
const MAX_CONNECTIONS: u32 = 8;

/// A database of sessions: SQLite, or PostgreSQL and what speaks like it. Clones share their connections.
#[derive(Clone)]
pub struct Database(Arc<State>);

struct State {
    address: Address,
    /// How to connect to a database that is there.
    options: AnyConnectOptions,
    opened: Mutex<Opened>,
}

/// The file that the connections are open on, and the connections.
struct Opened {
    file: Option<FileIdentity>,
    pool: AnyPool,
}

/// One session, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// Its own id.
    pub id: String,
    /// The name that it is opened by.
    pub name: String,
    /// When it was made, in milliseconds since 1970 (UTC).
    pub created_ms: u64,
    /// How many entries it has.
    pub entries: u64,
}

impl Database {
    /// Opens the database at `url`: `sqlite:FILE`, or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. With `create`, a file
    /// that is missing is made, and so are the tables.
    ///
    /// # Errors
    ///
    /// [`SqlError`]
    pub async fn open(url: &str, create: bool) -> Result<Database, SqlError> {
        sqlx::any::install_default_drivers();
        let address = Address::parse(url)?;
        if let Some(file) = address.file().filter(|file| !create && !file.exists()) {
            return Err(SqlError::NoFile(file.into()));
        }
        let make = (create && !address.has_mode()).then_some("mode=rwc");
        let mut options = address.options(None)?;
        let first = connect(&address, &address.options(make)?).await;
        let (mut connection, read_only) = match first {
            Err(_) if !create && address.is_at_rest_and_read_only() => {
                options = address.options(Some("mode=ro&immutable=1"))?;
                (connect(&address, &options).await?, true)
            }
            connected => (connected?, false),
        };
        schema::prepare(&mut connection, create).await?;
        if connection.backend_name() == "SQLite" && !read_only {
            schema::log_ahead(&mut connection).await?;
        }
        // What goes wrong in closing it concerns nobody.
        let _ = connection.close().await;
        let file = address.identity().await.map_err(|error| unreachable(&address, error.to_string()))?;
        let opened = Mutex::new(Opened { file, pool: pool(&options) });
        Ok(Database(Arc::new(State { address, options, opened })))
    }

    /// Its connections.
    #[cfg(not(feature = "testing"))]
    pub(super) fn pool(&self) -> AnyPool {
        self.opened().pool.clone()
    }

    /// Its connections, for benchmarks and for looking at the tables.
    #[cfg(feature = "testing")]
    pub fn pool(&self) -> AnyPool {
        self.opened().pool.clone()
    }

    /// A connection of its own, outside the pool.
    pub(super) async fn connect(&self) -> Result<AnyConnection, SqlError> {
        connect(&self.0.address, &self.0.options).await
    }

    /// Its connections, with the file that they are on.
    pub(super) fn pool_and_file(&self) -> (AnyPool, Option<FileIdentity>) {
        let opened = self.opened();
        (opened.pool.clone(), opened.file)
    }

    /// Which file the database is in now. Connections on another one, which stood there before, are not used any more.
    pub(super) async fn file(&self) -> Result<Option<FileIdentity>, SqlError> {
        let address = &self.0.address;
        let file = address.identity().await.map_err(|error| unreachable(address, error.to_string()))?;
        let mut opened = self.opened();
        if opened.file != file {
            *opened = Opened { file, pool: pool(&self.0.options) };
        }
        Ok(file)
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        self.0.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sessions, the newest first.
    ///
    /// # Errors
    ///
    /// [`SqlError::Database`]
    pub async fn sessions(&self) -> Result<Vec<SessionSummary>, SqlError> {
        let query = sqlx::query(
            "SELECT s.id, s.name, s.created_ms, e.ordinal FROM plan_execute_sessions s
             LEFT JOIN plan_execute_entries e ON e.session_id = s.id AND e.ordinal =
                 (SELECT MAX(m.ordinal) FROM plan_execute_entries m WHERE m.session_id = s.id)
             ORDER BY s.created_ms DESC, s.name",
        );
        let rows = query.fetch_all(&self.pool()).await?;
        rows.iter()
            .map(|row| {
                Ok(SessionSummary {
                    id: row.try_get("id")?,
                    name: row.try_get("name")?,
                    created_ms: row.try_get::<i64, _>("created_ms")?.try_into().unwrap_or_default(),
                    entries: super::count(row)?.try_into().unwrap_or_default(),
                })
            })
            .collect()
    }

    /// Makes a session.
    ///
    /// # Errors
    ///
    /// [`SqlError::NameTaken`], [`SqlError::Database`]
    pub async fn create(&self, name: &str) -> Result<SqlSession, SqlError> {
        let query = sqlx::query(
            "INSERT INTO plan_execute_sessions (id, name, created_ms, imported, lines) VALUES ($1, $2, $3, 0, 0)",
        )
        .bind(Uuid::now_v7().to_string())
        .bind(name)
        .bind(now_ms() as i64);
        match query.execute(&self.pool()).await {
            Ok(_) => self.session(name).await,
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Err(SqlError::NameTaken(name.into())),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a session.
    ///
    /// # Errors
    ///
    /// [`SqlError::NoSession`], [`SqlError::Database`]
    pub async fn session(&self, name: &str) -> Result<SqlSession, SqlError> {
        let query = sqlx::query("SELECT id FROM plan_execute_sessions WHERE name = $1").bind(name);
        let row = query.fetch_optional(&self.pool()).await?.ok_or_else(|| SqlError::NoSession(name.into()))?;
        SqlSession::open(self.clone(), name, row.try_get::<String, _>("id")?.into()).await
    }

    /// Makes a session out of the branch of another one that ends at `leaf`. Its entries keep their ids.
    ///
    /// # Errors
    ///
    /// [`SqlError::NameTaken`], [`SqlError::NoEntry`], [`SqlError::Database`]
    pub async fn fork(&self, from: &SqlSession, leaf: &str, name: &str) -> Result<SqlSession, SqlError> {
        let session_id = Uuid::now_v7().to_string();
        let mut transaction = self.pool().begin().await?;
        let insert = sqlx::query(
            "INSERT INTO plan_execute_sessions (id, name, created_ms, imported, lines) VALUES ($1, $2, $3, 0, 1)",
        )
        .bind(session_id.clone())
        .bind(name.to_owned())
        .bind(now_ms() as i64);
        match insert.execute(&mut *transaction).await {
            Ok(_) => {}
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {
                return Err(SqlError::NameTaken(name.into()));
            }
            Err(error) => return Err(error.into()),
        }
        // The whole path stands on one line, so nothing is inherited.
        let copy = sqlx::query(
            "WITH RECURSIVE path (id, parent, depth) AS (
                SELECT id, parent, CAST(0 AS BIGINT) FROM plan_execute_entries WHERE session_id = $1 AND id = $2
                UNION ALL
                SELECT e.id, e.parent, p.depth + 1 FROM path p
                JOIN plan_execute_entries e ON e.session_id = $1 AND e.id = p.parent
             )
             INSERT INTO plan_execute_entries
             (session_id, id, ordinal, parent, line, place, custom_type, timestamp_ms, encoding, payload)
             SELECT $3, e.id, d.deepest - p.depth, e.parent, 1, d.deepest - p.depth,
                 e.custom_type, e.timestamp_ms, e.encoding, e.payload
             FROM path p
             JOIN plan_execute_entries e ON e.session_id = $1 AND e.id = p.id
             CROSS JOIN (SELECT MAX(depth) AS deepest FROM path) d",
        )
        .bind(from.session_id().to_owned())
        .bind(leaf.to_owned())
        .bind(session_id);
        let copied = copy.execute(&mut *transaction).await?.rows_affected();
        if copied == 0 {
            return Err(SqlError::NoEntry(leaf.into()));
        }
        transaction.commit().await?;
        self.session(name).await
    }

    /// Takes a session away, with all its entries.
    ///
    /// # Errors
    ///
    /// [`SqlError::NoSession`], [`SqlError::Database`]
    pub async fn delete(&self, name: &str) -> Result<(), SqlError> {
        let query = sqlx::query("DELETE FROM plan_execute_sessions WHERE name = $1").bind(name);
        match query.execute(&self.pool()).await?.rows_affected() {
            0 => Err(SqlError::NoSession(name.into())),
            _ => Ok(()),
        }
    }

    /// Which server this is: another one, or the same after it took over from a failed one, has another text. `None` where
    /// the database does not tell, or has not taken over yet.
    pub(super) async fn identity(connection: &mut AnyConnection) -> Option<String> {
        if connection.backend_name() == "SQLite" {
            return None;
        }
        // The timeline that is written on. The one of the last checkpoint stays the old one for minutes.
        let query = "SELECT CAST(system_identifier AS TEXT) || ' ' ||
                 SUBSTR(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS identity FROM pg_control_system()";
        connection.fetch_one(query).await.ok()?.try_get("identity").ok()
    }
}

fn pool(options: &AnyConnectOptions) -> AnyPool {
    AnyPoolOptions::new()
        .max_connections(MAX_CONNECTIONS)
        .acquire_timeout(CONNECT)
        // What was lost meanwhile shows at the first look, which is then taken again.
        .test_before_acquire(false)
        .after_connect(|connection, _| Box::pin(set_up(connection)))
        .after_release(|connection, _| Box::pin(is_free(connection)))
        .connect_lazy_with(options.clone())
}

async fn connect(address: &Address, options: &AnyConnectOptions) -> Result<AnyConnection, SqlError> {
    let connect = async {
        let mut connection = AnyConnection::connect_with(options).await?;
        set_up(&mut connection).await?;
        Ok(connection)
    };
    match tokio::time::timeout(CONNECT, connect).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error)) => Err(unreachable(address, reason(address, error))),
        Err(_) => Err(unreachable(address, format!("it did not answer within {CONNECT:?}"))),
    }
}

fn unreachable(address: &Address, reason: String) -> SqlError {
    SqlError::Unreachable { address: address.shown().to_owned(), reason }
}

/// What each connection needs.
async fn set_up(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    if connection.backend_name() == "SQLite" {
        connection.execute("PRAGMA busy_timeout = 5000").await?;
        connection.execute("PRAGMA foreign_keys = ON").await?;
        connection.execute("PRAGMA synchronous = FULL").await?;
    } else {
        // What was acknowledged must last, whatever the server's default is. Not every server knows the setting.
        let weak = "SELECT set_config('synchronous_commit', 'on', false)
             WHERE current_setting('synchronous_commit', true) IN ('off', 'local')";
        let _ = connection.execute(weak).await;
    }
    Ok(())
}

/// May a connection be used again? Where SQLite ends a transaction by itself, on a full disk or an I/O error, the driver goes on
/// counting it, takes the next one for a part of it, and no longer commits what it says is committed.
async fn is_free(connection: &mut AnyConnection) -> Result<bool, sqlx::Error> {
    if connection.is_in_transaction() {
        // One that was given up may still have to be rolled back.
        connection.ping().await?;
    }
    Ok(!connection.is_in_transaction())
}

/// The reason that the user can do something about.
fn reason(address: &Address, error: sqlx::Error) -> String {
    match error {
        sqlx::Error::Io(error) => error.to_string(),
        // SQLite cannot open the file.
        sqlx::Error::Database(error) if error.code().as_deref() == Some("14") => {
            address.hindrance().unwrap_or_else(|| error.message().to_owned())
        }
        sqlx::Error::Database(error) => error.message().to_owned(),
        error => error.to_string(),
    }
}
