//! The style sheet and the script, as they are sent.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

const SOURCE: &str = include_str!("../assets/style.css");

/// The style sheet without comments and needless spaces.
pub(crate) static STYLE: LazyLock<String> = LazyLock::new(|| smaller(SOURCE));

/// What a policy calls the style sheet, where it is part of a file.
pub(crate) static STYLE_HASH: LazyLock<String> =
    LazyLock::new(|| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(STYLE.as_bytes()))));

/// The script: comfort only, every page works without it.
pub(crate) const SCRIPT: &str = include_str!("../assets/page.js");

/// A style sheet without comments and needless spaces. Our own has no strings with braces or double spaces.
fn smaller(css: &str) -> String {
    let mut rest = css;
    let mut out = String::with_capacity(css.len());
    while let Some(start) = rest.find("/*") {
        out.push_str(&rest[..start]);
        rest = rest[start..].split_once("*/").map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
    [" {", "{ ", " }", "} ", "; ", ", ", ": ", " > ", "> "]
        .iter()
        .fold(words, |css, what| css.replace(what, what.trim()))
        .replace(";}", "}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_sheet_is_sent_without_comments_and_spaces() {
        assert_eq!(
            smaller("/* a */\n.x {\n  color: red; /* b */\n  margin: 0 1px;\n}\n.y, .z { top: 0 }"),
            ".x{color:red;margin:0 1px}.y,.z{top:0}"
        );
        assert!(STYLE.len() < SOURCE.len() && !STYLE.contains("/*"));
    }
}
