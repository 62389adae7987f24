//! The suite that every journal must pass, on the journals that come with the host.

use async_trait::async_trait;
use plan_execute_host::journal::{
    Encoding, Memory,
    conformance::{Storage, check},
    pi::PiSession,
    sql::{Database, SqlSession},
};
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

struct InMemory(Encoding);

#[async_trait]
impl Storage for InMemory {
    type Journal = Memory;
    async fn create(&self) -> Memory {
        Memory::new(self.0)
    }
}

struct InFiles(TempDir);

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
struct InDatabase {
    database: Database,
    made: AtomicUsize,
}

impl InDatabase {
    async fn open(url: &str) -> InDatabase {
        InDatabase { database: Database::open(url, true).await.unwrap(), made: AtomicUsize::new(0) }
    }
}

#[async_trait]
impl Storage for InDatabase {
    type Journal = SqlSession;
    async fn create(&self) -> SqlSession {
        let name = format!("{}-{}", std::process::id(), self.made.fetch_add(1, Ordering::Relaxed));
        self.database.create(&name).await.unwrap()
    }
    async fn open_again(&self, journal: &SqlSession) -> Option<SqlSession> {
        Some(journal.database().session(journal.name()).await.unwrap())
    }
}

#[tokio::test]
async fn sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("plans.db").display());
    check(&InDatabase::open(&url).await).await;
}

#[tokio::test]
async fn postgresql() {
    if let Some(url) = conformance::postgres() {
        check(&InDatabase::open(&url).await).await;
    }
}
