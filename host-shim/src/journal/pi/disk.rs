//! The file operations of an append, so that each of them can be made to fail in tests.

use crate::file_size;
use std::{
    fs::File,
    io::{self, Seek, Write},
};

/// How much is set aside at once for later appends, in bytes.
#[cfg(target_os = "linux")]
const AHEAD: u64 = 64 * 1024;

/// One open file. Everything blocks.
pub(super) trait Disk {
    /// Its length in bytes.
    fn size(&self) -> io::Result<u64>;

    /// Sets aside `len` bytes from `offset` on, without changing the file's length.
    fn reserve(&self, offset: u64, len: u64) -> io::Result<()>;

    /// One write at the end of the file, wherever that is by then. Returns how much was written, and where that ended.
    fn append(&self, bytes: &[u8]) -> io::Result<(usize, u64)>;

    /// Reads exactly as much as fits, from `offset`.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Cuts the file.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Makes what was written last.
    fn sync(&self) -> io::Result<()>;
}

/// A file that was opened in append mode.
impl Disk for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(target_os = "linux")]
    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        use rustix::{
            fs::{FallocateFlags, fallocate},
            io::Errno,
        };
        use std::os::unix::fs::MetadataExt;
        file_size::check(offset + len)?;
        // Each reservation is a change that the next sync writes out as well, so it is made for several appends at once. What
        // was set aside before, by whomever, shows in the number of blocks. Where that misleads, the write shows it.
        if self.metadata()?.blocks().saturating_mul(512) >= offset + len {
            return Ok(());
        }
        let reserve = |len| rustix::io::retry_on_intr(|| fallocate(self, FallocateFlags::KEEP_SIZE, offset, len));
        let ahead = len.max(AHEAD);
        let reserved = match file_size::check(offset + ahead).map(|()| reserve(ahead)) {
            Err(_) | Ok(Err(Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => reserve(len),
            Ok(reserved) => reserved,
        };
        match reserved {
            // Not every file system can; then the write shows whether there is room.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) | Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        file_size::check(offset + len)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<(usize, u64)> {
        let mut file = self;
        let written = loop {
            match file.write(bytes) {
                // Nothing was written.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        Ok((written, file.stream_position()?))
    }

    #[cfg(unix)]
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buffer, offset)
    }

    #[cfg(not(unix))]
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        use std::io::{Read, SeekFrom};
        let mut file = self;
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buffer)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
