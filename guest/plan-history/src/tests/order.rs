//! The order of lines alone decides what a plan's number, version and kind are.

use super::{call, claude};
use crate::source::memory::Memory;
use proptest::prelude::*;
use serde_json::{Value, json};

/// What happens in a session, in order.
#[derive(Debug, Clone)]
enum Step {
    User,
    Write(u8),
    Exit(u8),
    Reject(u8),
    Approve(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::User),
        (0u8..3).prop_map(Step::Write),
        (0u8..3).prop_map(Step::Exit),
        (0u8..8).prop_map(Step::Reject),
        (0u8..8).prop_map(Step::Approve),
    ]
}

/// The lines of these steps, each at its time. An answer refers to one of the calls made so far.
fn lines(steps: &[Step], times: &[u32]) -> Vec<String> {
    let mut calls = 0u32;
    let line = |(step, time): (&Step, &u32)| {
        let time = format!("2026-03-01T09:{:02}:{:02}Z", time / 60 % 60, time % 60);
        let mut assistant = |name: &str, input: Value| {
            calls += 1;
            let call = json!({"type": "tool_use", "id": format!("c{calls}"), "name": name, "input": input});
            json!({"type": "assistant", "timestamp": time, "message": {"content": [call]}})
        };
        let line = match step {
            Step::User => json!({"type": "user", "timestamp": time, "message": {"content": "go on"}}),
            Step::Write(name) => assistant("Write", json!({"file_path": format!("plans/{name}.md"), "content": "# W"})),
            Step::Exit(name) => assistant("ExitPlanMode", json!({"plan": format!("# Title {name}\n\nbody")})),
            Step::Reject(back) | Step::Approve(back) => {
                let text = match step {
                    Step::Reject(_) => "The user doesn't want to proceed. the user said:\nno",
                    _ => "User has approved your plan",
                };
                let id = format!("c{}", calls.saturating_sub(u32::from(*back)));
                let part = json!({"type": "tool_result", "tool_use_id": id, "content": text});
                json!({"type": "user", "timestamp": time, "message": {"content": [part]}})
            }
        };
        line.to_string()
    };
    steps.iter().zip(times).map(line).collect()
}

/// Id, task, version and kind of a plan.
type Row = (String, String, u64, String);

/// The same rules in other words: ids, tasks, versions and kinds of the plans, and which plan each answer is for.
fn expected(steps: &[Step]) -> (Vec<Row>, Vec<String>) {
    let mut number = 0;
    let mut plans: Vec<(u64, String)> = Vec::new();
    let mut file: Option<String> = None;
    let mut answered = Vec::new();
    for step in steps {
        match step {
            Step::User => number += 1,
            Step::Write(name) => {
                file = Some(format!("plans/{name}.md"));
                plans.push((number + 1, format!("plans/{name}.md")));
                number += 2;
            }
            Step::Exit(name) => {
                plans.push((number + 1, file.clone().unwrap_or(format!("title {name}"))));
                number += 2;
            }
            Step::Reject(back) if plans.len() > usize::from(*back) => {
                answered.push(format!("s:{}", plans[plans.len() - 1 - usize::from(*back)].0));
            }
            Step::Reject(_) | Step::Approve(_) => {}
        }
    }
    let rows = plans.iter().enumerate().map(|(i, (number, task))| {
        let version = plans[..=i].iter().filter(|(_, other)| other == task).count() as u64;
        let kind = match plans.last() {
            Some((_, live)) if live != task => "completed_major",
            Some((last, _)) if last == number => "final",
            _ => "draft",
        };
        (format!("s:{number}"), task.clone(), version, kind.to_owned())
    });
    (rows.collect(), answered)
}

proptest! {
    #[test]
    fn lines_decide_and_clocks_do_not(
        steps in prop::collection::vec(step(), 0..20),
        times in prop::collection::vec(0u32..3600, 20),
        chunk in 1usize..200,
    ) {
        let memory = Memory { sessions: vec![claude("s", &lines(&steps, &times))], chunk, ..Memory::default() };
        let answer = call(&memory, "plan_history", &json!({}));
        let (plans, answered) = expected(&steps);
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let rows: Vec<Row> = answer["plans"].as_array().expect("a list").iter()
            .map(|plan| (text(&plan["id"]), text(&plan["task_id"]), plan["version"].as_u64().expect("a number"), text(&plan["kind"])))
            .collect();
        prop_assert_eq!(rows, plans);
        let feedback = answer["feedback"].as_array().expect("a list");
        prop_assert_eq!(feedback.iter().map(|row| text(&row["plan_id"])).collect::<Vec<_>>(), answered);
        prop_assert_eq!(feedback.iter().map(|row| row["round"].as_u64()).collect::<Vec<_>>(),
            (1..=feedback.len() as u64).map(Some).collect::<Vec<_>>());
        // What one answer says, the other tool finds again.
        for row in answer["plans"].as_array().expect("a list").iter() {
            let body = call(&memory, "plan_body", &json!({"id": row["id"]}));
            prop_assert_eq!(&body["title"], &row["title"]);
        }
        for row in feedback {
            let body = call(&memory, "plan_body", &json!({"id": row["ref"]}));
            prop_assert_eq!((&body["plan_id"], &body["verdict"]), (&row["plan_id"], &row["verdict"]));
        }
    }
}
