//! Every fixture, read through the component, against what the real Pi makes of it.

use conformance::{
    call,
    fixtures::{self, Fixture},
    host, plan_session,
};
use plan_execute_host::{
    Attached, Host,
    journal::{Journal, pi::PiSession},
};
use serde_json::Value;
use std::fs;

#[tokio::test]
async fn every_fixture_reads_as_pi_reads_it() {
    let host = host();
    let fixtures = fixtures::all();
    assert_eq!(fixtures.len(), 70);
    for fixture in &fixtures {
        let before = fs::read(&fixture.file).unwrap();
        read(&host, fixture).await;
        assert_eq!(fs::read(&fixture.file).unwrap(), before, "{} was changed by reading it", fixture.name);
    }
}

async fn read(host: &Host, fixture: &Fixture) {
    let Fixture { name, file, expected } = fixture;
    let opened = PiSession::open(file).await;
    if expected["opened"] == false {
        let error = opened.err().unwrap_or_else(|| panic!("{name} was opened")).to_string();
        assert!(error.contains("session"), "{name}: {error}");
        return;
    }
    let session = opened.unwrap_or_else(|error| panic!("{name}: {error}"));
    let tools = plan_session(host, session.clone()).await;
    let position = session.position().await.unwrap();
    if expected["header"].is_object() {
        assert_eq!(*position.session_id, *expected["sessionId"].as_str().unwrap(), "{name}");
    }
    if expected["cyclic"] == true {
        let error = call(&tools, "plan_get", "{}").await.unwrap_err();
        assert_eq!(error.code, "other", "{name}");
        assert!(error.message.contains("circle"), "{name}: {}", error.message);
        let error = call(&tools, "plan_create", r#"{"title":"T","steps":["a"]}"#).await.unwrap_err();
        assert!(error.message.contains("circle"), "{name}: {}", error.message);
        return;
    }
    let branch = session.branch_ids().await.unwrap();
    if expected["idsAreFresh"] == true {
        assert_eq!(branch.len(), expected["branch"].as_array().unwrap().len(), "{name}");
        plan_is(&tools, &without_entry(&expected["plan"]), name).await;
        return;
    }
    assert_eq!(position.leaf.as_deref(), expected["leafId"].as_str(), "{name}");
    assert_eq!(Value::from(branch), expected["branch"], "{name}");
    plan_is(&tools, &expected["plan"], name).await;
    for (leaf, at_leaf) in expected["leaves"].as_object().unwrap() {
        let place = format!("{name} at {leaf}");
        tools.session().branch(Some(leaf)).await.unwrap_or_else(|error| panic!("{place}: {error}"));
        assert_eq!(Value::from(session.branch_ids().await.unwrap()), at_leaf["branch"], "{place}");
        plan_is(&tools, &at_leaf["plan"], &place).await;
    }
}

fn without_entry(plan: &Value) -> Value {
    let mut plan = plan.clone();
    plan["entryId"] = Value::Null;
    plan
}

/// Does the component see this plan, none, or an invalid one in this entry?
async fn plan_is(tools: &Attached, expected: &Value, place: &str) {
    let answer = call(tools, "plan_get", "{}").await;
    let entry = expected["entryId"].as_str();
    match expected["result"].as_str().unwrap() {
        "plan" => {
            assert_eq!(answer.unwrap_or_else(|error| panic!("{place}: {error:?}")), expected["plan"], "{place}");
            let summary = tools.plans().unwrap().overview().await.unwrap().await.unwrap().unwrap();
            assert!(entry.is_none() || summary.revision.as_deref() == entry, "{place}: {:?}", summary.revision);
        }
        "none" => assert_eq!(answer.unwrap_err().code, "no-plan", "{place}"),
        "invalid" => {
            let error = answer.unwrap_err();
            assert_eq!(error.code, "saved-plan-invalid", "{place}");
            assert!(error.message.contains(entry.unwrap_or_default()), "{place}: {}", error.message);
        }
        other => panic!("{place}: {other}"),
    }
}
