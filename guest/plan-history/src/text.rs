//! Text as Python sees it. The tool whose answers ours match is written in it, so its rules of white space and lines hold.

/// White space as `str.isspace` has it: that of Unicode, and U+001C to U+001F.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Removes white space from both ends, as `str.strip` does.
pub fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Removes white space from the front.
pub fn trim_start(text: &str) -> &str {
    text.trim_start_matches(is_space)
}

/// Removes white space from the end.
pub fn trim_end(text: &str) -> &str {
    text.trim_end_matches(is_space)
}

/// Is there nothing but white space?
pub fn is_blank(text: &str) -> bool {
    text.chars().all(is_space)
}

/// The first `limit` characters of a text, and whether there are more.
pub fn cut(text: &str, limit: usize) -> (&str, bool) {
    match text.char_indices().nth(limit) {
        None => (text, false),
        Some((end, _)) => (&text[..end], true),
    }
}

/// The lines of a text, as `str.splitlines` finds them: a line ends with `\n`, `\r`, `\r\n`, a vertical tab, a form feed,
/// U+001C to U+001E, U+0085, U+2028 or U+2029.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some((end, c)) = rest.char_indices().find(|&(_, c)| ends_line(c)) else {
            return Some(std::mem::take(&mut rest));
        };
        let line = &rest[..end];
        rest = &rest[end + c.len_utf8()..];
        if c == '\r' {
            rest = rest.strip_prefix('\n').unwrap_or(rest);
        }
        Some(line)
    })
}

fn ends_line(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Turns each run of white space into one blank.
pub fn collapse(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_space = false;
    for c in text.chars() {
        let space = is_space(c);
        if !space {
            out.push(c);
        } else if !in_space {
            out.push(' ');
        }
        in_space = space;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space() {
        for (text, trimmed) in [
            (" \t\u{1c}\u{1f}\u{85}\u{a0}\u{2028}\u{3000}a b\n", "a b"),
            ("\u{feff}a\u{200b}", "\u{feff}a\u{200b}"),
            ("\u{1d}", ""),
        ] {
            assert_eq!(trim(text), trimmed, "{text:?}");
            assert_eq!(is_blank(text), trimmed.is_empty(), "{text:?}");
        }
        assert_eq!(collapse(" a \u{2028}\n b"), " a b");
    }

    #[test]
    fn lines_end_where_python_ends_them() {
        for (text, expected) in [
            ("", &[][..]),
            ("a", &["a"]),
            ("a\n", &["a"]),
            ("a\n\nb", &["a", "", "b"]),
            ("a\r\nb\rc\n\rd", &["a", "b", "c", "", "d"]),
            ("a\u{b}b\u{c}c\u{1c}d\u{1d}e\u{1e}f\u{85}g\u{2028}h\u{2029}", &["a", "b", "c", "d", "e", "f", "g", "h"]),
            ("a\u{1f}b", &["a\u{1f}b"]),
        ] {
            assert_eq!(lines(text).collect::<Vec<_>>(), expected, "{text:?}");
        }
    }

    #[test]
    fn cuts_count_characters() {
        assert_eq!(cut("éé", 2), ("éé", false));
        assert_eq!(cut("éé", 1), ("é", true));
        assert_eq!(cut("", 0), ("", false));
    }
}
