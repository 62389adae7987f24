//! One write at the end of a session file, and what is known of it afterwards.

use super::disk::Disk;
use std::io;

/// How a write ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It stands in the file, at the place where it should, and lasts.
    Kept,
    /// Nothing of it stands in the file, for certain.
    Nothing(String),
    /// Something else.
    Unknown(String),
}

/// Writes `bytes` (whole lines) at the end of the file, which is at `size`, in one write.
///
/// `leased`: no other program can have the file open.
pub(super) fn write(disk: &dyn Disk, leased: bool, size: u64, bytes: &[u8]) -> Outcome {
    if let Err(error) = disk.reserve(size, bytes.len() as u64) {
        return Outcome::Nothing(format!("there is no room for {} more bytes ({error})", bytes.len()));
    }
    let (written, end) = match disk.append(bytes) {
        Ok(done) => done,
        // A device error says little of what became of the bytes; any other comes before the first of them.
        Err(error) if is_refusal(&error) && disk.size().is_ok_and(|now| now == size) => {
            return Outcome::Nothing(format!("the file took no byte ({error})"));
        }
        Err(error) => return Outcome::Unknown(format!("the write ended with an error ({error})")),
    };
    let alone = end.checked_sub(written as u64) == Some(size);
    if written < bytes.len() {
        return cut_back(disk, leased, alone, size, end);
    }
    if !alone {
        return Outcome::Unknown("another program wrote to the file at the same moment".into());
    }
    let mut back = vec![0; bytes.len()];
    match disk.read_exact_at(&mut back, size) {
        Ok(()) if back == bytes => {}
        Ok(()) => return Outcome::Unknown("other bytes stand where the entry should".into()),
        Err(error) => return Outcome::Unknown(format!("the entry could not be read back ({error})")),
    }
    match disk.sync() {
        Ok(()) => Outcome::Kept,
        Err(error) => Outcome::Unknown(format!("the entry could not be synced ({error})")),
    }
}

/// After a short write that ended at `end`: takes back what was written where nobody else can have written behind it, and
/// closes the torn line elsewhere, so that at least the next entry stands on a line of its own.
fn cut_back(disk: &dyn Disk, leased: bool, alone: bool, size: u64, end: u64) -> Outcome {
    if alone && (leased || disk.size().is_ok_and(|now| now == end)) {
        return match disk.truncate(size).and_then(|()| disk.sync()).and_then(|()| disk.size()) {
            Ok(now) if now == size => {
                Outcome::Nothing("the file took only a part of the entry, which was taken back".into())
            }
            Ok(_) => Outcome::Unknown("another program wrote while a part of the entry was taken back".into()),
            Err(error) => Outcome::Unknown(format!("a part of the entry could not be taken back ({error})")),
        };
    }
    let closed = disk.append(b"\n").is_ok_and(|(written, _)| written == 1);
    Outcome::Unknown(if closed {
        "the file took only a part of the entry, and another program wrote behind it".into()
    } else {
        "the file took only a part of the entry, another program wrote behind it, and the torn line could not be ended"
            .into()
    })
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::OutOfMemory
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// A file in memory. `fault` is asked before each operation; what it does takes the operation's place.
    struct Double<'a> {
        bytes: RefCell<Vec<u8>>,
        fault: &'a dyn Fn(&str, &mut Vec<u8>) -> Option<io::Error>,
        /// How much the next write takes.
        takes: usize,
    }

    impl Double<'_> {
        fn faulty(&self, operation: &str) -> io::Result<()> {
            (self.fault)(operation, &mut self.bytes.borrow_mut()).map_or(Ok(()), Err)
        }
    }

    impl Disk for Double<'_> {
        fn size(&self) -> io::Result<u64> {
            self.faulty("size")?;
            Ok(self.bytes.borrow().len() as u64)
        }
        fn reserve(&self, _: u64, _: u64) -> io::Result<()> {
            self.faulty("reserve")
        }
        fn append(&self, bytes: &[u8]) -> io::Result<(usize, u64)> {
            self.faulty(if bytes == b"\n" { "end line" } else { "append" })?;
            let written = bytes.len().min(self.takes);
            self.bytes.borrow_mut().extend(&bytes[..written]);
            let end = self.bytes.borrow().len() as u64;
            // What another program writes right behind us.
            self.faulty("appended")?;
            Ok((written, end))
        }
        fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
            self.faulty("read")?;
            buffer.copy_from_slice(&self.bytes.borrow()[offset as usize..][..buffer.len()]);
            Ok(())
        }
        fn truncate(&self, len: u64) -> io::Result<()> {
            self.faulty("truncate")?;
            self.bytes.borrow_mut().truncate(len as usize);
            Ok(())
        }
        fn sync(&self) -> io::Result<()> {
            self.faulty("sync")
        }
    }

    fn full() -> io::Error {
        io::ErrorKind::StorageFull.into()
    }

    fn device() -> io::Error {
        io::Error::from_raw_os_error(5)
    }

    type Fault<'a> = &'a dyn Fn(&str, &mut Vec<u8>) -> Option<io::Error>;

    #[test]
    fn outcomes() {
        let none: Fault<'_> = &|_, _| None;
        let foreign: Fault<'_> = &|op, bytes| {
            if op == "appended" && !bytes.ends_with(b"\n") {
                bytes.extend(b"foreign\n");
            }
            None
        };
        let before: Fault<'_> = &|op, bytes| {
            if op == "append" {
                bytes.extend(b"foreign\n");
            }
            None
        };
        for (name, leased, takes, fault, outcome, file) in [
            ("all is well", false, 99, none, "kept", "old\nnew\n"),
            ("no room", false, 99, &|op, _| (op == "reserve").then(full), "nothing", "old\n"),
            ("full all the same", false, 99, &|op, _| (op == "append").then(full), "nothing", "old\n"),
            ("a device error", false, 99, &|op, _| (op == "append").then(device), "unknown", "old\n"),
            (
                "full, and the size is not known",
                false,
                99,
                &|op, _| matches!(op, "append" | "size").then(full),
                "unknown",
                "old\n",
            ),
            ("a short write", false, 2, none, "nothing", "old\n"),
            ("a short write under the lease", true, 2, &|op, _| (op == "no such").then(full), "nothing", "old\n"),
            (
                "a short write that cannot be taken back",
                false,
                2,
                &|op, _| (op == "truncate").then(device),
                "unknown",
                "old\nne",
            ),
            (
                "a short write taken back but not synced",
                false,
                2,
                &|op, _| (op == "sync").then(device),
                "unknown",
                "old\n",
            ),
            ("a short write, and someone wrote behind", false, 2, foreign, "unknown", "old\nneforeign\n\n"),
            ("a short write behind someone's", true, 2, before, "unknown", "old\nforeign\nne\n"),
            ("someone wrote before us", false, 99, before, "unknown", "old\nforeign\nnew\n"),
            ("not readable", false, 99, &|op, _| (op == "read").then(device), "unknown", "old\nnew\n"),
            ("not synced", false, 99, &|op, _| (op == "sync").then(device), "unknown", "old\nnew\n"),
            (
                "other bytes there",
                false,
                99,
                &|op, bytes| {
                    if op == "appended" {
                        bytes[5] = b'X';
                    }
                    None
                },
                "unknown",
                "old\nnXw\n",
            ),
        ] as [(&str, bool, usize, Fault<'_>, &str, &str); 15]
        {
            let disk = Double { bytes: RefCell::new(b"old\n".to_vec()), fault, takes };
            let found = match write(&disk, leased, 4, b"new\n") {
                Outcome::Kept => "kept",
                Outcome::Nothing(_) => "nothing",
                Outcome::Unknown(_) => "unknown",
            };
            assert_eq!(found, outcome, "{name}");
            assert_eq!(String::from_utf8_lossy(&disk.bytes.borrow()), file, "{name}");
        }
    }
}
