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
pub(crate) static SCRIPT: LazyLock<String> = LazyLock::new(|| smaller_script(include_str!("../assets/page.js")));

/// A script without comments and needless spaces. A line of ours is a comment or has none, and no text goes over several lines.
fn smaller_script(script: &str) -> String {
    let lines = script.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    let mut out = String::with_capacity(script.len());
    for line in lines {
        let mut quote = None;
        let mut chars = line.chars().peekable();
        let mut escaped = false;
        while let Some(c) = chars.next() {
            match quote {
                Some(open) => {
                    if c == open && !escaped {
                        quote = None;
                    }
                    escaped = c == '\\' && !escaped;
                }
                None if matches!(c, '"' | '\'' | '`') => quote = Some(c),
                None if c == ' ' => {
                    let is_sign = |c: char| "{}()[];,=<>*?:&|!+".contains(c);
                    let (before, after) = (out.chars().last(), chars.peek().copied());
                    if before.is_some_and(is_sign) || after.is_some_and(is_sign) {
                        continue;
                    }
                }
                None => {}
            }
            out.push(c);
        }
        // A line that ends so goes on in the next one.
        if !out.ends_with(['{', ';', ',', '(']) {
            out.push('\n');
        }
    }
    out.replace("\n}", "}").replace(";}", "}")
}

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
    let small = [" 0.", ":0.", ",0.", "(0."]
        .iter()
        .fold(small, |css, what| css.replace(what, &what.replace('0', "")));
    with_short_names(&with_single_uses_inline(with_physical_names(small)))
}

/// A custom property of the root that is used once is written where it is used.
fn with_single_uses_inline(css: String) -> String {
    let Some((before, rest)) = css.split_once(":root{") else { return css };
    let Some((root, after)) = rest.split_once('}') else { return css };
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let uses =
        |name: &str| css.match_indices(name).filter(|(at, _)| !css[at + name.len()..].starts_with(is_name)).count();
    let is_single = |name: &str| uses(name) == 2 && after.contains(&format!("var({name})"));
    let (single, kept): (Vec<&str>, Vec<&str>) = root.split(';').partition(|declared| {
        declared.split_once(':').is_some_and(|(name, _)| name.starts_with("--") && is_single(name))
    });
    let after = single
        .iter()
        .filter_map(|declared| declared.split_once(':'))
        .fold(after.to_owned(), |css, (name, value)| css.replace(&format!("var({name})"), value));
    format!("{before}:root{{{}}}{after}", kept.join(";"))
}

/// Logical properties whose meaning does not depend on the direction of the text have shorter names: our lines are horizontal.
fn with_physical_names(css: String) -> String {
    const NAMES: [(&str, &str); 10] = [
        ("inline-size", "width"),
        ("block-size", "height"),
        ("margin-block-start", "margin-top"),
        ("margin-block-end", "margin-bottom"),
        ("padding-block-start", "padding-top"),
        ("padding-block-end", "padding-bottom"),
        ("border-block-start", "border-top"),
        ("border-block-end", "border-bottom"),
        ("inset-block-start", "top"),
        ("inset-block-end", "bottom"),
    ];
    let mut css = css;
    for (logical, physical) in NAMES {
        for before in ["{", ";", "{min-", ";min-", "{max-", ";max-"] {
            css = css.replace(&format!("{before}{logical}:"), &format!("{before}{physical}:"));
        }
    }
    css
}

/// Custom properties have long names for those who write the style sheet, and short ones for those who load it.
fn with_short_names(css: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut out = String::with_capacity(css.len());
    let mut rest = css;
    while let Some(at) = rest.find("--") {
        let (before, found) = rest.split_at(at);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let end = found[2..].find(|c| !is_name(c)).map_or(found.len(), |end| end + 2);
        let name = &found[..end];
        out.push_str(before);
        if before.ends_with(is_name) {
            // The middle of another word.
            out.push_str(name);
        } else {
            let number = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            });
            out += &format!("--{}", short_name(number));
        }
        rest = &found[end..];
    }
    out + rest
}

/// A letter, and a further one if that is not enough.
fn short_name(number: usize) -> String {
    let letter = |number: usize| char::from(b'a' + (number % 26) as u8);
    match number / 26 {
        0 => letter(number).to_string(),
        more => format!("{}{}", letter(more - 1), letter(number)),
    }
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
    fn a_property_that_is_used_once_is_written_there() {
        assert_eq!(
            with_single_uses_inline(":root{--a:red;--a-b:blue;--c:1px;top:0}.x{color:var(--a);left:var(--c)}.y{right:var(--c);color:var(--a-b)}".to_owned()),
            ":root{--c:1px;top:0}.x{color:red;left:var(--c)}.y{right:var(--c);color:blue}"
        );
    }

    #[test]
    fn names_are_short_and_a_script_means_the_same() {
        assert_eq!(
            with_short_names(":root{--ink:red;--ink-2:blue}.a--b{color:var(--ink-2,var(--ink))}"),
            ":root{--a:red;--b:blue}.a--b{color:var(--b,var(--a))}"
        );
        let script = "// no\n  const a = (b) => b ? `${b} = x` : \"it's  = 1\";\n  if (a === b + 1) return a;";
        assert_eq!(smaller_script(script), "const a=(b)=>b?`${b} = x`:\"it's  = 1\";if(a===b+1)return a;");
    }

    #[test]
    fn everything_that_a_page_loads_is_small() {
        const ASSETS_LIMIT_BYTES: usize = 60_000;
        let bytes = STYLE.len() + SCRIPT.len();
        assert!(bytes <= ASSETS_LIMIT_BYTES, "{bytes} bytes");
    }
}
