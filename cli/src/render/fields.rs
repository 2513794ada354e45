//! Arguments of a tool for people: one line, or aligned fields.

use scrollback::model::json;
use serde_json::Value;

use super::fold::{self, INDENT};
use crate::terminal::paint::Paint;
use crate::terminal::{Look, clean, width, wrap};

/// The arguments that identify a call best, the best first.
const KEY_ARGUMENTS: [&str; 12] = [
    "command",
    "cmd",
    "file_path",
    "path",
    "pattern",
    "query",
    "url",
    "prompt",
    "description",
    "message",
    "name",
    "id",
];

/// Names longer than this do not move the column of the values.
const MAX_NAME_COLUMNS: usize = 20;

/// More fields, or more of one value, are left to `--json`.
const MAX_FIELDS: usize = 200;
const MAX_VALUE_BYTES: usize = 20_000;

/// One line for a list: the most important argument, or all of them.
pub(crate) fn input_summary(input: Option<&Value>) -> String {
    summary(input).unwrap_or_default()
}

/// The most important argument of a call, or all of them, as one line; `None` if there are none.
pub(crate) fn summary(input: Option<&Value>) -> Option<String> {
    let summary = match input? {
        Value::Object(input) => {
            let key_argument = KEY_ARGUMENTS.iter().find_map(|key| input.get(*key)).and_then(Value::as_str);
            let field = |(name, value): (&String, &Value)| format!("{name}: {}", shown(value));
            key_argument
                .map_or_else(|| input.iter().take(MAX_FIELDS).map(field).collect::<Vec<_>>().join(", "), str::to_owned)
        }
        other => shown(other),
    };
    Some(summary).filter(|summary| !summary.trim().is_empty())
}

/// One field a line, their values below one another.
pub(crate) fn aligned(input: &Value, look: &Look) -> String {
    let paint = Paint { colour: look.colour };
    let fields: Vec<(String, String)> = match input {
        Value::Null => return String::new(),
        Value::Object(input) => {
            let fields = input.iter().take(MAX_FIELDS);
            fields.map(|(name, value)| (clean::line(name).into_owned(), shown(value))).collect()
        }
        other => vec![(String::new(), shown(other))],
    };
    let columns = fields.iter().map(|(name, _)| width::of(name).min(MAX_NAME_COLUMNS)).max().unwrap_or(0);
    let indent = if columns == 0 { 0 } else { columns + 2 };
    let room = fold::room(look).saturating_sub(indent).max(1);
    let mut out = String::new();
    for (name, value) in &fields {
        let end = value.floor_char_boundary(MAX_VALUE_BYTES);
        let text = clean::text(value[..end].trim_end()).into_owned();
        for (at, range) in wrap::code(&text, room).into_iter().enumerate() {
            let name = if at == 0 {
                width::fit(name, indent.max(width::of(name) + if indent > 0 { 2 } else { 0 }))
            } else {
                " ".repeat(indent)
            };
            let line = format!("{}{}", paint.dim(&name), paint.plain(&text[range]));
            out += &format!("{INDENT}{}\n", line.trim_end());
        }
        if end < value.len() {
            out += &format!(
                "{INDENT}{}{}\n",
                " ".repeat(indent),
                paint.dim(&format!("… {} more; --json prints all", fold::size(value.len() - end)))
            );
        }
    }
    out
}

/// A string as it is, anything else as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        other => json::to_string(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LOOK: Look = Look { width: 40, code: 40, colour: false };

    #[test]
    fn fields_are_aligned_and_texts_keep_their_lines() {
        let input =
            json!({"query": "say \"hi\"", "n": 3, "body": "one\ntwo", "list": [1, {"a": "\u{1b}"}], "a\u{7}": ""});
        insta::assert_snapshot!(aligned(&input, &LOOK), @r#"
            query  say "hi"
            n      3
            body   one
                   two
            list   [1,{"a":"\u001b"}]
            a␇
        "#);
        assert_eq!(aligned(&json!("only a text"), &LOOK), "    only a text\n");
        assert_eq!(aligned(&json!(null), &LOOK), "");
    }

    #[test]
    fn a_summary_is_the_key_argument_or_all_fields() {
        assert_eq!(input_summary(Some(&json!({"limit": 1, "path": "a.rs"}))), "a.rs");
        assert_eq!(input_summary(Some(&json!({"fg": "#111", "n": 2}))), "fg: #111, n: 2");
        assert_eq!(input_summary(Some(&json!({}))), "");
        assert_eq!(input_summary(None), "");
    }
}
