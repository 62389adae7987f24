//! Why a database of sessions cannot be used.

use crate::journal::ReadError;
use std::path::PathBuf;

/// What stands in the way. No text holds a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// The address is none.
    #[error("{0} is no address of a database: write sqlite:FILE or postgres://USER@HOST/DATABASE")]
    Address(String),
    /// A database in memory ends with its connection.
    #[error("a database in memory keeps no sessions: name a file, as in sqlite:plans.db")]
    NotInAFile,
    /// The database was not reached.
    #[error("the database {address} cannot be reached ({reason})")]
    Unreachable {
        /// Its address, without the password.
        address: String,
        /// What happened.
        reason: String,
    },
    /// There is no such file.
    #[error("there is no database {}: name one that is there, or ask for a new one", .0.display())]
    NoFile(PathBuf),
    /// The database holds tables, but none of ours.
    #[error(
        "the database holds {0:?} and other tables of another program, and no sessions: name a database of its own"
    )]
    OtherProgram(String),
    /// The database is empty.
    #[error("the database holds no sessions yet: ask for a new one")]
    NoSchema,
    /// A newer version of this program made the tables.
    #[error("the database has tables of version {found}, and this program knows {known}: use a newer program")]
    NewerSchema {
        /// The version of the tables.
        found: i64,
        /// The newest version that is known here.
        known: i64,
    },
    /// There is no such session.
    #[error("there is no session {0:?} in the database: name one that is there, or ask for a new one")]
    NoSession(String),
    /// There is one already.
    #[error("there is a session {0:?} in the database already: choose another name")]
    NameTaken(String),
    /// There is no such entry.
    #[error("there is no entry {0} in the session: name one of its entries")]
    NoEntry(String),
    /// A session file cannot be taken over, or not be written.
    #[error("{0}")]
    File(String),
    /// The connection was lost.
    #[error("the connection to the database was lost ({0})")]
    Lost(String),
    /// The database refused, or broke down.
    #[error("the database answered: {0}")]
    Database(String),
}

impl From<sqlx::Error> for SqlError {
    fn from(error: sqlx::Error) -> Self {
        match lost(&error) {
            true => SqlError::Lost(error.to_string()),
            false => SqlError::Database(error.to_string()),
        }
    }
}

/// Did the connection end? PostgreSQL says that it ends it when it is stopped.
pub(super) fn lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(error) => matches!(error.code().as_deref(), Some("57P01" | "57P02")),
        _ => false,
    }
}

impl From<SqlError> for ReadError {
    fn from(error: SqlError) -> Self {
        match error {
            SqlError::Unreachable { .. } | SqlError::Lost(_) | SqlError::Database(_) => {
                ReadError::Unavailable(error.to_string())
            }
            SqlError::NoEntry(_) => ReadError::NotFound(error.to_string()),
            SqlError::NoSession(_) => {
                ReadError::Other("the session is not in the database any more: open another one".into())
            }
            _ => ReadError::Other(error.to_string()),
        }
    }
}
