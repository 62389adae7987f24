//! The types behind the JSON Schemas in `schemas/`, and the test that the files are theirs.
//!
//! After a change here, `UPDATE_SCHEMAS=1 cargo test -p plan-history-guest schema` writes the files anew.

#![allow(dead_code, reason = "the types are only described")]

use plan_guest_support::tool::schema;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value};
use std::{borrow::Cow, collections::BTreeMap};

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
enum Kind {
    Draft,
    Final,
    CompletedMajor,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
enum Group {
    Task,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
enum Bodies {
    Final,
    None,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
enum Rounds {
    All,
    Last,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
enum Verdict {
    Rejected,
    StayInPlanMode,
    Approved,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
enum BodySource {
    PlanSignal,
    ApprovalEditedByUser,
}

/// A field that is always there, and may be null.
struct Nullable<T>(Option<T>);

impl<T: JsonSchema> JsonSchema for Nullable<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        Option::<T>::schema_name()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<T>::json_schema(generator)
    }
}

/// Stands for a field that may be absent and is never null; its type is given beside it.
#[derive(Default)]
struct Absent;

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Nothing {}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct HistoryArguments {
    /// Only this session, by its id.
    session: Option<String>,
    /// Only plans of this kind: earlier revisions of the plan worked on, the newest plan, or plans of earlier tasks.
    kind: Option<Kind>,
    /// How revisions are grouped; there is one way.
    #[serde(default)]
    #[schemars(with = "Group")]
    group: Absent,
    /// Only sessions of this agent: antigravity, claude, codex, opencode or pi.
    agent: Option<String>,
    /// Mask secrets. True unless given.
    #[serde(default)]
    #[schemars(with = "bool")]
    redact: Absent,
    /// Bring the text of each final plan along, or none. Final unless given.
    #[serde(default)]
    #[schemars(with = "Bodies")]
    bodies: Absent,
    /// Bring what users said of plans along. True unless given.
    #[serde(default)]
    #[schemars(with = "bool")]
    feedback: Absent,
    /// Every round of feedback, or the last one of each session. All unless given.
    #[serde(default)]
    #[schemars(with = "Rounds")]
    rounds: Absent,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct BodyArguments {
    /// The id of a plan or event, such as SESSION:7, or the ref of feedback, such as SESSION:pf0.
    #[schemars(pattern(":"))]
    id: String,
    /// Of a plan: the newest revision of its task instead. False unless given.
    #[serde(default)]
    #[schemars(with = "bool")]
    shallow: Absent,
    /// Cut the text after so many characters; 0 for no limit. 500000 unless given.
    #[serde(default)]
    #[schemars(with = "i64")]
    max_chars: Absent,
    /// Mask secrets. True unless given.
    #[serde(default)]
    #[schemars(with = "bool")]
    redact: Absent,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct History {
    /// By session, and in each in the order in which they were made.
    plans: Vec<Plan>,
    /// How many.
    count: u64,
    /// What users said of plans.
    #[serde(default)]
    #[schemars(with = "Vec<Feedback>")]
    feedback: Absent,
    /// How many.
    #[serde(default)]
    #[schemars(with = "u64")]
    feedback_count: Absent,
    /// How often each type of secret was masked.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, u64>")]
    redactions: Absent,
    #[serde(default)]
    #[schemars(with = "Skipped")]
    skipped: Absent,
}

/// One revision of a plan.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Plan {
    /// The session and the number of the event.
    id: String,
    session_id: String,
    agent: String,
    title: String,
    /// The same for all revisions of one task.
    task_id: String,
    kind: Kind,
    /// The place among the revisions of its task, from 1.
    version: u64,
    /// The file that holds the plan.
    path: Nullable<String>,
    steps: Nullable<Vec<Map<String, Value>>>,
    status: Nullable<Status>,
    refs: Vec<BTreeMap<String, String>>,
    /// Of the title and the refs.
    sha256: String,
    /// The text of the final plan; null where it has steps only.
    body: Option<String>,
    /// Where the text comes from.
    body_source: Option<BodySource>,
}

/// One comment of a user on a plan.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Feedback {
    session_id: String,
    agent: String,
    plan_id: Nullable<String>,
    plan_version: Nullable<u64>,
    verdict: Verdict,
    /// Which of the session's answers with comments it belongs to, from 1.
    round: u64,
    /// The text of the plan that it is about.
    quote: Nullable<String>,
    comment: String,
    /// The section of the plan that the quote was taken from.
    section: Nullable<String>,
    /// The id of the whole answer.
    r#ref: String,
    /// When, in UTC.
    ts: Nullable<String>,
}

/// What was passed over.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Skipped {
    /// Folders and files that could not be looked into.
    #[serde(default)]
    #[schemars(with = "u64")]
    places: Absent,
    /// Sessions that could not be read.
    #[serde(default)]
    #[schemars(with = "u64")]
    sessions: Absent,
    /// Sessions of which only a part was read.
    #[serde(default)]
    #[schemars(with = "u64")]
    cut: Absent,
    /// Lines that are no JSON object.
    #[serde(default)]
    #[schemars(with = "u64")]
    lines: Absent,
    /// Lines of more than 16 MiB.
    #[serde(default)]
    #[schemars(with = "u64")]
    long_lines: Absent,
    /// Plan entries that hold no plan; plan files and answers that hold more than is read.
    #[serde(default)]
    #[schemars(with = "u64")]
    plans: Absent,
    /// Quotes whose plan was too far back to look for their section.
    #[serde(default)]
    #[schemars(with = "u64")]
    quotes: Absent,
}

/// A plan, a message, a tool call or an answer; each has fields of its own.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Body {
    id: String,
    /// plan_event, user_turn, assistant_turn, plan_feedback, or tool_call with the kind of tool.
    r#type: String,
    #[serde(default)]
    #[schemars(with = "String")]
    tool: Absent,
    #[serde(default)]
    #[schemars(with = "Verdict")]
    verdict: Absent,
    plan_id: Option<String>,
    #[serde(default)]
    #[schemars(with = "String")]
    title: Absent,
    path: Option<String>,
    #[serde(default)]
    #[schemars(with = "bool")]
    shallow: Absent,
    /// The whole text of a message or an answer.
    #[serde(default)]
    #[schemars(with = "String")]
    text: Absent,
    /// The text of a plan, or the arguments of a tool call.
    #[serde(default)]
    #[schemars(with = "Value")]
    body: Absent,
    #[serde(default)]
    #[schemars(with = "BodySource")]
    body_source: Absent,
    #[serde(default)]
    #[schemars(with = "Vec<Map<String, Value>>")]
    steps: Absent,
    #[serde(default)]
    #[schemars(with = "Status")]
    status: Absent,
    #[serde(default)]
    #[schemars(with = "Vec<Pair>")]
    pairs: Absent,
    ts: Option<String>,
    /// The ids of the revisions that were left out.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    dropped_drafts: Absent,
    /// The text goes on behind the cut.
    #[serde(default)]
    #[schemars(with = "bool")]
    body_truncated: Absent,
    /// How often each type of secret was masked.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, u64>")]
    redactions: Absent,
    #[serde(default)]
    #[schemars(with = "Skipped")]
    skipped: Absent,
}

#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct Pair {
    quote: Nullable<String>,
    comment: String,
}

#[test]
fn files_are_made_of_the_types() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
    for (name, made) in [
        ("plan_history", schema::<HistoryArguments>()),
        ("plan_body", schema::<BodyArguments>()),
        ("history", schema::<History>()),
        ("body", schema::<Body>()),
        ("config", schema::<Nothing>()),
    ] {
        let file = folder.join(name).with_extension("json");
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::write(&file, &made).expect("the folder can be written");
        }
        assert_eq!(
            std::fs::read_to_string(&file).expect("the file is there"),
            made,
            "{name}: see the module's documentation"
        );
    }
}
