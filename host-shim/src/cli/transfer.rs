//! `plan-execute import` and `plan-execute export`: sessions between files and databases.

use super::{Failure, setup::database};
use clap::Args;
use plan_execute_host::journal::sql::{Database, SqlError};
use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
};

/// Arguments of the command.
#[derive(Args)]
#[command(after_help = "Examples:
  plan-execute import session.jsonl sqlite:plans.db#work
  plan-execute import session.jsonl postgres://me@localhost/plans#work

Ids, order, branches and bytes of the entries stay what they are. The file stays where it is.")]
pub(super) struct Import {
    /// The session file of the Pi coding agent.
    file: PathBuf,
    /// The new session, as sqlite:FILE#NAME or postgres://USER@HOST/DATABASE#NAME. The tables are made where they are
    /// missing.
    #[arg(value_name = "SESSION")]
    session: OsString,
}

/// Arguments of the command.
#[derive(Args)]
#[command(after_help = "Examples:
  plan-execute export sqlite:plans.db#work session.jsonl

The file must not be there yet. What came out of a file of Pi is byte for byte what it was.")]
pub(super) struct Export {
    /// The session, as sqlite:FILE#NAME or postgres://USER@HOST/DATABASE#NAME.
    #[arg(value_name = "SESSION")]
    session: OsString,
    /// The new session file.
    file: PathBuf,
}

fn failed(error: SqlError) -> Failure {
    Failure::Host(error.to_string())
}

/// The address of the database, and the name of the session in it.
fn address(session: &OsStr) -> Result<(&str, &str), Failure> {
    let address = database(session).and_then(|address| address.rsplit_once('#')).filter(|(_, name)| !name.is_empty());
    address.ok_or_else(|| {
        Failure::Usage(format!(
            "{} is no session in a database: write sqlite:FILE#NAME or postgres://USER@HOST/DATABASE#NAME",
            session.to_string_lossy()
        ))
    })
}

impl Import {
    /// Runs the command.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let (url, name) = address(&self.session)?;
        let database = Database::open(url, true).await.map_err(failed)?;
        database.import(&self.file, name).await.map_err(failed)?;
        Ok(())
    }
}

impl Export {
    /// Runs the command.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let (url, name) = address(&self.session)?;
        let database = Database::open(url, false).await.map_err(failed)?;
        database.export(name, &self.file).await.map_err(failed)
    }
}
