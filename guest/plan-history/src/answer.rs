//! What a user answered to a plan of Claude Code: the verdict, and pairs of a quote and a comment.

use crate::text::{is_blank, lines, trim};

/// What the user decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The plan was accepted, perhaps edited.
    Approved,
    /// The plan was turned down with words.
    Rejected,
    /// The user commented on the plan and wants another one.
    StayInPlanMode,
}

impl Verdict {
    /// The word in answers.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Approved => "approved",
            Verdict::Rejected => "rejected",
            Verdict::StayInPlanMode => "stay_in_plan_mode",
        }
    }
}

/// One comment, and the text of the plan that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// None where the comment is about no place in particular.
    pub quote: Option<String>,
    /// Perhaps empty.
    pub comment: String,
}

/// An answer that says something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What the user decided.
    pub verdict: Verdict,
    /// None of an approval; at least one of any other verdict.
    pub pairs: Vec<Pair>,
    /// The plan as the user edited it before approving.
    pub edited: Option<String>,
}

const SELECTED: &str = "On selected text:";

/// Reads the text of a tool result. None where it says nothing about a plan: a failure, a result of another kind, a
/// rejection without a word.
pub fn read(text: &str) -> Option<Answer> {
    if is_blank(text) || text.starts_with("Tool permission request failed") {
        return None;
    }
    if text.starts_with("User has approved") {
        let edited = text.split_once("## Approved Plan (edited by user):").map(|(_, edited)| edited);
        let edited = edited.map(|edited| edited.trim_start_matches('\n')).filter(|edited| !edited.is_empty());
        return Some(Answer { verdict: Verdict::Approved, pairs: Vec::new(), edited: edited.map(str::to_owned) });
    }
    let (verdict, pairs) = if text.starts_with("User chose to stay in plan mode") {
        let pairs = match text.split_once("Comments on the plan:") {
            Some((_, tail)) => commented(tail),
            None => commented(&lines(text).skip(1).collect::<Vec<_>>().join("\n")),
        };
        (Verdict::StayInPlanMode, pairs)
    } else if text.starts_with("The user doesn't want to proceed") || text.contains(SELECTED) {
        let tail = match text.split_once("the user said:") {
            Some((_, tail)) => tail,
            None => &text[text.find(SELECTED)?..],
        };
        (Verdict::Rejected, selected(tail))
    } else {
        return None;
    };
    if pairs.is_empty() { None } else { Some(Answer { verdict, pairs, edited: None }) }
}

/// Could [`read`] find something in a text that holds these bytes? For deciding cheaply what need not be taken apart.
pub fn may_answer(text: &str) -> bool {
    ["User has approved", "User chose to stay", "The user doesn't", SELECTED].iter().any(|sign| text.contains(sign))
}

/// The pairs of a rejection: blocks of a quoted selection and what was said of it.
fn selected(tail: &str) -> Vec<Pair> {
    let mut blocks = tail.split(SELECTED);
    let mut pairs = Vec::new();
    push(&mut pairs, "", blocks.next().unwrap_or_default());
    for block in blocks {
        let mut quote = Vec::new();
        let mut comment = Vec::new();
        for line in lines(block.trim_start_matches('\n')) {
            match line.strip_prefix('>') {
                Some(quoted) if comment.is_empty() => quote.push(quoted.strip_prefix(' ').unwrap_or(quoted)),
                _ => comment.push(line),
            }
        }
        push(&mut pairs, &quote.join("\n"), &comment.join("\n"));
    }
    pairs
}

/// The pairs of comments: `[Re: "quote"] comment`, each comment up to the next mark.
fn commented(tail: &str) -> Vec<Pair> {
    const OPEN: &str = "[Re: \"";
    const CLOSE: &str = "\"]";
    let mut pairs = Vec::new();
    let mut quote = "";
    let mut rest = tail;
    loop {
        let mark = rest.find(OPEN).and_then(|open| {
            let inside = open + OPEN.len();
            Some((open, inside, inside + rest[inside..].find(CLOSE)?))
        });
        let Some((open, inside, close)) = mark else {
            push(&mut pairs, quote, rest);
            return pairs;
        };
        push(&mut pairs, quote, &rest[..open]);
        quote = &rest[inside..close];
        rest = &rest[close + CLOSE.len()..];
    }
}

/// Adds a pair, unless both are empty once they are trimmed.
fn push(pairs: &mut Vec<Pair>, quote: &str, comment: &str) {
    let (quote, comment) = (trim(quote), trim(comment));
    if !quote.is_empty() || !comment.is_empty() {
        let quote = Some(quote).filter(|quote| !quote.is_empty()).map(str::to_owned);
        pairs.push(Pair { quote, comment: comment.to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Option<(Verdict, Vec<Pair>)> {
        read(text).map(|answer| (answer.verdict, answer.pairs))
    }

    fn pair(quote: &str, comment: &str) -> Pair {
        Pair { quote: Some(quote.to_owned()).filter(|quote| !quote.is_empty()), comment: comment.to_owned() }
    }

    #[test]
    fn what_says_nothing_is_dropped() {
        for text in [
            "",
            " \n",
            "Tool permission request failed: On selected text:\n> a\nb",
            "The user doesn't want to proceed with this tool use.",
            "The user doesn't want to proceed. the user said:\n \n",
            "User chose to stay in plan mode",
            "User chose to stay in plan mode\nComments on the plan:\n",
            "File written.",
            " User has approved your plan",
            "user has approved your plan",
            "On selected text:",
        ] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn approvals() {
        for (text, edited) in [
            ("User has approved your plan.", None),
            ("User has approved.\n## Approved Plan (edited by user):\n\n# A\n", Some("# A\n")),
            ("User has approved.\n## Approved Plan (edited by user):\n\n", None),
            (
                "User has approved. ## Approved Plan (edited by user): x ## Approved Plan (edited by user): y",
                Some(" x ## Approved Plan (edited by user): y"),
            ),
        ] {
            let answer = read(text).expect(text);
            assert_eq!((answer.verdict, answer.edited.as_deref()), (Verdict::Approved, edited), "{text:?}");
        }
    }

    #[test]
    fn rejections() {
        for (tail, expected) in [
            ("just words", vec![pair("", "just words")]),
            ("a the user said: b", vec![pair("", "a the user said: b")]),
            (
                "x\nOn selected text:\n\n> q1\n>q2\n>  q3\nc\n> still the comment\n",
                vec![pair("", "x"), pair("q1\nq2\n q3", "c\n> still the comment")],
            ),
            (
                "On selected text:\n> only a quote\nOn selected text:\nno quote\nOn selected text:\n\n",
                vec![pair("only a quote", ""), pair("", "no quote")],
            ),
            ("On selected text:\n> a\u{2028}b\r\nc", vec![pair("a", "b\nc")]),
            ("On selected text:\n>\n\n> x", vec![pair("", "> x")]),
        ] {
            let text = format!("The user doesn't want to proceed. After that the user said:\n{tail}");
            assert_eq!(pairs(&text), Some((Verdict::Rejected, expected)), "{tail:?}");
        }
        let text = "Denied. On selected text:\n> q\nc";
        assert_eq!(pairs(text), Some((Verdict::Rejected, vec![pair("q", "c")])));
    }

    #[test]
    fn comments() {
        let stay = "User chose to stay in plan mode";
        for (tail, expected) in [
            ("\nThink again.", vec![pair("", "Think again.")]),
            (
                "\rComments on the plan: free [Re: \"a\nb\"] c1\nmore [Re: \"\"] [Re: \" x \"]",
                vec![pair("", "free"), pair("a\nb", "c1\nmore"), pair("x", "")],
            ),
            ("\nComments on the plan:\n[Re: \"open", vec![pair("", "[Re: \"open")]),
            ("\nComments on the plan:\n[Re: \"a \"quoted\" b\"]c", vec![pair("a \"quoted\" b", "c")]),
        ] {
            assert_eq!(pairs(&format!("{stay}{tail}")), Some((Verdict::StayInPlanMode, expected)), "{tail:?}");
        }
    }
}
