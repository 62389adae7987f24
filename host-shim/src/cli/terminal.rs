//! What is printed: on a terminal, text from plugins and journals must not be able to act on the terminal.

use plan_execute_host::ToolError;
use serde_json::{Value, json};
use std::{
    borrow::Cow,
    io::{self, IsTerminal, Write},
};

/// The text as it may be written to `stream`: on a terminal with control characters made visible, elsewhere as it is.
pub(super) fn visible<'a>(text: &'a str, stream: &impl IsTerminal) -> Cow<'a, str> {
    if stream.is_terminal() { escape(text) } else { Cow::Borrowed(text) }
}

/// The same for a text that is one line, whatever stands in it: no plugin may make a second one of its own.
pub(super) fn visible_line<'a>(text: &'a str, stream: &impl IsTerminal) -> Cow<'a, str> {
    if stream.is_terminal() { escape_all(text) } else { Cow::Borrowed(text) }
}

/// As it may be shown in a layout of lines: every control character made visible, wherever it is written to.
pub(super) fn escape_all(text: &str) -> Cow<'_, str> {
    let escaped = escape(text);
    if escaped.contains(['\t', '\n']) {
        return Cow::Owned(escaped.replace('\t', "\\t").replace('\n', "\\n"));
    }
    escaped
}

/// Writes a JSON value on a line of its own. Where a terminal shows it, control characters that JSON leaves as they are become
/// visible as JSON's own escapes, so it stays the same value.
pub(super) fn print_json(value: &Value) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let text = value.to_string();
    let text = if stdout.is_terminal() { escape_json(&text) } else { text };
    writeln!(stdout, "{text}")
}

/// Standard output, for text with colours: they are taken out where it is no terminal, and where NO_COLOR is set.
pub(super) fn stdout() -> anstream::AutoStream<io::StdoutLock<'static>> {
    anstream::AutoStream::auto(io::stdout().lock())
}

/// How many columns a line may have: those of the terminal, or else of COLUMNS, or else 80.
pub(super) fn width() -> usize {
    let terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    let set = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal.or_else(set).filter(|&width| width > 0).unwrap_or(80)
}

/// Writes warnings to standard error.
pub(super) fn warn(warnings: &[String]) -> io::Result<()> {
    warn_as("warning", warnings)
}

/// Writes remarks of another kind to standard error.
pub(super) fn warn_as(kind: &str, remarks: &[String]) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    for remark in remarks {
        let line = format!("{kind}: {remark}");
        writeln!(stderr, "{}", visible(&line, &stderr))?;
    }
    Ok(())
}

/// Replaces control characters (C0 but tab and line feed, DEL, C1, bidirectional marks) by escapes such as `\u{1b}`.
fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_control(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// The same for JSON text, by escapes of JSON: outside its strings there are no control characters.
fn escape_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_control(c) {
            // Each of them is one unit of UTF-16.
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

fn is_control(c: char) -> bool {
    match c {
        '\t' | '\n' => false,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}

/// The error of a tool, for a program to read.
pub(super) fn error_json(error: &ToolError, damage: &[String]) -> String {
    // A plugin may hand out anything; what is no JSON is shown as text.
    let data =
        error.data.as_ref().map(|data| serde_json::from_str(data).unwrap_or_else(|_| Value::from(data.as_str())));
    let mut report = json!({ "error": { "code": error.code, "message": error.message, "data": data } });
    if !damage.is_empty() {
        report["warnings"] = json!(damage);
    }
    report.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_made_visible() {
        for (text, shown) in [
            ("plain ü 😀\ttab\nline", "plain ü 😀\ttab\nline"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("\r\u{7}\u{8}", "\\u{d}\\u{7}\\u{8}"),
            ("\u{9b}31m\u{7f}\u{85}", "\\u{9b}31m\\u{7f}\\u{85}"),
            ("a\u{202e}b\u{2066}c\u{200f}\u{61c}", "a\\u{202e}b\\u{2066}c\\u{200f}\\u{61c}"),
        ] {
            assert_eq!(escape(text), shown);
        }
    }

    #[test]
    fn json_on_a_terminal_stays_the_same_value() {
        let value = json!({ "a\u{9b}\u{202e}": ["\u{1b}\n\t\r", "ü😀\u{85}\u{7f}\u{61c}"] });
        let shown = escape_json(&value.to_string());
        assert!(!shown.contains(is_control), "{shown}");
        assert_eq!(serde_json::from_str::<Value>(&shown).expect("JSON"), value);
    }

    #[test]
    fn errors_are_one_object() {
        let error =
            |data: Option<&str>| ToolError { code: "c".into(), message: "m\"".into(), data: data.map(Into::into) };
        for (error, damage, text) in [
            (error(None), &[][..], r#"{"error":{"code":"c","message":"m\"","data":null}}"#),
            (error(Some(r#"{"a":1}"#)), &[], r#"{"error":{"code":"c","message":"m\"","data":{"a":1}}}"#),
            (error(Some("{")), &[], r#"{"error":{"code":"c","message":"m\"","data":"{"}}"#),
            (error(None), &["w".into()], r#"{"error":{"code":"c","message":"m\"","data":null},"warnings":["w"]}"#),
        ] {
            assert_eq!(error_json(&error, damage), text);
        }
    }
}
