//! What a caller proposes: it becomes a plan, or the list of everything that is wrong with it.

use crate::{
    dependencies,
    error::{InvalidArgument, PlanError},
    plan::{MAX_PREREQUISITES, MAX_STEPS, MAX_TITLE, Plan, Status, Step, title_fault},
};
use plan_guest_support::{
    loose::{Found, Integer, Items, Loose, UnknownKeys},
    loose_object, text,
};
use std::collections::BTreeSet;

/// How many faults one answer names: enough to mend a draft, and no answer as large as the draft.
const MAX_FAULTS: usize = 20;

/// A proposed plan, as it came. Its faults are found in [`Draft::into_plan`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Draft {
    /// What the plan is for.
    pub title: Option<Loose<String>>,
    /// The titles of the steps, in order. Steps are numbered from 1.
    pub steps: Option<Loose<Items<Loose<String>, MAX_STEPS>>>,
    /// Which steps must wait for others; at most one entry for each step, and no cycles.
    pub dependencies: Option<Loose<Items<Loose<Dependency>, MAX_STEPS>>>,
    /// Keys that no draft has.
    pub unknown: UnknownKeys,
}

/// A step of a draft and the steps that it waits for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dependency {
    /// The number of the step that waits.
    pub step: Option<Loose<Integer>>,
    /// The numbers of the steps that must be done or skipped before it starts.
    pub depends_on: Option<Loose<Items<Loose<Integer>, MAX_PREREQUISITES>>>,
    /// Keys that no dependency has.
    pub unknown: UnknownKeys,
}

loose_object!(Draft { title: "title", steps: "steps", dependencies: "dependencies" });
loose_object!(Dependency { step: "step", depends_on: "dependsOn" });

impl Draft {
    /// A draft whose types are known to be right.
    pub fn typed(title: String, steps: Vec<String>, dependencies: impl IntoIterator<Item = (u32, Vec<u32>)>) -> Draft {
        let number = |id: u32| Loose::Value(Integer(id.into()));
        let dependency = |(step, depends_on): (u32, Vec<u32>)| {
            Loose::Value(Dependency {
                step: Some(number(step)),
                depends_on: Some(Loose::Value(depends_on.into_iter().map(number).collect())),
                unknown: UnknownKeys::default(),
            })
        };
        Draft {
            title: Some(Loose::Value(title)),
            steps: Some(Loose::Value(steps.into_iter().map(Loose::Value).collect())),
            dependencies: Some(Loose::Value(dependencies.into_iter().map(dependency).collect())),
            unknown: UnknownKeys::default(),
        }
    }

    /// The plan, every step pending. Titles are trimmed as JavaScript trims; repeated prerequisites go.
    ///
    /// # Errors
    ///
    /// * [`PlanError::InvalidArguments`] with the faults in the order title, steps, dependencies: the first 20 of them.
    /// * [`PlanError::DependencyCycle`] where nothing else is wrong.
    pub fn into_plan(self) -> Result<Plan, PlanError> {
        let mut faults = Faults(Vec::new());
        let title = faults.title("/title", "the plan's title", self.title.unwrap_or(Loose::Other(Found::Missing)));
        let mut steps = faults.steps(self.steps.unwrap_or(Loose::Other(Found::Missing)));
        match self.dependencies {
            None | Some(Loose::Other(Found::Null)) => {}
            Some(dependencies) => faults.dependencies(dependencies, &mut steps),
        }
        faults.unknown("", &self.unknown, "title, steps and dependencies");
        if !faults.0.is_empty() {
            return Err(PlanError::InvalidArguments(faults.0));
        }
        match dependencies::cycle(&steps) {
            Some(cycle) => Err(PlanError::DependencyCycle(cycle)),
            None => Ok(Plan { title, steps }),
        }
    }
}

/// The faults found so far. Each method returns what could be used; where there is a fault, that is never looked at.
struct Faults(Vec<InvalidArgument>);

impl Faults {
    fn push(&mut self, path: impl Into<String>, message: impl Into<String>) {
        if self.0.len() < MAX_FAULTS {
            self.0.push(InvalidArgument { path: path.into(), message: message.into() });
        }
    }

    fn title(&mut self, path: &str, what: &str, title: Loose<String>) -> String {
        match title {
            Loose::Value(title) => {
                let title = text::trim(&title);
                if let Some(fault) = title_fault(what, title) {
                    self.push(path, fault);
                }
                title.to_owned()
            }
            Loose::Other(found) => {
                self.push(path, format!("{what} must be text of 1-{MAX_TITLE} characters, not {found}"));
                String::new()
            }
        }
    }

    fn steps(&mut self, steps: Loose<Items<Loose<String>, MAX_STEPS>>) -> Vec<Step> {
        let items = match steps {
            Loose::Value(items) => items,
            Loose::Other(found) => {
                self.push("/steps", format!("steps must be a list of 1-{MAX_STEPS} step titles, not {found}"));
                return Vec::new();
            }
        };
        if !(1..=MAX_STEPS).contains(&items.count) {
            self.push("/steps", format!("steps must hold 1-{MAX_STEPS} step titles, not {}", items.count));
            return Vec::new();
        }
        let title = |(id, title): (u32, Loose<String>)| {
            let title = self.title(&format!("/steps/{}", id - 1), &format!("the title of step {id}"), title);
            Step { id, title, status: Status::Pending, depends_on: None }
        };
        (1..).zip(items.kept).map(title).collect()
    }

    fn dependencies(&mut self, dependencies: Loose<Items<Loose<Dependency>, MAX_STEPS>>, steps: &mut [Step]) {
        let items = match dependencies {
            Loose::Value(items) => items,
            Loose::Other(found) => {
                return self.push(
                    "/dependencies",
                    format!("dependencies must be a list of objects with step and dependsOn, not {found}"),
                );
            }
        };
        if items.count > MAX_STEPS {
            return self.push(
                "/dependencies",
                format!("dependencies may hold at most {MAX_STEPS} entries, one for each step, not {}", items.count),
            );
        }
        if steps.is_empty() {
            // Without steps every number would be a fault, and the one about the steps says it all.
            return;
        }
        for (i, item) in items.kept.into_iter().enumerate() {
            let path = format!("/dependencies/{i}");
            match item {
                Loose::Value(dependency) => self.dependency(&path, dependency, steps),
                Loose::Other(found) => {
                    self.push(path, format!("a dependency must be an object with step and dependsOn, not {found}"));
                }
            }
        }
    }

    fn dependency(&mut self, path: &str, dependency: Dependency, steps: &mut [Step]) {
        let count = steps.len();
        let step = self.step_number(&format!("{path}/step"), "step", dependency.step, count);
        let list_path = format!("{path}/dependsOn");
        let depends_on = match dependency.depends_on.unwrap_or(Loose::Other(Found::Missing)) {
            Loose::Value(items) if items.count <= MAX_PREREQUISITES => {
                let mut seen = BTreeSet::new();
                let mut list = Vec::new();
                for (i, item) in items.kept.into_iter().enumerate() {
                    let path = format!("{list_path}/{i}");
                    match self.step_number(&path, "dependsOn", Some(item), count) {
                        Some(id) if Some(id) == step => self.push(path, format!("step {id} cannot depend on itself")),
                        Some(id) if seen.insert(id) => list.push(id),
                        _ => {}
                    }
                }
                Some(list)
            }
            Loose::Value(items) => {
                let message =
                    format!("dependsOn may hold at most {MAX_PREREQUISITES} step numbers, not {}", items.count);
                self.push(list_path, message);
                None
            }
            Loose::Other(found) => {
                self.push(list_path, format!("dependsOn must be a list of step numbers, not {found}"));
                None
            }
        };
        self.unknown(path, &dependency.unknown, "step and dependsOn");
        if let (Some(id), Some(depends_on)) = (step, depends_on) {
            let step = &mut steps[id as usize - 1];
            if step.depends_on.is_some() {
                self.push(
                    format!("{path}/step"),
                    format!("dependencies already has an entry for step {id}: join the two"),
                );
            } else {
                step.depends_on = Some(depends_on);
            }
        }
    }

    /// A number of one of `count` steps.
    fn step_number(&mut self, path: &str, what: &str, number: Option<Loose<Integer>>, count: usize) -> Option<u32> {
        match number.unwrap_or(Loose::Other(Found::Missing)) {
            Loose::Value(Integer(number)) => {
                let id = u32::try_from(number).ok().filter(|&id| (1..=count).contains(&(id as usize)));
                if id.is_none() {
                    self.push(path, format!("{what} in dependencies must name a step from 1-{count}, not {number}"));
                }
                id
            }
            Loose::Other(found) => {
                self.push(
                    path,
                    format!("{what} in dependencies must be the whole number of a step from 1-{count}, not {found}"),
                );
                None
            }
        }
    }

    fn unknown(&mut self, path: &str, unknown: &UnknownKeys, known: &str) {
        for key in unknown.iter() {
            self.push(
                format!("{path}/{}", pointer_token(key)),
                format!("{key:?} is not known here: allowed are {known}"),
            );
        }
    }
}

/// A key as a token of a JSON Pointer (RFC 6901, section 3).
pub(crate) fn pointer_token(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan_guest_support::payload::decode_json;
    use serde_json::{Value, json};

    fn read(json: &Value) -> Result<Value, PlanError> {
        let Loose::Value(draft) = decode_json::<Loose<Draft>>(&json.to_string()).expect("JSON") else {
            panic!("{json}")
        };
        draft.into_plan().map(|plan| serde_json::to_value(plan).expect("plain data"))
    }

    #[test]
    fn drafts_that_become_plans() {
        let longest = "😀".repeat(250);
        for (draft, steps) in [
            (json!({"title": "T", "steps": ["a", "b"]}), json!([{"title": "a"}, {"title": "b"}])),
            (json!({"title": "T", "steps": ["a"], "dependencies": null}), json!([{"title": "a"}])),
            (json!({"title": "T", "steps": ["a"], "dependencies": []}), json!([{"title": "a"}])),
            (
                json!({"title": "\u{feff} T\n", "steps": [" a\u{3000}", "\u{85}"]}),
                json!([{"title": "a"}, {"title": "\u{85}"}]),
            ),
            (json!({"title": "T", "steps": [format!("  {longest}  ")]}), json!([{"title": longest}])),
            (
                json!({"title": "T", "steps": ["a", "b", "c"], "dependencies": [
                    {"step": 3.0, "dependsOn": [2, 1, 2.0]}, {"step": 1, "dependsOn": []}
                ]}),
                json!([{"title": "a", "dependsOn": []}, {"title": "b"}, {"title": "c", "dependsOn": [2, 1]}]),
            ),
        ] {
            let mut expected = steps;
            for (i, step) in expected.as_array_mut().expect("a list").iter_mut().enumerate() {
                step["id"] = json!(i + 1);
                step["status"] = json!("pending");
            }
            assert_eq!(read(&draft), Ok(json!({"title": "T", "steps": expected})), "{draft}");
        }
    }

    #[test]
    fn faults_with_their_places() {
        let draft = |dependencies: Value| json!({"title": "T", "steps": ["a", "b"], "dependencies": dependencies});
        let fifty_one = vec!["x"; 51];
        for (draft, faults) in [
            (json!({"steps": ["a"]}), &[("/title", "title must be text of 1-500 characters, not missing")][..]),
            (json!({"title": 5, "steps": ["a"]}), &[("/title", "not the number 5")]),
            (json!({"title": " \u{feff}", "steps": ["a"]}), &[("/title", "title is blank")]),
            (json!({"title": "x".repeat(501), "steps": ["a"]}), &[("/title", "501 UTF-16")]),
            (json!({"title": "😀".repeat(251), "steps": ["a"]}), &[("/title", "502 UTF-16")]),
            (json!({"title": "T"}), &[("/steps", "1-50")]),
            (json!({"title": "T", "steps": []}), &[("/steps", "1-50 step titles, not 0")]),
            (json!({"title": "T", "steps": fifty_one}), &[("/steps", "1-50 step titles, not 51")]),
            (json!({"title": "T", "steps": "[\"a\"]"}), &[("/steps", "not the text \"[\\\"a\\\"]\"")]),
            (
                json!({"title": "T", "steps": ["a", "", null]}),
                &[("/steps/1", "title of step 2 is blank"), ("/steps/2", "step 3 must be text")],
            ),
            (
                json!({"title": "T", "steps": ["a"], "plan~/x": 1}),
                &[("/plan~0~1x", "allowed are title, steps and dependencies")],
            ),
            (draft(json!("none")), &[("/dependencies", "not the text \"none\"")]),
            (draft(json!([[1, 2]])), &[("/dependencies/0", "not a list")]),
            (draft(json!([{"step": 1}])), &[("/dependencies/0/dependsOn", "not missing")]),
            (draft(json!([{"dependsOn": [1]}])), &[("/dependencies/0/step", "not missing")]),
            (
                draft(json!([{"step": "2", "dependsOn": [1.5]}])),
                &[
                    ("/dependencies/0/step", "not the text \"2\""),
                    ("/dependencies/0/dependsOn/0", "not the number 1.5"),
                ],
            ),
            (
                draft(json!([{"step": 3, "dependsOn": [0, -1]}])),
                &[
                    ("/dependencies/0/step", "1-2, not 3"),
                    ("/dependencies/0/dependsOn/0", "not 0"),
                    ("/dependencies/0/dependsOn/1", "not -1"),
                ],
            ),
            (
                draft(json!([{"step": 1, "dependsOn": [2, 1]}])),
                &[("/dependencies/0/dependsOn/1", "step 1 cannot depend on itself")],
            ),
            (
                draft(json!([{"step": 2, "dependsOn": []}, {"step": 2, "dependsOn": [1]}])),
                &[("/dependencies/1/step", "already has an entry for step 2")],
            ),
            (
                draft(json!([{"step": 2, "dependsOn": [1], "on": 1}])),
                &[("/dependencies/0/on", "allowed are step and dependsOn")],
            ),
            (
                draft(json!([{"step": 2, "dependsOn": vec![1; 51]}])),
                &[("/dependencies/0/dependsOn", "at most 50 step numbers, not 51")],
            ),
            (
                draft(json!(vec![json!({"step": 2, "dependsOn": []}); 51])),
                &[("/dependencies", "at most 50 entries, one for each step, not 51")],
            ),
            // In the order title, steps, dependencies, and nothing about numbers of steps that are not there.
            (
                json!({"dependencies": [{"step": 9, "dependsOn": 1}], "steps": [], "title": ""}),
                &[("/title", "blank"), ("/steps", "1-50")],
            ),
        ] {
            let Err(PlanError::InvalidArguments(found)) = read(&draft) else { panic!("{draft} has no fault") };
            assert_eq!(found.len(), faults.len(), "{draft}: {found:?}");
            for (found, (path, words)) in found.iter().zip(faults) {
                assert_eq!(found.path, *path, "{draft}");
                assert!(found.message.contains(words), "{draft}: {} lacks {words}", found.message);
            }
        }
    }

    #[test]
    fn every_dependency_fault_says_depend() {
        for dependencies in [
            json!(1),
            json!([1]),
            json!([{}]),
            json!([{"step": 9, "dependsOn": [9]}]),
            json!([{"step": 1, "dependsOn": [1]}]),
        ] {
            let Err(PlanError::InvalidArguments(faults)) =
                read(&json!({"title": "T", "steps": ["a"], "dependencies": dependencies}))
            else {
                panic!("{dependencies}")
            };
            assert!(faults.iter().all(|fault| fault.message.contains("depend")), "{faults:?}");
        }
    }

    #[test]
    fn cycles_are_named_step_by_step() {
        let draft = json!({"title": "T", "steps": ["a", "b", "c"], "dependencies": [
            {"step": 2, "dependsOn": [3]}, {"step": 3, "dependsOn": [1, 2]}
        ]});
        assert_eq!(read(&draft), Err(PlanError::DependencyCycle(vec![2, 3, 2])));
    }

    #[test]
    fn an_answer_names_twenty_faults_at_most() {
        let draft = json!({"title": "T", "steps": vec![""; 50]});
        let Err(PlanError::InvalidArguments(faults)) = read(&draft) else { panic!() };
        assert_eq!(faults.len(), 20);
    }

    #[test]
    fn typed_drafts_obey_the_same_rules() {
        let plan =
            Draft::typed(" T ".into(), vec!["a".into(), "b".into()], [(2, vec![1, 1])]).into_plan().expect("valid");
        assert_eq!(plan.title(), "T");
        assert_eq!(plan.steps()[1].depends_on(), Some(&[1][..]));
        let faults = Draft::typed("T".into(), vec!["a".into(); 51], [(9, vec![])]).into_plan();
        assert!(matches!(faults, Err(PlanError::InvalidArguments(faults)) if faults[0].path == "/steps"));
    }
}
