//! The arguments of the tools.

use crate::{agents::Agent, error::ToolError, text::trim};
use plan_guest_support::{
    loose::{Found, Integer, Loose, Pick, UnknownKeys},
    loose_object,
    payload::decode_json,
};

/// What kind of plan is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An earlier revision of the plan that is worked on.
    Draft,
    /// The newest plan of the session.
    Final,
    /// A plan of an earlier task.
    CompletedMajor,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Draft, Kind::Final, Kind::CompletedMajor];

    /// The word in arguments and answers.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Draft => "draft",
            Kind::Final => "final",
            Kind::CompletedMajor => "completed_major",
        }
    }
}

/// The arguments of `plan_history`, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// One session alone.
    pub session: Option<String>,
    /// Plans of one kind alone.
    pub kind: Option<Kind>,
    /// Sessions of one agent alone.
    pub agent: Option<Agent>,
    /// Mask secrets.
    pub redact: bool,
    /// Bring the text of the final plan along.
    pub bodies: bool,
    /// Bring what users said of plans along.
    pub feedback: bool,
    /// Only the last round of feedback of each session.
    pub last_round: bool,
}

/// The arguments of `plan_body`, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// What is asked for: `session:number`, or `session:pf` and a number.
    pub id: String,
    /// The final revision of the plan's task instead.
    pub shallow: bool,
    /// After how many characters texts are cut.
    pub max_chars: Option<usize>,
    /// Mask secrets.
    pub redact: bool,
}

#[derive(Debug, Default)]
struct HistoryFields {
    session: Option<Loose<String>>,
    kind: Option<Loose<String>>,
    group: Option<Loose<String>>,
    agent: Option<Loose<String>>,
    redact: Option<Loose<String>>,
    bodies: Option<Loose<String>>,
    feedback: Option<Loose<String>>,
    rounds: Option<Loose<String>>,
    unknown: UnknownKeys,
}

loose_object!(HistoryFields {
    session: "session",
    kind: "kind",
    group: "group",
    agent: "agent",
    redact: "redact",
    bodies: "bodies",
    feedback: "feedback",
    rounds: "rounds",
});

#[derive(Debug, Default)]
struct BodyFields {
    id: Option<Loose<String>>,
    shallow: Option<Loose<String>>,
    max_chars: Option<Loose<Integer>>,
    redact: Option<Loose<String>>,
    unknown: UnknownKeys,
}

loose_object!(BodyFields { id: "id", shallow: "shallow", max_chars: "max_chars", redact: "redact" });

/// Reads the arguments of `plan_history`.
///
/// # Errors
///
/// `invalid_argument`, which names each fault and what is allowed.
pub fn history(arguments: &str) -> Result<History, ToolError> {
    let fields: HistoryFields = read(arguments)?;
    let mut faults = Faults(Vec::new());
    let kinds = Kind::ALL.map(Kind::name);
    let agents = Agent::ALL.map(Agent::name);
    let arguments = History {
        session: faults.text("session", fields.session),
        kind: faults.one_of("kind", fields.kind, &kinds, Nullable(true)).map(|i| Kind::ALL[i]),
        agent: match faults.text("agent", fields.agent) {
            Some(name) if trim(&name).is_empty() => None,
            Some(name) => {
                let agent = Agent::from_name(trim(&name));
                if agent.is_none() {
                    faults.not_one_of("agent", &agents, Nullable(true), &Found::Text(name));
                }
                agent
            }
            None => None,
        },
        redact: faults.flag("redact", fields.redact, true),
        bodies: faults.one_of("bodies", fields.bodies, &["final", "none"], Nullable(false)) != Some(1),
        feedback: faults.flag("feedback", fields.feedback, true),
        last_round: faults.one_of("rounds", fields.rounds, &["all", "last"], Nullable(false)) == Some(1),
    };
    faults.one_of("group", fields.group, &["task"], Nullable(false));
    faults.unknown(&fields.unknown, "session, kind, group, agent, redact, bodies, feedback and rounds");
    faults.none(arguments)
}

/// Reads the arguments of `plan_body`.
///
/// # Errors
///
/// `invalid_argument`, which names each fault and what is allowed.
pub fn body(arguments: &str) -> Result<Body, ToolError> {
    let fields: BodyFields = read(arguments)?;
    let mut faults = Faults(Vec::new());
    let id = match fields.id.unwrap_or(Loose::Other(Found::Missing)) {
        Loose::Value(id) if id.contains(':') && !trim(&id).is_empty() => id,
        other => {
            let found = match other {
                Loose::Value(id) => Found::Text(id),
                Loose::Other(found) => found,
            };
            faults.0.push(format!(
                "id must be the id of a plan, event or answer such as \"SESSION:7\" or \"SESSION:pf0\", not {found}"
            ));
            String::new()
        }
    };
    let max_chars = match fields.max_chars {
        None => 500_000,
        Some(Loose::Value(Integer(number))) => number,
        Some(Loose::Other(found)) => {
            faults.0.push(format!("max_chars must be a whole number, 0 for no limit, not {found}"));
            0
        }
    };
    let arguments = Body {
        id,
        shallow: faults.flag("shallow", fields.shallow, false),
        max_chars: usize::try_from(max_chars).ok().filter(|number| *number > 0),
        redact: faults.flag("redact", fields.redact, true),
    };
    faults.unknown(&fields.unknown, "id, shallow, max_chars and redact");
    faults.none(arguments)
}

fn read<T: for<'de> Pick<'de>>(arguments: &str) -> Result<T, ToolError> {
    let fault = match decode_json(arguments) {
        Ok(Loose::Value(arguments)) => return Ok(arguments),
        Ok(Loose::Other(found)) => format!("the arguments must be an object, not {found}"),
        Err(error) => format!("the arguments are {error}"),
    };
    Err(ToolError::invalid_argument(&[fault]))
}

/// May it be null too?
struct Nullable(bool);

struct Faults(Vec<String>);

impl Faults {
    fn text(&mut self, name: &str, value: Option<Loose<String>>) -> Option<String> {
        match value? {
            Loose::Value(text) => return Some(text),
            Loose::Other(Found::Null) => {}
            Loose::Other(found) => self.0.push(format!("{name} must be text or null, not {found}")),
        }
        None
    }

    fn flag(&mut self, name: &str, value: Option<Loose<String>>, default: bool) -> bool {
        let found = match value {
            None => return default,
            Some(Loose::Other(Found::Bool(value))) => return value,
            Some(Loose::Other(found)) => found,
            Some(Loose::Value(text)) => Found::Text(text),
        };
        self.0.push(format!("{name} must be true or false, not {found}"));
        default
    }

    fn one_of(&mut self, name: &str, value: Option<Loose<String>>, allowed: &[&str], null: Nullable) -> Option<usize> {
        let found = match value? {
            Loose::Other(Found::Null) if null.0 => return None,
            Loose::Other(found) => found,
            Loose::Value(text) => match allowed.iter().position(|word| *word == text) {
                Some(i) => return Some(i),
                None => Found::Text(text),
            },
        };
        self.not_one_of(name, allowed, null, &found);
        None
    }

    fn not_one_of(&mut self, name: &str, allowed: &[&str], null: Nullable, found: &Found) {
        let (one_of, or_null) = (if allowed.len() > 1 { "one of " } else { "" }, if null.0 { ", or null" } else { "" });
        self.0.push(format!("{name} must be {one_of}{}{or_null}, not {found}", allowed.join(", ")));
    }

    fn unknown(&mut self, keys: &UnknownKeys, allowed: &str) {
        self.0.extend(keys.iter().map(|key| format!("{key:?} is not known here: allowed are {allowed}")));
    }

    fn none<T>(self, arguments: T) -> Result<T, ToolError> {
        if self.0.is_empty() { Ok(arguments) } else { Err(ToolError::invalid_argument(&self.0)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histories() {
        let defaults = History {
            session: None,
            kind: None,
            agent: None,
            redact: true,
            bodies: true,
            feedback: true,
            last_round: false,
        };
        let all = History {
            session: Some("s".into()),
            kind: Some(Kind::CompletedMajor),
            agent: Some(Agent::Claude),
            redact: false,
            bodies: false,
            feedback: false,
            last_round: true,
        };
        for (arguments, expected) in [
            ("{}", defaults.clone()),
            (r#"{"session":null,"kind":null,"agent":null}"#, defaults.clone()),
            (r#"{"agent":" ","group":"task","bodies":"final","rounds":"all"}"#, defaults.clone()),
            (
                r#"{"session":"s","kind":"completed_major","agent":" CLAUDE","redact":false,"bodies":"none","feedback":false,"rounds":"last"}"#,
                all,
            ),
            (r#"{"session":""}"#, History { session: Some(String::new()), ..defaults }),
        ] {
            assert_eq!(history(arguments), Ok(expected), "{arguments}");
        }
        for (arguments, words) in [
            ("", "the arguments are not readable as JSON"),
            ("[]", "the arguments must be an object, not a list"),
            (r#"{"session":1}"#, "session must be text or null, not the number 1"),
            (
                r#"{"kind":"Draft"}"#,
                "kind must be one of draft, final, completed_major, or null, not the text \"Draft\"",
            ),
            (
                r#"{"agent":"emacs"}"#,
                "agent must be one of antigravity, claude, codex, opencode, pi, or null, not the text \"emacs\"",
            ),
            (r#"{"group":"slug"}"#, "group must be task, not the text \"slug\""),
            (r#"{"group":null}"#, "group must be task, not null"),
            (r#"{"bodies":"all"}"#, "bodies must be one of final, none, not"),
            (r#"{"rounds":"first","feedback":false}"#, "rounds must be one of all, last, not"),
            (r#"{"redact":"no"}"#, "redact must be true or false, not the text \"no\""),
            (
                r#"{"limit":1,"kind":"x"}"#,
                "\"limit\" is not known here: allowed are session, kind, group, agent, redact, bodies, feedback and rounds.",
            ),
        ] {
            let error = history(arguments).expect_err(arguments);
            assert_eq!(error.code, "invalid_argument");
            assert!(error.message.contains(words), "{arguments}: {}", error.message);
        }
    }

    #[test]
    fn bodies() {
        let defaults = Body { id: "s:1".into(), shallow: false, max_chars: Some(500_000), redact: true };
        for (arguments, expected) in [
            (r#"{"id":"s:1"}"#, defaults.clone()),
            (r#"{"id":"s:1","max_chars":0}"#, Body { max_chars: None, ..defaults.clone() }),
            (
                r#"{"id":"s:1","max_chars":-1,"shallow":true,"redact":false}"#,
                Body { max_chars: None, shallow: true, redact: false, ..defaults.clone() },
            ),
            (r#"{"id":"s:1","max_chars":2.0}"#, Body { max_chars: Some(2), ..defaults }),
        ] {
            assert_eq!(body(arguments), Ok(expected), "{arguments}");
        }
        for (arguments, words) in [
            (
                "{}",
                "id must be the id of a plan, event or answer such as \"SESSION:7\" or \"SESSION:pf0\", not missing",
            ),
            (r#"{"id":""}"#, "id must be"),
            (r#"{"id":" "}"#, "id must be"),
            (r#"{"id":"nocolon"}"#, "not the text \"nocolon\""),
            (r#"{"id":"a:1","max_chars":"5"}"#, "max_chars must be a whole number, 0 for no limit, not the text \"5\""),
            (r#"{"id":"a:1","deep":1}"#, "\"deep\" is not known here: allowed are id, shallow, max_chars and redact"),
        ] {
            let error = body(arguments).expect_err(arguments);
            assert!(error.message.contains(words), "{arguments}: {}", error.message);
            assert!(error.data.expect("data").contains("invalid_argument"));
        }
    }
}
