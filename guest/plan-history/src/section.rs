//! Which section of a plan a quote was taken from.
//!
//! A quote is picked from the plan as it is shown, so both sides lose their markup before they are compared.

use crate::text::{collapse, is_space, lines, trim, trim_end, trim_start};

/// The name of the one section of `plan` that holds `quote`. None where no section or more than one does, where the only
/// one has no name, and where nothing is left of the quote without its markup.
pub fn of_quote(plan: &str, quote: &str) -> Option<String> {
    let quote = without_markup(lines(quote));
    if quote.is_empty() {
        return None;
    }
    let mut found = None;
    for section in sections(plan) {
        if without_markup(section.lines.into_iter()).contains(&quote) {
            if found.is_some() {
                return None;
            }
            found = Some(section.name);
        }
    }
    found.flatten().map(str::to_owned)
}

struct Section<'a> {
    /// None before the first heading.
    name: Option<&'a str>,
    /// With the line of the heading.
    lines: Vec<&'a str>,
}

/// A flat split at the headings of any level.
fn sections(plan: &str) -> Vec<Section<'_>> {
    let mut sections = vec![Section { name: None, lines: Vec::new() }];
    let mut in_code = false;
    for line in lines(plan) {
        let begins = trim_start(line);
        let fence = begins.starts_with("```") || begins.starts_with("~~~");
        in_code ^= fence;
        if !fence
            && !in_code
            && let Some(name) = heading(line)
        {
            sections.push(Section { name: Some(name), lines: Vec::new() });
        }
        sections.last_mut().expect("there is always one").lines.push(line);
    }
    sections
}

/// The text of a heading line: one to six `#` in column one, white space, text, and `#` that close it.
fn heading(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches('#');
    if !(1..=6).contains(&(line.len() - rest.len())) || !rest.starts_with(is_space) {
        return None;
    }
    let text = trim(rest);
    let first = text.chars().next()?;
    let name = trim_end(trim_end(text).trim_end_matches('#'));
    // Of nothing but closing marks the first is the text.
    Some(if name.is_empty() { &text[..first.len_utf8()] } else { name })
}

/// A text without what only marks it up, on one line.
fn without_markup<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut joined = String::new();
    for (i, line) in lines.enumerate() {
        if i > 0 {
            joined.push('\n');
        }
        joined.push_str(without_checkbox(without_prefixes(trim(line))));
    }
    let plain = without_targets(&joined).replace(['`', '*'], "");
    trim(&collapse(&plain)).to_owned()
}

/// Without the marks of headings, quotes and lists at the front, however many.
fn without_prefixes(line: &str) -> &str {
    let mut rest = line;
    while let Some(shorter) = without_prefix(trim_start(rest)) {
        rest = shorter;
    }
    rest
}

fn without_prefix(line: &str) -> Option<&str> {
    let mut chars = line.chars();
    let after = match chars.next()? {
        '>' => return Some(chars.as_str().strip_prefix(is_space).unwrap_or(chars.as_str())),
        '-' | '*' | '+' => chars.as_str(),
        '#' => {
            let rest = line.trim_start_matches('#');
            if line.len() - rest.len() > 6 {
                return None;
            }
            rest
        }
        c if c.is_numeric() => line.trim_start_matches(char::is_numeric).strip_prefix(['.', ')'])?,
        _ => return None,
    };
    after.starts_with(is_space).then(|| trim_start(after))
}

fn without_checkbox(line: &str) -> &str {
    let rest = ["[ ]", "[x]", "[X]"].iter().find_map(|checkbox| line.strip_prefix(checkbox));
    rest.filter(|rest| rest.starts_with(is_space)).map_or(line, trim_start)
}

/// Replaces `[label](target)` by its label.
fn without_targets(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let mut at = 0;
    // Looked for once and remembered, so that a text of nothing but brackets takes no longer than another.
    let (mut next_label_end, mut next_target_end) = (0, 0);
    while let Some(open) = text[at..].find('[').map(|found| at + found) {
        let Some(label_end) = find_from(text, ']', open + 1, &mut next_label_end) else { break };
        if text[label_end + 1..].starts_with('(') {
            let Some(target_end) = find_from(text, ')', label_end + 2, &mut next_target_end) else { break };
            out.push_str(&text[copied..open]);
            out.push_str(&text[open + 1..label_end]);
            copied = target_end + 1;
            at = copied;
        } else {
            at = open + 1;
        }
    }
    out.push_str(&text[copied..]);
    out
}

/// The next place of `c` at or after `from`. `known` is where it was found before, which holds as long as it lies ahead.
fn find_from(text: &str, c: char, from: usize, known: &mut usize) -> Option<usize> {
    if *known < from {
        *known = from + text[from..].find(c)?;
    }
    Some(*known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_goes() {
        for (text, plain) in [
            ("## Two words", "Two words"),
            ("> - 1. ## a", "a"),
            (">a", "a"),
            ("-a", "-a"),
            ("####### a", "####### a"),
            ("12) [x] done", "done"),
            ("[ ]x", "[ ]x"),
            ("the [label](http://x) and [not a link] (x)", "the label and [not a link] (x)"),
            ("[a [b](c)", "a [b"),
            ("[a](b", "[a](b"),
            ("`code` **bold** _kept_", "code bold _kept_"),
            ("a\u{2028}- b", "a b"),
            ("٣. digits", "digits"),
        ] {
            assert_eq!(without_markup(lines(text)), plain, "{text}");
        }
    }

    #[test]
    fn heading_lines() {
        for (line, name) in [
            ("# A", Some("A")),
            ("###### A ##", Some("A")),
            ("## C#", Some("C")),
            ("## ##", Some("#")),
            ("####### A", None),
            ("#A", None),
            (" # A", None),
            ("# ", None),
        ] {
            assert_eq!(heading(line), name, "{line}");
        }
    }

    #[test]
    fn quotes_find_their_section() {
        let plan = "before\n# One\nshared alpha\n```\n# no heading\n~~~\n## Two\nshared beta\n";
        for (quote, section) in [
            ("alpha", Some("One")),
            ("no heading", Some("One")),
            ("beta", Some("Two")),
            ("shared", None),
            ("before", None),
            ("alpha no", Some("One")),
            ("heading shared", None),
            ("absent", None),
            ("***", None),
            ("", None),
        ] {
            // A fence may end with the other mark, so `## Two` is a heading again.
            assert_eq!(of_quote(plan, quote).as_deref(), section, "{quote}");
        }
    }

    #[test]
    fn many_brackets_are_read_once() {
        let text = "[".repeat(200_000) + "]";
        assert_eq!(without_targets(&text), text);
        let text = "[](".repeat(100_000);
        assert_eq!(without_targets(&text), text);
    }
}
