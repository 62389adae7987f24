//! The suite that every journal must pass, on the journals that come with the host.

use async_trait::async_trait;
use plan_execute_host::journal::{
    Encoding, Memory,
    conformance::{Storage, check},
    pi::PiSession,
    sql::{Database, SqlSession},
};
use std::{
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};
use tempfile::TempDir;

pub(crate) struct InMemory(pub(crate) Encoding);

#[async_trait]
impl Storage for InMemory {
    type Journal = Memory;
    async fn create(&self) -> Memory {
        Memory::new(self.0)
    }
}

pub(crate) struct InFiles(pub(crate) TempDir);

#[async_trait]
impl Storage for InFiles {
    type Journal = PiSession;
    async fn create(&self) -> PiSession {
        PiSession::open_or_create(self.0.path()).await.unwrap()
    }
    async fn open_again(&self, journal: &PiSession) -> Option<PiSession> {
        Some(PiSession::open(journal.path()).await.unwrap())
    }
}

#[tokio::test]
async fn memory() {
    check(&InMemory(Encoding::Json)).await;
    check(&InMemory(Encoding::Cbor)).await;
}

#[tokio::test]
async fn session_files() {
    check(&InFiles(tempfile::tempdir().unwrap())).await;
}

/// Sessions in one database, with names that count up.
pub(crate) struct InDatabase {
    database: Database,
}

impl InDatabase {
    pub(crate) async fn open(url: &str) -> InDatabase {
        InDatabase { database: Database::open(url, true).await.unwrap() }
    }

    /// In an SQLite database `plans.db`.
    pub(crate) async fn in_folder(folder: &Path) -> InDatabase {
        InDatabase::open(&format!("sqlite:{}", folder.join("plans.db").display())).await
    }
}

#[async_trait]
impl Storage for InDatabase {
    type Journal = SqlSession;
    async fn create(&self) -> SqlSession {
        // Several tests may share one database.
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let name = format!("{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        self.database.create(&name).await.unwrap()
    }
    async fn open_again(&self, journal: &SqlSession) -> Option<SqlSession> {
        Some(journal.database().session(journal.name()).await.unwrap())
    }
}

#[tokio::test]
async fn sqlite() {
    let folder = tempfile::tempdir().unwrap();
    check(&InDatabase::in_folder(folder.path()).await).await;
}

#[tokio::test]
async fn postgresql() {
    if let Some(url) = conformance::postgres() {
        check(&InDatabase::open(&url).await).await;
    }
}
