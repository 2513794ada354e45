//! Arguments of a tool for people: one line, or aligned fields.

use scrollback::model::json;
use scrollback::view::tool_view::{scalar_text, summary};
use serde_json::Value;

use super::fold::{self, INDENT};
use crate::terminal::paint::Paint;
use crate::terminal::{Look, clean, width, wrap};

/// Names longer than this do not move the column of the values.
const MAX_NAME_COLUMNS: usize = 20;

/// More fields, or more of one value, are left to `--json`.
const MAX_FIELDS: usize = 200;
const MAX_VALUE_BYTES: usize = 20_000;

/// What is nested deeper is shown as JSON: the room gets narrow.
const MAX_DEPTH: usize = 6;

/// One line for a list: the most important arguments, or all of them.
pub(crate) fn input_summary(input: Option<&Value>) -> String {
    summary(input, |path| path).unwrap_or_default()
}

/// One field a line, their values below one another, and what is nested further in.
pub(crate) fn aligned(input: &Value, look: &Look) -> String {
    let paint = Paint { colour: look.colour };
    let mut rows = Vec::new();
    match input {
        Value::Null => {}
        input => nested(&mut rows, input, fold::room(look), 0, paint),
    }
    rows.iter().map(|row| format!("{}\n", format!("{INDENT}{row}").trim_end())).collect()
}

fn nested(rows: &mut Vec<String>, value: &Value, columns: usize, depth: usize, paint: Paint) {
    match value {
        Value::Object(fields) if is_open(value, depth) => {
            let names: Vec<String> =
                fields.keys().take(MAX_FIELDS).map(|name| clean::line(name).into_owned()).collect();
            let wide = names.iter().map(|name| width::of(name).min(MAX_NAME_COLUMNS)).max().unwrap_or(0) + 2;
            for (name, value) in names.iter().zip(fields.values()) {
                if is_open(value, depth + 1) {
                    rows.push(paint.dim(name));
                    below(rows, "  ", value, columns, depth, paint);
                    continue;
                }
                for (at, row) in scalar(value, columns.saturating_sub(wide).max(1), paint).into_iter().enumerate() {
                    let name = if at == 0 { width::fit(name, wide.max(width::of(name) + 2)) } else { " ".repeat(wide) };
                    rows.push(format!("{}{row}", paint.dim(&name)));
                }
            }
        }
        Value::Array(items) if is_open(value, depth) => {
            for item in items.iter().take(MAX_FIELDS) {
                below(rows, "- ", item, columns, depth, paint);
            }
        }
        other => rows.extend(scalar(other, columns, paint)),
    }
}

/// What is inside, further in, with a mark before its first row.
fn below(rows: &mut Vec<String>, mark: &str, value: &Value, columns: usize, depth: usize, paint: Paint) {
    let mut inner = Vec::new();
    nested(&mut inner, value, columns.saturating_sub(mark.len()).max(1), depth + 1, paint);
    rows.extend(inner.iter().enumerate().map(|(at, row)| format!("{}{row}", if at == 0 { mark } else { "  " })));
}

/// Whether a value has fields or items that are shown one by one.
fn is_open(value: &Value, depth: usize) -> bool {
    let is_empty = match value {
        Value::Object(fields) => fields.is_empty() || !json::is_object(value),
        Value::Array(items) => items.is_empty(),
        _ => true,
    };
    !is_empty && depth <= MAX_DEPTH
}

/// The rows of a text, or of another value as JSON.
fn scalar(value: &Value, columns: usize, paint: Paint) -> Vec<String> {
    let value = scalar_text(value);
    let end = value.floor_char_boundary(MAX_VALUE_BYTES);
    let text = clean::text(value[..end].trim_end()).into_owned();
    let mut rows: Vec<String> = wrap::output(&text, columns).into_iter().map(|range| text[range].to_owned()).collect();
    if end < value.len() {
        rows.push(paint.dim(&format!("… {} more; --json prints all", fold::size(value.len() - end))));
    }
    rows
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
            list
              - 1
              - a  ␛
            a␇
        "#);
        assert_eq!(aligned(&json!("only a text"), &LOOK), "    only a text\n");
        assert_eq!(aligned(&json!(null), &LOOK), "");
    }

    #[test]
    fn a_summary_is_the_key_argument_or_all_fields() {
        assert_eq!(input_summary(Some(&json!({"limit": 1, "path": "a.rs"}))), "a.rs (limit: 1)");
        let search = json!({"pattern": "fn \"x\"", "path": "/w/src", "-n": true, "type": null});
        assert_eq!(input_summary(Some(&search)), "fn \"x\" in /w/src (-n: true)");
        assert_eq!(input_summary(Some(&json!({"fg": "#111", "n": 2}))), "fg: #111, n: 2");
        let exact = json::parse(r#"{"id": 12345678901234567890123, "name": "x", "big": [1e400]}"#).unwrap();
        assert_eq!(input_summary(Some(&exact)), "x (id: 12345678901234567890123)");
        assert!(aligned(&exact, &LOOK).contains("    id    12345678901234567890123\n"), "{}", aligned(&exact, &LOOK));
        let nested = json!({"sql": "a\nb", "opts": {"n": 5, "deep": [1, {"a": "q\"t"}]}});
        assert_eq!(input_summary(Some(&nested)), "sql: a\nb, opts: {n: 5, deep: [1, {a: q\"t}]}");
        assert_eq!(input_summary(Some(&json!({}))), "");
        assert_eq!(input_summary(None), "");
    }
}
