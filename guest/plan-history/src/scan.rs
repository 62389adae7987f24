//! Finds out cheaply whether a transcript can hold a plan at all: a search for bytes, without reading any JSON.
//!
//! Most sessions hold none, and of those nothing else is read. The search may find too much and never too little: JSON may
//! write any character as an escape, so an escape of a printable ASCII character counts as a find too.

use crate::{
    lines::{CHUNK, MAX_FILE},
    source::File,
};
use memchr::memmem::Finder;

/// What to search for.
pub struct Scan {
    /// Text as it stands in JSON.
    needles: Vec<Finder<'static>>,
    /// Names of plan files too.
    plan_files: bool,
    escape: Finder<'static>,
}

/// The longest needle, in bytes, with room to look around a find.
const SEAM: usize = 64;

impl Scan {
    /// A search for these texts, and for names of plan files.
    pub fn new(needles: &'static [&'static str], plan_files: bool) -> Scan {
        debug_assert!(needles.iter().all(|needle| needle.len() < SEAM));
        Scan { needles: needles.iter().map(Finder::new).collect(), plan_files, escape: Finder::new("\\u00") }
    }

    /// Texts of which at least one stands in every file in which [`Scan::finds`] finds something.
    pub fn texts(needles: &[&str], plan_files: bool) -> Vec<String> {
        let escapes = (2..=7).map(|digit| format!("\\u00{digit}"));
        let plan_files = if plan_files { &["plans/", "plans\\/"][..] } else { &[] };
        needles.iter().chain(plan_files).map(|text| (*text).to_owned()).chain(escapes).collect()
    }

    /// Is there anything to be found in this file? Where it cannot be read to the end, perhaps.
    pub fn finds(&self, file: &mut impl File) -> bool {
        let mut seam = Vec::with_capacity(2 * SEAM);
        let mut left = MAX_FILE;
        loop {
            let Ok(chunk) = file.read(CHUNK) else { return true };
            if chunk.is_empty() || left == 0 {
                return false;
            }
            left = left.saturating_sub(chunk.len() as u64);
            // What begins in one chunk and ends in the next.
            seam.extend_from_slice(&chunk[..chunk.len().min(SEAM)]);
            if self.finds_in(&seam) || self.finds_in(&chunk) {
                return true;
            }
            if chunk.len() >= SEAM {
                seam.clear();
                seam.extend_from_slice(&chunk[chunk.len() - SEAM..]);
            } else {
                seam.drain(..seam.len().saturating_sub(SEAM));
            }
        }
    }

    fn finds_in(&self, bytes: &[u8]) -> bool {
        self.needles.iter().any(|needle| needle.find(bytes).is_some())
            || self.escape.find_iter(bytes).any(|at| matches!(bytes.get(at + 4), Some(b'2'..=b'7')))
            || (self.plan_files && memchr::memchr_iter(b'/', bytes).any(|slash| is_plan_file(bytes, slash)))
    }
}

/// Does a text of the form `…plans/….md` stand around this slash, or one that is not easily told from it?
fn is_plan_file(bytes: &[u8], slash: usize) -> bool {
    // JSON may write the slash with a backslash before it.
    let before = &bytes[..slash];
    let before = before.strip_suffix(b"\\").unwrap_or(before);
    if !before.last_chunk::<5>().is_some_and(|folder| folder.eq_ignore_ascii_case(b"plans")) {
        return false;
    }
    let name = &bytes[slash + 1..];
    match memchr::memchr3(b'/', b'"', b'\\', name) {
        Some(end) if name[end] == b'"' => {
            name[..end].last_chunk::<3>().is_some_and(|suffix| suffix.eq_ignore_ascii_case(b".md"))
        }
        // An escape in the name, or the end of a text inside a text.
        Some(end) => name[end] == b'\\',
        // It goes on in the next chunk and may be anything.
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{
        Part, Transcripts,
        memory::{Memory, Stored},
    };

    fn finds(scan: &Scan, text: &str, chunk: usize) -> bool {
        let stored = Stored { transcripts: vec![text.as_bytes().to_vec()], ..Stored::default() };
        let memory = Memory { sessions: vec![stored], chunk, ..Memory::default() };
        scan.finds(&mut memory.open("0", Part::Transcript(0)).expect("it is there"))
    }

    #[test]
    fn finds_what_may_be_a_plan() {
        const NEEDLES: &[&str] = &["\"ExitPlanMode\""];
        let scan = Scan::new(NEEDLES, true);
        for (text, found) in [
            (r#"{"name":"ExitPlanMode"}"#, true),
            (r#"{"text":"call ExitPlanMode"}"#, false),
            (r#"{"text":"\"ExitPlanMode\""}"#, false),
            (r#"{"name":"ExitPl\u0061nMode"}"#, true),
            (r#"{"path":"/a/Plans/b.MD"}"#, true),
            (r#"{"path":"/a/plans\/b.md"}"#, true),
            (r#"{"input":"{\"path\":\"plans/b.md\"}"}"#, true),
            (r#"{"path":"plans/\u00e9.md"}"#, true),
            (r#"{"path":"plans/b/c.md"}"#, false),
            (r#"{"path":"plans/b.txt"}"#, false),
            (r#"{"text":"the plans/b.md file"}"#, false),
            (r#"{"text":"\u001b[31m red"}"#, false),
            ("", false),
        ] {
            for around in [0, 10, 60, 64, 65, 200] {
                let text = format!("{0}{text}\n{0}", "-".repeat(around));
                for chunk in [3, 50, 64, 100, 1000] {
                    let is = finds(&scan, &text, chunk);
                    assert!(is || !found, "{text} by {chunk}");
                    // Small chunks find more, as they see less at a time.
                    assert!(!is || found || chunk < 1000, "{text} by {chunk}");
                }
            }
            let texts = Scan::texts(NEEDLES, true);
            let lower = text.to_lowercase();
            assert!(!found || texts.iter().any(|needle| lower.contains(&needle.to_lowercase())), "{text}");
        }
    }
}
