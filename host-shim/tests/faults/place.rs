//! Where sessions are kept, and what is there.

use plan_execute_host::{
    journal::{Encoding, Journal, pi::PiSession, sql::Database},
    plans::CUSTOM_TYPE,
};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// One session.
#[derive(Clone)]
pub(crate) enum Place {
    File(PathBuf),
    Database { url: String, name: String },
}

impl Place {
    pub(crate) fn file(folder: &Path) -> Place {
        Place::File(folder.join("s.jsonl"))
    }

    pub(crate) fn sqlite(folder: &Path) -> Place {
        Place::Database { url: format!("sqlite:{}", folder.join("s.db").display()), name: "faults".into() }
    }

    /// The address for the command.
    pub(crate) fn session(&self) -> String {
        match self {
            Place::File(file) => file.to_str().unwrap().to_owned(),
            Place::Database { url, name } => format!("{url}#{name}"),
        }
    }

    /// The kind of journal, for the table.
    pub(crate) fn journal(&self) -> &'static str {
        match self {
            Place::File(_) => "session file",
            Place::Database { url, .. } if url.starts_with("sqlite:") => "SQLite",
            Place::Database { .. } => "PostgreSQL",
        }
    }

    /// Opens the session and reads every plan on its branch, the oldest first. No other plan may be anywhere in it.
    pub(crate) fn plans(&self) -> Vec<Value> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let plans = runtime.block_on(async {
            match self {
                Place::File(file) => on_branch(&PiSession::open(file).await.unwrap()).await,
                Place::Database { url, name } => {
                    let database = Database::open(url, false).await.unwrap();
                    let plans = on_branch(&database.session(name).await.unwrap()).await;
                    let sessions = database.sessions().await.unwrap();
                    let session = sessions.into_iter().find(|session| session.name == *name).unwrap();
                    assert_eq!(session.entries, plans.len() as u64, "all entries stand in one chain");
                    plans
                }
            }
        });
        if let Place::File(file) = self {
            assert_eq!(in_file(file), plans, "all entries stand in one chain");
        }
        plans
    }
}

async fn on_branch(journal: &impl Journal) -> Vec<Value> {
    let at = journal.position().await.unwrap();
    let (mut plans, mut before) = (Vec::new(), None::<String>);
    loop {
        let page = journal.entries(&at, CUSTOM_TYPE, before.as_deref(), 1_000).await.unwrap();
        let Some(last) = page.last() else { break };
        before = Some(last.id.clone());
        plans.extend(page.iter().map(|entry| match entry.payload.encoding {
            Encoding::Json => serde_json::from_slice::<Value>(&entry.payload.bytes).unwrap(),
            Encoding::Cbor => ciborium::from_reader(&entry.payload.bytes[..]).unwrap(),
        }));
    }
    plans.reverse();
    plans
}

/// The plans in a session file, on whatever branch, in the order of its lines.
pub(crate) fn in_file(file: &Path) -> Vec<Value> {
    lines(file)
        .filter_map(Result::ok)
        .filter(|line| line["customType"] == CUSTOM_TYPE)
        .map(|mut line| line["data"].take())
        .collect()
}

/// How many lines of a session file are no JSON: they were torn, and each of them ended before the next entry.
pub(crate) fn torn(file: &Path) -> usize {
    lines(file).filter(Result::is_err).count()
}

fn lines(file: &Path) -> impl Iterator<Item = serde_json::Result<Value>> {
    let bytes = fs::read(file).unwrap();
    let lines: Vec<_> =
        bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(serde_json::from_slice).collect();
    lines.into_iter()
}
