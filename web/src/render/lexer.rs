//! Which pieces of code share a colour. Pages and the terminal share this.
//!
//! A look at each byte and a list of words for each language (`languages.rs`), without a grammar: it takes no memory, cannot be made to
//! hang, and is some hundred times as fast. What only a grammar knows stays plain or gets the colour of what it looks like.

use super::languages::{Language, Shape, Words, known};

/// What a piece of code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A comment.
    Comment,
    /// A text between quotes.
    Quoted,
    /// A number.
    Number,
    /// A word with a fixed value, such as `true` or `MAX_BYTES`.
    Constant,
    /// A word of the language.
    Keyword,
    /// The name of a type.
    Type,
    /// The name of what is called or defined.
    Function,
    /// The name of a field or a variable, where its place or a sign says so.
    Key,
    /// A line that a difference adds.
    Added,
    /// A line that a difference removes.
    Removed,
}

/// How far the end of what may begin anywhere in a line is looked for: a regular expression of JavaScript, a variable in braces.
const PATTERN_BYTES: usize = 200;

/// Hands out the code piece by piece, each with what it is; `false` if the language is unknown.
///
/// The language is the first word of a fence or the extension of a file: `rust,ignore` and `py title="x"` are common.
pub fn each_piece(code: &str, language: &str, piece: impl FnMut(&str, Option<Kind>)) -> bool {
    let is_end = |c: char| c.is_whitespace() || matches!(c, ',' | ':' | '{' | '}');
    let Some(words) = language.split(is_end).find(|word| !word.is_empty()).and_then(known) else { return false };
    let language = words.language;
    let mut lexer = Lexer { code, at: 0, plain_from: 0, before: Before::Line, depth: 0, words, language, piece };
    match language.shape {
        Shape::Code => lexer.code(),
        Shape::Tags => lexer.tags(),
        Shape::Lines => lexer.lines(),
    }
    lexer.plain_to(code.len());
    true
}

/// What stands before a place, without spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// The line begins.
    Line,
    /// A sign after which a value or a command begins.
    Sign,
    /// A word after which a name is defined: `fn`.
    Definer,
    /// Any other keyword.
    Keyword,
    /// A value.
    Value,
}

struct Lexer<'c, F> {
    code: &'c str,
    at: usize,
    plain_from: usize,
    before: Before,
    /// How many braces are open.
    depth: usize,
    words: &'static Words,
    language: &'static Language,
    piece: F,
}

impl<'c, F: FnMut(&str, Option<Kind>)> Lexer<'c, F> {
    fn code(&mut self) {
        while let Some(byte) = self.byte(self.at) {
            match byte {
                b'\n' => (self.at, self.before) = (self.at + 1, Before::Line),
                b' ' | b'\t' | b'\r' => self.at += 1,
                _ if self.before == Before::Line && self.language.line_keys && self.line_key() => {}
                _ if self.words.opens[usize::from(byte)] && (self.comment() || self.quoted()) => {}
                b'\'' if self.language.has_chars => self.character(),
                b'/' if self.language.has_patterns && self.pattern() => {}
                b'0'..=b'9' => self.number(self.at),
                b'-' if self.is_digit(self.at + 1) && self.before != Before::Value => self.number(self.at + 1),
                _ if self.is_word(byte) || self.language.sigils.as_bytes().contains(&byte) => self.word(),
                _ => self.sign(byte),
            }
        }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.code.as_bytes().get(at).copied()
    }

    fn is_digit(&self, at: usize) -> bool {
        self.byte(at).is_some_and(|byte| byte.is_ascii_digit())
    }

    fn is_word(&self, byte: u8) -> bool {
        byte.is_ascii_alphanumeric()
            || byte == b'_'
            || byte >= 0x80
            || self.language.in_words.as_bytes().contains(&byte)
    }

    fn rest(&self) -> &'c str {
        &self.code[self.at..]
    }

    /// The end of the line that a place is in.
    fn line_end(&self, from: usize) -> usize {
        self.code[from..].find('\n').map_or(self.code.len(), |end| from + end)
    }

    fn plain_to(&mut self, end: usize) {
        if self.plain_from < end {
            (self.piece)(&self.code[self.plain_from..end], None);
        }
        self.plain_from = end;
    }

    fn take(&mut self, end: usize, kind: Kind) {
        self.plain_to(self.at);
        (self.piece)(&self.code[self.at..end], Some(kind));
        (self.at, self.plain_from) = (end, end);
        if kind != Kind::Comment {
            self.before = Before::Value;
        }
    }

    fn comment(&mut self) -> bool {
        let rest = self.rest();
        if let Some((open, close)) = self.language.comments.iter().find(|(open, _)| rest.starts_with(open)) {
            let after = &rest[open.len()..];
            let end = match self.language.comments_nest {
                true => nested_end(after, open, close),
                false => after.find(close).map(|end| end + close.len()),
            };
            self.take(end.map_or(self.code.len(), |end| self.at + open.len() + end), Kind::Comment);
            return true;
        }
        let follows_word = self.at > 0 && !self.code.as_bytes()[self.at - 1].is_ascii_whitespace();
        let may_begin = !(self.language.comments_after_spaces && follows_word);
        let begins = may_begin && self.language.line_comments.iter().any(|open| rest.starts_with(open));
        if begins {
            self.take(self.line_end(self.at), Kind::Comment);
        }
        begins
    }

    fn quoted(&mut self) -> bool {
        let rest = self.rest();
        let Some(quote) = self.language.quotes.iter().find(|quote| rest.starts_with(quote.open)) else { return false };
        let end = self.quote_end(self.at + quote.open.len(), quote.close, quote.escapes, quote.has_lines);
        let is_key = self.language.quoted_keys && self.code[end..].trim_start_matches([' ', '\t']).starts_with(':');
        self.take(end, if is_key { Kind::Key } else { Kind::Quoted });
        true
    }

    /// Behind the closing quote; a text of one line ends with its line.
    fn quote_end(&self, from: usize, close: &str, escapes: bool, has_lines: bool) -> usize {
        let bytes = self.code.as_bytes();
        let first = close.as_bytes()[0];
        let mut at = from;
        while let Some(byte) = bytes.get(at) {
            match *byte {
                b'\\' if escapes => at += 1,
                b'\n' if !has_lines => return at,
                byte if byte == first && bytes[at..].starts_with(close.as_bytes()) => return at + close.len(),
                _ => {}
            }
            at += 1;
        }
        self.code.len()
    }

    /// A character between quotes; anything else after a quote is a lifetime or a mark at a name.
    fn character(&mut self) {
        let inside = &self.code[self.at + 1..];
        let is_escape = inside.starts_with('\\');
        const ESCAPE_BYTES: usize = 12;
        let end = match is_escape {
            true => inside.bytes().take(ESCAPE_BYTES).skip(2).position(|byte| byte == b'\'').map(|end| end + 2),
            false => inside.chars().next().map(char::len_utf8).filter(|end| inside[*end..].starts_with('\'')),
        };
        match end {
            Some(end) => self.take(self.at + end + 2, Kind::Quoted),
            None => {
                let name = inside.bytes().take_while(|byte| self.is_word(*byte)).count();
                self.take(self.at + 1 + name, Kind::Type);
            }
        }
    }

    /// A regular expression, where a value may begin.
    fn pattern(&mut self) -> bool {
        if self.before == Before::Value {
            return false;
        }
        let inside = self.code.as_bytes()[self.at + 1..].iter().take(PATTERN_BYTES);
        let (mut in_class, mut escaped) = (false, false);
        for (at, byte) in inside.enumerate() {
            match byte {
                b'\n' => return false,
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => {
                    let end = self.at + at + 2;
                    let flags = self.code[end..].bytes().take_while(u8::is_ascii_lowercase).count();
                    self.take(end + flags, Kind::Quoted);
                    return true;
                }
                _ => {}
            }
        }
        false
    }

    fn number(&mut self, from: usize) {
        let bytes = self.code.as_bytes();
        let mut end = from;
        while let Some(byte) = bytes.get(end) {
            let is_part = match byte {
                b'.' => self.is_digit(end + 1),
                b'+' | b'-' => {
                    matches!(bytes[end - 1], b'e' | b'E') && self.is_digit(end + 1) && self.is_digit(end - 2)
                }
                byte => byte.is_ascii_alphanumeric() || *byte == b'_' || *byte == b'%',
            };
            if !is_part {
                break;
            }
            end += 1;
        }
        self.take(end, Kind::Number);
    }

    fn word(&mut self) {
        let bytes = self.code.as_bytes();
        let sigil = self.language.sigils.as_bytes().contains(&bytes[self.at]);
        let start = self.at + usize::from(sigil);
        let length = bytes[start..].iter().take_while(|byte| self.is_word(**byte)).count();
        let end = start + length;
        if sigil {
            return self.marked(bytes[self.at], start, end);
        }
        let next = self.byte(end);
        if self.language.prefixed_quotes
            && length <= 2
            && matches!(next, Some(b'"' | b'\'' | b'#'))
            && self.prefixed(end)
        {
            return;
        }
        let word = &self.code[start..end];
        let kind = self.words.kind(word).or_else(|| self.kind_by_place(word, end));
        match kind {
            Some(kind) => {
                let is_member = self.at > 0 && bytes[self.at - 1] == b'.' && kind == Kind::Keyword;
                match is_member {
                    true => self.pass(end),
                    false => self.take(end, kind),
                }
                if kind == Kind::Keyword {
                    self.before = match word {
                        _ if is_definer(word) => Before::Definer,
                        "then" | "do" | "else" | "if" | "while" | "until" => Before::Sign,
                        _ => Before::Keyword,
                    };
                }
            }
            None => self.pass(end),
        }
    }

    /// A word without a colour.
    fn pass(&mut self, end: usize) {
        (self.at, self.before) = (end, Before::Value);
    }

    /// What a word is by how it is written and what stands beside it.
    fn kind_by_place(&self, word: &str, end: usize) -> Option<Kind> {
        let language = self.language;
        let next = self.byte(end);
        let is_macro =
            language.has_macros && next == Some(b'!') && matches!(self.byte(end + 1), Some(b'(' | b'[' | b'{'));
        if self.before == Before::Definer || is_macro || (language.has_calls && next == Some(b'(')) {
            let is_type = language.capital_types && word.starts_with(|c: char| c.is_ascii_uppercase());
            return Some(if is_type && !is_macro { Kind::Type } else { Kind::Function });
        }
        if language.has_commands && matches!(self.before, Before::Line | Before::Sign) && next != Some(b'=') {
            return Some(Kind::Function);
        }
        if language.has_properties && self.depth > 0 && next == Some(b':') {
            return Some(Kind::Key);
        }
        if language.capital_types && word.starts_with(|c: char| c.is_ascii_uppercase()) {
            let is_loud = word.len() > 1 && !word.bytes().any(|byte| byte.is_ascii_lowercase());
            return Some(if is_loud { Kind::Constant } else { Kind::Type });
        }
        None
    }

    /// A word behind a sign that says what it is.
    fn marked(&mut self, sigil: u8, start: usize, end: usize) {
        let is_alone = start == end;
        match sigil {
            b'$' if is_alone && self.byte(start) == Some(b'{') && self.language.has_commands => {
                let inside =
                    self.code.as_bytes()[start..].iter().take(PATTERN_BYTES).take_while(|byte| **byte != b'\n');
                let close = inside.clone().position(|byte| *byte == b'}');
                self.take(close.map_or(start, |close| start + close + 1), Kind::Key);
            }
            _ if is_alone => self.sign(sigil),
            b'$' | b'%' => self.take(end, Kind::Key),
            b'#' => {
                let is_colour = self.language.has_properties;
                self.take(end, if is_colour { Kind::Constant } else { Kind::Keyword });
            }
            b'\\' => self.take(end, Kind::Keyword),
            b':' if self.at > 0 && self.is_word(self.code.as_bytes()[self.at - 1]) => self.sign(sigil),
            b':' => self.take(end, Kind::Constant),
            _ => {
                let is_keyword = self.words.kind(&self.code[self.at..end]) == Some(Kind::Keyword);
                self.take(end, if is_keyword { Kind::Keyword } else { Kind::Type });
            }
        }
    }

    /// A text with letters before its quote: `r#"…"#`, `b'…'`, `f"…"`.
    fn prefixed(&mut self, quote: usize) -> bool {
        let letters = &self.code[self.at..quote];
        if !letters
            .bytes()
            .all(|byte| matches!(byte.to_ascii_lowercase(), b'r' | b'b' | b'f' | b'u' | b'c' | b'l'))
        {
            return false;
        }
        let is_raw = letters.bytes().any(|byte| matches!(byte, b'r' | b'R'));
        let rest = &self.code[quote..];
        let hashes = rest.bytes().take_while(|byte| *byte == b'#').count();
        let close = match hashes {
            0 => self.language.quotes.iter().map(|quote| quote.close).find(|close| rest.starts_with(close)),
            _ if rest[hashes..].starts_with('"') && is_raw => None,
            _ => return false,
        };
        let end = match close {
            Some(close) => {
                let has_lines = self.language.has_macros || close.len() > 1;
                self.quote_end(quote + close.len(), close, !(is_raw && self.language.has_macros), has_lines)
            }
            None if hashes == 0 => return false,
            None => {
                let close = format!("\"{}", "#".repeat(hashes));
                self.quote_end(quote + hashes + 1, &close, false, true)
            }
        };
        self.take(end, Kind::Quoted);
        true
    }

    /// The name that a line begins with, before `:` or `=`; a line in brackets is the name of a section.
    fn line_key(&mut self) -> bool {
        self.before = Before::Sign;
        let line = &self.code[self.at..self.line_end(self.at)];
        if line.starts_with('[') && !self.language.quoted_keys {
            let end = line.rfind(']').map_or(line.len(), |end| end + 1);
            self.take(self.at + end, Kind::Type);
            return true;
        }
        let list = line.bytes().take_while(|byte| matches!(byte, b'-' | b' ' | b'?')).count();
        let start = if self.language.quoted_keys && line[list..].len() < line.len() { list } else { 0 };
        const KEY_BYTES: usize = 200;
        let is_key = |byte: &u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'"' | b'\'' | b'/' | b'$' | b'@')
        };
        let length = line.as_bytes()[start..].iter().take(KEY_BYTES).take_while(|byte| is_key(byte)).count();
        let after = line[start + length..].trim_start();
        let is_named = match self.language.quoted_keys {
            true => after == ":" || after.starts_with(": ") || after.starts_with(":\r"),
            false => after.starts_with(['=', ':']),
        };
        if length == 0 || !is_named {
            return false;
        }
        self.at += start;
        self.take(self.at + length, Kind::Key);
        true
    }

    fn sign(&mut self, byte: u8) {
        self.at += 1;
        match byte {
            b'{' => self.depth += 1,
            b'}' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        let ends_value = matches!(byte, b')' | b']' | b'}');
        let begins_command = matches!(byte, b'|' | b';' | b'&' | b'(' | b'{' | b'`' | b'!');
        self.before = match self.language.has_commands {
            true if begins_command => Before::Sign,
            false if !ends_value => Before::Sign,
            _ => Before::Value,
        };
    }

    /// Elements with their attributes.
    fn tags(&mut self) {
        while self.at < self.code.len() {
            let rest = self.rest();
            let next = rest.find(['<', '&']).unwrap_or(rest.len());
            self.at += next;
            let rest = self.rest();
            if rest.starts_with("<!--") {
                let end = rest.find("-->").map_or(rest.len(), |end| end + 3);
                self.take(self.at + end, Kind::Comment);
            } else if rest.starts_with('<') {
                self.tag();
            } else if let Some(length) = entity(rest) {
                self.take(self.at + length, Kind::Constant);
            } else {
                self.at = (self.at + 1).min(self.code.len());
            }
        }
    }

    fn tag(&mut self) {
        self.at += 1;
        if matches!(self.byte(self.at), Some(b'/' | b'!' | b'?')) {
            self.at += 1;
        }
        let is_name = |byte: &u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':' | b'.' | b'@' | b'#') || *byte >= 0x80
        };
        let name = |lexer: &Self| lexer.code.as_bytes()[lexer.at..].iter().take_while(|byte| is_name(byte)).count();
        let length = name(self);
        if length == 0 {
            return;
        }
        self.take(self.at + length, Kind::Keyword);
        while let Some(byte) = self.byte(self.at) {
            match byte {
                b'>' | b'<' => return,
                b'"' | b'\'' => {
                    let close = if byte == b'"' { "\"" } else { "'" };
                    let end = self.quote_end(self.at + 1, close, false, true);
                    self.take(end, Kind::Quoted);
                }
                byte if is_name(&byte) => self.take(self.at + name(self), Kind::Key),
                _ => self.at += 1,
            }
        }
    }

    /// A difference, or Markdown: the beginning of a line says what the line is.
    fn lines(&mut self) {
        while self.at < self.code.len() {
            let end = self.line_end(self.at);
            let line = &self.code[self.at..end];
            let kind = match self.language.line_comments {
                // Of a difference.
                [] => match line.as_bytes() {
                    [b'+', ..] => Some(Kind::Added),
                    [b'-', ..] => Some(Kind::Removed),
                    [b'@', b'@', ..] => Some(Kind::Type),
                    _ if line.starts_with("diff ") || line.starts_with("index ") => Some(Kind::Comment),
                    _ => None,
                },
                _ => match line.trim_start().as_bytes() {
                    [b'#', ..] => Some(Kind::Keyword),
                    [b'>', ..] => Some(Kind::Comment),
                    [b'`', b'`', b'`', ..] | [b'~', b'~', b'~', ..] => Some(Kind::Quoted),
                    _ => None,
                },
            };
            match kind.filter(|_| !line.is_empty()) {
                Some(kind) => self.take(end, kind),
                None => self.at = end,
            }
            self.at = (end + 1).min(self.code.len());
        }
    }
}

/// Words after which a name is defined.
fn is_definer(word: &str) -> bool {
    matches!(
        word,
        "fn" | "def" | "defp" | "func" | "function" | "fun" | "sub" | "proc" | "macro" | "defn" | "defun" | "class"
    )
}

/// Behind the end of a comment in which others may begin.
fn nested_end(text: &str, open: &str, close: &str) -> Option<usize> {
    let (mut depth, mut at) = (1_usize, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(close.as_bytes()) {
            (at, depth) = (at + close.len(), depth - 1);
            if depth == 0 {
                return Some(at);
            }
        } else if rest.starts_with(open.as_bytes()) {
            (at, depth) = (at + open.len(), depth + 1);
        } else {
            at += 1;
        }
    }
    None
}

/// How long a character that is written by its name is.
fn entity(text: &str) -> Option<usize> {
    const ENTITY_BYTES: usize = 12;
    let end = text.bytes().take(ENTITY_BYTES).position(|byte| byte == b';')?;
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
    (end > 1 && text.as_bytes()[1..end].iter().all(is_name)).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::languages::NAMES_LISTED;
    use super::*;

    /// The code with a letter before each piece that has a colour.
    fn check(language: &str, code: &str) -> String {
        let mut shown = String::new();
        let is_known = each_piece(code, language, |piece, kind| match kind {
            Some(kind) => shown += &format!("{kind:?}⟨{piece}⟩"),
            None => shown += piece,
        });
        assert!(is_known, "{language}");
        shown
    }

    #[test]
    fn languages_are_known_by_name_and_extension_and_first_word() {
        for language in
            ["rust", "rs", "Rust,ignore", "py title=\"x\"", "{json}", "sh", "ts", "toml", "dockerfile", "c++"]
        {
            assert!(each_piece("x = 1\n", language, |_, _| {}), "{language}");
        }
        for language in ["", " ", "nonsense", "\u{1b}[31m", ",", "text", &"rust".repeat(1000)] {
            assert!(!each_piece("x = 1\n", language, |_, _| {}), "{language}");
        }
    }

    #[test]
    fn rust() {
        let code = "/* a /* b */ c */ pub fn max<'a, T: Ord>(x: &'a str) -> Vec<u8> { // end\n    let c = ['x', '\\n', b'\\'']; println!(\"{c:?}\", 1..2.5e-3 - MAX_LEN); r#\"a\"b\"#.len(); self.type_of() }";
        insta::assert_snapshot!(check("rust", code), @r##"
        Comment⟨/* a /* b */ c */⟩ Keyword⟨pub⟩ Keyword⟨fn⟩ Function⟨max⟩<Type⟨'a⟩, Type⟨T⟩: Type⟨Ord⟩>(x: &Type⟨'a⟩ Type⟨str⟩) -> Type⟨Vec⟩<Type⟨u8⟩> { Comment⟨// end⟩
            Keyword⟨let⟩ c = [Quoted⟨'x'⟩, Quoted⟨'\n'⟩, bQuoted⟨'\''⟩]; Function⟨println⟩!(Quoted⟨"{c:?}"⟩, Number⟨1⟩..Number⟨2.5e-3⟩ - Constant⟨MAX_LEN⟩); Quoted⟨r#"a"b"#⟩.Function⟨len⟩(); Keyword⟨self⟩.Function⟨type_of⟩() }
        "##);
    }

    #[test]
    fn scripts() {
        insta::assert_snapshot!(check("ts", "@Injectable() export const f = async (a: string) => a.replace(/[/\"]+/g, `x ${a}`) / 2; // c"), @r#"Type⟨@Injectable⟩() Keyword⟨export⟩ Keyword⟨const⟩ f = Keyword⟨async⟩ (a: Type⟨string⟩) => a.Function⟨replace⟩(Quoted⟨/[/"]+/g⟩, Quoted⟨`x ${a}`⟩) / Number⟨2⟩; Comment⟨// c⟩"#);
        insta::assert_snapshot!(check("python", "@cache\ndef f(self, *, n=0x1F) -> None:\n    '''doc\n    more'''\n    return rf\"{n}\" if n else None  # why"), @r#"
        Type⟨@cache⟩
        Keyword⟨def⟩ Function⟨f⟩(Constant⟨self⟩, *, n=Number⟨0x1F⟩) -> Constant⟨None⟩:
            Quoted⟨'''doc
            more'''⟩
            Keyword⟨return⟩ Quoted⟨rf"{n}"⟩ Keyword⟨if⟩ n Keyword⟨else⟩ Constant⟨None⟩  Comment⟨# why⟩
        "#);
        insta::assert_snapshot!(check("bash", "FOO=1 cargo test --all \"$HOME/x\" | grep -c x# # count\nif [ -f a.sh ]; then ./a.sh 'it'; fi"), @r#"
        FOO=Number⟨1⟩ cargo test --all Quoted⟨"$HOME/x"⟩ | Function⟨grep⟩ -c x# Comment⟨# count⟩
        Keyword⟨if⟩ [ -f a.sh ]; Keyword⟨then⟩ Function⟨./a.sh⟩ Quoted⟨'it'⟩; Keyword⟨fi⟩
        "#);
        insta::assert_snapshot!(check("ruby", "class Tide\n  attr_reader :at\n  def high? = @at > 3 # m\nend"), @r#"
        Keyword⟨class⟩ Type⟨Tide⟩
          Keyword⟨attr_reader⟩ Constant⟨:at⟩
          Keyword⟨def⟩ Function⟨high⟩? = Type⟨@at⟩ > Number⟨3⟩ Comment⟨# m⟩
        Keyword⟨end⟩
        "#);
        insta::assert_snapshot!(check("sql", "SELECT count(*) FROM tides WHERE place = 'Hull' -- all"), @r#"Keyword⟨SELECT⟩ Function⟨count⟩(*) Keyword⟨FROM⟩ tides Keyword⟨WHERE⟩ place = Quoted⟨'Hull'⟩ Comment⟨-- all⟩"#);
    }

    #[test]
    fn data() {
        insta::assert_snapshot!(check("json", "{\"a\" : [-1.5, true, \"x: \\\"y\"]}"), @r#"{Key⟨"a"⟩ : [Number⟨-1.5⟩, Constant⟨true⟩, Quoted⟨"x: \"y"⟩]}"#);
        insta::assert_snapshot!(check("yaml", "# a\n- name: \"b\"\n  url: http://x:80#y\n  on: true"), @r#"
        Comment⟨# a⟩
        - Key⟨name⟩: Quoted⟨"b"⟩
          Key⟨url⟩: http://x:Number⟨80⟩#y
          Key⟨on⟩: Constant⟨true⟩
        "#);
        insta::assert_snapshot!(check("toml", "[a.b]\nc-d = \"x\" # y\ne = [1, 2024-01-01]"), @r#"
        Type⟨[a.b]⟩
        Key⟨c-d⟩ = Quoted⟨"x"⟩ Comment⟨# y⟩
        Key⟨e⟩ = [Number⟨1⟩, Number⟨2024⟩-Number⟨01⟩-Number⟨01⟩]
        "#);
        insta::assert_snapshot!(check("html", "<!-- a --><a href=\"x\" hidden>b &amp; c</a>"), @r#"Comment⟨<!-- a -->⟩<Keyword⟨a⟩ Key⟨href⟩=Quoted⟨"x"⟩ Key⟨hidden⟩>b Constant⟨&amp;⟩ c</Keyword⟨a⟩>"#);
        insta::assert_snapshot!(check("css", "@media (x) { .a:hover { color: #fff; inset: -1.5rem; } } /* a */"), @r#"Keyword⟨@media⟩ (x) { .Key⟨a⟩:hover { Key⟨color⟩: Constant⟨#fff⟩; Key⟨inset⟩: Number⟨-1.5rem⟩; } } Comment⟨/* a */⟩"#);
        insta::assert_snapshot!(check("diff", "--- a\n@@ -1 +1 @@\n-x\n+y\n z"), @r#"
        Removed⟨--- a⟩
        Type⟨@@ -1 +1 @@⟩
        Removed⟨-x⟩
        Added⟨+y⟩
         z
        "#);
    }

    proptest! {
        #[test]
        fn every_byte_of_any_code_comes_out_once(code in "(?s).{0,80}([a-z\"'`/#$-]{1,3}.{0,9}){0,20}") {
            for name in NAMES_LISTED.iter() {
                let mut whole = String::new();
                each_piece(&code, name, |piece, _| whole.push_str(piece));
                prop_assert_eq!(&whole, &code, "{}", name);
            }
        }
    }

    #[test]
    fn no_code_makes_it_slow() {
        let pieces = [
            "/", "(/[", "${", "'", "\"", "`", "r#", "r##\"", "/*", "<!--", "<a ", "&", "-", "{", "#", "=/", "'\\",
            "\"\"\"", "[[", "x(",
        ];
        let started = std::time::Instant::now();
        for name in NAMES_LISTED.iter() {
            for piece in pieces {
                each_piece(&piece.repeat(5_000), name, |_, _| {});
            }
        }
        // Some 10 MB; what is quadratic takes a second for each.
        assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
    }
}
