//! Splits Rust source into code and comments; strings belong to neither.
//!
//! It is not a parser: just enough of a lexer that a rule about code does not match a comment or a string.

/// The two halves of a source file. Each has all line breaks, so that line numbers stay correct.
pub(crate) struct Source {
    pub(crate) code: String,
    pub(crate) comments: String,
}

impl Source {
    pub(crate) fn of(text: &str) -> Source {
        let mut source = Source { code: String::new(), comments: String::new() };
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let after_word = source.code.ends_with(is_word);
            let (length, kind) = if rest.starts_with("//") {
                (rest.find('\n').unwrap_or(rest.len()), Kind::Comment)
            } else if rest.starts_with("/*") {
                (block_comment(rest), Kind::Comment)
            } else if let Some(length) = string(rest).filter(|_| first == '"' || !after_word) {
                (length, Kind::Text)
            } else if let Some(length) = character(rest) {
                (length, Kind::Text)
            } else {
                (first.len_utf8(), Kind::Code)
            };
            let (piece, tail) = rest.split_at(length);
            source.push(piece, kind);
            rest = tail;
        }
        source
    }

    /// The code without tests: without the item after each `#[cfg(test)]`.
    pub(crate) fn shipped_code(&self) -> String {
        let mut shipped = String::new();
        let mut rest = self.code.as_str();
        while let Some((before, after)) = rest.split_once("#[cfg(test)]") {
            let (item, tail) = after.split_at(item_end(after));
            shipped.push_str(before);
            shipped.extend(item.chars().filter(|&c| c == '\n'));
            rest = tail;
        }
        shipped + rest
    }

    fn push(&mut self, piece: &str, kind: Kind) {
        let breaks: String = piece.chars().filter(|&c| c == '\n').collect();
        let (code, comment) = match kind {
            Kind::Code => (piece, breaks.as_str()),
            Kind::Comment => (breaks.as_str(), piece),
            Kind::Text => (breaks.as_str(), breaks.as_str()),
        };
        self.code.push_str(code);
        self.comments.push_str(comment);
        if kind == Kind::Text {
            // Without the string, the words around it must not become one.
            self.code.push('"');
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Code,
    Comment,
    Text,
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of the block comment at the start of `text`; comments nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// The length of the string literal at the start of `text`, with its prefix and hashes.
fn string(text: &str) -> Option<usize> {
    let prefix = text.bytes().take_while(|b| matches!(b, b'r' | b'b' | b'c')).count();
    let hashes = text[prefix..].bytes().take_while(|&b| b == b'#').count();
    let raw = text[..prefix].contains('r');
    let open = prefix + hashes;
    if prefix > 2 || (hashes > 0 && !raw) || !text[open..].starts_with('"') {
        return None;
    }
    let body = open + 1;
    if raw {
        let close = format!("\"{}", "#".repeat(hashes));
        return Some(text[body..].find(&close).map_or(text.len(), |at| body + at + close.len()));
    }
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(body) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    Some(text.len())
}

/// The length of the character literal at the start of `text`; a lifetime is not one.
fn character(text: &str) -> Option<usize> {
    let body = text.strip_prefix('\'')?;
    if let Some(escape) = body.strip_prefix('\\') {
        let named = escape.chars().next()?.len_utf8();
        return escape[named..].find('\'').map(|at| 2 + named + at + 1);
    }
    let first = body.chars().next()?;
    body[first.len_utf8()..].starts_with('\'').then_some(2 + first.len_utf8())
}

/// The end of the item at the start of `code`: its closing brace, or a semicolon before any brace.
fn item_end(code: &str) -> usize {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        match c {
            ';' if depth == 0 => return at + 1,
            '{' => depth += 1,
            '}' if depth <= 1 => return at + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_comments_are_not_code() {
        let source = Source::of("a(\"b // c\"); // d \"e\n/* f /* g */ h */ i('\"', '\\'', r#\"j\"k\"#) as &'l m");
        assert_eq!(source.code, "a(\"); \n i(\", \", \") as &'l m");
        assert_eq!(source.comments, "// d \"e\n/* f /* g */ h */");
    }

    #[test]
    fn line_numbers_do_not_change() {
        let text = "let a = \"one\ntwo\";\n/* three\nfour */ fn five() {}\n";
        let source = Source::of(text);
        assert_eq!(source.code.lines().position(|line| line.contains("five")), Some(3));
        assert_eq!(source.comments.matches('\n').count(), text.matches('\n').count());
    }

    #[test]
    fn a_raw_identifier_and_a_word_that_ends_in_r_start_no_string() {
        assert_eq!(Source::of("r#type + for\"x\" + b'\\n' + br\"y\"").code, "r#type + for\" + b\" + \"");
    }

    #[test]
    fn an_unfinished_string_ends_with_the_file() {
        assert_eq!(Source::of("a \"b\\\"").code, "a \"");
        assert_eq!(Source::of("a r#\"b\"").code, "a \"");
        assert_eq!(Source::of("a '\\").code, "a '\\");
    }

    #[test]
    fn test_code_is_not_shipped() {
        let source =
            Source::of("fn a() {}\n#[cfg(test)]\nmod b {\n fn c() {}\n}\nfn d() {}\n#[cfg(test)] use e;\nfn f() {}");
        assert_eq!(source.shipped_code(), "fn a() {}\n\n\n\n\nfn d() {}\n\nfn f() {}");
    }
}
