//! Random calls, branch moves and reopenings against the real component, and the same against a model of a plan.

use conformance::{call, host, plan_session};
use plan_execute_host::{
    Attached,
    journal::{Encoding, Memory, pi::PiSession},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What the plan tools do, as simply as it can be said.
#[derive(Default)]
struct Model {
    /// The plan in each entry.
    entries: BTreeMap<String, Steps>,
    order: Vec<String>,
    leaf: Option<String>,
}

/// The status of each step, and the steps that it waits for.
type Steps = Vec<(String, Vec<usize>)>;

impl Model {
    fn plan(&self) -> Option<&Steps> {
        self.leaf.as_ref().map(|leaf| &self.entries[leaf])
    }

    fn create(&self, lists: &[Vec<usize>]) -> Result<Steps, &'static str> {
        let bad = |(i, list): (usize, &Vec<usize>)| list.iter().any(|&on| on == 0 || on > lists.len() || on == i + 1);
        if lists.is_empty() || lists.iter().enumerate().any(bad) {
            return Err("invalid-arguments");
        }
        let mut left: Vec<usize> = (1..=lists.len()).collect();
        while let Some(at) = left.iter().position(|&id| lists[id - 1].iter().all(|on| !left.contains(on))) {
            left.remove(at);
        }
        let steps = lists.iter().map(|list| ("pending".to_owned(), unique(list))).collect();
        if left.is_empty() { Ok(steps) } else { Err("dependency-cycle") }
    }

    fn advance(&self, step: usize, status: &str) -> Result<Steps, &'static str> {
        let mut steps = self.plan().ok_or("no-plan")?.clone();
        let unmet = |steps: &Steps, (status, on): &(String, Vec<usize>)| {
            ["in_progress", "done"].contains(&status.as_str())
                && on.iter().any(|&on| !["done", "skipped"].contains(&steps[on - 1].0.as_str()))
        };
        steps.get_mut(step.wrapping_sub(1)).ok_or("unknown-step")?.0 = status.into();
        if unmet(&steps, &steps[step - 1]) {
            return Err("unmet-prerequisites");
        }
        if steps.iter().any(|step| unmet(&steps, step)) {
            return Err("prerequisite-in-use");
        }
        Ok(steps)
    }

    fn saved(&mut self, id: String, steps: Steps) {
        self.entries.insert(id.clone(), steps);
        self.order.push(id.clone());
        self.leaf = Some(id);
    }
}

fn unique(list: &[usize]) -> Vec<usize> {
    let mut seen = Vec::new();
    list.iter().for_each(|on| {
        if !seen.contains(on) {
            seen.push(*on)
        }
    });
    seen
}

#[derive(Debug, Clone)]
enum Action {
    Create(Vec<Vec<usize>>),
    Advance(usize, usize),
    Get,
    Branch(usize),
    Root,
    Reopen,
}

fn action() -> impl Strategy<Value = Action> {
    let lists = prop::collection::vec(prop::collection::vec(0usize..7, 0..3), 0..6);
    let sound = prop::collection::vec(prop::collection::vec(0usize..7, 0..3), 1..7).prop_map(|mut lists| {
        lists.iter_mut().enumerate().for_each(|(i, list)| list.retain(|&on| on > 0 && on <= i));
        lists
    });
    prop_oneof![
        1 => lists.prop_map(Action::Create),
        2 => sound.prop_map(Action::Create),
        10 => (0usize..8, 0usize..4).prop_map(|(step, status)| Action::Advance(step, status)),
        2 => Just(Action::Get),
        2 => any::<usize>().prop_map(Action::Branch),
        1 => Just(Action::Root),
        1 => Just(Action::Reopen),
    ]
}

const STATUSES: [&str; 4] = ["pending", "in_progress", "done", "skipped"];

fn shown(steps: &Steps) -> Value {
    let step = |(i, (status, on)): (usize, &(String, Vec<usize>))| json!({"id": i + 1, "title": format!("s{}", i + 1), "status": status, "dependsOn": on});
    json!({"title": "T", "steps": steps.iter().enumerate().map(step).collect::<Vec<_>>()})
}

async fn walk(tools: &Attached, actions: &[Action]) {
    let mut model = Model::default();
    let session = tools.session();
    for action in actions {
        let (answer, expected) = match action {
            Action::Create(lists) => {
                let titles: Vec<String> = (1..=lists.len()).map(|i| format!("s{i}")).collect();
                let dependencies: Vec<Value> =
                    lists.iter().enumerate().map(|(i, list)| json!({"step": i + 1, "dependsOn": list})).collect();
                let draft = json!({"title": "T", "steps": titles, "dependencies": dependencies});
                (call(tools, "plan_create", &draft.to_string()).await, model.create(lists))
            }
            Action::Advance(step, status) => {
                let arguments = json!({"step": step, "status": STATUSES[*status]}).to_string();
                (call(tools, "plan_advance", &arguments).await, model.advance(*step, STATUSES[*status]))
            }
            Action::Get => (call(tools, "plan_get", "{}").await, model.plan().cloned().ok_or("no-plan")),
            Action::Branch(pick) => {
                if !model.order.is_empty() {
                    let id = model.order[pick % model.order.len()].clone();
                    session.branch(Some(&id)).await.unwrap();
                    model.leaf = Some(id);
                }
                continue;
            }
            Action::Root => {
                session.branch(None).await.unwrap();
                model.leaf = None;
                continue;
            }
            Action::Reopen => {
                session.reopen().await.unwrap();
                model.leaf = model.order.last().cloned();
                continue;
            }
        };
        let answer = answer.map_err(|error| error.code);
        assert_eq!(answer, expected.clone().map(|steps| shown(&steps)).map_err(str::to_owned), "{action:?}");
        let leaf = session.position().await.unwrap().leaf.map(|leaf| leaf.to_string());
        match (action, expected) {
            (Action::Create(_) | Action::Advance(..), Ok(steps)) => {
                let id = leaf.expect("something was saved");
                assert!(!model.entries.contains_key(&id), "an entry was used again");
                model.saved(id, steps);
            }
            _ => assert_eq!(leaf, model.leaf, "a refusal or a look moved the leaf: {action:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_component_does_what_the_model_does(actions in prop::collection::vec(action(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let host = host();
            walk(&plan_session(&host, Memory::new(Encoding::Json)).await, &actions).await;
            walk(&plan_session(&host, Memory::new(Encoding::Cbor)).await, &actions).await;
            let folder = tempfile::tempdir().unwrap();
            let file = PiSession::open_or_create(folder.path().join("s.jsonl")).await.unwrap();
            walk(&plan_session(&host, file).await, &actions).await;
        });
    }
}
