//! Code with colours by classes: the syntax decides which words share a class, the style sheet decides the colour.

use std::ops::Range;

use maud::{Markup, PreEscaped, html};
use scrollback::model::json;
use serde_json::Value;

use super::icon::icon;
use super::lexer::{Kind, each_piece};
use super::text::{self, push};

/// The class of a piece.
fn class_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Comment => "hl-comment",
        Kind::Quoted | Kind::Added => "hl-string",
        Kind::Number | Kind::Constant => "hl-constant",
        Kind::Keyword => "hl-keyword",
        Kind::Type => "hl-type",
        Kind::Function | Kind::Key => "hl-name",
        Kind::Removed => "hl-removed",
    }
}

/// A block of code with its language.
pub fn block(code: &str, language: &str) -> Markup {
    let name = text::brief(language, 40);
    html! {
        figure.code {
            @if !name.is_empty() {
                figcaption {
                    (name) " "
                    button class="btn btn-icon end js-only" type="button" data-copy="code" aria-label="Copy the code" { (icon("copy")) }
                }
            }
            pre tabindex="0" { code { (highlighted(code, language)) } }
        }
    }
}

/// Code without its frame.
pub fn highlighted(code: &str, language: &str) -> Markup {
    let mut out = Spans { out: String::with_capacity(code.len() * 2), open: "" };
    if !each_piece(code, language, |piece, kind| out.push(piece, kind.map(class_of).unwrap_or_default())) {
        out.push(code, "");
    }
    PreEscaped(out.finish())
}

/// A line by itself, of which a part may be marked by an element.
pub fn line(line: &str, language: &str, mark: Option<(Range<usize>, &str)>) -> String {
    let mut pieces: Vec<(usize, &'static str)> = Vec::new();
    let mut end = 0;
    let is_known = each_piece(line, language, |piece, kind| {
        end += piece.len();
        pieces.push((end, kind.map(class_of).unwrap_or_default()));
    });
    if !is_known {
        pieces.push((line.len(), ""));
    }
    let (marked, tag) = mark.unwrap_or((0..0, ""));
    let part = |of: Range<usize>| {
        let mut out = Spans { out: String::new(), open: "" };
        let mut from = 0;
        for (end, class) in &pieces {
            let (start, stop) = (of.start.max(from), of.end.min(*end));
            if start < stop {
                out.push(&line[start..stop], class);
            }
            from = *end;
        }
        out.finish()
    };
    match marked.is_empty() {
        true => part(0..line.len()),
        false => {
            let (before, inside, after) = (part(0..marked.start), part(marked.clone()), part(marked.end..line.len()));
            format!("{before}<{tag}>{inside}</{tag}>{after}")
        }
    }
}

/// Text with classes; neighbours of the same class share an element.
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

/// A JSON value over several lines, with classes.
pub fn json_value(value: &Value) -> Markup {
    highlighted(&json::to_string_pretty(value), "json")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn code_has_classes_and_no_tags_of_its_own() {
        let html = highlighted("let x = \"</script>\"; // <b>", "rust").0;
        insta::assert_snapshot!(html, @r#"<span class="hl-keyword">let</span> x = <span class="hl-string">&quot;&lt;/script&gt;&quot;</span>; <span class="hl-comment">// &lt;b&gt;</span>"#);
        assert_eq!(highlighted("<b>", "no such language\"><img>").0, "&lt;b&gt;");
        assert!(!block("x", "\"><img src=x>").0.contains("<img"));
    }

    #[test]
    fn json_has_classes_for_keys_strings_and_numbers() {
        let value = json!({"fg": "#5c\"<b>", "n": [-1.5, true, null], "ключ": "знач"});
        insta::assert_snapshot!(json_value(&value).0, @r#"
        {
          <span class="hl-name">&quot;fg&quot;</span>: <span class="hl-string">&quot;#5c\&quot;&lt;b&gt;&quot;</span>,
          <span class="hl-name">&quot;n&quot;</span>: [
            <span class="hl-constant">-1.5</span>,
            <span class="hl-constant">true</span>,
            <span class="hl-constant">null</span>
          ],
          <span class="hl-name">&quot;ключ&quot;</span>: <span class="hl-string">&quot;знач&quot;</span>
        }
        "#);
    }
}
