//! Text as JavaScript sees it. The harnesses that share our journals are written in it, so their rules hold.

use std::borrow::Cow;

/// Trims as `String.prototype.trim` does (ECMA-262, `WhiteSpace` and `LineTerminator`).
///
/// It differs from [`str::trim`] in two characters: U+FEFF goes and U+0085 stays.
pub fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Is there nothing but what [`trim`] removes?
pub fn is_blank(text: &str) -> bool {
    text.chars().all(is_space)
}

fn is_space(c: char) -> bool {
    c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}')
}

/// The length in UTF-16 code units: `String.prototype.length`.
pub fn utf16_len(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// Shortens `text` for an error message to at most `limit` characters, with an ellipsis where something is missing.
pub fn excerpt(text: &str, limit: usize) -> Cow<'_, str> {
    match text.char_indices().nth(limit) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

/// Replaces escapes of lone surrogates in JSON text by `\ufffd`.
///
/// JavaScript writes half a surrogate pair as `\ud83d` and reads it back. A Rust string cannot hold it, and serde_json
/// refuses the whole text. Everything else stays byte for byte, so the result parses exactly where the text would parse
/// in JavaScript.
pub fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    if !json.contains('\\') {
        return Cow::Borrowed(json);
    }
    let bytes = json.as_bytes();
    let mut out: Option<String> = None;
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|&b| b == b'\\') {
        let escape = at + found;
        match surrogate_at(bytes, escape) {
            // A pair: both halves belong together.
            Some(0xd800..=0xdbff) if matches!(surrogate_at(bytes, escape + 6), Some(0xdc00..=0xdfff)) => {
                at = escape + 12;
            }
            Some(_) => {
                let out = out.get_or_insert_with(|| String::with_capacity(json.len()));
                out.push_str(&json[copied..escape]);
                out.push_str("\\ufffd");
                at = escape + 6;
                copied = at;
            }
            // Any other escape: its second character must not be taken for the start of one.
            None => at = (escape + 2).min(bytes.len()),
        }
    }
    match out {
        None => Cow::Borrowed(json),
        Some(mut out) => {
            out.push_str(&json[copied..]);
            Cow::Owned(out)
        }
    }
}

/// The surrogate that the six bytes at `at` escape, if they do.
fn surrogate_at(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    let (mark, digits) = escape.split_at(2);
    if mark != b"\\u" || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let unit = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (0xd800..=0xdfff).contains(&unit).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn trims_as_javascript() {
        for (text, trimmed) in [
            ("  a b  ", "a b"),
            ("\u{feff}a\u{feff}", "a"),
            ("\u{85}a\u{85}", "\u{85}a\u{85}"),
            ("\u{a0}\u{1680}\u{2000}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}a\t\n\u{b}\u{c}\r", "a"),
            ("\u{180e}a\u{200b}", "\u{180e}a\u{200b}"),
            ("", ""),
        ] {
            assert_eq!(trim(text), trimmed, "{text:?}");
            assert_eq!(is_blank(text), trimmed.is_empty(), "{text:?}");
        }
    }

    #[test]
    fn counts_code_units() {
        assert_eq!(utf16_len("a"), 1);
        assert_eq!(utf16_len("é"), 1);
        assert_eq!(utf16_len("😀"), 2);
    }

    #[test]
    fn excerpts_end_at_characters() {
        assert_eq!(excerpt("äöü", 3), "äöü");
        assert_eq!(excerpt("äöüß", 3), "äöü…");
    }

    #[test]
    fn replaces_only_lone_surrogates() {
        for (json, expected) in [
            (r#""plain""#, r#""plain""#),
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\uD83D\uDC00""#, r#""\uD83D\uDC00""#),
            (r#""\ud83d\ud83d\udc00""#, r#""\ufffd\ud83d\udc00""#),
            (r#""\udc00\ud83d""#, r#""\ufffd\ufffd""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            (r#"{"\ud83d":"\n"}"#, r#"{"\ufffd":"\n"}"#),
            (r#""\ud8"#, r#""\ud8"#),
            (r"\", r"\"),
            (r#""\u+12a""#, r#""\u+12a""#),
        ] {
            assert_eq!(replace_lone_surrogates(json), expected, "{json}");
        }
    }

    proptest! {
        /// Any UTF-16 text that JavaScript can write reads as the same text with U+FFFD for each lone half.
        #[test]
        fn reads_what_javascript_writes(units in prop::collection::vec(prop_oneof![0xd7f0u16..0xe010, 0u16..0x80], 0..20)) {
            let json: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
            let text: String = serde_json::from_str(&replace_lone_surrogates(&format!("\"{json}\""))).unwrap();
            prop_assert_eq!(text, String::from_utf16_lossy(&units));
        }

        #[test]
        fn never_panics(text in ".*\\\\?.*") {
            replace_lone_surrogates(&text);
        }
    }
}
