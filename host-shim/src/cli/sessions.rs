//! `plan-execute sessions`: what a database holds.

use super::{Failure, setup::database, terminal};
use clap::Args;
use jiff::Timestamp;
use plan_execute_host::journal::sql::{Database, SessionSummary};
use serde_json::{Value, json};
use std::{ffi::OsString, io::Write};

/// Arguments of the command.
#[derive(Args)]
#[command(after_help = "Examples:
  plan-execute sessions sqlite:plans.db
  plan-execute sessions postgres://me@localhost/plans --json

The newest session comes first. With --json, one array with an object for each session.")]
pub(super) struct Sessions {
    /// The address of the database.
    #[arg(value_name = "URL")]
    database: OsString,
    /// Print one JSON array.
    #[arg(long)]
    json: bool,
}

impl Sessions {
    /// Runs the command.
    pub(super) async fn run(self) -> Result<(), Failure> {
        let Some(url) = database(&self.database) else {
            let given = self.database.to_string_lossy();
            return Err(Failure::Usage(format!(
                "{given} is no database: write sqlite:FILE or postgres://USER@HOST/DATABASE"
            )));
        };
        let failed = |error: plan_execute_host::journal::sql::SqlError| Failure::Host(error.to_string());
        let sessions = Database::open(url, false).await.map_err(failed)?.sessions().await.map_err(failed)?;
        if self.json {
            let list: Vec<Value> = sessions.iter().map(to_json).collect();
            terminal::print_json(&Value::from(list))?;
            return Ok(());
        }
        let mut out = terminal::stdout();
        if sessions.is_empty() {
            writeln!(out, "No sessions yet.")?;
        }
        for session in &sessions {
            let entries = if session.entries == 1 { "entry" } else { "entries" };
            let name = terminal::escape_all(&session.name);
            writeln!(out, "{}  {name}  {} {entries}", time(session), session.entries)?;
        }
        Ok(())
    }
}

fn time(session: &SessionSummary) -> String {
    let time = session.created_ms.try_into().ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| "-".into(), |time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

fn to_json(session: &SessionSummary) -> Value {
    json!({ "id": session.id, "name": session.name, "created": time(session), "entries": session.entries })
}
