//! Sessions moved from files of Pi into a database and back.

use conformance::{
    call,
    fixtures::{self, Fixture},
    host, plan_session,
};
use plan_execute_host::journal::{
    Journal,
    pi::PiSession,
    sql::{Database, SqlError},
};
use std::fs;

/// The fixtures that a database cannot hold: entries that are their own ancestors, or have neither ids nor parents, or none
/// at all.
const REFUSED: &[&str] = &["damaged-empty", "damaged-parent-cycle", "v1"];

#[tokio::test]
async fn every_fixture_comes_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    come_back(&format!("sqlite:{}", folder.path().join("plans.db").display())).await;
    if let Some(url) = conformance::postgres() {
        come_back(&url).await;
    }
}

async fn come_back(url: &str) {
    let folder = tempfile::tempdir().unwrap();
    let host = host();
    let database = Database::open(url, true).await.unwrap();
    let mut refused = Vec::new();
    for Fixture { name, file: session, .. } in fixtures::all() {
        let before = fs::read(&session).unwrap();
        let Ok(file) = PiSession::open(&session).await else { continue };
        match database.import(&session, &name).await {
            Ok(_) => {}
            Err(SqlError::File(reason)) => {
                assert!(!reason.contains('\n'), "{name}: {reason}");
                refused.push(name);
                continue;
            }
            Err(error) => panic!("{name}: {error}"),
        }
        let copy = folder.path().join(format!("{name}.jsonl"));
        database.export(&name, &copy).await.unwrap();
        assert!(fs::read(&copy).unwrap() == before, "{name} came back changed");

        let stored = database.session(&name).await.unwrap();
        let (from, to) = (plan_session(&host, file.clone()).await, plan_session(&host, stored.clone()).await);
        assert_eq!(call(&from, "plan_get", "{}").await, call(&to, "plan_get", "{}").await, "{name}");
        let leaf = stored.position().await.unwrap().leaf;
        assert_eq!(leaf, file.position().await.unwrap().leaf, "{name}");
        // Every entry is a place where both find the same.
        for id in file.branch_ids().await.unwrap_or_default() {
            let (there, here) = (file.branch(Some(&id)).await.unwrap(), stored.branch(Some(&id)).await.unwrap());
            let entries = (
                file.entries(&there, "pi-harness/plan-execute", None, 100).await.unwrap(),
                stored.entries(&here, "pi-harness/plan-execute", None, 100).await.unwrap(),
            );
            assert_eq!(entries.0, entries.1, "{name} at {id}");
        }

        // What is appended there comes out behind what was there.
        stored.reopen().await.unwrap();
        let to = plan_session(&host, stored).await;
        if let Ok(plan) = call(&to, "plan_create", r#"{"title":"New","steps":["a","b"]}"#).await {
            let longer = folder.path().join(format!("{name}.longer.jsonl"));
            database.export(&name, &longer).await.unwrap();
            assert!(fs::read(&longer).unwrap().starts_with(&before), "{name}");
            let again = plan_session(&host, PiSession::open(&longer).await.unwrap()).await;
            assert_eq!(call(&again, "plan_get", "{}").await.unwrap(), plan, "{name}");
        }
        // Forks of one file have its id.
        database.delete(&name).await.unwrap();
    }
    assert_eq!(refused, REFUSED);
}

#[tokio::test]
async fn a_session_of_a_database_becomes_a_file_and_no_file_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("plans.db").display());
    let database = Database::open(&url, true).await.unwrap();
    let session = database.create("own").await.unwrap();
    let tools = plan_session(&host(), session.clone()).await;
    let first = call(&tools, "plan_create", r#"{"title":"Ünï \u2028","steps":["a","b"]}"#).await.unwrap();
    let at = session.position().await.unwrap();
    call(&tools, "plan_advance", r#"{"step":1,"status":"done"}"#).await.unwrap();
    let file = folder.path().join("s.jsonl");
    database.export("own", &file).await.unwrap();
    assert!(matches!(database.export("own", &file).await, Err(SqlError::File(_))), "a file is there");
    assert!(matches!(database.export("other", &file).await, Err(SqlError::NoSession(_))));
    let exported = PiSession::open(&file).await.unwrap();
    assert_eq!(exported.position().await.unwrap().session_id, at.session_id);
    assert_eq!(exported.branch_ids().await.unwrap().len(), 2);
    exported.branch(at.leaf.as_deref()).await.unwrap();
    let tools = plan_session(&host(), exported).await;
    assert_eq!(call(&tools, "plan_get", "{}").await.unwrap(), first);

    let at = session.position().await.unwrap();
    session.push(&at, b"\x00bytes").await.unwrap();
    let refused = database.export("own", &folder.path().join("t.jsonl")).await;
    assert!(matches!(refused, Err(SqlError::File(reason)) if reason.contains("harness")));
    assert!(!folder.path().join("t.jsonl").exists());
}
