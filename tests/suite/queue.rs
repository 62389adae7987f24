//! The order of calls, the handles of those that wait, and what is told of saved plans.

use conformance::{call, chain, host, host_with, in_memory, plan_session};
use plan_execute_host::{
    Attached, Error, Event, Host, Limit,
    journal::{
        Journal, Memory, Payload,
        fault::{Faulty, How, Operation},
        pi::PiSession,
    },
    plans::{PlanDraft, StepStatus},
};
use std::{fs, future::Future, time::Duration};

fn advance(step: u32, status: &str) -> String {
    serde_json::json!({"step": step, "status": status}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn six_calls_queued_at_once_all_run_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    let tools = plan_session(&host(), PiSession::open_or_create(&file).await.unwrap()).await;
    call(&tools, "plan_create", &chain(6)).await.unwrap();
    let mut queued = Vec::new();
    for step in 1..=6 {
        queued.push(tools.queue("plan_advance", &advance(step, "done")).await.unwrap());
    }
    // Awaited the wrong way round, they still ran in the order in which they were queued.
    for (i, call) in queued.into_iter().enumerate().rev() {
        let plan: serde_json::Value = serde_json::from_str(&call.await.unwrap().unwrap().text).unwrap();
        let done = plan["steps"].as_array().unwrap().iter().filter(|step| step["status"] == "done").count();
        assert_eq!(done, i + 1);
    }
    let lines: Vec<serde_json::Value> =
        fs::read_to_string(&file).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 8, "a header, the plan, six advances");
    for (i, pair) in lines[1..].windows(2).enumerate() {
        assert_eq!(pair[1]["parentId"], pair[0]["id"]);
        assert_eq!(pair[1]["data"]["steps"][i]["status"], "done");
    }
}

#[tokio::test]
async fn calls_that_are_made_at_once_run_too() {
    let (memory, tools) = in_memory().await;
    call(&tools, "plan_create", &chain(6)).await.unwrap();
    let arguments: Vec<String> = (1..=6).map(|step| advance(step, "skipped")).collect();
    let (a, b, c, d, e, f) = tokio::join!(
        call(&tools, "plan_advance", &arguments[0]),
        call(&tools, "plan_advance", &arguments[1]),
        call(&tools, "plan_advance", &arguments[2]),
        call(&tools, "plan_advance", &arguments[3]),
        call(&tools, "plan_advance", &arguments[4]),
        call(&tools, "plan_advance", &arguments[5]),
    );
    for answer in [a, b, c, d, e, f] {
        answer.unwrap();
    }
    assert_eq!(memory.custom_entries().len(), 7);
}

/// A session with a plan of three steps, on a journal that can hold up the call that runs.
async fn held_up(host: &Host) -> (Faulty<Memory>, Attached) {
    let journal = Faulty::new(Memory::default());
    let tools = plan_session(host, journal.clone()).await;
    call(&tools, "plan_create", &chain(3)).await.unwrap();
    (journal, tools)
}

#[tokio::test]
async fn a_call_that_waited_while_the_leaf_moved_changes_nothing() {
    let (journal, tools) = held_up(&host()).await;
    let first = journal.position().await.unwrap().leaf.unwrap();
    call(&tools, "plan_advance", &advance(1, "done")).await.unwrap();
    for moved in ["branch", "foreign entry"] {
        journal.next(Operation::Latest, How::AnswerLost);
        let running = tools.queue("plan_get", "{}").await.unwrap();
        let waiting = tools.queue("plan_advance", &advance(2, "done")).await.unwrap();
        let reading = tools.queue("plan_get", "{}").await.unwrap();
        // The call that runs has looked at its branch; it is served that one.
        tokio::time::sleep(Duration::from_millis(20)).await;
        match moved {
            "branch" => drop(tools.session().branch(Some(&first)).await.unwrap()),
            _ => drop(journal.inner().push(None, Payload::json("{}"))),
        }
        let entries = journal.inner().custom_entries().len();
        journal.release();
        running.await.unwrap().unwrap();
        for queued in [waiting, reading] {
            let error = queued.await.unwrap().unwrap_err();
            assert_eq!(error.code, "branch-changed");
            assert!(error.message.contains("branch changed"));
        }
        assert_eq!(journal.inner().custom_entries().len(), entries);
        call(&tools, "plan_get", "{}").await.unwrap();
    }
}

#[tokio::test]
async fn a_call_that_waited_while_the_session_was_opened_again_changes_nothing() {
    let (journal, tools) = held_up(&host()).await;
    journal.next(Operation::Latest, How::Hang);
    let running = tools.queue("plan_get", "{}").await.unwrap();
    let waiting = tools.queue("plan_advance", &advance(1, "done")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    tools.session().reopen().await.unwrap();
    journal.release();
    for queued in [running, waiting] {
        let error = queued.await.unwrap().unwrap_err();
        assert_eq!(error.code, "session-changed");
        assert!(error.message.contains("session changed"));
    }
    assert_eq!(journal.inner().custom_entries().len(), 1);
    call(&tools, "plan_advance", &advance(1, "done")).await.unwrap();
}

#[tokio::test]
async fn a_call_that_is_given_up_lets_the_next_one_run() {
    let (journal, tools) = held_up(&host()).await;
    journal.next(Operation::Latest, How::Hang);
    let first = tools.queue("plan_advance", &advance(1, "done")).await.unwrap();
    let given_up = tools.queue("plan_advance", &advance(1, "pending")).await.unwrap();
    let last = tools.queue("plan_advance", &advance(2, "done")).await.unwrap();
    drop(given_up);
    // It is gone, and yet the last one does not run before the first has ended.
    tokio::time::sleep(Duration::from_millis(20)).await;
    journal.release();
    first.await.unwrap().unwrap();
    last.await.unwrap().unwrap();
    assert_eq!(journal.inner().custom_entries().len(), 3);
}

/// Whoever stops polling the future of `queue` does not stop the calls behind it.
#[tokio::test]
async fn a_call_that_is_queued_and_forgotten_lets_the_next_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = PiSession::open_or_create(folder.path().join("s.jsonl")).await.unwrap();
    let tools = plan_session(&host(), file).await;
    call(&tools, "plan_create", &chain(2)).await.unwrap();
    let change = advance(1, "done");
    let mut forgotten = Box::pin(tools.queue("plan_advance", &change));
    std::future::poll_fn(|context| {
        assert!(forgotten.as_mut().poll(context).is_pending(), "it was done before it could be forgotten");
        std::task::Poll::Ready(())
    })
    .await;
    let next = tokio::time::timeout(Duration::from_secs(5), call(&tools, "plan_get", "{}")).await;
    next.expect("the next call runs").unwrap();
    drop(forgotten);
}

#[test]
fn a_call_can_be_dropped_outside_the_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tools = runtime.block_on(async { in_memory().await.1 });
    let first = runtime.block_on(tools.queue("plan_create", &chain(1))).unwrap();
    let second = runtime.block_on(tools.queue("plan_get", "{}")).unwrap();
    drop(first);
    let _ = runtime.block_on(second).unwrap();
}

#[tokio::test]
async fn more_calls_than_may_wait_are_refused() {
    let (journal, tools) = held_up(&host_with(|limits| limits.waiting = 3)).await;
    journal.next(Operation::Latest, How::Hang);
    let mut queued = vec![tools.queue("plan_get", "{}").await.unwrap()];
    tokio::time::sleep(Duration::from_millis(20)).await;
    for _ in 0..3 {
        queued.push(tools.queue("plan_get", "{}").await.unwrap());
    }
    let refused = tools.queue("plan_get", "{}").await.err();
    assert!(matches!(refused, Some(Error::Limit { limit: Limit::Waiting(3), .. })), "{refused:?}");
    journal.release();
    for call in queued {
        call.await.unwrap().unwrap();
    }
    call(&tools, "plan_get", "{}").await.unwrap();
}

#[tokio::test]
async fn subscribers_hear_of_each_saved_plan() {
    let (_, tools) = in_memory().await;
    let mut subscription = tools.session().subscribe();
    call(&tools, "plan_create", &chain(2)).await.unwrap();
    call(&tools, "plan_advance", &advance(2, "done")).await.unwrap_err();
    call(&tools, "plan_get", "{}").await.unwrap();
    call(&tools, "plan_advance", &advance(1, "done")).await.unwrap();
    let mut heard = Vec::new();
    while let Ok(Some(event)) = tokio::time::timeout(Duration::from_millis(50), subscription.next()).await {
        let Event::Saved(saved) = event else { panic!("{event:?}") };
        let plan = saved.plan().expect("a plan");
        heard.push((saved.plugin.to_string(), plan.steps[0].status));
    }
    assert_eq!(heard, [("plan-execute".into(), StepStatus::Pending), ("plan-execute".to_owned(), StepStatus::Done)]);
}

#[tokio::test]
async fn typed_calls_and_json_calls_are_the_same_calls() {
    let (_, tools) = in_memory().await;
    let plans = tools.plans().unwrap();
    let draft = PlanDraft { title: " T ".into(), steps: vec!["a".into(), "b".into()], dependencies: vec![] };
    let plan = plans.create(draft).await.unwrap().await.unwrap().unwrap();
    assert_eq!(plan.title, "T");
    let plan = plans.advance(2, StepStatus::InProgress).await.unwrap().await.unwrap().unwrap();
    assert_eq!(plan.steps[1].status, StepStatus::InProgress);
    assert_eq!(plans.get().await.unwrap().await.unwrap().unwrap(), plan);
    let json = call(&tools, "plan_get", "{}").await.unwrap();
    assert_eq!(json["steps"][1]["status"], "in_progress");
    let summary = plans.overview().await.unwrap().await.unwrap().unwrap();
    assert_eq!((summary.completed, summary.total, summary.ready), (0, 2, vec![1]));
    assert_eq!(summary.plan, Some(plan));
    assert_eq!(summary.digest.unwrap().len(), 64);
}

#[tokio::test]
async fn an_unknown_configuration_key_is_refused_when_attaching() {
    let host = host();
    let plugin = conformance::plan_tools(&host).await;
    let session = host.open(Memory::default()).await.unwrap();
    let refused = session.attach(&plugin, r#"{"a":1,"b":2}"#, plan_execute_host::Grants::Declared).await.err();
    assert!(
        matches!(&refused, Some(Error::Config { reason, .. }) if reason.contains("config keys: a, b")),
        "{refused:?}"
    );
}
