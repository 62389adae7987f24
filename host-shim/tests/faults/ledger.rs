//! The book of a run with faults: what was acknowledged, what the storage holds, and how many faults were made.
//!
//! The plan counts. Each advance changes one step so that its ten statuses are the next number of a Gray code, so a plan says
//! which revision it is, and a run of n advances leaves the numbers 0 to n, each of them once. Where a Pi writes beside us and
//! leaves our plan off its branch, no advance leads on from it; there each plan is made anew, with its number as the title.

use serde_json::{Value, json};

const DIGITS: u32 = 10;
/// In the order in which a step takes them.
const STATUSES: [&str; 4] = ["pending", "in_progress", "done", "skipped"];

/// How many faults of each kind a test makes: `PLAN_EXECUTE_FAULTS`, 10 otherwise.
pub(crate) fn faults() -> usize {
    std::env::var("PLAN_EXECUTE_FAULTS").ok().and_then(|faults| faults.parse().ok()).unwrap_or(10)
}

/// Arguments of `plan_create` for the plan that shows the number 0. Its titles are `length` characters long.
pub(crate) fn draft(length: usize) -> String {
    let steps: Vec<String> = (1..=DIGITS).map(|step| format!("{step:0length$}")).collect();
    json!({ "title": "Count", "steps": steps }).to_string()
}

/// Arguments of `plan_create` for a plan that has its number in its title. Its titles are `length` characters long.
pub(crate) fn create(number: u64, length: usize) -> String {
    json!({ "title": number.to_string(), "steps": ["x".repeat(length)] }).to_string()
}

/// Arguments of `plan_advance` that make the plan of one number out of that of the number before.
pub(crate) fn advance_to(number: u64) -> String {
    let step = (0..DIGITS).find(|step| digit(number, *step) != digit(number - 1, *step)).unwrap_or_default();
    json!({ "step": step + 1, "status": STATUSES[digit(number, step)] }).to_string()
}

/// The number that a plan shows; none where it is no plan of ours.
pub(crate) fn number(plan: &Value) -> Option<u64> {
    if let Some(number) = plan["title"].as_str().and_then(|title| title.parse().ok()) {
        return Some(number);
    }
    let steps = plan["steps"].as_array().filter(|steps| steps.len() == DIGITS as usize)?;
    // A digit of the number is the sum of the digits of the code from there on.
    let (mut number, mut sum) = (0, 0);
    for step in steps.iter().rev() {
        sum += STATUSES.iter().position(|status| step["status"] == *status)?;
        number = number * 4 + (sum % 4) as u64;
    }
    Some(number)
}

/// A digit of the code: the digit of the number, less the one to its left.
fn digit(number: u64, place: u32) -> usize {
    let of_number = |place| (number / 4_u64.pow(place) % 4) as usize;
    (of_number(place) + 4 - of_number(place + 1)) % 4
}

/// The book of one run.
#[derive(Debug)]
pub(crate) struct Ledger {
    journal: String,
    kind: &'static str,
    /// The newest number of which it is known that it was saved.
    newest: u64,
    /// Did the newest attempt end without an answer that tells?
    unknown: bool,
    acknowledged: Vec<u64>,
    /// How many faults were made.
    pub(crate) faults: usize,
    lost: usize,
    wrong: usize,
    /// How many torn lines there are among the lines that the journal passes over.
    pub(crate) torn: Option<usize>,
}

impl Ledger {
    /// For a session whose plan shows 0.
    pub(crate) fn new(journal: impl Into<String>, kind: &'static str) -> Ledger {
        Ledger {
            journal: journal.into(),
            kind,
            newest: 0,
            unknown: false,
            acknowledged: vec![0],
            faults: 0,
            lost: 0,
            wrong: 0,
            torn: None,
        }
    }

    /// The number to advance to.
    pub(crate) fn next(&self) -> u64 {
        self.newest + 1
    }

    /// How many advances were acknowledged.
    pub(crate) fn acknowledged(&self) -> usize {
        self.acknowledged.len() - 1
    }

    /// The advance to the next number was acknowledged, with this plan.
    pub(crate) fn saved(&mut self, plan: &Value) {
        let next = self.next();
        if number(plan) != Some(next) {
            self.object(format!("an advance to {next} was answered with {plan}"));
        }
        self.acknowledged.push(next);
        self.newest = next;
        self.unknown = false;
    }

    /// The advance to the next number ended without word of what was kept.
    pub(crate) fn unknown(&mut self) {
        self.unknown = true;
    }

    /// The plan that a look at the session showed.
    pub(crate) fn shown(&mut self, plan: &Value) {
        match number(plan) {
            Some(number) if number == self.newest => {}
            Some(number) if self.unknown && number == self.next() => self.newest = number,
            _ => self.object(format!("{plan} was shown after {}, unknown: {}", self.newest, self.unknown)),
        }
        self.unknown = false;
    }

    /// The plan that a look at the session showed, where a Pi may have left the newest ones off the branch.
    pub(crate) fn shown_beside_pi(&mut self, plan: &Value) {
        if number(plan).is_none_or(|number| number > self.newest) {
            self.object(format!("{plan} was shown after {}", self.newest));
        }
    }

    /// Everything that the storage holds, the oldest first, where no write is under way any more: that counts.
    pub(crate) fn settle(&mut self, plans: &[Value]) {
        self.holds(plans);
        if self.unknown && plans.len() as u64 == self.newest + 2 {
            self.newest += 1;
        }
        self.unknown = false;
    }

    /// Everything that the storage holds, the oldest first: each number once, in order, and the one under way at most beyond
    /// what was acknowledged.
    pub(crate) fn holds(&mut self, plans: &[Value]) {
        let found: Vec<Option<u64>> = plans.iter().map(number).collect();
        let lost = self.acknowledged.iter().filter(|number| !found.contains(&Some(**number))).count();
        self.lost = self.lost.max(lost);
        let newest = self.newest + u64::from(self.unknown && found.len() as u64 == self.newest + 2);
        if !found.iter().copied().eq((0..=newest).map(Some)) {
            self.object(format!("the storage holds {found:?}, and 0 to {newest} were expected"));
        }
    }

    #[expect(clippy::print_stderr, reason = "what a failing test has to say")]
    fn object(&mut self, what: String) {
        self.wrong += 1;
        eprintln!("{} ({}): {what}", self.journal, self.kind);
    }

    /// Prints the row of the table and holds the run to it.
    ///
    /// # Panics
    ///
    /// Where something was lost or shown wrongly.
    #[expect(clippy::print_stderr, reason = "the row is what the run is for")]
    pub(crate) fn close(self) {
        let torn = self.torn.map_or("-".into(), |torn| torn.to_string());
        eprintln!(
            "| {} | {} | {} | {} | {} | {} | {torn} |",
            self.kind,
            self.journal,
            self.faults,
            self.acknowledged(),
            self.lost,
            self.wrong
        );
        assert_eq!((self.lost, self.wrong), (0, 0), "lost, shown wrongly: {} ({})", self.journal, self.kind);
    }
}

#[test]
fn a_plan_counts() {
    let mut plan: Value = json!({ "steps": vec![json!({ "status": "pending" }); DIGITS as usize] });
    for next in 1..5_000 {
        assert_eq!(number(&plan), Some(next - 1));
        let change: Value = serde_json::from_str(&advance_to(next)).unwrap();
        plan["steps"][change["step"].as_u64().unwrap() as usize - 1]["status"] = change["status"].clone();
    }
}

/// The book finds what it is there for.
#[test]
fn a_book_that_does_not_balance() {
    let plans = |numbers: &[u64]| -> Vec<Value> {
        let status = |number, step| json!({ "status": STATUSES[digit(number, step)] });
        let plan = |number: &u64| json!({ "steps": (0..DIGITS).map(|step| status(*number, step)).collect::<Vec<_>>() });
        numbers.iter().map(plan).collect()
    };
    let after = |unknown: bool, held: &[u64]| {
        let mut ledger = Ledger::new("test", "test");
        ledger.saved(&plans(&[1])[0]);
        ledger.saved(&plans(&[2])[0]);
        if unknown {
            ledger.unknown();
        }
        ledger.holds(&plans(held));
        (ledger.lost, ledger.wrong)
    };
    assert_eq!(after(false, &[0, 1, 2]), (0, 0));
    assert_eq!(after(true, &[0, 1, 2]), (0, 0));
    assert_eq!(after(true, &[0, 1, 2, 3]), (0, 0));
    assert_eq!(after(false, &[0, 1, 2, 3]), (0, 1), "one that nobody was told of");
    assert_eq!(after(true, &[0, 1, 2, 3, 4]), (0, 1), "more than was under way");
    assert_eq!(after(false, &[0, 1]), (1, 1), "the newest is gone");
    assert_eq!(after(false, &[0, 2]), (1, 1), "one is gone");
    assert_eq!(after(false, &[0, 2, 1]), (0, 1), "out of order");
    assert_eq!(after(false, &[0, 1, 1, 2]), (0, 1), "twice");
}
