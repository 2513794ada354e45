//! An address as JavaScript's `new URL(…).href` writes it: the SDK makes a `URL` of each file's address.
//!
//! Only for addresses that it takes; those of which we are not sure are kept out before (`sdk/url.rs`).

use std::fmt::Write;

pub(super) fn href(url: &str) -> String {
    let url = url.trim_matches(|c: char| c <= ' ').replace(['\t', '\n', '\r'], "");
    let Some((scheme, rest)) = url.split_once(':') else { return url };
    let scheme = scheme.to_ascii_lowercase();
    let (rest, fragment) = split(rest, '#');
    let (rest, query) = split(rest, '?');
    let default_port = match scheme.as_str() {
        "http" | "ws" => Some(":80"),
        "https" | "wss" => Some(":443"),
        "ftp" => Some(":21"),
        _ => None,
    };
    let special = default_port.is_some() || scheme == "file";
    let mut written = format!("{scheme}:");
    if let Some(rest) = rest.strip_prefix("//") {
        let path_at = rest.find(|c| c == '/' || (special && c == '\\')).unwrap_or(rest.len());
        let (host, path) = rest.split_at(path_at);
        let host = if special { host.to_ascii_lowercase() } else { host.to_owned() };
        let host = default_port.and_then(|port| host.strip_suffix(port)).unwrap_or(&host);
        written += "//";
        written += if scheme == "file" && host == "localhost" { "" } else { host };
        written += &segments(path, special);
    } else if rest.starts_with('/') {
        if special {
            written += "//";
        }
        written += &segments(rest, special);
    } else {
        encode(&mut written, rest, "");
    }
    if let Some(query) = query {
        written.push('?');
        encode(&mut written, query, if special { " \"#<>'" } else { " \"#<>" });
    }
    if let Some(fragment) = fragment {
        written.push('#');
        encode(&mut written, fragment, " \"<>`");
    }
    written
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
}

/// A path without its steps to nowhere and back.
fn segments(path: &str, special: bool) -> String {
    if path.is_empty() {
        return if special { "/".to_owned() } else { String::new() };
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut pieces = path.split(|c| c == '/' || (special && c == '\\')).skip(1).peekable();
    while let Some(piece) = pieces.next() {
        let plain = piece.to_ascii_lowercase().replace("%2e", ".");
        match plain.as_str() {
            ".." => _ = kept.pop(),
            "." => {}
            _ => {
                kept.push(piece);
                continue;
            }
        }
        if pieces.peek().is_none() {
            kept.push("");
        }
    }
    let mut written = String::new();
    for piece in kept {
        written.push('/');
        encode(&mut written, piece, " \"#<>?`{}");
    }
    written
}

/// Writes a text; control characters, what is no ASCII and what is in `set` as `%XX`.
fn encode(written: &mut String, text: &str, set: &str) {
    for c in text.chars() {
        if c.is_ascii() && !c.is_ascii_control() && !set.contains(c) {
            written.push(c);
            continue;
        }
        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
            // A String takes all that is written to it.
            _ = write!(written, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_javascript_writes_it() {
        for (given, written) in [
            ("data:image/png;base64,AAAA", "data:image/png;base64,AAAA"),
            ("DATA:text/plain,Hé <b>", "data:text/plain,H%C3%A9 <b>"),
            ("https://Example.COM:443", "https://example.com/"),
            ("http://example.com:8080/a/./b/../c d?x='1'#f g", "http://example.com:8080/a/c%20d?x=%271%27#f%20g"),
            ("file:///home/ada/a b.png", "file:///home/ada/a%20b.png"),
            ("file://localhost/x/..", "file:///"),
            ("s3://Bucket/key", "s3://Bucket/key"),
            ("s3://Bucket", "s3://Bucket"),
            ("blob:https://Example.com/1", "blob:https://Example.com/1"),
            (" https://example.com/a\nb ", "https://example.com/ab"),
            ("attachment://a/%2E./b", "attachment://a/b"),
        ] {
            assert_eq!(href(given), written, "{given}");
        }
    }
}
