//! Idempotency keys: a request that is sent again, after whatever, is recorded once.
//!
//! A key is noted on disk before anything is recorded, with the length of the log, and its answer after that. So a request that comes again
//! finds its answer; or that nothing was recorded, because the log is as it was; or that the server died in between, which is said.
//!
//! ```text
//! idempotency/3f.json    the newest keys whose hash begins with 3f, each with its answer
//! ```

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use axum::http::StatusCode;
use scrollback::model::Host;
use scrollback::model::regular_file::{self, Links};
use scrollback::session::Source;
use scrollback::write::replace_private_file;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::api::Problem;

/// How many keys a file keeps; there are 256 files, so about the newest 4,000 keys are known.
const KEYS_PER_FILE: usize = 16;

/// How large a file may become; its newest key is always kept.
const FILE_BYTES: usize = 1024 * 1024;

/// A larger file is none of ours.
const FILE_LIMIT_BYTES: u64 = 64 * 1024 * 1024;

/// Keys, and what was answered.
pub(super) struct Keys {
    folder: PathBuf,
    host: Host,
    /// The keys of requests that are being recorded. Holding it is holding the files, too.
    running: Mutex<HashSet<String>>,
}

/// A key of one session.
pub(super) struct Key {
    /// The hash of both.
    hash: String,
    /// The hash of what was sent with it.
    body: String,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) lines: String,
}

/// What a key means now.
pub(super) enum Begun {
    /// It was answered.
    Known(Answer),
    /// It is to be recorded.
    New(Ticket),
}

/// A request that is being recorded.
pub(super) struct Ticket {
    hash: String,
}

#[derive(Serialize, Deserialize)]
struct Noted {
    key: String,
    body: String,
    /// The length of the log before.
    log_bytes: u64,
    answer: Option<Answer>,
}

impl Key {
    pub(super) fn new(source: &Source, key: &str, body: &[u8]) -> Key {
        let path = source.path.to_string_lossy();
        let named = Sha256::new()
            .chain_update(path.as_bytes())
            .chain_update([0])
            .chain_update(key.as_bytes())
            .finalize();
        Key { hash: hex(&named), body: hex(&Sha256::digest(body)) }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Keys {
    pub(super) fn in_folder(folder: PathBuf, host: Host) -> Keys {
        Keys { folder, host, running: Mutex::default() }
    }

    /// Notes a key before its request is recorded.
    pub(super) fn begin(&self, key: &Key, source: &Source) -> Result<Begun, Problem> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.contains(&key.hash) {
            let message = "a request with this Idempotency-Key is being recorded";
            return Err(
                Problem::new(StatusCode::CONFLICT, "conflict", message).hint("send it again when that has ended")
            );
        }
        let mut noted = self.read(&key.hash)?;
        let log_bytes = std::fs::metadata(&source.path).map_or(0, |file| file.len());
        if let Some(known) = noted.iter().find(|known| known.key == key.hash) {
            if known.body != key.body {
                let message = "this Idempotency-Key was sent with another body";
                return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "key-reused", message).hint("use a new key"));
            }
            match &known.answer {
                Some(answer) => return Ok(Begun::Known(answer.clone())),
                None if known.log_bytes != log_bytes => {
                    let message = "the server stopped while a request with this Idempotency-Key was recorded, and the session has grown since";
                    return Err(Problem::new(StatusCode::CONFLICT, "interrupted", message)
                        .hint("look at the end of the session, and send what is missing with a new key"));
                }
                // Nothing of it is there.
                None => {}
            }
        }
        noted.retain(|known| known.key != key.hash);
        noted.push(Noted { key: key.hash.clone(), body: key.body.clone(), log_bytes, answer: None });
        self.write(&key.hash, noted)?;
        running.insert(key.hash.clone());
        Ok(Begun::New(Ticket { hash: key.hash.clone() }))
    }

    /// Notes the answer; without one, the key can be used again.
    pub(super) fn end(&self, ticket: &Ticket, answer: Option<Answer>) -> Result<(), Problem> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.remove(&ticket.hash);
        let mut noted = self.read(&ticket.hash)?;
        match answer {
            Some(answer) => {
                let own = noted.iter_mut().find(|known| known.key == ticket.hash);
                own.into_iter().for_each(|own| own.answer = Some(answer.clone()));
            }
            None => noted.retain(|known| known.key != ticket.hash),
        }
        self.write(&ticket.hash, noted)
    }

    fn path(&self, hash: &str) -> PathBuf {
        self.folder.join(format!("{}.json", &hash[..2]))
    }

    /// The keys of a file; none if there is no file, or it is broken.
    fn read(&self, hash: &str) -> Result<Vec<Noted>, Problem> {
        let path = self.path(hash);
        if !path.exists() {
            return Ok(Vec::new());
        }
        let bytes = regular_file::read(&path, FILE_LIMIT_BYTES, Links::Refuse)?;
        serde_json::from_slice(&bytes).map_err(|error| {
            // To forget a key is to record twice.
            let message = format!("{}: {error}", path.display());
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "io", message)
                .hint("move the file away; its keys are then unknown")
        })
    }

    fn write(&self, hash: &str, mut noted: Vec<Noted>) -> Result<(), Problem> {
        let size = |noted: &Noted| noted.answer.as_ref().map_or(0, |answer| answer.lines.len());
        while noted.len() > KEYS_PER_FILE || (noted.len() > 1 && noted.iter().map(size).sum::<usize>() > FILE_BYTES) {
            noted.remove(0);
        }
        let bytes = serde_json::to_vec(&noted).unwrap_or_default();
        Ok(replace_private_file(&self.path(hash), &bytes, Links::Refuse, &self.host)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &std::path::Path) -> Source {
        Source::file(scrollback::dialect::named("native").unwrap(), path)
    }

    #[test]
    fn a_key_is_known_after_a_restart_and_an_interrupted_one_is_not_recorded_twice() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("messages.jsonl");
        std::fs::write(&log, "{}\n").unwrap();
        let source = source(&log);
        let restarted = || Keys::in_folder(folder.path().join("keys"), Host::at(folder.path().to_path_buf(), "test"));
        let key = Key::new(&source, "k1", b"a");
        let keys = restarted();
        let Ok(Begun::New(ticket)) = keys.begin(&key, &source) else { panic!("it is new") };
        assert_eq!(keys.begin(&key, &source).err().unwrap().status, StatusCode::CONFLICT);
        // Another server, after a crash before anything was recorded: it may be recorded.
        assert!(matches!(restarted().begin(&key, &source), Ok(Begun::New(_))));
        std::fs::write(&log, "{}\n{}\n").unwrap();
        assert_eq!(restarted().begin(&key, &source).err().unwrap().kind, "interrupted");
        let answer = Answer { status: 200, lines: "{\"seq\":1}\n".to_owned() };
        keys.end(&ticket, Some(answer.clone())).unwrap();
        let Ok(Begun::Known(known)) = restarted().begin(&key, &source) else { panic!("it is known") };
        assert_eq!(known, answer);
        let reused = restarted().begin(&Key::new(&source, "k1", b"b"), &source).err().unwrap();
        assert_eq!((reused.status, reused.kind), (StatusCode::UNPROCESSABLE_ENTITY, "key-reused"));
    }

    #[test]
    fn a_file_keeps_its_newest_keys() {
        let folder = tempfile::tempdir().unwrap();
        let keys = Keys::in_folder(folder.path().to_path_buf(), Host::at(folder.path().to_path_buf(), "test"));
        let noted = |n: usize, bytes: usize| Noted {
            key: format!("00{n}"),
            body: String::new(),
            log_bytes: 0,
            answer: Some(Answer { status: 200, lines: "x".repeat(bytes) }),
        };
        keys.write("00", (0..40).map(|n| noted(n, 1)).collect()).unwrap();
        let kept = keys.read("00").unwrap();
        assert_eq!((kept.len(), kept[0].key.as_str()), (KEYS_PER_FILE, "0024"));
        keys.write("00", (0..9).map(|n| noted(n, FILE_BYTES / 4)).collect()).unwrap();
        assert_eq!(keys.read("00").unwrap().len(), 4);
        keys.write("00", vec![noted(1, 10), noted(2, 2 * FILE_BYTES)]).unwrap();
        assert_eq!(keys.read("00").unwrap().len(), 1);
    }
}
