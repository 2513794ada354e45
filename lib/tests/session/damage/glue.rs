//! P4: glued records are split, also after a record cut anywhere; what only looks like glue is left alone.

use proptest::prelude::*;
use scrollback::fuzzing;
use serde_json::json;

use crate::damage::{config, content_issues, ids};
use crate::support::read;

/// One line and what must be read from it.
struct Shape {
    name: String,
    line: Vec<u8>,
    records: &'static [&'static str],
    issues: &'static [&'static str],
}

/// What the shapes are made of and stand in.
#[derive(Debug, Clone)]
struct Embedding {
    texts: [String; 3],
    /// Where a text is cut.
    cut: usize,
    before: usize,
    after: usize,
    blanks: &'static str,
    final_lf: bool,
}

proptest! {
    #![proptest_config(config(300, 10_000))]

    #[test]
    fn every_shape_of_glue_is_taken_apart(embedding in embedding()) {
        let shapes = shapes(&embedding);
        assert!(shapes.len() >= 30);
        for shape in shapes {
            shape.check(&embedding);
        }
    }
}

#[test]
fn a_record_cut_at_any_byte_does_not_swallow_the_next() {
    let whole = Embedding::plain().record("lost", 0);
    for cut in 1..whole.len() {
        let line = [&whole.as_bytes()[..cut], Embedding::plain().record("b", 1).as_bytes()].concat();
        let session = read(line.clone());
        assert_eq!(ids(&session), ["b"], "cut at {cut}: {}", String::from_utf8_lossy(&line));
        let torn = content_issues(&session).contains(&"torn 1".to_owned());
        assert!(torn, "cut at {cut}: {:?}", content_issues(&session));
        fuzzing::account_for(&session, 0, &line);
    }
}

impl Shape {
    fn check(&self, embedding: &Embedding) {
        let before = (0..embedding.before).map(|at| embedding.record(&format!("before{at}"), at) + "\n");
        let after = (0..embedding.after).map(|at| format!("\n{}", embedding.record(&format!("after{at}"), at)));
        let blanks = embedding.blanks.as_bytes();
        let mut file = before.collect::<String>().into_bytes();
        file.extend([blanks, &self.line, blanks].concat());
        file.extend(after.collect::<String>().bytes());
        file.extend(embedding.final_lf.then_some(b'\n'));
        let session = read(file.clone());
        let names = |name: &str, count: usize| (0..count).map(|at| format!("{name}{at}")).collect::<Vec<_>>();
        let own = self.records.iter().map(|id| (*id).to_owned()).collect();
        let expected = [names("before", embedding.before), own, names("after", embedding.after)].concat();
        let shown = String::from_utf8_lossy(&self.line);
        assert_eq!(ids(&session), expected, "{}: {shown}", self.name);
        let issues: Vec<String> = self.issues.iter().map(|kind| format!("{kind} {}", embedding.before + 1)).collect();
        let mut found = content_issues(&session);
        // Half a character, half a pair and NULs may be left by any cut, and are told beside it.
        found.retain(|issue| {
            issues.contains(issue) || !issue.starts_with("bad-utf8") && !issue.starts_with("nul-bytes")
        });
        assert_eq!(found, issues, "{}: {shown}", self.name);
        fuzzing::account_for(&session, 0, &file);
    }
}

impl Embedding {
    fn plain() -> Embedding {
        let texts = ["{\"a\": [1]} \u{1f600} \\ \n", "}{", "[]"].map(str::to_owned);
        Embedding { texts, cut: 0, before: 0, after: 0, blanks: "", final_lf: true }
    }

    /// A record with every kind of token, as text.
    fn record(&self, id: &str, text: usize) -> String {
        let text = &self.texts[text % self.texts.len()];
        let quoted = serde_json::to_string(text).unwrap();
        format!(
            r#"{{"type":"user","uuid":"{id}","parentUuid":null,"n":-12.5e3,"flag":true,"list":[1,"{{x",{{"k":{quoted}}}],"message":{{"role":"user","content":{quoted}}},"pair":"\ud83d\ude00","end":"ü"}}"#
        )
    }

    /// The beginning of such a record, up to this many bytes behind the marker.
    fn torn(&self, marker: &str, behind: usize) -> Vec<u8> {
        let record = self.record("lost", 0);
        let at = record.rfind(marker).unwrap() + behind;
        record.as_bytes()[..at].to_vec()
    }

    /// A record cut somewhere in its text.
    fn torn_in_text(&self) -> Vec<u8> {
        let record = self.record("lost", 0);
        let start = record.rfind(r#""content":""#).unwrap() + r#""content":""#.len();
        let end = record.rfind(r#""},"pair""#).unwrap();
        record.as_bytes()[..start + self.cut % (end - start + 1)].to_vec()
    }
}

fn embedding() -> impl Strategy<Value = Embedding> {
    let tricky = prop::sample::select(vec![
        "{",
        "}",
        "}{",
        "\"",
        "\\",
        "\\u",
        ",",
        ":",
        "[",
        "]",
        "{\"uuid\":\"no\",\"type\":\"user\"}",
        "\n",
        "\u{2028}",
        "é",
        "😀",
        "\u{0}",
        "null",
        "{ ",
        "{\"",
    ]);
    let piece = prop_oneof![tricky.prop_map(str::to_owned), "[a-z ]{0,6}".prop_map(String::from), any::<String>()];
    let text = || prop::collection::vec(piece.clone(), 0..5).prop_map(|pieces| pieces.concat());
    let blanks = prop::sample::select(vec!["", "", " ", "\r", "\t \r", "\0\0\0"]);
    let texts = (text(), text(), text()).prop_map(|(a, b, c)| [a, b, c]);
    (texts, any::<usize>(), 0..3_usize, 0..3_usize, blanks, any::<bool>()).prop_map(
        |(texts, cut, before, after, blanks, final_lf)| Embedding { texts, cut, before, after, blanks, final_lf },
    )
}

fn shapes(with: &Embedding) -> Vec<Shape> {
    let (a, b, c) = (with.record("a", 0), with.record("b", 1), with.record("c", 2));
    let glued: &[&str] = &["glued"];
    let both: &[&str] = &["glued", "torn"];
    let shape = |name: &str, pieces: &[&[u8]], records, issues| Shape {
        name: name.to_owned(),
        line: pieces.concat(),
        records,
        issues,
    };
    let (a, b, c) = (a.as_bytes(), b.as_bytes(), c.as_bytes());
    let plain = json!({"role": "user", "content": with.texts[1]}).to_string();
    let in_text = with.torn_in_text();
    let end = with.record("lost", 0).split_off(with.record("lost", 0).rfind("ssage\"").unwrap());
    let mut shapes = vec![
        shape("}{", &[a, b], &["a", "b"], glued),
        shape("with a space", &[a, b" ", b], &["a", "b"], glued),
        shape("with tabs", &[a, b"\t\t", b], &["a", "b"], glued),
        shape("with a CR", &[a, b"\r", b], &["a", "b"], glued),
        shape("with NULs", &[a, b"\0\0\0", b], &["a", "b"], &["glued", "nul-bytes"]),
        shape("with a comma", &[a, b",", b], &["a", "b"], &["glued", "not-json"]),
        shape("with commas", &[a, b", ", b, b",", c], &["a", "b", "c"], &["glued", "not-json"]),
        shape("with a byte order mark", &[a, b"\xef\xbb\xbf", b], &["a", "b"], &["glued", "not-json"]),
        shape("with garbage", &[a, b"\xff\xfe\x01", b], &["a", "b"], &["bad-utf8", "glued", "not-json"]),
        shape("with a number", &[a, b"17", b], &["a", "b"], &["glued", "not-an-object"]),
        shape("with a bracket", &[a, b"}", b], &["a", "b"], &["glued", "not-json"]),
        shape("three", &[a, b, c], &["a", "b", "c"], glued),
        shape("whole, torn", &[a, &in_text], &["a"], both),
        shape("whole, torn, whole", &[a, &in_text, b], &["a", "b"], both),
        shape("torn, whole, whole", &[&in_text, a, b], &["a", "b"], both),
        shape("torn, torn, whole", &[&in_text, &with.torn("\"list\"", 8), c], &["c"], both),
        shape("torn, torn in text, whole", &[&with.torn("\"n\"", 6), &in_text, c], &["c"], both),
        shape("the end of one, whole", &[end.as_bytes(), c], &["c"], &["not-json"]),
        shape("alone", &[a], &["a"], &[]),
    ];
    // Whole records after one cut in text need no id to be found.
    let nameless = shape("torn in text, nameless", &[&in_text, plain.as_bytes()], &[], both);
    let at = with.blanks.len() + nameless.line.len() - plain.len();
    let lines_before: usize = (0..with.before).map(|at| with.record(&format!("before{at}"), at).len() + 1).sum();
    let name: &'static str = format!("at-{}", lines_before + at).leak();
    shapes.push(Shape { records: vec![name].leak(), ..nameless });
    for (name, marker, behind) in TEARS {
        let torn = with.torn(marker, *behind);
        shapes.push(shape(&format!("torn {name}"), &[&torn, b], &["b"], both));
    }
    shapes.extend(left_alone(with));
    shapes
}

/// Where a record is cut: behind the last of these markers by so many bytes.
const TEARS: &[(&str, &str, usize)] = &[
    ("before its first key", "{\"type\"", 1),
    ("inside a key", "\"parentUuid\"", 5),
    ("behind a key", "\"parentUuid\"", 12),
    ("behind a colon", "\"parentUuid\"", 13),
    ("inside a literal", "\"parentUuid\"", 15),
    ("behind a literal", "\"parentUuid\"", 17),
    ("behind a comma", "\"n\"", 0),
    ("inside a number, at its sign", "\"n\"", 5),
    ("inside a number", "\"n\"", 6),
    ("inside a number, at its point", "\"n\"", 8),
    ("inside a number, at its exponent", "\"n\"", 10),
    ("inside another literal", "\"flag\"", 9),
    ("inside an array", "\"list\"", 8),
    ("inside an array, behind a comma", "\"list\"", 10),
    ("inside an array's string", "\"list\"", 12),
    ("inside an array's object", "{\"k\"", 1),
    ("inside an array's object, behind a colon", "{\"k\"", 5),
    ("behind an array's object", "],\"message\"", 0),
    ("behind an array", "],\"message\"", 1),
    ("inside a nested object", "{\"role\"", 1),
    ("inside a nested object, behind a comma", "\"content\"", 0),
    ("inside a nested object, behind a colon", "\"content\"", 10),
    ("at the beginning of a text", "\"content\"", 11),
    ("behind a nested object", ",\"pair\"", 0),
    ("inside an escape", "\\ud83d\\ude00\"", 1),
    ("inside an escape's u", "\\ud83d\\ude00\"", 2),
    ("inside an escape's digits", "\\ud83d\\ude00\"", 4),
    ("between the halves of a pair", "\\ud83d\\ude00\"", 6),
    ("inside the second half's escape", "\\ud83d\\ude00\"", 8),
    ("inside the second half", "\\ud83d\\ude00\"", 10),
    ("inside a character", "ü", 1),
    ("before its last bracket", "}", 0),
];

/// Lines that hold what looks like another record.
fn left_alone(with: &Embedding) -> Vec<Shape> {
    let quoted = json!({"type": "user", "uuid": "quoted", "message": {"role": "user", "content": with.texts[0]}});
    let user = |content| json!({"type": "user", "uuid": "a", "parentUuid": null, "message": {"content": content}});
    let result = |content| {
        json!({"type": "tool_result", "uuid": "a", "parentUuid": null,
            "toolResults": [{"toolCallId": "none", "content": content, "success": true}]})
    };
    let whole = |name: &str, line: &serde_json::Value, issues| Shape {
        name: name.to_owned(),
        line: line.to_string().into_bytes(),
        records: &["a"],
        issues,
    };
    let torn = |name: &str, line: &serde_json::Value, behind: &str| {
        let line = line.to_string();
        let at = line.rfind(behind).unwrap() + behind.len();
        Shape { name: name.to_owned(), line: line.as_bytes()[..at].to_vec(), records: &[], issues: &["torn"] }
    };
    let text = format!("{}}}{{{quoted}{}", with.texts[0], with.texts[1]);
    let listed = json!([quoted, quoted]);
    vec![
        whole("a text that looks like glue", &user(json!(text)), &[]),
        whole("a record as a text", &user(json!(quoted.to_string())), &[]),
        whole("a record as a text in a text", &user(json!(json!(quoted.to_string()).to_string())), &[]),
        whole("a record as a tool's output", &result(quoted.clone()), &["orphan-result"]),
        whole("records as a tool's output", &result(listed.clone()), &["orphan-result"]),
        torn("a torn line with a record as a text", &user(json!(quoted.to_string())), "\"}"),
        torn("a torn line with a record inside", &result(quoted), "},\"success\""),
        torn("a torn line with records inside", &result(listed), "}]"),
    ]
}
