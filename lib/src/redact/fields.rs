//! Fields that hold no secret and must not change: what others verify, show or refer to.
//!
//! A field's name alone opens no hole: what is in it must also look like what belongs there. A password in `signature` is masked,
//! and so is a vendor's token in `id`.

use super::base64;

/// What a string is, by its key and its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A signature, encrypted content, an image: not looked into.
    Opaque,
    /// An id or a hash: masked only if all of it is a vendor's token.
    Id,
    /// Anything else.
    Open,
}

/// Whether its maker verifies a field byte by byte.
#[rustfmt::skip]
pub(super) fn is_sealed(key: &str) -> bool {
    matches!(
        key,
        "signature" | "thoughtSignature" | "thought_signature" | "encrypted_content" | "encryptedContent"
        | "redactedData" | "redacted_data" | "reasoningEncryptedContent" | "reasoning_encrypted_content"
        | "encrypted_index" | "encryptedIndex" | "signatureDelta" | "signature_delta" | "encrypted" | "ciphertext"
    )
}

/// Whether a field may hold an image, a sound or a document.
#[rustfmt::skip]
fn is_media_key(key: &str) -> bool {
    matches!(
        key,
        "data" | "base64" | "b64_json" | "image" | "image_data" | "imageData" | "audio" | "blob" | "bytes"
        | "content" | "source" | "url" | "image_url" | "imageUrl" | "uri" | "file_data" | "fileData" | "result"
    )
}

/// How PNG, JPEG, GIF, WebP and WAV, PDF, ZIP, gzip, MP3, Ogg, MP4, TIFF, WOFF and FLAC begin in base64.
#[rustfmt::skip]
const MAGIC: &[&str] = &[
    "iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "JVBERi0", "UEsDB", "H4sI", "SUQz", "//uQ", "//vQ", "T2dnUw", "AAAA",
    "SUkq", "TU0A", "d09G", "ZkxhQ",
];

/// Whether others refer to what a field names.
#[rustfmt::skip]
fn is_id_key(key: &str) -> bool {
    matches!(
        key,
        "id" | "uuid" | "parentUuid" | "parent_uuid" | "logicalParentUuid" | "sessionId" | "session_id" | "messageId"
        | "message_id" | "requestId" | "request_id" | "callId" | "call_id" | "toolUseId" | "tool_use_id"
        | "toolUseID" | "toolCallId" | "tool_call_id" | "parentId" | "parent_id" | "promptId" | "prompt_id"
        | "responseId" | "response_id" | "item_id" | "itemId" | "turn_id" | "turnId" | "agentId" | "agent_id"
        | "leafUuid" | "sourceToolAssistantUUID" | "parentToolUseID" | "parent_tool_use_id" | "conversation_id"
        | "conversationId" | "thread_id" | "threadId" | "rootId" | "traceId" | "trace_id" | "spanId" | "span_id"
        | "snapshotId" | "system_fingerprint" | "forkedFrom" | "previous_response_id"
    )
}

/// Whether a field has the hash of a content.
#[rustfmt::skip]
fn is_hash_key(key: &str) -> bool {
    matches!(
        key,
        "hash" | "sha" | "sha1" | "sha256" | "sha512" | "md5" | "digest" | "checksum" | "etag" | "integrity"
        | "commit" | "commitHash" | "commit_hash" | "contentHash" | "content_hash" | "shapeHash" | "requestDigest"
        | "fingerprint" | "backupFileName" | "version" | "revision" | "tree"
    )
}

/// A shorter text in a sealed field is no seal.
const MIN_SEAL_BYTES: usize = 32;

/// A shorter run of base64 is no image.
const MIN_MEDIA_BYTES: usize = 128;

/// A longer id is a text.
const MAX_ID_BYTES: usize = 200;

/// What a string is, by its key and its form.
pub(super) fn place(key: &str, text: &str) -> Place {
    if text.len() >= MIN_SEAL_BYTES && is_sealed(key) && text.bytes().all(is_base64) {
        return if text.len() > MAX_ID_BYTES { Place::Opaque } else { Place::Id };
    }
    if text.len() >= MIN_MEDIA_BYTES && is_media_key(key) && is_media(key, text) {
        return Place::Opaque;
    }
    if text.len() <= MAX_ID_BYTES && is_reference(key) && is_id(text) {
        return Place::Id;
    }
    Place::Open
}

/// Whether a field refers to something by its id or hash.
pub(super) fn is_reference(key: &str) -> bool {
    is_id_key(key) || is_hash_key(key)
}

/// Whether this is a BLAKE3 or SHA-256 hash in hexadecimal digits.
pub(super) fn is_content_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a field says of what kind something is: a short word in it is no secret.
pub(super) fn is_kind(key: &str) -> bool {
    matches!(
        key,
        "type" | "role" | "kind" | "status" | "state" | "level" | "platform" | "userType" | "version" | "subtype"
    )
}

/// `2026-11-17T07:36:18.117Z`
pub(super) fn is_instant(text: &str) -> bool {
    let bytes = text.as_bytes();
    (20..=35).contains(&bytes.len())
        && [bytes[4], bytes[7], bytes[10], bytes[13], bytes[16]] == *b"--T::"
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'T' | b':' | b'.' | b'Z' | b'+'))
}

pub(super) fn is_uuid(text: &str) -> bool {
    let is_sign = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(is_sign)
}

/// Base64 of a picture, a sound or a document, or a data URL: known by how their files begin, because a text field may hold
/// anything.
fn is_media(key: &str, text: &str) -> bool {
    let data = match text.strip_prefix("data:") {
        Some(url) => match url.split_once(";base64,") {
            Some((media, data))
                if ["image/", "audio/", "video/", "font/", "application/"]
                    .iter()
                    .any(|known| media.starts_with(known)) =>
            {
                return data.bytes().all(is_base64_or_break);
            }
            _ => return false,
        },
        None => text,
    };
    let is_known = MAGIC.iter().any(|magic| data.starts_with(magic));
    // Reasoning that a provider keeps to itself is data, too; text in base64 is not.
    let is_sealed_data = || key == "data" && base64::is_binary(data) && data.bytes().all(is_base64);
    is_known && data.bytes().all(is_base64_or_break) || is_sealed_data()
}

fn is_base64_or_break(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'\r' | b'\n')
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_' | b'.')
}

/// An address or an assignment is no id, whatever its field is called.
fn is_id(text: &str) -> bool {
    let is_sign = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':' | b'/' | b'+' | b'=' | b'#' | b'|')
    };
    text.bytes().all(is_sign) && !text.contains("://") && !text.trim_end_matches('=').contains('=')
}
