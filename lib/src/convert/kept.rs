//! What a conversion could not carry over: the original lines, in a file beside the converted one, for the way back.
//!
//! `<file>.scrollback.json` holds the whole original, so that the way back gives its bytes. It is believed only while the
//! converted file still begins with the bytes that the conversion wrote; what was recorded behind them is converted as usual.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

use crate::dialect::Dialect;
use crate::error::{At, Result};
use crate::layout::Format;
use crate::record::SessionId;
use crate::session::{RecordRef, Session};

/// A larger file is no sidecar of a session that anybody converts.
const LIMIT_BYTES: u64 = 2 * 1024 * 1024 * 1024;

const VERSION: u64 = 1;

/// The file beside a converted one.
pub(super) fn path(converted: &Path) -> PathBuf {
    let mut name = converted.as_os_str().to_owned();
    name.push(".scrollback.json");
    PathBuf::from(name)
}

/// What a sidecar says.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Kept {
    version: u64,
    from: Whose,
    to: String,
    /// How much of the converted file the conversion wrote, and its hash.
    converted_bytes: u64,
    converted_hash: String,
    /// What records of the converted file are called in the original, where that differs.
    ids: BTreeMap<String, String>,
    /// The original, line by line.
    lines: Vec<String>,
    /// The last of them is closed with LF.
    closed: bool,
}

#[derive(Serialize, Deserialize)]
struct Whose {
    dialect: String,
    session: String,
}

impl Kept {
    /// What a conversion of `source` to the file `converted` keeps; nothing where the source is no text.
    pub(super) fn of(
        source: &Session,
        to: &dyn Dialect,
        converted: &Path,
        ids: BTreeMap<String, String>,
    ) -> Result<Option<Kept>> {
        if matches!(source.source.layout.format, Format::Rows(_)) {
            return Ok(None);
        }
        let Some(file) = source.files.0.first() else { return Ok(None) };
        let text = String::from_utf8_lossy(&file.read_at(0, file.len()?)?).into_owned();
        let bytes = fs::read(converted).at(converted)?;
        let closed = text.ends_with('\n');
        Ok(Some(Kept {
            version: VERSION,
            from: Whose { dialect: source.dialect().name().to_owned(), session: source.id().to_string() },
            to: to.name().to_owned(),
            converted_bytes: bytes.len() as u64,
            converted_hash: hash(&bytes),
            ids,
            lines: text.strip_suffix('\n').unwrap_or(&text).split('\n').map(str::to_owned).collect(),
            closed,
        }))
    }

    /// The sidecar of a session that was made of a session of `to`, as long as it fits.
    pub(super) fn beside(session: &Session, to: &dyn Dialect) -> Option<Kept> {
        let path = path(session.path());
        let is_small = fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= LIMIT_BYTES);
        let kept: Kept = serde_json::from_slice(&is_small.then(|| fs::read(&path).ok())??).ok()?;
        let begun = session.files.0.first()?.read_at(0, kept.converted_bytes).ok()?;
        let fits = kept.version == VERSION
            && kept.from.dialect == to.name()
            && kept.to == session.dialect().name()
            && begun.len() as u64 == kept.converted_bytes
            && hash(&begun) == kept.converted_hash;
        // A document cannot be gone on with line by line.
        let is_lines = kept.lines.len() > 1 || kept.lines.first().is_some_and(|line| line.starts_with('{'));
        let has_newer = session.records().any(|record| kept.is_newer(record));
        (fits && (is_lines || !has_newer)).then_some(kept)
    }

    /// What the original was called.
    pub(super) fn session(&self) -> SessionId {
        SessionId(self.from.session.clone())
    }

    /// The original's bytes.
    pub(super) fn original(&self) -> Vec<u8> {
        let mut text = self.lines.join("\n");
        if self.closed {
            text.push('\n');
        }
        text.into_bytes()
    }

    /// Whether a record was written after the conversion.
    pub(super) fn is_newer(&self, record: RecordRef<'_>) -> bool {
        record.place().offset >= self.converted_bytes
    }

    /// What a record of the converted session is called in the original.
    pub(super) fn original_of(&self, id: &str) -> String {
        self.ids.get(id).cloned().unwrap_or_else(|| id.to_owned())
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(&self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

fn hash(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}
