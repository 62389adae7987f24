//! Masks secrets in what is given out.
//!
//! One pass from left to right: a regular expression finds the places where a secret may begin; there the types are tried in
//! the order of [`Type`], and the first that matches wins. What its pattern needs beyond the language of regular
//! expressions without look-around (edges of words, a digit somewhere ahead, exact lengths) is looked at by hand, and what
//! was found ahead is remembered, so that a text made of nothing but beginnings takes no longer than another.

use crate::{text::is_space, tools::MAX_RESULT};
use regex::Regex;
use serde_json::Value;
use std::{borrow::Cow, ops::Range, sync::LazyLock};

/// The types of secrets, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// A PEM block.
    PrivateKey,
    /// The id of an AWS access key.
    AwsKey,
    /// The value that a name with `aws` in front is given.
    AwsSecret,
    /// A token of GitHub, classic or fine-grained.
    GithubToken,
    /// A personal access token of GitLab.
    GitlabToken,
    /// A key of Anthropic.
    AnthropicKey,
    /// A key of OpenAI.
    OpenaiKey,
    /// A token of Slack.
    SlackToken,
    /// A secret or restricted key of Stripe.
    StripeKey,
    /// A signed JSON Web Token.
    Jwt,
    /// A key of a Google API.
    GoogleApiKey,
    /// User and password in a URL.
    UrlCredentials,
    /// What stands behind `Bearer`.
    BearerToken,
    /// The value that a name such as `password` is given.
    GenericSecret,
}

impl Type {
    /// All of them, in order.
    pub const ALL: [Type; 14] = [
        Type::PrivateKey,
        Type::AwsKey,
        Type::AwsSecret,
        Type::GithubToken,
        Type::GitlabToken,
        Type::AnthropicKey,
        Type::OpenaiKey,
        Type::SlackToken,
        Type::StripeKey,
        Type::Jwt,
        Type::GoogleApiKey,
        Type::UrlCredentials,
        Type::BearerToken,
        Type::GenericSecret,
    ];

    /// The name in marks and counts.
    pub fn name(self) -> &'static str {
        match self {
            Type::PrivateKey => "PRIVATE_KEY",
            Type::AwsKey => "AWS_KEY",
            Type::AwsSecret => "AWS_SECRET",
            Type::GithubToken => "GITHUB_TOKEN",
            Type::GitlabToken => "GITLAB_TOKEN",
            Type::AnthropicKey => "ANTHROPIC_KEY",
            Type::OpenaiKey => "OPENAI_KEY",
            Type::SlackToken => "SLACK_TOKEN",
            Type::StripeKey => "STRIPE_KEY",
            Type::Jwt => "JWT",
            Type::GoogleApiKey => "GOOGLE_API_KEY",
            Type::UrlCredentials => "URL_CREDENTIALS",
            Type::BearerToken => "BEARER_TOKEN",
            Type::GenericSecret => "GENERIC_SECRET",
        }
    }
}

/// Masks the texts of one answer and counts what was masked.
#[derive(Debug, Default)]
pub struct Redactor {
    off: bool,
    counts: [u64; Type::ALL.len()],
}

impl Redactor {
    /// One that masks, or one that lets everything through.
    pub fn new(masks: bool) -> Redactor {
        Redactor { off: !masks, ..Redactor::default() }
    }

    /// Masks a text.
    pub fn text(&mut self, text: String) -> String {
        match self.mask(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(masked) => masked,
        }
    }

    /// Masks a text where there is one.
    pub fn optional(&mut self, text: Option<String>) -> Option<String> {
        text.map(|text| self.text(text))
    }

    /// Masks every text in a value; keys of objects stay as they are.
    pub fn value(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(std::mem::take(text)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(object) => object.values_mut().for_each(|value| self.value(value)),
            _ => {}
        }
    }

    /// How often each type was masked, if any was, in the order of the types.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Type::ALL.into_iter().map(Type::name).zip(self.counts).filter(|(_, count)| *count > 0)
    }

    fn mask<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        if self.off {
            return Cow::Borrowed(text);
        }
        let mut finder = Finder::new(text);
        let mut out = String::new();
        let mut copied = 0;
        let mut at = 0;
        while let Some(found) = finder.next(at) {
            self.counts[found.of as usize] += 1;
            for part in [&text[copied..found.masked.start], "[REDACTED_", found.of.name(), "]"] {
                push(&mut out, part);
            }
            copied = found.masked.end;
            at = copied;
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        push(&mut out, &text[copied..]);
        Cow::Owned(out)
    }
}

/// Of a masked text no more is kept than makes an answer too large; the rest is counted only.
fn push(out: &mut String, part: &str) {
    let room = (MAX_RESULT + 1).saturating_sub(out.len());
    let end = part.len().min(part.ceil_char_boundary(room));
    out.push_str(&part[..end]);
}

/// The beginnings of all types. Types 5 to 7 share `sk-` and the like; which one it is is tried where one was found.
static BEGINNINGS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"-----BEGIN |AKIA|ASIA|ABIA|ACCA|gh[pousr]_|github_pat_|glpat-|sk-|xox[baprs]-|[sr]k_(?:live|test)_|eyJ|AIza|://",
        r"|(?i-u:aws|bearer[ \t]|api[_-]?key|api[_-]?secret|secret|client[_-]?secret",
        r"|(?:access|auth|refresh|session)[_-]?token|private[_-]?key|password|passwd|pwd|token|credential)",
    ))
    .expect("it is a regular expression")
});

/// A secret.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    of: Type,
    /// What the mark takes the place of. The search goes on behind it, as every match ends with it.
    masked: Range<usize>,
}

/// Searches one text from left to right.
struct Finder<'t> {
    text: &'t str,
    bytes: &'t [u8],
    /// The run of letters, digits, `_` and `-` that was looked at last, and that without `_`.
    key_run: Run,
    slack_run: Run,
    /// Where the digit was looked for last that a generic value needs, and what ended the search.
    digit_ahead: (Range<usize>, bool),
    /// The END line that was found last: where the search for it began, and the line.
    pem_end: Option<(usize, Option<Range<usize>>)>,
    chars: [Chars; 2],
}

impl<'t> Finder<'t> {
    fn new(text: &'t str) -> Finder<'t> {
        Finder {
            text,
            bytes: text.as_bytes(),
            key_run: Run::default(),
            slack_run: Run::default(),
            digit_ahead: (0..0, false),
            pem_end: None,
            chars: [Chars::default(); 2],
        }
    }

    /// The first secret at or after `from`.
    fn next(&mut self, mut from: usize) -> Option<Found> {
        while let Some(beginning) = BEGINNINGS.find_at(self.text, from) {
            // No match of any type ends inside of `://`, so looking back at it never looks into what is masked already.
            let at = if beginning.as_str() == "://" { beginning.end() } else { beginning.start() };
            if let Some(found) = self.at(at) {
                return Some(found);
            }
            from = beginning.start() + 1;
        }
        None
    }

    /// The secret that begins exactly here.
    fn at(&mut self, at: usize) -> Option<Found> {
        let before = self.text[..at].chars().next_back();
        let edge = !before.is_some_and(is_word);
        Type::ALL.into_iter().find_map(|of| {
            let masked = match of {
                Type::PrivateKey => self.private_key(at),
                Type::UrlCredentials => self.url_credentials(at),
                // The one rule in which `_` ends a word: the names of environment variables have many.
                Type::GenericSecret => {
                    (!before.is_some_and(char::is_alphanumeric)).then(|| self.generic_secret(at)).flatten()
                }
                _ if !edge => None,
                Type::AwsKey => self.aws_key(at),
                Type::AwsSecret => self.aws_secret(at),
                Type::GithubToken => self.github_token(at),
                Type::GitlabToken => self.key_with_digit(at, b"glpat-", 20),
                Type::AnthropicKey => self.key_with_digit(at, b"sk-ant-", 16),
                Type::OpenaiKey => self.key_with_digit(at, b"sk-", 20),
                Type::SlackToken => self.slack_token(at),
                Type::StripeKey => self.stripe_key(at),
                Type::Jwt => self.jwt(at),
                Type::GoogleApiKey => self.google_api_key(at),
                Type::BearerToken => self.bearer_token(at),
            };
            masked.map(|masked| Found { of, masked })
        })
    }

    fn private_key(&mut self, at: usize) -> Option<Range<usize>> {
        let body = self.pem_line(at, "-----BEGIN ")?;
        let end = self.pem_end_from(body)?;
        // At most 20,000 characters lie between the lines. The counters go forward only, as the places asked for do.
        let [to_body, to_end] = &mut self.chars;
        let between = to_end.before(self.text, end.start) - to_body.before(self.text, body);
        (between <= 20_000).then_some(at..end.end)
    }

    /// Where a line of a PEM block that begins here ends.
    fn pem_line(&self, at: usize, begin: &str) -> Option<usize> {
        let label = self.text[at..].strip_prefix(begin)?;
        let length = run(label.as_bytes(), |b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b' ');
        let kind = ["PRIVATE KEY", "PRIVATE KEY BLOCK"].iter().find_map(|key| label[..length].strip_suffix(key))?;
        (kind.len() <= 40 && label[length..].starts_with("-----")).then(|| at + begin.len() + length + 5)
    }

    fn pem_end_from(&mut self, from: usize) -> Option<Range<usize>> {
        if let Some((since, end)) = &self.pem_end
            && *since <= from
            && end.as_ref().is_none_or(|end| end.start >= from)
        {
            return end.clone();
        }
        const END: &str = "-----END ";
        let found = memchr::memmem::find_iter(&self.bytes[from..], END)
            .find_map(|found| Some(from + found..self.pem_line(from + found, END)?));
        self.pem_end = Some((from, found.clone()));
        found
    }

    fn aws_key(&self, at: usize) -> Option<Range<usize>> {
        let key = &self.bytes[at..];
        let known = [b"AKIA", b"ASIA", b"ABIA", b"ACCA"].iter().any(|prefix| key.starts_with(*prefix));
        let end = at + 20;
        (known && run(key, |b| b.is_ascii_uppercase() || b.is_ascii_digit()) == 20 && !self.word_at(end))
            .then_some(at..end)
    }

    fn aws_secret(&self, at: usize) -> Option<Range<usize>> {
        if !starts_with_ignoring_case(&self.bytes[at..], b"aws") {
            return None;
        }
        // Up to 24 characters of a name, in which blanks may stand; behind them blanks and tabs may follow without end.
        let in_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b' ');
        let name = &self.bytes[at + 3..];
        let length = run(&name[..name.len().min(24)], in_name);
        let blanks = run(&name[length..], |b| b == b' ');
        let end = at + 3 + length + blanks;
        if blanks > 0 && matches!(self.bytes.get(end), Some(b'"' | b'\'')) {
            return None;
        }
        let value = self.value_behind(end)?;
        let length = run(&self.bytes[value..], |b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'+' | b'='));
        (length == 40).then(|| value..value + length)
    }

    fn github_token(&self, at: usize) -> Option<Range<usize>> {
        let token = &self.bytes[at..];
        let (prefix, length, lengths) = match token {
            [b'g', b'h', b'p' | b'o' | b'u' | b's' | b'r', b'_', rest @ ..] => {
                (4, run(rest, |b| b.is_ascii_alphanumeric()), 36..=251)
            }
            _ => {
                let rest = token.strip_prefix(b"github_pat_")?;
                (11, run(rest, |b| b.is_ascii_alphanumeric() || b == b'_'), 22..=255)
            }
        };
        let end = at + prefix + length;
        (lengths.contains(&length) && !self.word_at(end)).then_some(at..end)
    }

    fn key_with_digit(&mut self, at: usize, prefix: &[u8], shortest: usize) -> Option<Range<usize>> {
        self.bytes[at..].starts_with(prefix).then_some(())?;
        let start = at + prefix.len();
        let end = self.key_run.with_digit(self.bytes, start, is_key)?;
        (end - start >= shortest).then_some(at..end)
    }

    fn slack_token(&mut self, at: usize) -> Option<Range<usize>> {
        let [b'x', b'o', b'x', b'b' | b'a' | b'p' | b'r' | b's', b'-', ..] = self.bytes[at..] else { return None };
        let start = at + 5;
        let end = self.slack_run.with_digit(self.bytes, start, |b| b.is_ascii_alphanumeric() || b == b'-')?;
        (end - start >= 10).then_some(at..end)
    }

    fn stripe_key(&self, at: usize) -> Option<Range<usize>> {
        let [b's' | b'r', b'k', b'_', ref rest @ ..] = self.bytes[at..] else { return None };
        let rest = rest.strip_prefix(b"live_").or_else(|| rest.strip_prefix(b"test_"))?;
        let length = run(rest, |b| b.is_ascii_alphanumeric());
        let end = at + 8 + length;
        (length >= 10 && !self.word_at(end)).then_some(at..end)
    }

    fn jwt(&mut self, at: usize) -> Option<Range<usize>> {
        self.bytes[at..].starts_with(b"eyJ").then_some(())?;
        let mut end = at + 3;
        for part in 0..3 {
            if part > 0 {
                (self.bytes.get(end) == Some(&b'.')).then_some(())?;
                end += 1;
            }
            let start = end;
            end = self.key_run.end(self.bytes, start, is_key);
            if end - start < 8 {
                return None;
            }
        }
        Some(at..end)
    }

    fn google_api_key(&self, at: usize) -> Option<Range<usize>> {
        let key = self.bytes[at..].strip_prefix(b"AIza")?.get(..35)?;
        let end = at + 39;
        // The key may end with a hyphen; then an edge is where a letter follows.
        let ends_in_word = key[34] != b'-';
        (key.iter().all(|&b| is_key(b)) && ends_in_word != self.word_at(end)).then_some(at..end)
    }

    fn url_credentials(&self, at: usize) -> Option<Range<usize>> {
        if !self.bytes[..at].ends_with(b"://") {
            return None;
        }
        let mut chars = self.text[at..].char_indices();
        let mut colon = None;
        let mut length = 0;
        loop {
            let (i, c) = chars.next()?;
            match c {
                '@' => return (colon.is_some() && length > 0).then(|| at..at + i),
                ':' if colon.is_none() => (colon, length) = (Some(i), 0),
                '/' | '"' | '\'' => return None,
                c if is_space(c) => return None,
                _ => length += 1,
            }
            if length > if colon.is_some() { 256 } else { 64 } {
                return None;
            }
        }
    }

    fn bearer_token(&self, at: usize) -> Option<Range<usize>> {
        if !starts_with_ignoring_case(&self.bytes[at..], b"bearer") {
            return None;
        }
        let blanks = run(&self.bytes[at + 6..], |b| matches!(b, b' ' | b'\t'));
        let start = at + 6 + blanks;
        let length = run(&self.bytes[start..], |b| {
            b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~' | b'+' | b'/')
        });
        let value = &self.bytes[start..start + length];
        if blanks == 0 || length < 16 || !value.iter().any(u8::is_ascii_digit) {
            return None;
        }
        let end = start + length + run(&self.bytes[start + length..], |b| b == b'=');
        Some(start..end)
    }

    fn generic_secret(&mut self, at: usize) -> Option<Range<usize>> {
        /// The names in two parts, between which `_`, `-` or nothing stands.
        const NAMES: [(&[u8], &[u8]); 16] = [
            (b"api", b"key"),
            (b"api", b"secret"),
            (b"secret", b"key"),
            (b"client", b"secret"),
            (b"access", b"token"),
            (b"auth", b"token"),
            (b"refresh", b"token"),
            (b"session", b"token"),
            (b"private", b"key"),
            (b"password", b""),
            (b"passwd", b""),
            (b"pwd", b""),
            (b"secret", b""),
            (b"token", b""),
            (b"credentials", b""),
            (b"credential", b""),
        ];
        NAMES.iter().find_map(|(first, second)| {
            let mut end = at;
            for part in [first, second] {
                if !part.is_empty() && end > at && matches!(self.bytes.get(end), Some(b'_' | b'-')) {
                    end += 1;
                }
                starts_with_ignoring_case(&self.bytes[end..], part).then_some(())?;
                end += part.len();
            }
            if self.word_at(end) {
                return None;
            }
            let value = self.value_behind(end)?;
            if !self.digit_ahead_of(value) {
                return None;
            }
            let length = run(&self.bytes[value..], |b| b.is_ascii_alphanumeric() || b"+/_-=.~!@#$%^&*".contains(&b));
            (length >= 8).then(|| value..value + length)
        })
    }

    /// Where the value begins that a name which ends here is given: `=` or `:`, with blanks and quotes around.
    fn value_behind(&self, name_end: usize) -> Option<usize> {
        let blanks = |at: usize| at + run(&self.bytes[at..], |b| matches!(b, b' ' | b'\t'));
        let quote = |at: usize| at + usize::from(matches!(self.bytes.get(at), Some(b'"' | b'\'')));
        let separator = blanks(quote(name_end));
        matches!(self.bytes.get(separator), Some(b':' | b'=')).then(|| quote(blanks(separator + 1)))
    }

    /// Does a digit come before the next white space, quote, comma or semicolon?
    fn digit_ahead_of(&mut self, at: usize) -> bool {
        let (searched, found) = &self.digit_ahead;
        if searched.contains(&at) {
            return *found;
        }
        let stop = self.text[at..].char_indices().find_map(|(i, c)| {
            if c.is_numeric() {
                Some((i, true))
            } else if is_space(c) || matches!(c, '"' | '\'' | ',' | ';') {
                Some((i, false))
            } else {
                None
            }
        });
        let (length, found) = stop.unwrap_or((self.text.len() - at, false));
        self.digit_ahead = (at..at + length + 1, found);
        found
    }

    /// Does a letter, digit or underscore stand here?
    fn word_at(&self, at: usize) -> bool {
        self.text[at..].chars().next().is_some_and(is_word)
    }
}

/// A run of bytes of one class, remembered: the runs of later places inside it are its rest.
#[derive(Default)]
struct Run {
    range: Range<usize>,
    last_digit: Option<usize>,
}

impl Run {
    /// Where the run that begins at `start` ends.
    fn end(&mut self, bytes: &[u8], start: usize, class: impl Fn(u8) -> bool) -> usize {
        if !self.range.contains(&start) {
            let end = start + run(&bytes[start..], class);
            self.last_digit = bytes[start..end].iter().rposition(u8::is_ascii_digit).map(|found| start + found);
            self.range = start..end;
        }
        self.range.end
    }

    /// The same, where a digit stands in it.
    fn with_digit(&mut self, bytes: &[u8], start: usize, class: impl Fn(u8) -> bool) -> Option<usize> {
        let end = self.end(bytes, start, class);
        (self.last_digit? >= start && start < end).then_some(end)
    }
}

/// Counts characters up to places that come in order.
#[derive(Clone, Copy, Default)]
struct Chars {
    at: usize,
    before: usize,
}

impl Chars {
    fn before(&mut self, text: &str, at: usize) -> usize {
        self.before += text[self.at..at].chars().count();
        self.at = at;
        self.before
    }
}

/// How many bytes from the front are of this class.
fn run(bytes: &[u8], class: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|&&byte| class(byte)).count()
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn starts_with_ignoring_case(bytes: &[u8], prefix: &[u8]) -> bool {
    bytes.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mask(text: &str) -> String {
        Redactor::new(true).text(text.to_owned())
    }

    fn x(count: usize) -> String {
        "x".repeat(count)
    }

    /// Edges, lengths and ends of every type. `#` stands for a mark of the type.
    #[test]
    fn every_edge() {
        let (d16, d35, d40) =
            ("A1B2C3D4E5F6G7H8", "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r", "A1b2C3d4E5f6G7h8I9j0A1b2C3d4E5f6G7h8I9j0");
        let jwt = format!("eyJ{0}.{0}.{0}", x(8));
        let pem = |label: &str, body: &str| {
            format!("{dashes}BEGIN {label}{dashes}{body}{dashes}END {label}{dashes}", dashes = "-----")
        };
        for (of, text, expected) in [
            (Type::PrivateKey, pem("PRIVATE KEY", "\n"), "#".into()),
            (Type::PrivateKey, pem("PGP PRIVATE KEY BLOCK", "é"), "#".into()),
            (Type::PrivateKey, pem("PRIVATE KEY", &"é".repeat(20_000)), "#".into()),
            (Type::PrivateKey, pem("PRIVATE KEY", &"é".repeat(20_001)), pem("PRIVATE KEY", &"é".repeat(20_001))),
            (Type::PrivateKey, pem("PUBLIC KEY", "a"), pem("PUBLIC KEY", "a")),
            (Type::PrivateKey, pem(&format!("{}PRIVATE KEY", "A".repeat(40)), ""), "#".into()),
            (
                Type::PrivateKey,
                pem(&format!("{}PRIVATE KEY", "A".repeat(41)), ""),
                pem(&format!("{}PRIVATE KEY", "A".repeat(41)), ""),
            ),
            (Type::AwsKey, format!("AKIA{d16}-ASIA{d16}"), "#-#".into()),
            (Type::AwsKey, format!("AKIA{d16}_"), format!("AKIA{d16}_")),
            (Type::AwsKey, format!("_AKIA{d16}"), format!("_AKIA{d16}")),
            (Type::AwsKey, format!("AKIA{d16}é"), format!("AKIA{d16}é")),
            (Type::AwsSecret, format!("AWS_SECRET_ACCESS_KEY=\"{d40}\""), "AWS_SECRET_ACCESS_KEY=\"#\"".into()),
            (Type::AwsSecret, format!("aws {}\t \t: '{d40}", x(22)), format!("aws {}\t \t: '#", x(22))),
            (Type::AwsSecret, format!("aws{}  :{d40}", x(24)), format!("aws{}  :#", x(24))),
            (Type::AwsSecret, format!("aws{}:{d40}", x(25)), format!("aws{}:{d40}", x(25))),
            (Type::AwsSecret, format!("aws:{d40}="), format!("aws:{d40}=")),
            (Type::AwsSecret, format!("xaws:{d40}"), format!("xaws:{d40}")),
            (Type::GithubToken, format!("ghp_{}", x(36)), "#".into()),
            (Type::GithubToken, format!("gho_{}", x(251)), "#".into()),
            (Type::GithubToken, format!("ghp_{}", x(35)), format!("ghp_{}", x(35))),
            (Type::GithubToken, format!("ghp_{}", x(252)), format!("ghp_{}", x(252))),
            (Type::GithubToken, format!("ghp_{}_", x(40)), format!("ghp_{}_", x(40))),
            (Type::GithubToken, format!("github_pat_{}.", x(22)), "#.".into()),
            (Type::GitlabToken, format!("glpat-1{}", x(19)), "#".into()),
            (Type::GitlabToken, format!("glpat-1{}", x(18)), format!("glpat-1{}", x(18))),
            (Type::AnthropicKey, format!("sk-ant-{}1é", x(15)), "#é".into()),
            (Type::OpenaiKey, format!("sk-ant-{}", "1".repeat(15)), format!("sk-ant-{}", "1".repeat(15))),
            (Type::OpenaiKey, format!("sk-{}", x(40)), format!("sk-{}", x(40))),
            (Type::SlackToken, format!("xoxp-{}1_", x(9)), "#_".into()),
            (Type::SlackToken, format!("xoxq-{}1", x(9)), format!("xoxq-{}1", x(9))),
            (Type::StripeKey, format!("rk_live_{}", x(10)), "#".into()),
            (Type::StripeKey, format!("sk_test_{}_", x(10)), format!("sk_test_{}_", x(10))),
            (Type::Jwt, format!("{jwt}.more"), "#.more".into()),
            (Type::Jwt, format!("eyJ{0}.{0}.{1}", x(8), x(7)), format!("eyJ{0}.{0}.{1}", x(8), x(7))),
            (Type::GoogleApiKey, format!("AIza{d35} AIza{d35}x AIza{d35}-"), format!("# AIza{d35}x #-")),
            (Type::UrlCredentials, format!("a://{}:{}@h", x(64), "é".repeat(256)), "a://#@h".into()),
            (Type::UrlCredentials, format!("a://{}:b@h", x(65)), format!("a://{}:b@h", x(65))),
            (Type::UrlCredentials, format!("a://a:{}@h", x(257)), format!("a://a:{}@h", x(257))),
            (
                Type::UrlCredentials,
                "a://b:@h ://:c:d@h ://a/b:c@d ://a:b c@d".into(),
                "a://b:@h ://#@h ://a/b:c@d ://a:b c@d".into(),
            ),
            (Type::BearerToken, format!("bearer \t1{}==é", x(15)), "bearer \t#é".into()),
            (Type::BearerToken, format!("bearer1{}", x(15)), format!("bearer1{}", x(15))),
            (Type::GenericSecret, "A_token:\t\"abc12345,".into(), "A_token:\t\"#,".into()),
            (
                Type::GenericSecret,
                "apiKEY'='x1x1x1x1' secret-key=x1x1x1x1 secretkey: x1x1x1x1".into(),
                "apiKEY'='#' secret-key=# secretkey: #".into(),
            ),
            (
                Type::GenericSecret,
                "passwordless=x1x1x1x1 secretary=x1x1x1x1 token_=x1x1x1x1".into(),
                "passwordless=x1x1x1x1 secretary=x1x1x1x1 token_=x1x1x1x1".into(),
            ),
            (
                Type::GenericSecret,
                "pwd=abcdefg1 pwd=abcdef1 pwd=abcdefgh\u{a0}1".into(),
                "pwd=# pwd=abcdef1 pwd=abcdefgh\u{a0}1".into(),
            ),
            (Type::GenericSecret, "token=abcdefgh٣".into(), "token=#٣".into()),
            (Type::GenericSecret, "token token=token=abc12345".into(), "token token=#".into()),
        ] {
            let mark = format!("[REDACTED_{}]", of.name());
            assert_eq!(
                mask(&text),
                expected.replace('#', &mark).replace("[REDACTED_GENERIC_SECRET]\u{0}", "#"),
                "{text}"
            );
        }
    }

    #[test]
    fn the_first_type_wins_at_each_place() {
        let openai = format!("sk-{}1", x(20));
        for (text, expected) in [
            (format!("a://{openai}:{openai}@h"), "a://[REDACTED_OPENAI_KEY]:[REDACTED_OPENAI_KEY]@h".to_owned()),
            (format!("bearer {openai}"), "bearer [REDACTED_BEARER_TOKEN]".to_owned()),
            (format!("https://a:{openai}@h"), "https://[REDACTED_URL_CREDENTIALS]@h".to_owned()),
        ] {
            assert_eq!(mask(&text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_off_lets_through() {
        let mut off = Redactor::new(false);
        assert_eq!(off.text("password=hunter2x9".into()), "password=hunter2x9");
        assert_eq!(off.counts().count(), 0);
    }

    /// Texts of nothing but beginnings: each would take minutes if every beginning looked ahead on its own.
    #[test]
    fn beginnings_without_end_cost_no_more() {
        for begin in
            ["sk-", "-eyJ", "glpat-", "xoxb-", "token=", "aws ", "-----BEGIN PRIVATE KEY-----", "bearer ", "://a:"]
        {
            let text = begin.repeat(30_000);
            assert_eq!(mask(&text), text, "{begin}");
        }
    }

    /// A secret of every type, whole.
    fn secret() -> impl Strategy<Value = (Type, String)> {
        let pem = "[A-Za-z0-9+/=\n]{1,80}".prop_map(|body| {
            (Type::PrivateKey, format!("{0}BEGIN RSA PRIVATE KEY{0}{body}{0}END RSA PRIVATE KEY{0}", "-----"))
        });
        let of = |of: Type, pattern: &str| {
            proptest::string::string_regex(pattern).expect("a pattern").prop_map(move |text| (of, text)).boxed()
        };
        prop_oneof![
            pem.boxed(),
            of(Type::AwsKey, "(AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"),
            of(Type::AwsSecret, "aws_secret_access_key = [A-Za-z0-9/+]{40}"),
            of(Type::GithubToken, "gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{20}"),
            of(Type::GitlabToken, "glpat-[0-9][A-Za-z0-9_-]{20}"),
            of(Type::AnthropicKey, "sk-ant-api03-[0-9][A-Za-z0-9_-]{20}"),
            of(Type::OpenaiKey, "sk-[0-9][A-Za-z0-9_-]{20}"),
            of(Type::SlackToken, "xox[baprs]-[0-9][A-Za-z0-9-]{12}"),
            of(Type::StripeKey, "[sr]k_(live|test)_[A-Za-z0-9]{12}"),
            of(Type::Jwt, "eyJ[A-Za-z0-9_-]{8}[.][A-Za-z0-9_-]{8}[.][A-Za-z0-9_-]{8}"),
            of(Type::GoogleApiKey, "AIza[A-Za-z0-9_-]{34}[A-Za-z0-9_]"),
            of(Type::UrlCredentials, "redis://[a-z]{0,5}:[a-z0-9]{8,12}@"),
            of(Type::BearerToken, "[Bb]earer [0-9][A-Za-z0-9._~+/-]{16}"),
            of(
                Type::GenericSecret,
                "(DB_)?(PASSWORD|api_key|Client-Secret|token)(=|: |\" : \")[0-9][A-Za-z0-9_.!@#$%^&*~-]{8}"
            ),
        ]
    }

    /// What no rest of it may survive: the part of a secret that a mark takes the place of.
    fn core((of, text): &(Type, String)) -> &str {
        match of {
            Type::AwsSecret | Type::BearerToken => text.rsplit(' ').next().expect("a part"),
            Type::GenericSecret => text.trim_start_matches(|c: char| !c.is_ascii_digit()),
            Type::UrlCredentials => text.trim_start_matches("redis://").trim_end_matches('@'),
            _ => text,
        }
    }

    /// What may stand between two texts without hiding where a word begins or ends.
    fn joint() -> impl Strategy<Value = String> {
        prop_oneof![
            Just(" ".to_owned()),
            Just("\n".to_owned()),
            Just("\"}, {\"".to_owned()),
            Just("(".to_owned()),
            Just(" = ".to_owned()),
            Just(" \u{3000}".to_owned()),
            Just("'; '".to_owned()),
            Just(" - ".to_owned()),
            Just("> ".to_owned()),
            "[ \n\"'(),;>|{}]{1,5}",
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// No secret survives, whatever it is joined to: other secrets, beginnings of secrets, words, any text.
        #[test]
        fn no_secret_survives(
            parts in prop::collection::vec((joint(), prop_oneof![secret().boxed(), ".{0,12}".prop_map(|text| (Type::Jwt, format!("~{text}"))).boxed()]), 1..8)
        ) {
            let text: String = parts.iter().flat_map(|(joint, (_, text))| [joint.as_str(), text]).collect::<String>() + " ";
            let mut redactor = Redactor::new(true);
            let masked = redactor.text(text.clone());
            for (_, part) in &parts {
                if !part.1.starts_with('~') {
                    prop_assert!(!masked.contains(core(part)), "{:?} in {:?}\nof {:?}", part, masked, text);
                }
            }
            let secrets = parts.iter().filter(|(_, part)| !part.1.starts_with('~')).count();
            prop_assert!(secrets == 0 || redactor.counts().count() > 0);
            // Masking again finds nothing more.
            let mut again = Redactor::new(true);
            let stable = again.text(masked.clone());
            prop_assert_eq!(again.counts().map(|(name, _)| name).filter(|name| *name != "URL_CREDENTIALS").count(), 0, "{}", stable);
        }

        /// The regular expression misses no beginning: at every place where a type matches, one was found.
        #[test]
        fn every_place_is_looked_at(text in prop::collection::vec(prop_oneof![secret().prop_map(|(_, text)| text).boxed(), ".{0,6}".boxed()], 0..6)) {
            let text = text.concat();
            let by_place = text.char_indices().find_map(|(at, _)| Finder::new(&text).at(at));
            prop_assert_eq!(Finder::new(&text).next(0), by_place);
        }

        #[test]
        fn any_text_is_masked_somehow(text in any::<String>()) {
            mask(&text);
        }
    }
}
