//! Journals that fail, and what plugins and their callers see of it.

use conformance::{call, chain, host, host_with, plan_session, wat_plugin::WatPlugin};
use plan_execute_host::{
    Attached, Error, Grants, Host, Limit,
    journal::{
        AppendError, Memory, Payload, ReadError,
        fault::{Faulty, How, Operation},
    },
};
use sha2::{Digest, Sha256};
use std::time::Duration;

async fn faulty(host: &Host) -> (Faulty<Memory>, Attached) {
    let journal = Faulty::new(Memory::default());
    let tools = plan_session(host, journal.clone()).await;
    call(&tools, "plan_create", &chain(3)).await.unwrap();
    (journal, tools)
}

const DONE: &str = r#"{"step":1,"status":"done"}"#;

#[tokio::test]
async fn a_refusal_costs_one_call() {
    let (journal, tools) = faulty(&host()).await;
    for (error, code) in [
        (AppendError::SessionChanged, "session-changed"),
        (AppendError::BranchChanged, "branch-changed"),
        (AppendError::TooLarge(7), "too-large"),
        (AppendError::InvalidPayload("x".into()), "other"),
        (AppendError::Unavailable("the disk is full".into()), "unavailable"),
        (AppendError::Other("x".into()), "other"),
    ] {
        journal.next(Operation::Append, How::Before(error.clone()));
        let refused = call(&tools, "plan_advance", DONE).await.unwrap_err();
        assert_eq!(refused.code, code, "{error}");
        assert_eq!(journal.inner().custom_entries().len(), 1, "{error}");
        assert_eq!(call(&tools, "plan_get", "{}").await.unwrap()["steps"][0]["status"], "pending");
    }
    call(&tools, "plan_advance", DONE).await.unwrap();
}

#[tokio::test]
async fn after_a_write_of_unknown_outcome_no_plan_is_shown_until_reopening() {
    let (journal, tools) = faulty(&host()).await;
    let waiting = {
        journal.next(Operation::Append, How::After);
        let failing = tools.queue("plan_advance", DONE).await.unwrap();
        let waiting = tools.queue("plan_get", "{}").await.unwrap();
        let failed = failing.await.unwrap().unwrap_err();
        assert_eq!(failed.code, "reopen-required");
        assert!(failed.message.contains("write failed") && failed.message.contains("reopen"), "{}", failed.message);
        waiting
    };
    assert_eq!(waiting.await.unwrap().unwrap_err().code, "reopen-required");
    for (tool, arguments) in [("plan_get", "{}"), ("plan_advance", "nonsense"), ("plan_create", &chain(1))] {
        let error = call(&tools, tool, arguments).await.unwrap_err();
        assert_eq!(error.code, "reopen-required", "{tool}");
    }
    let plans = tools.plans().unwrap();
    assert!(plans.overview().await.unwrap().await.unwrap().is_err());
    assert!(matches!(tools.session().branch(None).await, Err(ReadError::ReopenRequired(_))));
    // What the storage holds counts: here, the entry that was kept after all.
    tools.session().reopen().await.unwrap();
    assert_eq!(call(&tools, "plan_get", "{}").await.unwrap()["steps"][0]["status"], "done");
    call(&tools, "plan_advance", r#"{"step":2,"status":"done"}"#).await.unwrap();
}

#[tokio::test]
async fn a_journal_that_panics_is_one_whose_outcome_is_unknown() {
    let (journal, tools) = faulty(&host()).await;
    journal.next(Operation::Append, How::Panic);
    assert_eq!(call(&tools, "plan_advance", DONE).await.unwrap_err().code, "reopen-required");
    tools.session().reopen().await.unwrap();
    assert_eq!(call(&tools, "plan_get", "{}").await.unwrap()["steps"][0]["status"], "pending");
}

/// What the call had saved by then is still said.
#[tokio::test]
async fn a_journal_that_panics_while_it_is_read_costs_one_call() {
    let (journal, tools) = faulty(&host()).await;
    journal.next(Operation::Latest, How::Panic);
    let error = call(&tools, "plan_get", "{}").await.unwrap_err();
    assert_eq!(error.code, "other");
    assert!(error.message.contains("the journal broke down"), "{}", error.message);
    let append = "(call $append (local.get $branch) (i32.const 512) (i32.const 9) (i32.const 0) (i32.const 4096) (i32.const 2) (i32.const 8192))";
    let read = "(call $latest (local.get $branch) (i32.const 512) (i32.const 9) (i32.const 8192))";
    let plugin = WatPlugin { call_tool: format!("{append} {read} unreachable"), ..WatPlugin::default() };
    journal.next(Operation::Latest, How::Panic);
    let (host, bytes) = (tools.plugin().host(), plugin.build());
    let plugin = host.load_pinned(&bytes, &hex::encode(Sha256::digest(&bytes))).await.unwrap();
    let error = conformance::attach(&plugin, tools.session()).await.call("run", "{}").await.unwrap_err();
    assert!(matches!(&error, Error::Trap { kept, .. } if kept.entries.len() == 1 && !kept.unknown), "{error}");
    call(&tools, "plan_get", "{}").await.unwrap();
}

#[tokio::test]
async fn reading_that_fails_or_hangs_costs_one_call() {
    let host = host_with(|limits| limits.operation = Duration::from_millis(100));
    let (journal, tools) = faulty(&host).await;
    let away = AppendError::Unavailable("the server is away".into());
    journal.next(Operation::Latest, How::Before(away));
    let error = call(&tools, "plan_get", "{}").await.unwrap_err();
    assert_eq!(error.code, "unavailable");
    assert!(error.message.contains("the server is away"));
    journal.next(Operation::Latest, How::Hang);
    let error = call(&tools, "plan_get", "{}").await.unwrap_err();
    assert_eq!(error.code, "unavailable");
    assert!(error.message.contains("100ms"), "{}", error.message);
    call(&tools, "plan_get", "{}").await.unwrap();
}

#[tokio::test]
async fn a_write_that_outlives_its_time_is_waited_for_by_reopening() {
    let host = host_with(|limits| limits.operation = Duration::from_millis(100));
    let (journal, tools) = faulty(&host).await;
    journal.next(Operation::Append, How::Hang);
    let error = call(&tools, "plan_advance", DONE).await.unwrap_err();
    assert_eq!(error.code, "reopen-required");
    // While the write goes on, the session cannot be opened again.
    assert!(matches!(tools.session().reopen().await, Err(ReadError::Unavailable(_))));
    assert_eq!(call(&tools, "plan_get", "{}").await.unwrap_err().code, "reopen-required");
    journal.release();
    tools.session().reopen().await.unwrap();
    assert_eq!(call(&tools, "plan_get", "{}").await.unwrap()["steps"][0]["status"], "done");
}

#[tokio::test]
async fn a_call_that_is_dropped_while_it_writes_leaves_the_outcome_unknown() {
    let (journal, tools) = faulty(&host()).await;
    journal.next(Operation::Append, How::Hang);
    let mut subscription = tools.session().subscribe();
    let mut queued = tools.queue("plan_advance", DONE).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(100), &mut queued).await.is_err());
    drop(queued);
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(call(&tools, "plan_get", "{}").await.unwrap_err().code, "reopen-required");
    journal.release();
    tools.session().reopen().await.unwrap();
    assert_eq!(call(&tools, "plan_get", "{}").await.unwrap()["steps"][0]["status"], "done");
    // It was saved, and whoever listens heard of it.
    assert!(subscription.next().await.is_some());
}

#[tokio::test]
async fn a_call_out_of_time_says_what_became_of_its_writes() {
    let host = host_with(|limits| limits.call = Duration::from_millis(200));
    let (journal, tools) = faulty(&host).await;
    journal.next(Operation::Append, How::Hang);
    let error = tools.call("plan_advance", DONE).await.unwrap_err();
    let Error::Limit { limit: Limit::Call(_), kept, .. } = &error else { panic!("{error}") };
    assert!(kept.unknown && kept.entries.is_empty(), "{kept:?}");
    assert!(error.to_string().contains("reopen"), "{error}");
    journal.release();
    tools.session().reopen().await.unwrap();
    call(&tools, "plan_get", "{}").await.unwrap();
}

/// A plugin that goes on after a failed write, and then breaks down: the outcome of that write stays unknown.
#[tokio::test]
async fn what_is_unknown_stays_unknown() {
    let append = "(call $append (local.get $branch) (i32.const 512) (i32.const 9) (i32.const 0) (i32.const 4096) (i32.const 2) (i32.const 8192))";
    let plugin = WatPlugin { call_tool: format!("{append} {append} unreachable"), ..WatPlugin::default() };
    let (host, bytes) = (host(), plugin.build());
    let plugin = host.load_pinned(&bytes, &hex::encode(Sha256::digest(&bytes))).await.unwrap();
    let journal = Faulty::new(Memory::default());
    journal.next(Operation::Append, How::After);
    let session = host.open(journal).await.unwrap();
    let error = conformance::attach(&plugin, &session).await.call("run", "{}").await.unwrap_err();
    assert!(matches!(&error, Error::Trap { kept, .. } if kept.unknown), "{error}");
}

/// A call that ends while it waits to write has written nothing.
#[tokio::test]
async fn what_did_not_begin_is_not_unknown() {
    let host = host_with(|limits| limits.call = Duration::from_millis(300));
    let (journal, tools) = faulty(&host).await;
    journal.next(Operation::Latest, How::Hang);
    let error = tools.call("plan_advance", DONE).await.unwrap_err();
    assert!(matches!(&error, Error::Limit { limit: Limit::Call(_), kept, .. } if !kept.unknown), "{error}");
    call(&tools, "plan_advance", DONE).await.unwrap();
}

#[tokio::test]
async fn what_was_not_granted_is_denied() {
    let host = host();
    let plugin = conformance::plan_tools(&host).await;
    let memory = Memory::default();
    let session = host.open(memory.clone()).await.unwrap();
    let tools = session.attach(&plugin, "{}", Grants::Only(vec!["pi-harness/other".into()])).await.unwrap();
    for (tool, arguments) in [("plan_get", "{}"), ("plan_create", &chain(1))] {
        let error = call(&tools, tool, arguments).await.unwrap_err();
        assert_eq!(error.code, "denied");
        assert!(error.message.contains("pi-harness/plan-execute"), "{}", error.message);
    }
    assert!(memory.custom_entries().is_empty());
}

#[tokio::test]
async fn a_plan_larger_than_the_host_saves_is_refused() {
    let host = host_with(|limits| limits.payload = 1_000);
    let tools = plan_session(&host, Memory::default()).await;
    let error = call(&tools, "plan_create", &chain(50)).await.unwrap_err();
    assert_eq!((error.code.as_str(), error.data.as_deref()), ("too-large", Some(r#"{"limit":1000}"#)));
    call(&tools, "plan_create", &chain(3)).await.unwrap();
}

#[tokio::test]
async fn an_entry_larger_than_a_plugin_reads_is_an_error() {
    let host = host_with(|limits| limits.payload_read = 10_000);
    let memory = Memory::default();
    let tools = plan_session(&host, memory.clone()).await;
    memory.push(Some("pi-harness/plan-execute"), Payload::json(format!("\"{}\"", "x".repeat(20_000))));
    let error = call(&tools, "plan_get", "{}").await.unwrap_err();
    assert_eq!(error.code, "other");
    assert!(error.message.contains("holds 20002 bytes"), "{}", error.message);
}
