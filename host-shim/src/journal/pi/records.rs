//! What loading keeps of each line, in batches that can be made by one thread and taken by another.

use super::{
    file::Mark,
    line::{self, Brief, Content},
    lines::{LineError, Lines},
};
use std::{sync::mpsc::sync_channel, thread};

/// How many lines a batch holds.
const LINES: usize = 4_096;
/// How many batches the maker is ahead.
const AHEAD: usize = 4;

/// What a line is to the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An entry, perhaps without id, parent or custom type.
    Entry,
    /// A further header, or a value that Pi passes over.
    Nothing,
    /// White space alone.
    Blank,
    /// No JSON.
    Damaged,
}

/// One line.
pub(super) struct Record {
    pub(super) offset: u64,
    /// Without the line feed.
    pub(super) length: u32,
    /// Is there a line feed?
    pub(super) ended: bool,
    pub(super) kind: Kind,
    id: Name,
    parent: Name,
    custom_type: Name,
}

/// A text in the batch: where it begins and how long it is. None where it begins nowhere.
#[derive(Clone, Copy)]
struct Name(u32, u32);

const NONE: Name = Name(u32::MAX, 0);

/// Some lines, one after another.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) records: Vec<Record>,
    names: String,
    /// The last line that is not blank.
    pub(super) mark: Option<Mark>,
}

impl Batch {
    /// Id, parent and custom type of a record.
    pub(super) fn names(&self, record: &Record) -> [Option<&str>; 3] {
        [record.id, record.parent, record.custom_type].map(|Name(start, length)| {
            (start != NONE.0).then(|| &self.names[start as usize..(start + length) as usize])
        })
    }

    /// Takes the next lines apart; an empty batch is the end.
    fn next(lines: &mut Lines) -> Result<Batch, LineError> {
        let mut batch = Batch::default();
        let mut mark: Option<Mark> = None;
        while batch.records.len() < LINES {
            let Some(line) = lines.next()? else { break };
            let text = line.text();
            let content = match Brief::read(&text) {
                Some(brief) => Ok(brief),
                None => match line::parse(&text) {
                    Content::Object(object) => Ok(Brief::of(&object)),
                    other => Err(other),
                },
            };
            let (kind, brief) = match content {
                Ok(brief) if brief.is_header() => (Kind::Nothing, None),
                Ok(brief) => (Kind::Entry, Some(brief)),
                Err(Content::Blank) => (Kind::Blank, None),
                Err(Content::Damaged) => (Kind::Damaged, None),
                Err(Content::Nothing) => (Kind::Nothing, None),
                Err(_) => (Kind::Entry, None),
            };
            let [id, parent, custom_type] = match &brief {
                Some(brief) => {
                    [brief.id.as_deref(), brief.parent_id(), brief.custom_type()].map(|name| batch.keep(name))
                }
                None => [NONE; 3],
            };
            if kind != Kind::Blank && (line.ended || kind != Kind::Damaged) {
                mark.get_or_insert_default().set(line.offset, line.bytes);
            }
            let length = u32::try_from(line.bytes.len()).expect("no line is longer than MAX_LINE");
            batch.records.push(Record {
                offset: line.offset,
                length,
                ended: line.ended,
                kind,
                id,
                parent,
                custom_type,
            });
        }
        batch.mark = mark;
        Ok(batch)
    }

    fn keep(&mut self, name: Option<&str>) -> Name {
        let Some(name) = name else { return NONE };
        let start = self.names.len();
        self.names.push_str(name);
        // Only names of gigabytes do not fit; no branch needs them.
        match (u32::try_from(start), u32::try_from(name.len())) {
            (Ok(start), Ok(length)) if start.checked_add(length).is_some() => Name(start, length),
            _ => NONE,
        }
    }
}

/// Hands all further lines to `take`, batch by batch. Those of a long file are made by a thread of their own meanwhile.
pub(super) fn each(lines: &mut Lines, mut take: impl FnMut(Batch)) -> Result<(), LineError> {
    if !lines.is_long() {
        loop {
            match Batch::next(lines)? {
                batch if batch.records.is_empty() => return Ok(()),
                batch => take(batch),
            }
        }
    }
    thread::scope(|scope| {
        let (made, batches) = sync_channel(AHEAD);
        scope.spawn(move || {
            loop {
                let batch = Batch::next(lines);
                let last = !matches!(&batch, Ok(batch) if !batch.records.is_empty());
                if made.send(batch).is_err() || last {
                    return;
                }
            }
        });
        // A maker that breaks down ends without an empty batch, and the scope passes its panic on.
        for batch in batches {
            let batch = batch?;
            if batch.records.is_empty() {
                break;
            }
            take(batch);
        }
        Ok(())
    })
}
