//! Addresses of databases: what they name, and how they may be shown.

use super::error::SqlError;
use sqlx::{any::AnyConnectOptions, sqlite::SqliteConnectOptions};
use std::{
    fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};
use url::Url;

/// The address of a database.
#[derive(Debug, Clone)]
pub(super) struct Address {
    url: String,
    /// Without the password.
    shown: String,
    /// The file, where it is in one.
    file: Option<PathBuf>,
}

/// Which file it is, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity(u64, u64);

impl Address {
    pub(super) fn parse(url: &str) -> Result<Address, SqlError> {
        let shown = shown(url);
        let none = || SqlError::Address(shown.clone());
        let file = match url.strip_prefix("sqlite:") {
            None => None,
            Some(place) => {
                let (name, options) = place.split_once('?').unwrap_or((place, ""));
                let name = name.strip_prefix("//").unwrap_or(name);
                if name.is_empty() || name == ":memory:" || options.contains("mode=memory") {
                    return Err(SqlError::NotInAFile);
                }
                Some(SqliteConnectOptions::from_str(url).map_err(|_| none())?.get_filename().to_owned())
            }
        };
        let known = ["sqlite:", "postgres:", "postgresql:"].iter().any(|scheme| url.starts_with(scheme));
        if !known || AnyConnectOptions::from_str(url).is_err() {
            return Err(none());
        }
        Ok(Address { url: url.to_owned(), shown, file })
    }

    /// As it may be shown.
    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// The file, where the database is in one.
    pub(super) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// How to connect. `more`: a parameter for SQLite, which does not stand in the address already.
    pub(super) fn options(&self, more: Option<&str>) -> Result<AnyConnectOptions, SqlError> {
        let mut url = self.url.clone();
        if let (Some(more), Some(_)) = (more, &self.file) {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.push_str(more);
        }
        AnyConnectOptions::from_str(&url).map_err(|_| SqlError::Address(self.shown.clone()))
    }

    /// Does the address itself say how the file is opened?
    pub(super) fn has_mode(&self) -> bool {
        self.url.split_once('?').is_some_and(|(_, options)| options.contains("mode="))
    }

    /// Which file stands at the address now. `None` where the database is in none.
    pub(super) async fn identity(&self) -> Result<Option<FileIdentity>, io::Error> {
        use std::os::unix::fs::MetadataExt;
        let Some(file) = self.file.clone() else { return Ok(None) };
        let metadata = tokio::task::spawn_blocking(|| fs::metadata(file)).await??;
        Ok(Some(FileIdentity(metadata.dev(), metadata.ino())))
    }

    /// Is the file one that can only be read, and that no program has open? Then it can be read without the files that
    /// SQLite would write beside it.
    pub(super) fn is_at_rest_and_read_only(&self) -> bool {
        let Some(file) = &self.file else { return false };
        let log = beside(file, "-wal");
        let at_rest = fs::metadata(&log).map_or(true, |log| log.len() == 0);
        let writable = rustix::fs::access(folder(file), rustix::fs::Access::WRITE_OK).is_ok();
        at_rest && !writable && file.is_file()
    }

    /// What stands at the place of a file that cannot be opened.
    pub(super) fn hindrance(&self) -> Option<String> {
        let file = self.file.as_deref()?;
        let folder = folder(file);
        if file.is_dir() {
            return Some("it is a folder: name a file".into());
        }
        if !folder.is_dir() {
            return Some(format!("there is no folder {}: make it first", folder.display()));
        }
        match rustix::fs::access(folder, rustix::fs::Access::WRITE_OK) {
            Err(rustix::io::Errno::ROFS) => Some(
                "the file system is read-only, and SQLite needs to write beside a database that was not closed".into(),
            ),
            Err(error) => Some(format!("SQLite cannot write in the folder {} ({error})", folder.display())),
            Ok(()) => None,
        }
    }
}

fn folder(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The address as it may be shown. Of one that is not understood only the scheme: anything in it may be a password.
fn shown(url: &str) -> String {
    if url.starts_with("sqlite:") {
        return url.to_owned();
    }
    let Some((scheme, _)) = url.split_once(':') else { return url.to_owned() };
    let unclear = format!("{scheme}:…");
    let Ok(parsed) = Url::parse(url) else { return unclear };
    // An @ behind the host: a password with a sign that should have been escaped ended the host early.
    let early =
        parsed.query().into_iter().chain(parsed.fragment()).chain([parsed.path()]).any(|part| part.contains('@'));
    let Some(host) = parsed.host_str().filter(|host| !early && !host.is_empty()) else { return unclear };
    let user = if parsed.username().is_empty() { String::new() } else { format!("{}@", parsed.username()) };
    let port = parsed.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{scheme}://{user}{host}{port}{}", parsed.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_shows_a_password() {
        for (url, expected) in [
            ("sqlite:plans.db", "sqlite:plans.db"),
            ("postgres://a:secret@h:5432/d", "postgres://a@h:5432/d"),
            ("postgres://a:se%40cret@h:5432/d", "postgres://a@h:5432/d"),
            ("postgres://a:se@cret@h/d", "postgres://a@h/d"),
            ("postgres://h/d?user=a&password=secret", "postgres://h/d"),
            ("postgres://a@h", "postgres://a@h"),
            ("postgres://a:secret@[::1]:5/d", "postgres://a@[::1]:5/d"),
            ("postgres:a:secret@h/d", "postgres:…"),
            ("postgres://a:se?cret@h/d", "postgres:…"),
            ("postgres://a:se#cret@h/d", "postgres:…"),
            ("postgres://a:12?secret@h/d", "postgres:…"),
            ("postgres://a:12/secret@h/d", "postgres:…"),
            ("postgres://a:secret@", "postgres:…"),
            ("postgres:///d?password=secret", "postgres:…"),
            ("plans.db", "plans.db"),
        ] {
            assert_eq!(shown(url), expected, "{url}");
        }
    }

    #[test]
    fn a_file_is_named_as_sqlite_reads_it() {
        for (url, file) in [
            ("sqlite:plans.db", Some("plans.db")),
            ("sqlite://plans.db", Some("plans.db")),
            ("sqlite:///a/plans.db", Some("/a/plans.db")),
            ("sqlite:my%20plans.db?mode=ro", Some("my plans.db")),
            ("sqlite:a%23b.db", Some("a#b.db")),
            ("postgres://a@h/d", None),
        ] {
            assert_eq!(Address::parse(url).unwrap().file(), file.map(Path::new), "{url}");
        }
        for url in ["sqlite:", "sqlite://", "sqlite::memory:", "sqlite://:memory:", "sqlite:a.db?mode=memory"] {
            assert!(matches!(Address::parse(url), Err(SqlError::NotInAFile)), "{url}");
        }
        for url in ["mysql://h/d", "postgres://a:se?cret@h/d", "sqlite:a.db?mode=odd"] {
            assert!(matches!(Address::parse(url), Err(SqlError::Address(_))), "{url}");
        }
    }
}
