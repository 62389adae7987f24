//! Titles of plans, and the keys that make revisions of one task out of them.

use crate::text::{collapse, is_space, trim};

/// The first heading of a Markdown text: a line, inside a code fence too, that begins with exactly one `#` and white space.
/// That white space may run over line ends, so that a bare `#` takes its title from the next line that is not blank.
pub fn heading(markdown: &str) -> Option<&str> {
    let mut line_start = 0;
    loop {
        if let Some(rest) = markdown[line_start..].strip_prefix('#')
            && rest.starts_with(is_space)
        {
            // What follows the white space to the end of its line. Where nothing follows, no later line can be a heading.
            let title = crate::text::trim_start(rest);
            let title = title.split_once('\n').map_or(title, |(line, _)| line);
            return Some(trim(title)).filter(|title| !title.is_empty());
        }
        line_start += markdown[line_start..].find('\n')? + 1;
    }
}

/// A title as a key: lower case, white space collapsed, and no blank, `#`, `:`, `-` or em dash at either end.
pub fn key(title: &str) -> String {
    let lower = collapse(&trim(title).to_lowercase());
    lower.trim_matches([' ', '#', ':', '-', '—']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings() {
        for (markdown, title) in [
            ("# A", Some("A")),
            ("#\tA  \n", Some("A")),
            ("text\n# A #\n# B", Some("A #")),
            ("```\n# in a fence\n```", Some("in a fence")),
            ("#\n\n  next\nnot this", Some("next")),
            ("#\n\n## level two", Some("## level two")),
            ("# A\rB\nC", Some("A\rB")),
            ("## A", None),
            ("#A", None),
            (" # A", None),
            ("\r# A", None),
            ("#", None),
            ("# \n \n", None),
            ("#\u{a0}A", Some("A")),
            ("", None),
        ] {
            assert_eq!(heading(markdown), title, "{markdown:?}");
        }
    }

    #[test]
    fn keys() {
        for (title, expected) in [
            ("Über   Plan —", "über plan"),
            ("wire  the Cache:", "wire the cache"),
            ("# — a - b: #", "a - b"),
            ("ΑΣ", "ας"),
            ("--", ""),
        ] {
            assert_eq!(key(title), expected, "{title:?}");
        }
    }
}
