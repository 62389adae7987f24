//! The file operations of an append, so that each of them can be made to fail in tests.

use crate::file_size;
use std::{
    fs::File,
    io::{self, Seek, Write},
};

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
        file_size::check(offset + len)?;
        let reserved = rustix::io::retry_on_intr(|| fallocate(self, FallocateFlags::KEEP_SIZE, offset, len));
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
