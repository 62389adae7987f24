//! The suite that every journal must pass, on the journals that come with the host.

use async_trait::async_trait;
use plan_execute_host::journal::{
    Encoding, Memory,
    conformance::{Storage, check},
    pi::PiSession,
};
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
