//! Compiled components on disk.
//!
//! Compiled code is native code: whoever can write it here can run it. So the folder must belong to the user alone, and each
//! file carries the SHA-256 of its content, is read whole, and is checked before any of it is used. A file that does not fit
//! is as good as none.

use crate::file_size;
use sha2::{Digest, Sha256};
use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

/// A folder of compiled components.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    folder: PathBuf,
}

const HASH: usize = 32;

impl Cache {
    /// Uses `folder`, which is made where it is missing. `None` where it is not the user's alone.
    pub(super) fn open(folder: &Path) -> Option<Cache> {
        make(folder).ok()?;
        is_private(folder).then(|| Cache { folder: folder.into() })
    }

    /// The code for the component of hash `component`, compiled by an engine of hash `engine`.
    pub(super) fn get(&self, component: &str, engine: &str) -> Option<Vec<u8>> {
        // Perhaps others were let in since.
        if !is_private(&self.folder) {
            return None;
        }
        let mut bytes = fs::read(self.file(component, engine)).ok()?;
        let (hash, code) = bytes.split_at_checked(HASH)?;
        if Sha256::digest(code).as_slice() != hash {
            return None;
        }
        bytes.drain(..HASH);
        Some(bytes)
    }

    /// Keeps compiled code. Where that does not work, it is compiled again next time.
    pub(super) fn put(&self, component: &str, engine: &str, code: &[u8]) {
        let file = self.file(component, engine);
        let temporary = file.with_extension(uuid::Uuid::new_v4().simple().to_string());
        let written =
            write_new(&temporary, &[&Sha256::digest(code), code]).and_then(|()| fs::rename(&temporary, &file));
        if written.is_err() {
            // Nothing more can be done about what may be left of it.
            let _ = fs::remove_file(&temporary);
        }
    }

    fn file(&self, component: &str, engine: &str) -> PathBuf {
        self.folder.join(format!("{component}-{engine}.cwasm"))
    }
}

fn write_new(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    file_size::check(parts.iter().map(|part| part.len() as u64).sum())?;
    let mut options = fs::File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    parts.iter().try_for_each(|part| file.write_all(part))
}

#[cfg(unix)]
fn make(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    if let Some(above) = folder.parent() {
        fs::create_dir_all(above)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

#[cfg(not(unix))]
fn make(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Does the folder belong to this user, and can nobody else enter it? A symbolic link is no such folder.
#[cfg(unix)]
fn is_private(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::symlink_metadata(folder).is_ok_and(|metadata| {
        metadata.is_dir() && metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o077 == 0
    })
}

/// Elsewhere a user's cache folder is the user's own by its place.
#[cfg(not(unix))]
fn is_private(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_dir())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn keeps_what_is_whole() {
        let above = tempfile::tempdir().expect("a temporary folder");
        let folder = above.path().join("new/cache");
        let cache = Cache::open(&folder).expect("it was made");
        assert_eq!(cache.get("c", "e"), None);
        cache.put("c", "e", b"code");
        assert_eq!(cache.get("c", "e").as_deref(), Some(&b"code"[..]));
        assert_eq!(cache.get("c", "f"), None);
        assert_eq!(fs::read_dir(&folder).expect("it is there").count(), 1);
        // Every cut and every changed byte is noticed.
        let file = cache.file("c", "e");
        let whole = fs::read(&file).expect("it is there");
        for i in 0..whole.len() {
            let mut changed = whole.clone();
            changed[i] ^= 1;
            fs::write(&file, &changed).expect("it can be written");
            assert_eq!(cache.get("c", "e"), None, "byte {i}");
            fs::write(&file, &whole[..i]).expect("it can be written");
            assert_eq!(cache.get("c", "e"), None, "cut at {i}");
        }
    }

    #[test]
    fn folders_that_others_can_enter_are_not_used() {
        let above = tempfile::tempdir().expect("a temporary folder");
        let folder = above.path().join("cache");
        for (mode, used) in [(0o700, true), (0o750, false), (0o705, false), (0o777, false)] {
            fs::create_dir_all(&folder).expect("a folder");
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).expect("it is ours");
            assert_eq!(Cache::open(&folder).is_some(), used, "{mode:o}");
        }
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("it is ours");
        let link = above.path().join("link");
        symlink(&folder, &link).expect("a link");
        assert!(Cache::open(&link).is_none());
        fs::write(above.path().join("file"), "").expect("a file");
        assert!(Cache::open(&above.path().join("file")).is_none());
    }
}
