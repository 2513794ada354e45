//! Code with colours by classes: the syntax decides which words share a class, the style sheet decides the colour.

use std::sync::LazyLock;

use maud::{Markup, PreEscaped, html};
use scrollback::model::json;
use serde_json::Value;
use syntect::parsing::{ParseState, Scope, ScopeStack, ScopeStackOp, SyntaxReference, SyntaxSet};

use super::icon::icon;
use super::text::{self, push};

/// Larger blocks stay plain: the grammars parse well under a megabyte per second.
const MAX_BLOCK_BYTES: usize = 64 * 1024;

/// What the code of one page or file may cost, see [`Budget`]: about 200 KiB of ordinary code, one or two seconds at worst.
const MAX_WORK: usize = 16 << 20;

/// A line costs its length, and with the worst grammars its square; up to this length, the former is more.
const ORDINARY_LINE_BYTES: usize = 64;

static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

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

/// The work that highlighting may still cost.
pub struct Budget(usize);

impl Budget {
    /// Enough for one page or file.
    pub fn new() -> Budget {
        Budget(MAX_WORK)
    }

    fn spend(&mut self, code: &str) -> Option<()> {
        let work = code.lines().map(|line| line.len().saturating_mul(line.len() + ORDINARY_LINE_BYTES));
        self.0 = self.0.checked_sub(work.fold(0, usize::saturating_add))?;
        Some(())
    }
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::new()
    }
}

/// A block of code with its language.
pub fn block(code: &str, language: &str, budget: &mut Budget) -> Markup {
    let name = text::brief(language, 40);
    html! {
        figure.code {
            @if !name.is_empty() {
                figcaption {
                    (name) " "
                    button class="btn btn-icon end js-only" type="button" data-copy="code" aria-label="Copy the code" { (icon("copy")) }
                }
            }
            pre tabindex="0" { code { (highlighted(code, language, budget)) } }
        }
    }
}

/// Code without its frame.
pub fn highlighted(code: &str, language: &str, budget: &mut Budget) -> Markup {
    PreEscaped(coloured(code, language, budget).unwrap_or_else(|| {
        let mut plain = String::with_capacity(code.len() + code.len() / 8);
        push(&mut plain, code);
        plain
    }))
}

/// `None` if the language is unknown or the block is too large.
fn coloured(code: &str, language: &str, budget: &mut Budget) -> Option<String> {
    if code.len() > MAX_BLOCK_BYTES {
        return None;
    }
    let mut parser = ParseState::new(syntax(language)?);
    budget.spend(code)?;
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

/// Finds the grammar by the first word of a fence: `rust,ignore` and `py title="x"` are common.
fn syntax(language: &str) -> Option<&'static SyntaxReference> {
    let name = language
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | ':' | '{' | '}'))
        .find(|word| !word.is_empty())?;
    SYNTAXES.find_syntax_by_token(name)
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
        let mut budget = Budget::new();
        let html = highlighted("let x = \"</script>\"; // <b>", "rust", &mut budget).0;
        insta::assert_snapshot!(html, @r#"<span class="hl-storage">let</span> x = <span class="hl-string">&quot;&lt;/script&gt;&quot;</span>; <span class="hl-comment">// &lt;b&gt;</span>"#);
        assert_eq!(highlighted("<b>", "no such language\"><img>", &mut budget).0, "&lt;b&gt;");
        assert!(!block("x", "\"><img src=x>", &mut budget).0.contains("<img"));
    }

    #[test]
    fn large_blocks_and_long_lines_stay_plain() {
        let is_coloured = |code: &str| highlighted(code, "rust", &mut Budget::new()).0.contains("<span");
        assert!(is_coloured(&"let x = 1;\n".repeat(5000)));
        assert!(!is_coloured(&"let x = 1;\n".repeat(7000)));
        assert!(!is_coloured(&"let x = 1;".repeat(500)));
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
