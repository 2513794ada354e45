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
pub(crate) static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    // A line of it is a comment, or has none.
    let lines = include_str!("../assets/page.js").lines().map(str::trim).filter(|line| !line.starts_with("//"));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
});

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
    let small = [" {", "{ ", " }", "} ", "; ", ", ", ": ", " > ", "> "]
        .iter()
        .fold(words, |css, what| css.replace(what, what.trim()))
        .replace(";}", "}");
    // A number below one needs no zero.
    [" 0.", ":0.", ",0.", "(0."]
        .iter()
        .fold(small, |css, what| css.replace(what, &what.replace('0', "")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_sheet_is_sent_without_comments_and_spaces() {
        assert_eq!(
            smaller("/* a */\n.x {\n  color: red; /* b */\n  margin: 0 0.5px 10.5px;\n}\n.y, .z { top: 0 }"),
            ".x{color:red;margin:0 .5px 10.5px}.y,.z{top:0}"
        );
        assert!(STYLE.len() < SOURCE.len() && !STYLE.contains("/*"));
    }

    #[test]
    fn everything_that_a_page_loads_is_small() {
        const ASSETS_LIMIT_BYTES: usize = 60_000;
        let bytes = STYLE.len() + SCRIPT.len();
        assert!(bytes <= ASSETS_LIMIT_BYTES, "{bytes} bytes");
    }
}
