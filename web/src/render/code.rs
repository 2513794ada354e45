//! Code with colours by classes: the syntax decides which words share a class, the style sheet decides the colour.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{LazyLock, Mutex, PoisonError};

use maud::{Markup, PreEscaped, html};
use scrollback::model::json;
use serde_json::Value;
use syntect::parsing::{Scope, ScopeStack, ScopeStackOp};

use super::grammar::{Budget, SYNTAXES, Seen};
use super::icon::icon;
use super::text::{self, push};

/// Scopes and their classes, the most telling first.
static CLASSES: LazyLock<Vec<(Scope, &'static str)>> = LazyLock::new(|| {
    let classes = [
        ("comment", "hl-comment"),
        ("string", "hl-string"),
        ("constant.numeric", "hl-numeric"),
        ("constant.character.escape", "hl-constant"),
        ("constant", "hl-constant"),
        ("keyword.operator", ""),
        ("keyword", "hl-keyword"),
        ("storage.type.numeric", "hl-type"),
        ("storage", "hl-storage"),
        ("entity.name.type", "hl-type"),
        ("entity.name.class", "hl-type"),
        ("entity.name.struct", "hl-type"),
        ("entity.name.tag", "hl-keyword"),
        ("entity.name", "hl-entity"),
        ("entity.other.attribute-name", "hl-key"),
        ("variable.function", "hl-function"),
        ("support.function", "hl-function"),
        ("support.type", "hl-type"),
        ("support", "hl-support"),
        ("meta.mapping.key", "hl-key"),
    ];
    classes.iter().filter_map(|(scope, class)| Some((Scope::new(scope).ok()?, *class))).collect()
});

/// A block of code with its language.
pub fn block(code: &str, language: &str, seen: Seen, budget: &mut Budget) -> Markup {
    let name = text::brief(language, 40);
    html! {
        figure.code {
            @if !name.is_empty() {
                figcaption {
                    (name) " "
                    button class="btn btn-icon end js-only" type="button" data-copy="code" aria-label="Copy the code" { (icon("copy")) }
                }
            }
            pre tabindex="0" { code { (highlighted(code, language, seen, budget)) } }
        }
    }
}

/// Code without its frame.
pub fn highlighted(code: &str, language: &str, seen: Seen, budget: &mut Budget) -> Markup {
    let known = KEPT.get(code, language);
    let coloured = known.or_else(|| {
        let html = coloured(code, language, seen, budget)?;
        KEPT.keep(code, language, &html);
        Some(html)
    });
    PreEscaped(coloured.unwrap_or_else(|| {
        let mut plain = String::with_capacity(code.len() + code.len() / 8);
        push(&mut plain, code);
        plain
    }))
}

/// Code that was highlighted lately: a page is read again and again.
static KEPT: LazyLock<Kept> = LazyLock::new(Kept::default);

/// How much is kept; then all of it goes.
const KEPT_BYTES: usize = 4 << 20;

#[derive(Default)]
struct Kept {
    hasher: RandomState,
    blocks: Mutex<Blocks>,
}

#[derive(Default)]
struct Blocks {
    /// By the hash of the code and its language, with the length of the code.
    html: HashMap<(u64, usize), String>,
    bytes: usize,
}

impl Kept {
    fn key(&self, code: &str, language: &str) -> (u64, usize) {
        (self.hasher.hash_one((code, language)), code.len())
    }

    fn get(&self, code: &str, language: &str) -> Option<String> {
        let blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        blocks.html.get(&self.key(code, language)).cloned()
    }

    fn keep(&self, code: &str, language: &str, html: &str) {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if blocks.bytes + html.len() > KEPT_BYTES {
            *blocks = Blocks::default();
        }
        blocks.bytes += html.len();
        blocks.html.insert(self.key(code, language), html.to_owned());
    }
}

/// `None` if the language is unknown or the block is too large.
fn coloured(code: &str, language: &str, seen: Seen, budget: &mut Budget) -> Option<String> {
    let mut parser = budget.parser(code, language, seen)?;
    let mut out = Spans::default();
    let mut stack = ScopeStack::new();
    for line in code.split_inclusive('\n') {
        let changes = parser.parse_line(line, &SYNTAXES).ok()?;
        let mut from = 0;
        for (at, change) in &changes {
            out.push(line.get(from..*at)?, class_of(&stack));
            from = *at;
            if !matches!(change, ScopeStackOp::Noop) {
                stack.apply(change).ok()?;
            }
        }
        out.push(line.get(from..)?, class_of(&stack));
    }
    Some(out.finish())
}

/// The class of the innermost scope that has one.
fn class_of(stack: &ScopeStack) -> &'static str {
    let class = |scope: &Scope| {
        let known = CLASSES.iter().find(|(prefix, _)| prefix.is_prefix_of(*scope));
        known.map(|(_, class)| *class)
    };
    stack.as_slice().iter().rev().find_map(class).unwrap_or_default()
}

/// Text with classes; neighbours of the same class share an element.
#[derive(Default)]
struct Spans {
    out: String,
    open: &'static str,
}

impl Spans {
    fn push(&mut self, piece: &str, class: &'static str) {
        if piece.is_empty() {
            return;
        }
        // White space has no colour.
        let class = if piece.trim().is_empty() { self.open } else { class };
        if class != self.open {
            self.close();
            if !class.is_empty() {
                self.out.push_str("<span class=\"");
                self.out.push_str(class);
                self.out.push_str("\">");
            }
            self.open = class;
        }
        push(&mut self.out, piece);
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.out.push_str("</span>");
        }
        self.open = "";
    }

    fn finish(mut self) -> String {
        self.close();
        self.out
    }
}

/// The language of a file by its name.
pub fn language_of(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(_, extension)| extension)
}

/// A JSON value over several lines, with classes. It needs no grammar and no budget: one look at each byte.
pub fn json_value(value: &Value) -> Markup {
    PreEscaped(json_text(&json::to_string_pretty(value)))
}

/// JSON as it is printed, with classes for keys, strings and numbers.
fn json_text(text: &str) -> String {
    let mut out = Spans::default();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'"' => {
                let mut end = at + 1;
                while end < bytes.len() && bytes[end] != b'"' {
                    end += if bytes[end] == b'\\' { 2 } else { 1 };
                }
                (end + 1).min(bytes.len())
            }
            byte if byte.is_ascii_alphanumeric() || byte == b'-' => {
                let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
                at + bytes[at..].iter().take_while(|byte| is_word(byte)).count()
            }
            _ => {
                at + bytes[at..]
                    .iter()
                    .take_while(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'"' | b'-'))
                    .count()
                    .max(1)
            }
        };
        // Every piece ends behind an ASCII character or before one.
        let Some(piece) = text.get(at..end) else { break };
        let class = match bytes[at] {
            b'"' if bytes.get(end) == Some(&b':') => "hl-key",
            b'"' => "hl-string",
            byte if byte.is_ascii_digit() || byte == b'-' => "hl-numeric",
            byte if byte.is_ascii_alphabetic() => "hl-constant",
            _ => "",
        };
        out.push(piece, class);
        at = end;
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn code_has_classes_and_no_tags_of_its_own() {
        let mut budget = Budget::of_page();
        let html = highlighted("let x = \"</script>\"; // <b>", "rust", Seen::AtOnce, &mut budget).0;
        insta::assert_snapshot!(html, @r#"<span class="hl-storage">let</span> x = <span class="hl-string">&quot;&lt;/script&gt;&quot;</span>; <span class="hl-comment">// &lt;b&gt;</span>"#);
        assert_eq!(highlighted("<b>", "no such language\"><img>", Seen::AtOnce, &mut budget).0, "&lt;b&gt;");
        assert!(!block("x", "\"><img src=x>", Seen::AtOnce, &mut budget).0.contains("<img"));
    }

    #[test]
    fn json_has_classes_for_keys_strings_and_numbers() {
        let value = json!({"fg": "#5c\"<b>", "n": [-1.5, true, null], "ключ": "знач"});
        insta::assert_snapshot!(json_value(&value).0, @r##"
        {
          <span class="hl-key">&quot;fg&quot;</span>: <span class="hl-string">&quot;#5c\&quot;&lt;b&gt;&quot;</span>,
          <span class="hl-key">&quot;n&quot;</span>: [
            <span class="hl-numeric">-1.5</span>,
            <span class="hl-constant">true</span>,
            <span class="hl-constant">null</span>
          ],
          <span class="hl-key">&quot;ключ&quot;</span>: <span class="hl-string">&quot;знач&quot;</span>
        }
        "##);
    }
}
