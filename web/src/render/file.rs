//! Files in messages, and sources: pictures that really are pictures, texts, and names for everything else.

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, general_purpose};
use maud::{Markup, html};
use scrollback::model::{FilePart, json};
use scrollback::view::surroundings::Attached;
use scrollback::view::tool_view::{data_url_bytes, size_text};
use serde_json::Value;

use super::icon::{chevron, icon};
use super::{Look, Medium, code, text, thought};

/// A larger picture stays out of a file; a page loads it from its own address.
const INLINE_LIMIT_BYTES: usize = 8 * 1024 * 1024;

/// How many characters of a picture are decoded to see what it is.
const HEAD_CHARS: usize = 512;

/// Base64 as agents write it: with or without the signs at its end.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// A file that is part of a message.
pub fn file(file: &FilePart, name: &str, message: &str, part: usize, look: &Look<'_>) -> Markup {
    let ours = file
        .provider_metadata
        .as_ref()
        .and_then(|metadata| metadata.get("scrollback")?.get("size")?.as_u64());
    let bytes = ours.map(|bytes| bytes as usize).or_else(|| data_url_bytes(&file.url));
    if let Some(kind) = picture_kind(&file.url) {
        return picture(&file.url, kind, name, bytes, message, part, look);
    }
    let is_text = is_text(&file.media_type);
    if let Some(content) = data_text(&file.url).filter(|_| is_text) {
        let (shown, is_whole) = look.cut(&content);
        return html! {
            details.file-open {
                summary.file {
                    (icon("clip")) span.file-name { (text::line(name)) }
                    span.file-meta { (about(&file.media_type, bytes, "in the session")) } (chevron())
                }
                figure.code { pre tabindex="0" { code { (code::highlighted(shown, code::language_of(name))) } } }
                @if !is_whole { (thought::rest(&content[shown.len()..], look.part_address(message, part), look)) }
            }
        };
    }
    let kind = if file.media_type.starts_with("image/") { "image" } else { "clip" };
    match text::web_address(&file.url) {
        Some(address) => {
            let place = format!("on {}, not loaded", text::host(address));
            html! {
                a.file href=(text::shown(address)) rel="noreferrer noopener" {
                    (icon(kind)) span.file-name { (text::line(name)) }
                    span.file-meta { (about(&file.media_type, bytes, &place)) }
                }
            }
        }
        None => {
            let place = if bytes.is_some() { "in the session" } else { "only its name is known" };
            chip(kind, name, &about(&file.media_type, bytes, place))
        }
    }
}

fn picture(
    url: &str,
    kind: &'static str,
    name: &str,
    bytes: Option<usize>,
    message: &str,
    part: usize,
    look: &Look<'_>,
) -> Markup {
    let source = match look.medium {
        Medium::Page(session) => Some(format!("{session}/file/{}/{part}", text::path_segment(message))),
        Medium::File => Some(url)
            .filter(|url| url.len() <= INLINE_LIMIT_BYTES)
            .and_then(decoded)
            .map(|bytes| format!("data:{kind};base64,{}", general_purpose::STANDARD.encode(bytes))),
    };
    let Some(source) = source else { return chip("image", name, &about(kind, bytes, "too large for this file")) };
    html! {
        figure.image {
            img src=(source) alt=(text::brief(name, 200)) loading="lazy" decoding="async";
            figcaption { (text::line(name)) ", " (about(kind, bytes, "in the session")) }
        }
    }
}

/// An attachment of a room.
pub fn attachment(data: &Value) -> Markup {
    let field = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default();
    let (name, media_type) = match json::is_object(data) {
        true => (field("filename"), field("mime_type")),
        false => (data.as_str().unwrap_or_default(), ""),
    };
    let size = match data.get("size") {
        Some(Value::String(size)) => text::brief(size, 40),
        Some(size) => size.as_u64().map(|bytes| size_text(bytes as usize)).unwrap_or_default(),
        None => String::new(),
    };
    let is_known = |fact: &&str| !matches!(*fact, "" | "unknown");
    let facts: Vec<&str> = [media_type, size.as_str()].into_iter().filter(is_known).collect();
    let kind = if media_type.starts_with("image/") { "image" } else { "clip" };
    let name = if name.is_empty() { "file" } else { name };
    let address = text::web_address(field("url"));
    let place = address.map(|address| format!("on {}: not loaded", text::host(address)));
    let facts = facts.into_iter().map(text::line).chain(place).collect::<Vec<_>>().join(", ");
    match address {
        Some(address) => html! {
            a.file href=(text::shown(address)) rel="noreferrer noopener" {
                (icon(kind)) span.file-name { (text::line(name)) } span.file-meta { (facts) }
            }
        },
        None => chip(kind, name, if facts.is_empty() { "only its name is known" } else { &facts }),
    }
}

/// What the agent attached to a prompt.
pub fn attached(attached: &Attached) -> Markup {
    match attached {
        Attached::File { name, media_type, bytes } => chip("clip", name, &about(media_type, *bytes, "attached")),
        Attached::Notice(notice) => html! { p.meta dir="auto" { (text::shown(notice)) } },
    }
}

/// A file of which only facts are shown.
pub fn chip(kind: &'static str, name: &str, facts: &str) -> Markup {
    html! {
        span.file { (icon(kind)) span.file-name { (text::line(name)) } span.file-meta { (text::line(facts)) } }
    }
}

/// A source of an answer.
pub fn source(title: &str, place: &str) -> Markup {
    let title = text::brief(if title.trim().is_empty() { place } else { title }, 200);
    html! {
        li {
            (icon("out"))
            @match text::web_address(place) {
                Some(address) => {
                    a.link href=(text::shown(address)) rel="noreferrer noopener" dir="auto" { (title) }
                    span { (text::line(text::host(address))) }
                },
                None => { span dir="auto" { (title) } span { (text::brief(place, 200)) } },
            }
        }
    }
}

fn about(media_type: &str, bytes: Option<usize>, place: &str) -> String {
    let size = bytes.map(size_text);
    let facts = [text::brief(media_type, 80), size.unwrap_or_default(), place.to_owned()];
    facts.into_iter().filter(|fact| !fact.is_empty()).collect::<Vec<_>>().join(", ")
}

fn is_text(media_type: &str) -> bool {
    let base = media_type.split(';').next().unwrap_or_default().trim();
    base.starts_with("text/") || matches!(base, "application/json" | "application/xml" | "application/toml")
}

/// The media type of a picture in a `data:` address, by its first bytes: what it is called may be wrong.
pub fn picture_kind(url: &str) -> Option<&'static str> {
    let data = base64_of(url)?;
    let end = HEAD_CHARS.min(data.len()) / 4 * 4;
    picture_kind_of(&BASE64.decode(data.get(..end)?).ok()?)
}

/// The media type of a picture by its first bytes.
pub fn picture_kind_of(bytes: &[u8]) -> Option<&'static str> {
    let after_space = bytes.trim_ascii_start();
    Some(match bytes {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        // As a picture it runs no script and loads nothing.
        _ if after_space.starts_with(b"<svg") => "image/svg+xml",
        _ if after_space.starts_with(b"<?xml") && contains(after_space, b"<svg") => "image/svg+xml",
        _ => return None,
    })
}

fn contains(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}

/// The bytes of a `data:` address.
pub fn decoded(url: &str) -> Option<Vec<u8>> {
    match base64_of(url) {
        Some(data) => BASE64.decode(data).ok(),
        None => {
            let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
            let is_plain = !head.ends_with(";base64");
            is_plain.then(|| percent_encoding::percent_decode_str(data).collect())
        }
    }
}

fn base64_of(url: &str) -> Option<&str> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    head.ends_with(";base64").then_some(data)
}

fn data_text(url: &str) -> Option<String> {
    String::from_utf8(decoded(url)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_known_by_its_bytes() {
        let data = |bytes: &[u8]| format!("data:text/html;base64,{}", general_purpose::STANDARD.encode(bytes));
        assert_eq!(picture_kind(&data(b"\x89PNG\r\n\x1a\n....")), Some("image/png"));
        assert_eq!(picture_kind(&data(b"<svg onload=alert(1)>")), Some("image/svg+xml"));
        assert_eq!(picture_kind(&data(b"<html><script>")), None);
        assert_eq!(picture_kind("data:image/png;base64,!!!!"), None);
        assert_eq!(picture_kind("https://example.org/a.png"), None);
    }

    #[test]
    fn an_unsafe_address_of_a_file_or_source_leads_nowhere() {
        assert!(!source("x", "javascript:alert(1)").0.contains("href=\"java"));
        let hostile = serde_json::json!({"filename": "<b>", "mime_type": "\"><img>", "url": "javascript:alert(1)"});
        let html = attachment(&hostile).0;
        assert!(!html.contains("<img") && !html.contains("<b>") && !html.contains("href=\"java"), "{html}");
    }
}
