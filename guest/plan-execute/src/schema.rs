//! The types behind the JSON Schemas in `schemas/`, and the test that the files are theirs.
//!
//! After a change here, `UPDATE_SCHEMAS=1 cargo test -p plan-execute-guest schema` writes the files anew.

#![allow(dead_code, reason = "the types are only described")]

use crate::plan::{MAX_PREREQUISITES, MAX_STEPS, MAX_TITLE};
use plan_guest_support::tool::schema;
use schemars::JsonSchema;

// In a JSON Schema `maxLength` counts characters. The rules count UTF-16 code units after trimming, so a schema refuses
// nothing that the rules accept but text with much white space around it.

/// A title.
#[derive(JsonSchema)]
#[schemars(transparent)]
struct Title(#[schemars(length(min = 1, max = MAX_TITLE), pattern(r"\S"))] String);

#[derive(JsonSchema)]
#[schemars(transparent)]
struct StepNumber(#[schemars(range(min = 1, max = MAX_STEPS))] u8);

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Done,
    Skipped,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct CreateArguments {
    /// What the plan is for.
    title: Title,
    /// The titles of the steps, in order. Steps are numbered from 1.
    #[schemars(length(min = 1, max = MAX_STEPS))]
    steps: Vec<Title>,
    /// Which steps must wait for others: at most one entry for each step, and no cycles.
    #[schemars(length(max = MAX_STEPS))]
    dependencies: Option<Vec<Dependency>>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct Dependency {
    /// The number of the step that waits.
    step: StepNumber,
    /// The numbers of the steps that must be done or skipped before it starts.
    #[schemars(length(max = MAX_PREREQUISITES))]
    depends_on: Vec<StepNumber>,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct AdvanceArguments {
    /// The number of the step.
    step: StepNumber,
    /// Its new status.
    status: Status,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Nothing {}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Plan {
    /// What the plan is for.
    title: Title,
    /// The steps in order.
    #[schemars(length(min = 1, max = MAX_STEPS))]
    steps: Vec<Step>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase", deny_unknown_fields)]
struct Step {
    /// The step's place in the plan, from 1.
    id: StepNumber,
    /// What is to be done.
    title: Title,
    /// How far it is.
    status: Status,
    /// The steps that must be done or skipped before this one starts; absent where none were ever named.
    #[serde(default)]
    #[schemars(length(max = MAX_PREREQUISITES))]
    depends_on: Vec<StepNumber>,
}

mod tests {
    use super::*;
    use crate::{config, draft::Draft, plan::Status as PlanStatus, tools::definitions};
    use plan_guest_support::{loose::Loose, payload::decode_json};
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use std::{env, fs, path::Path};

    #[test]
    fn files_are_made_of_the_types() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
        for (name, made) in [
            ("plan_create", schema::<CreateArguments>()),
            ("plan_advance", schema::<AdvanceArguments>()),
            ("plan_get", schema::<Nothing>()),
            ("plan", schema::<Plan>()),
            ("config", schema::<Nothing>()),
        ] {
            let file = folder.join(name).with_extension("json");
            if env::var_os("UPDATE_SCHEMAS").is_some() {
                fs::write(&file, &made).expect("the folder can be written");
            }
            assert_eq!(
                fs::read_to_string(&file).expect("the file is there"),
                made,
                "{name}: see the module's documentation"
            );
        }
    }

    #[test]
    fn every_bound_is_there() {
        let title = json!({"type": "string", "minLength": 1, "maxLength": 500, "pattern": "\\S"});
        let number = json!({"type": "integer", "minimum": 1, "maximum": 50});
        let status = json!({"type": "string", "enum": PlanStatus::ALL.map(PlanStatus::name)});
        let numbers = json!({"type": "array", "maxItems": 50, "items": number});
        let object = |required: Value, properties: Value| json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties});
        let nothing = json!({"type": "object", "additionalProperties": false});
        let dependency = object(json!(["step", "dependsOn"]), json!({"step": number, "dependsOn": numbers}));
        let step = object(
            json!(["id", "title", "status"]),
            json!({"id": number, "title": title, "status": status, "dependsOn": numbers}),
        );
        let plan = object(
            json!(["title", "steps"]),
            json!({"title": title, "steps": {"type": "array", "minItems": 1, "maxItems": 50, "items": step}}),
        );
        let inputs = [
            object(
                json!(["title", "steps"]),
                json!({
                    "title": title,
                    "steps": {"type": "array", "minItems": 1, "maxItems": 50, "items": title},
                    "dependencies": {"type": ["array", "null"], "maxItems": 50, "items": dependency},
                }),
            ),
            object(json!(["step", "status"]), json!({"step": number, "status": status})),
            nothing.clone(),
        ];
        let validating = |text: &str| validating(serde_json::from_str(text).expect("JSON"));
        for (definition, input) in definitions().iter().zip(inputs) {
            assert_eq!(validating(definition.input_schema), input, "{}", definition.name);
            assert_eq!(validating(definition.output_schema), plan, "{}", definition.name);
        }
        assert_eq!(validating(config::schema()), nothing);
    }

    /// Without what has no effect on what is valid.
    fn validating(mut schema: Value) -> Value {
        match &mut schema {
            Value::Object(object) => {
                for key in ["$schema", "description"] {
                    if object.get(key).is_some_and(Value::is_string) {
                        object.remove(key);
                    }
                }
                object.values_mut().for_each(|value| *value = validating(value.take()));
            }
            Value::Array(items) => items.iter_mut().for_each(|value| *value = validating(value.take())),
            _ => {}
        }
        schema
    }

    fn argument() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            Just(json!(1.5)),
            Just(json!(2.0)),
            (0i64..=52).prop_map(|n| json!(n)),
            "[a \u{feff}]{0,3}".prop_map(|text| json!(text)),
            Just(json!("x".repeat(501))),
        ];
        leaf.clone().prop_recursive(4, 24, 4, move |inner| {
            let key = prop_oneof![
                Just("title"),
                Just("steps"),
                Just("dependencies"),
                Just("step"),
                Just("dependsOn"),
                Just("x")
            ];
            let draft = (leaf.clone(), prop::collection::vec(leaf.clone(), 0..3), prop::option::of(inner.clone()))
                .prop_map(|(title, steps, on)| match on {
                    Some(on) => json!({"title": title, "steps": steps, "dependencies": on}),
                    None => json!({"title": title, "steps": steps}),
                });
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key.prop_map(str::to_owned), inner, 0..4).prop_map(|map| json!(map)),
                draft,
            ]
        })
    }

    proptest! {
        /// A schema never refuses what the rules accept (the texts here are short, so that trimming makes no difference).
        #[test]
        fn what_the_rules_accept_the_schema_accepts(arguments in argument()) {
            let schema: Value = serde_json::from_str(definitions()[0].input_schema).expect("JSON");
            if let Ok(Loose::Value(draft)) = decode_json::<Loose<Draft>>(&arguments.to_string())
                && draft.into_plan().is_ok()
            {
                prop_assert!(jsonschema::is_valid(&schema, &arguments), "{}", arguments);
            }
        }
    }
}
