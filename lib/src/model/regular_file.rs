//! The one door for reading a file that somebody else may have put there: regular files only, opened without waiting.
//!
//! A pipe waits for its other end and a device may never end, so what is not a regular file is refused before it is opened, and
//! checked again once it is open: the name may have changed in between. The length counts as the system states it: a file of
//! length 0 is never read, because `/proc/kmsg` and its like pretend to be regular files of that length, and wait when they are read.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

use xxhash_rust::xxh3::Xxh3;

use crate::model::error::{At, Error, Result};

/// Whether a link in the place of the file is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// The file is read wherever the link leads: people keep files of theirs elsewhere.
    Follow,
    /// A link is refused: nobody but scrollback writes this file.
    Refuse,
}

/// Opens a regular file for reading. The metadata is that of the open file.
pub fn open(path: &Path, links: Links) -> Result<(File, Metadata)> {
    let there = match links {
        Links::Follow => fs::metadata(path),
        Links::Refuse => fs::symlink_metadata(path),
    };
    // Opening a device can have effects.
    if !there.at(path)?.is_file() {
        return Err(Error::NotAFile(path.to_path_buf()));
    }
    let file = without_waiting(OpenOptions::new().read(true), links).open(path).at(path)?;
    let metadata = file.metadata().at(path)?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(Error::NotAFile(path.to_path_buf())) }
}

/// Opens a file in a folder of our own, to which nobody else can write, without a look at it: no device is there, a pipe does not let
/// us wait, a link is refused, and whoever reads it checks what was read.
pub(crate) fn open_own(path: &Path) -> Result<File> {
    let opened = without_waiting(OpenOptions::new().read(true), Links::Refuse).open(path);
    let is_other = || fs::symlink_metadata(path).is_ok_and(|there| !there.is_file());
    if opened.is_err() && is_other() { Err(Error::NotAFile(path.to_path_buf())) } else { opened.at(path) }
}

/// Reads a whole regular file of at most so many bytes. A larger one is an error, and nothing of it is read.
pub fn read(path: &Path, limit_bytes: u64, links: Links) -> Result<Vec<u8>> {
    let (file, metadata) = open(path, links)?;
    check_length(path, metadata.len(), limit_bytes)?;
    let mut bytes = Vec::new();
    if metadata.len() > 0 {
        // One byte more: the file may grow while it is read.
        file.take(limit_bytes.saturating_add(1)).read_to_end(&mut bytes).at(path)?;
    }
    check_length(path, bytes.len() as u64, limit_bytes)?;
    Ok(bytes)
}

/// Fails if a file is larger than its limit.
pub(crate) fn check_length(path: &Path, length: u64, limit_bytes: u64) -> Result<()> {
    if length <= limit_bytes {
        return Ok(());
    }
    let why = format!("larger than {limit_bytes} bytes");
    Err(io::Error::new(io::ErrorKind::InvalidData, why)).at(path)
}

/// Adds what the system knows of a file without reading it: its length, times and inode.
pub(crate) fn stamp(metadata: &Metadata, stamp: &mut Xxh3) {
    stamp.update(&metadata.len().to_le_bytes());
    if let Ok(age) = metadata.modified().map(|at| at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()) {
        stamp.update(&age.as_nanos().to_le_bytes());
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        // A change that sets the time back has another time of change.
        let numbers = [metadata.ino() as i64, metadata.ctime(), metadata.ctime_nsec()];
        numbers.iter().for_each(|number| stamp.update(&number.to_le_bytes()));
    }
}

/// Whether anything has this name, a link that leads nowhere included.
pub(crate) fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Opens a pipe at once, whether or not it has another end; does not make a terminal the one that controls this process.
#[cfg(unix)]
pub(crate) fn without_waiting(how: &mut OpenOptions, links: Links) -> &mut OpenOptions {
    let no_follow = if links == Links::Refuse { libc::O_NOFOLLOW } else { 0 };
    std::os::unix::fs::OpenOptionsExt::custom_flags(how, libc::O_NONBLOCK | libc::O_NOCTTY | no_follow)
}

/// Windows has no pipes in folders.
#[cfg(not(unix))]
pub(crate) fn without_waiting(how: &mut OpenOptions, _: Links) -> &mut OpenOptions {
    how
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_file_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read(&path, 5, Links::Refuse).unwrap(), b"12345");
        let error = read(&path, 4, Links::Refuse).unwrap_err().to_string();
        assert!(error.ends_with("x: larger than 4 bytes"), "{error}");
    }

    /// Its length is looked at first: a file with holes has any length at no cost, and reading them takes minutes.
    #[test]
    fn nothing_of_a_larger_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        // Reading this much would take all memory.
        assert!(read(&path, (1 << 40) - 1, Links::Refuse).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed_only_where_that_is_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| dir.path().join(name));
        fs::write(&file, "1").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read(&link, 5, Links::Follow).unwrap(), b"1");
        assert!(matches!(read(&link, 5, Links::Refuse), Err(Error::NotAFile(_))));
    }

    #[cfg(unix)]
    #[test]
    fn a_device_behind_a_link_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("zero");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        assert!(matches!(read(&link, 5, Links::Follow), Err(Error::NotAFile(_))));
    }
}
