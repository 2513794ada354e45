//! The key of the hashes in placeholders: made once, kept in our data folder.

use std::io;
use std::path::Path;

use crate::disk::append::make_folders;
use crate::disk::replace::{beside, delete, sync_parent, write_all};
use crate::disk::{Disk, Real};
use crate::model::error::{At, Error, Result};
use crate::model::host::Host;
use crate::model::regular_file::{self, Links};

/// The name of the key's file.
const FILE_NAME: &str = "redaction.key";

/// Hexadecimal digits, and a line feed that an editor may add.
const LIMIT_BYTES: u64 = 80;

/// The redaction key of a data folder; a missing one is made, readable by its owner only.
///
/// A file that is no key, cannot be read, belongs to somebody else or can be read by others is an error: with another key, the same
/// secret would get another placeholder, and with a known one, others can test what a placeholder stands for.
pub fn redaction_key(data: &Path, host: &Host) -> Result<[u8; 32]> {
    if let Some(key) = known_redaction_key(data)? {
        return Ok(key);
    }
    let path = data.join(FILE_NAME);
    make(&path, host)?;
    read(&path, data)
}

/// The redaction key of a data folder, if it has one.
pub fn known_redaction_key(data: &Path) -> Result<Option<[u8; 32]>> {
    match read(&data.join(FILE_NAME), data) {
        Err(Error::Io { source, .. })
            if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        read => read.map(Some),
    }
}

fn read(path: &Path, data: &Path) -> Result<[u8; 32]> {
    let bytes = regular_file::read(path, LIMIT_BYTES, Links::Refuse)?;
    if let Some(why) = why_not_ours(path, data).at(path)? {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why)).at(path);
    }
    let digits = bytes.trim_ascii();
    let key = std::str::from_utf8(digits).ok().and_then(|digits| blake3::Hash::from_hex(digits).ok());
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "it is not a redaction key: 64 hexadecimal digits");
    key.map(|key| *key.as_bytes()).ok_or_else(invalid).at(path)
}

/// Whoever is first makes it; the others use that.
fn make(path: &Path, host: &Host) -> Result<()> {
    make_folders(&Real, path)?;
    let random: String = (0..4).map(|_| (host.new_id)()).collect();
    let text = format!("{}\n", blake3::hash(random.as_bytes()).to_hex());
    let beside = beside(path, &(host.new_id)());
    let file = Real.create(&beside).at(path)?;
    let published = write_all(&*file, text.as_bytes(), &beside).and_then(|()| file.sync().at(&beside)).and_then(|()| {
        match Real.publish(&beside, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            published => published.at(path),
        }
    });
    // Placeholders that are written next survive a crash: so must the key.
    let published = published.and_then(|()| sync_parent(&Real, path));
    // What is left is our own copy, with a name that nobody reads; publishing may have moved it.
    drop(delete(&Real, &beside));
    published
}

#[cfg(unix)]
fn why_not_ours(path: &Path, folder: &Path) -> io::Result<Option<&'static str>> {
    use std::os::unix::fs::MetadataExt;
    let key = std::fs::metadata(path)?;
    if key.uid() != std::fs::metadata(folder)?.uid() {
        return Ok(Some("it belongs to somebody else"));
    }
    Ok((key.mode() & 0o077 != 0).then_some("others can read it; make it private with `chmod 600`, or remove it"))
}

#[cfg(not(unix))]
fn why_not_ours(_: &Path, _: &Path) -> io::Result<Option<&'static str>> {
    Ok(None)
}
