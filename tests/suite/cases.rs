//! Reports from the field, by their numbers, as far as no other test stands for them.
//!
//! | report | test |
//! | --- | --- |
//! | 2: a failed write shown as saved | `failures::after_a_write_of_unknown_outcome_no_plan_is_shown_until_reopening` |
//! | 3: one full disk | `failures::a_refusal_costs_one_call` |
//! | 5: a torn last line | `pi_fixtures`, `pi_writing::damaged_lines_are_counted_by_their_numbers` |
//! | 6: nothing on disk, and no one told | `durability_is_told` |
//! | 7: a session of gigabytes | `pi_writing::a_long_session_stays_small` |
//! | 9: a sub-agent wiped its parent's list | `plans_belong_to_their_session` |
//! | 10: the plan after a fork from before it | `only_the_path_to_the_leaf_counts` |
//! | 11: calls of one message mixed | `queue::six_calls_queued_at_once_all_run_in_order` |
//! | 13: a change to one list damaged another | `pi_sharing::changing_one_branch_leaves_the_other` |
//! | 14: a new plan erased the old one | `the_old_plan_stays_in_the_journal` |
//! | 15, 17, 18, 19: dependencies | the guest's own tables, and `model` |
//! | 20: two views disagreed | `overview_is_the_one_derivation` |
//! | 22, 25, 26: wrong arguments | `refusals_list_what_is_allowed` |
//! | 23: gone after compaction | `pi_fixtures` (compaction) |
//! | 27, 29, 30: tool lists and schemas | `component` |
//! | 31: one trap | `limits` |
//! | 32: a slow host call | `failures::reading_that_fails_or_hangs_costs_one_call` |
//! | 34: further system interfaces | `component::it_imports_the_journal_and_nothing_else` |

use conformance::{call, chain, host, in_memory, plan_session, plan_tools, refusal};
use plan_execute_host::{
    Event,
    journal::{Durability, Journal, Memory, pi::PiSession},
};
use serde_json::json;

#[tokio::test]
async fn durability_is_told() {
    let host = host();
    let folder = tempfile::tempdir().unwrap();
    let file = PiSession::open_or_create(folder.path().join("s.jsonl")).await.unwrap();
    let in_memory = plan_session(&host, Memory::default()).await;
    let on_disk = plan_session(&host, file).await;
    for (tools, durability) in [(in_memory, Durability::Memory), (on_disk, Durability::Stored)] {
        assert_eq!(tools.session().durability(), durability);
        let mut saved = tools.session().subscribe();
        call(&tools, "plan_create", &chain(1)).await.unwrap();
        let Some(Event::Saved(saved)) = saved.next().await else { panic!("nothing was told") };
        assert_eq!(saved.durability, durability);
    }
}

#[tokio::test]
async fn plans_belong_to_their_session() {
    let host = host();
    let parent = plan_session(&host, Memory::default()).await;
    let child = plan_session(&host, Memory::default()).await;
    let plan = call(&parent, "plan_create", &chain(3)).await.unwrap();
    assert_eq!(refusal(&child, "plan_get", "{}").await.0, "no-plan");
    call(&child, "plan_create", &chain(1)).await.unwrap();
    assert_eq!(call(&parent, "plan_get", "{}").await.unwrap(), plan);
}

#[tokio::test]
async fn only_the_path_to_the_leaf_counts() {
    let (memory, tools) = in_memory().await;
    let before = memory.push(None, plan_execute_host::journal::Payload::json("{}"));
    call(&tools, "plan_create", &chain(3)).await.unwrap();
    tools.session().branch(Some(&before)).await.unwrap();
    assert_eq!(refusal(&tools, "plan_get", "{}").await.0, "no-plan");
}

#[tokio::test]
async fn the_old_plan_stays_in_the_journal() {
    let (memory, tools) = in_memory().await;
    let old = call(&tools, "plan_create", &chain(3)).await.unwrap();
    call(&tools, "plan_create", &chain(1)).await.unwrap();
    let at = memory.position().await.unwrap();
    let revisions = memory.entries(&at, "pi-harness/plan-execute", None, 10).await.unwrap();
    assert_eq!(revisions.len(), 2);
    let oldest: serde_json::Value = serde_json::from_slice(&revisions[1].payload.bytes).unwrap();
    assert_eq!(oldest, old);
    let older = memory.entries(&at, "pi-harness/plan-execute", Some(&revisions[0].id), 10).await.unwrap();
    assert_eq!(older, revisions[1..]);
}

#[tokio::test]
async fn overview_is_the_one_derivation() {
    let (_, tools) = in_memory().await;
    let plans = tools.plans().unwrap();
    let empty = plans.overview().await.unwrap().await.unwrap().unwrap();
    assert_eq!((empty.plan, empty.revision, empty.digest, empty.total), (None, None, None, 0));
    let draft = json!({"title": "T", "steps": ["a", "b", "c"], "dependencies": [{"step": 3, "dependsOn": [1, 2]}]});
    call(&tools, "plan_create", &draft.to_string()).await.unwrap();
    call(&tools, "plan_advance", r#"{"step":1,"status":"skipped"}"#).await.unwrap();
    let summary = plans.overview().await.unwrap().await.unwrap().unwrap();
    assert_eq!(summary.ready, [2]);
    assert_eq!(summary.blocked[0].waiting_for, [2]);
    let refused = call(&tools, "plan_advance", r#"{"step":3,"status":"done"}"#).await.unwrap_err();
    assert_eq!(refused.data.unwrap(), r#"{"step":3,"waitingFor":[2]}"#);
}

#[tokio::test]
async fn refusals_list_what_is_allowed() {
    let (memory, tools) = in_memory().await;
    for (tool, arguments, code, words) in [
        (
            "plan_create",
            r#"{"title":"T","steps":"[\"a\"]"}"#,
            "invalid-arguments",
            &["a list of 1-50", "the text", "/steps"][..],
        ),
        (
            "plan_create",
            r#"{"title":"T","steps":["a"],"dependencies":[{"step":1,"dependsOn":[2]}]}"#,
            "invalid-arguments",
            &["1-1", "not 2", "/dependencies/0/dependsOn/0"],
        ),
        (
            "plan_create",
            r#"{"title":"T","steps":["a"],"dependencies":[{"step":1,"dependsOn":[1]}]}"#,
            "invalid-arguments",
            &["depend on itself"],
        ),
        ("plan_delete", "{}", "unknown-tool", &["plan_create, plan_advance, plan_get"]),
    ] {
        let (found, message) = refusal(&tools, tool, arguments).await;
        assert_eq!(found, code, "{message}");
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
    call(&tools, "plan_create", &chain(3)).await.unwrap();
    for (arguments, code, words) in [
        (r#"{"step":4,"status":"done"}"#, "unknown-step", &["no step 4", "1-3"][..]),
        (r#"{"step":0,"status":"done"}"#, "unknown-step", &["no step 0", "1-3"]),
        (r#"{"step":1,"status":"open"}"#, "invalid-arguments", &["pending, in_progress, done, skipped"]),
        (r#"{"step":"1","status":"done"}"#, "invalid-arguments", &["whole number", "the text \"1\""]),
    ] {
        let (found, message) = refusal(&tools, "plan_advance", arguments).await;
        assert_eq!(found, code, "{message}");
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    }
    assert_eq!(memory.custom_entries().len(), 1);
}

#[tokio::test]
async fn tools_are_listed_before_any_session_is_open() {
    let names: Vec<String> = plan_tools(&host()).await.tools().iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names, ["plan_create", "plan_advance", "plan_get"]);
}
