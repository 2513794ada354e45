//! The content of a file that a session kept, by its hash: the SHA-256 that `files` has, or the name of the blob.
//!
//! Only what a session in scope names is found, however it got into the store; and what leaves is masked as everything is.

use std::time::{Duration, Instant};

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use scrollback::model::regular_file::{self, Links};
use scrollback::session::blob;
use scrollback::write::file_history;

use super::{Ask, Problem};
use crate::catalogue::Entry;
use crate::render::file;
use crate::server::FILE_POLICY;

/// A larger content is not sent: it is masked in memory.
const CONTENT_LIMIT_BYTES: usize = 64 * 1024 * 1024;

/// A larger log is not searched for the hash; it is still asked what it kept.
const SEARCHED_BYTES: u64 = 256 * 1024 * 1024;

/// How long sessions are asked for a hash, the newest first. `session=` asks one, however long it takes.
const SEARCH_TIME: Duration = Duration::from_secs(10);

/// The content.
pub(super) fn blob(ask: &Ask) -> Result<Response, Problem> {
    let hash = ask.name().to_ascii_lowercase();
    if !blob::is_name(&hash) {
        return Err(Problem::usage("a hash is 64 hexadecimal digits"));
    }
    let named = ask.params.get("session").map(|name| super::entry(&ask.site, name)).transpose()?;
    let shelf = ask.site.catalogue.shelf();
    let sessions: Vec<&Entry> = match &named {
        Some(entry) => vec![entry],
        None => likely_first(&shelf.entries, &hash),
    };
    let end = Instant::now() + SEARCH_TIME;
    for entry in sessions {
        if let Some(response) = of_session(entry, &hash, ask)? {
            return Ok(response);
        }
        if Instant::now() > end {
            break;
        }
    }
    Err(Problem::not_found(format!("no session here has kept a content with the hash {hash}"))
        .hint("GET /api/v1/sessions/ID/files has the hashes of one session; add ?session=ID"))
}

/// The answer of one session; `None` if it has no such content.
fn of_session(entry: &Entry, hash: &str, ask: &Ask) -> Result<Option<Response>, Problem> {
    // One session that cannot be read does not hide the others.
    let Ok(session) = ask.site.whole(&entry.source) else { return Ok(None) };
    let Ok(history) = file_history(&session, ask.site.data.as_deref(), None) else { return Ok(None) };
    let found = history.named(hash);
    let Some((path, version)) = found.first() else { return Ok(None) };
    let mask = ask.site.places.mask.as_ref();
    let mut paths = found.iter().map(|(path, _)| path.as_str());
    if let Some(secret) = paths.find(|path| mask.is_some_and(|mask| mask.is_sensitive_file(path))) {
        let path = ask.site.masked(secret);
        return Err(Problem::forbidden(format!("{path} is a secret as a whole; its content is not shown"))
            .hint("`scrollback serve --no-redact` shows secrets"));
    }
    let tag = format!("\"{hash}\"");
    if let Some(unchanged) = ask.unchanged(&tag) {
        return Ok(Some(unchanged));
    }
    let bytes = match version.bytes_up_to(CONTENT_LIMIT_BYTES) {
        Err(scrollback::Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::FileTooLarge => {
            let message = "the content has more than 64 MiB";
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", message));
        }
        // Only its hash was recorded: the file on disk may still have it.
        Ok(None) => history.content(path, version)?,
        bytes => bytes?,
    };
    let bytes = bytes.ok_or_else(|| Problem::not_found("only the hash of this content was recorded"))?;
    let bytes = mask.map_or_else(|| bytes.clone(), |mask| mask.document(&bytes).bytes.to_vec());
    let kind = match file::picture_kind_of(&bytes) {
        Some(kind) => kind,
        None if std::str::from_utf8(&bytes).is_ok() => "text/plain; charset=utf-8",
        None => "application/octet-stream",
    };
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(FILE_POLICY));
    super::describe(&mut response, &tag);
    Ok(Some(response))
}

/// Sessions whose log has the hash in it come first: a native one names its blobs.
fn likely_first<'s>(entries: &'s [Entry], hash: &str) -> Vec<&'s Entry> {
    let names_it = |entry: &Entry| {
        entry.row.dialect == "native"
            && regular_file::read(&entry.source.path, SEARCHED_BYTES, Links::Follow)
                .is_ok_and(|log| std::str::from_utf8(&log).is_ok_and(|log| log.contains(hash)))
    };
    let (mut likely, others): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(|entry| names_it(entry));
    likely.extend(others);
    likely
}
