//! What a journal entry holds becomes a plan, or the reason why not.
//!
//! A saved plan is judged by rules of its own (DESIGN, "Rules of a plan"): texts stay as they are, `1.0` counts as 1,
//! unknown keys are passed over, and nothing is mended.

use crate::{
    dependencies,
    plan::{MAX_PREREQUISITES, MAX_STEPS, Plan, Status, Step, title_fault},
};
use plan_guest_support::{
    loose::{Found, Integer, Items, Loose, UnknownKeys},
    loose_object,
    payload::{Encoding, decode},
};
use std::fmt;

#[derive(Default)]
struct SavedPlan {
    title: Option<Loose<String>>,
    steps: Option<Loose<Items<Loose<SavedStep>, MAX_STEPS>>>,
    unknown: UnknownKeys,
}

#[derive(Default)]
struct SavedStep {
    id: Option<Loose<Integer>>,
    title: Option<Loose<String>>,
    status: Option<Loose<String>>,
    depends_on: Option<Loose<Items<Loose<Integer>, MAX_PREREQUISITES>>>,
    unknown: UnknownKeys,
}

loose_object!(SavedPlan { title: "title", steps: "steps" });
loose_object!(SavedStep { id: "id", title: "title", status: "status", depends_on: "dependsOn" });

/// Reads the data of a plan entry.
///
/// # Errors
///
/// The first fault, with its place, as half a sentence.
pub fn read(encoding: Encoding, bytes: &[u8]) -> Result<Plan, String> {
    let saved: SavedPlan = match decode(encoding, bytes).map_err(|e| e.to_string())? {
        Loose::Value(saved) => saved,
        Loose::Other(found) => return Err(format!("it is {found}, not an object")),
    };
    let title = title("title", saved.title)?;
    let items = match saved.steps {
        Some(Loose::Value(items)) => items,
        other => return Err(format!("steps must be a list, not {}", came(other))),
    };
    if !(1..=MAX_STEPS).contains(&items.count) {
        return Err(format!("it has {} steps, not 1-{MAX_STEPS}", items.count));
    }
    let count = items.count;
    let steps =
        (1..).zip(items.kept).map(|(id, saved)| step(id, count, saved)).collect::<Result<Vec<Step>, String>>()?;
    if let Some(cycle) = dependencies::cycle(&steps) {
        return Err(format!("its dependencies run in a circle through the steps {cycle:?}"));
    }
    let plan = Plan { title, steps };
    for step in plan.steps() {
        if let Some(missing) = plan.unmet(step) {
            return Err(format!("step {} is {} while it depends on {missing:?}", step.id(), step.status().name()));
        }
    }
    Ok(plan)
}

fn step(id: u32, count: usize, saved: Loose<SavedStep>) -> Result<Step, String> {
    let saved = match saved {
        Loose::Value(saved) => saved,
        Loose::Other(found) => return Err(format!("step {id} must be an object, not {found}")),
    };
    match saved.id {
        Some(Loose::Value(Integer(found))) if found == i64::from(id) => {}
        Some(Loose::Value(Integer(found))) => return Err(format!("step {id} has the id {found}")),
        other => return Err(format!("the id of step {id} must be {id}, not {}", came(other))),
    }
    let title = title(format_args!("the title of step {id}"), saved.title)?;
    let status = match saved.status {
        Some(Loose::Value(name)) => {
            Status::from_name(&name).ok_or_else(|| format!("step {id} has the unknown status {}", Found::Text(name)))?
        }
        other => return Err(format!("the status of step {id} must be text, not {}", came(other))),
    };
    let depends_on = match saved.depends_on {
        None => None,
        Some(Loose::Value(items)) if items.count <= MAX_PREREQUISITES => Some(prerequisites(id, count, items.kept)?),
        Some(Loose::Value(items)) => {
            return Err(format!("dependsOn of step {id} has {} entries, more than {MAX_PREREQUISITES}", items.count));
        }
        Some(Loose::Other(found)) => return Err(format!("dependsOn of step {id} must be a list, not {found}")),
    };
    Ok(Step { id, title, status, depends_on })
}

fn prerequisites(id: u32, count: usize, items: Vec<Loose<Integer>>) -> Result<Vec<u32>, String> {
    let mut list = Vec::new();
    for item in items {
        match item {
            Loose::Value(Integer(number)) => match u32::try_from(number) {
                Ok(number) if number == id => return Err(format!("step {id} depends on itself")),
                Ok(number) if (1..=count).contains(&(number as usize)) => {
                    if !list.contains(&number) {
                        list.push(number);
                    }
                }
                _ => return Err(format!("step {id} depends on step {number}, which does not exist")),
            },
            Loose::Other(found) => {
                return Err(format!("dependsOn of step {id} must hold numbers of steps, not {found}"));
            }
        }
    }
    Ok(list)
}

fn title(what: impl fmt::Display + Copy, title: Option<Loose<String>>) -> Result<String, String> {
    match title {
        Some(Loose::Value(title)) => match title_fault(what, &title) {
            Some(fault) => Err(fault),
            None => Ok(title),
        },
        other => Err(format!("{what} must be text, not {}", came(other))),
    }
}

/// What stands where something else should, as an error names it.
fn came<T>(value: Option<Loose<T>>) -> String {
    match value {
        Some(Loose::Other(found)) => found.to_string(),
        _ => "missing".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan_guest_support::payload::encode;

    fn read_json(json: &str) -> Result<String, String> {
        read(Encoding::Json, json.as_bytes()).map(|plan| serde_json::to_string(&plan).expect("plain data"))
    }

    #[test]
    fn plans_are_read_as_they_stand() {
        let step = r#"{"id":1,"title":"a","status":"pending"}"#;
        for (saved, text) in [
            (format!(r#"{{"title":" T ","steps":[{step}]}}"#), format!(r#"{{"title":" T ","steps":[{step}]}}"#)),
            (
                format!(r#"{{"steps":[{step}],"x":[1e999],"title":"T"}}"#),
                format!(r#"{{"title":"T","steps":[{step}]}}"#),
            ),
            (
                r#"{"title":"\ud83d","steps":[{"status":"done","id":1.0,"title":"a","dependsOn":[],"\udc00":0}]}"#
                    .into(),
                "{\"title\":\"\u{fffd}\",\"steps\":[{\"id\":1,\"title\":\"a\",\"status\":\"done\",\"dependsOn\":[]}]}"
                    .into(),
            ),
            (
                format!(
                    r#"{{"title":"T","steps":[{step},{{"id":2,"title":"b","status":"pending","dependsOn":[1,1.0,1]}}]}}"#
                ),
                format!(
                    r#"{{"title":"T","steps":[{step},{{"id":2,"title":"b","status":"pending","dependsOn":[1]}}]}}"#
                ),
            ),
            // Of duplicate keys the last counts.
            (format!(r#"{{"title":1,"title":"T","steps":[{step}]}}"#), format!(r#"{{"title":"T","steps":[{step}]}}"#)),
        ] {
            assert_eq!(read_json(&saved), Ok(text), "{saved}");
        }
    }

    #[test]
    fn faults() {
        let with = |fields: &str| {
            format!(r#"{{"title":"T","steps":[{{"id":1,"title":"a","status":"pending"}},{{{fields}}}]}}"#)
        };
        for (saved, words) in [
            ("null".into(), "it is null, not an object"),
            ("[]".into(), "it is a list"),
            ("{".into(), "not readable as JSON"),
            ("{}".into(), "title must be text, not missing"),
            (r#"{"title":"T"}"#.into(), "steps must be a list, not missing"),
            (r#"{"title":"T","steps":[]}"#.into(), "0 steps, not 1-50"),
            (format!(r#"{{"title":"T","steps":[{}]}}"#, ["0"; 51].join(",")), "51 steps"),
            (with(r#""id":3,"title":"b","status":"pending""#), "step 2 has the id 3"),
            (with(r#""id":"2","title":"b","status":"pending""#), "id of step 2 must be 2, not the text"),
            (with(r#""id":2,"title":"\ufeff","status":"pending""#), "title of step 2 is blank"),
            (with(&format!(r#""id":2,"title":"{} ","status":"pending""#, "x".repeat(500))), "501 UTF-16"),
            (with(r#""id":2,"title":"b","status":"open""#), "unknown status the text \"open\""),
            (with(r#""id":2,"title":"b""#), "status of step 2 must be text, not missing"),
            (with(r#""id":2,"title":"b","status":"pending","dependsOn":null"#), "must be a list, not null"),
            (with(r#""id":2,"title":"b","status":"pending","dependsOn":[2]"#), "depends on itself"),
            (with(r#""id":2,"title":"b","status":"pending","dependsOn":[3]"#), "step 3, which does not exist"),
            (with(r#""id":2,"title":"b","status":"pending","dependsOn":["1"]"#), "numbers of steps, not the text"),
            (with(&format!(r#""id":2,"title":"b","status":"pending","dependsOn":{:?}"#, [1; 51])), "51 entries"),
            (with(r#""id":2,"title":"b","status":"done","dependsOn":[1]"#), "step 2 is done while it depends on [1]"),
        ] {
            let fault = read_json(&saved).expect_err(&saved);
            assert!(fault.contains(words), "{saved}: {fault:?} lacks {words:?}");
        }
    }

    #[test]
    fn both_encodings_read_alike() {
        let json = r#"{"title":"T","steps":[{"id":1,"title":"é😀","status":"skipped","dependsOn":[]}]}"#;
        let plan = read(Encoding::Json, json.as_bytes()).expect("valid");
        assert_eq!(read(Encoding::Cbor, &encode(Encoding::Cbor, &plan)), Ok(plan.clone()));
        assert_eq!(encode(Encoding::Json, &plan), json.as_bytes());
    }
}
