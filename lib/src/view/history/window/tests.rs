//! A history in windows is the history: the same messages, and the same notes.

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::dialect;
use crate::session::{ReadOptions, Session, Source};
use crate::view::history::start::{ContextPolicy, in_windows};
use crate::view::history::{History, Note, View, gemini};

/// Compares the smallest windows with the whole. Returns how many windows there were.
fn compare(session: &Session, what: &str) -> usize {
    let mut windows = 0;
    for (head, with_context) in session.heads().flat_map(|head| [(head.record, false), (head.record, true)]) {
        let whole =
            if with_context { History::with_context(session, head) } else { History::of(session, head) }.unwrap();
        for view in View::ALL {
            if view == View::Gemini && session.dialect().name() == gemini::RECORDED {
                continue;
            }
            let (messages, notes) = view.messages(&whole).unwrap();
            let mut streamed = Vec::new();
            let mut emit = |message: Value| streamed.push(crate::model::json::plain(message));
            let (history, more) = view.write_in_windows(session, head, with_context, 0, &mut emit).unwrap();
            assert_eq!(streamed, messages, "{what} for {}", view.name());
            assert_eq!(sorted(&history.notes, &more), sorted(&whole.notes, &notes), "{what} for {}", view.name());
            assert_eq!((history.state, &history.notice), (whole.state, &whole.notice), "{what}");
        }
        let mut count = |_: &History<'_>| {
            windows += 1;
            Ok(())
        };
        in_windows(session, head, ContextPolicy::Omit, 0, &mut count).unwrap();
    }
    windows
}

fn sorted<'n>(some: &'n [Note], others: &'n [Note]) -> Vec<(&'n str, &'n str)> {
    let mut notes: Vec<_> = some.iter().chain(others).map(|note| (note.record.as_str(), note.what.as_str())).collect();
    notes.sort_unstable();
    notes
}

#[test]
fn every_session_of_the_corpus_is_the_same_in_windows() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let mut windows = 0;
    for dialect in dialect::all() {
        for case in std::fs::read_dir(corpus.join(dialect.name())).unwrap() {
            for file in std::fs::read_dir(case.unwrap().path()).unwrap() {
                let path = file.unwrap().path();
                if path.extension().is_some_and(|ending| ending == "jsonl" || ending == "json")
                    && let Ok(session) =
                        Session::open(&Source::file(*dialect, &path), &ReadOptions::plain(jiff::Timestamp::MAX))
                {
                    windows += compare(&session, &path.display().to_string());
                }
            }
        }
    }
    assert!(windows > 30, "{windows} windows");
}

/// One line of a conversation whose calls have few ids.
fn line() -> impl Strategy<Value = Value> {
    let id = prop::sample::select(vec!["c1", "c2", "c3"]);
    let ids = prop::collection::vec(id, 1..3);
    let text = prop::sample::select(vec!["word", "word", "word", "", " "]);
    let model = prop::sample::select(vec![Value::Null, json!("m-1"), json!("m-2"), json!("<synthetic>")]);
    prop_oneof![
        4 => text.clone().prop_map(|text| json!({"type": "user", "message": {"role": "user", "content": text}})),
        4 => (text.clone(), model.clone()).prop_map(|(text, model)| json!({"type": "assistant", "model": model, "message": {"role": "assistant", "content": text}})),
        2 => (text.clone(), model.clone()).prop_map(|(text, model)| json!({"type": "assistant", "model": model, "message": {"role": "assistant", "content": [
            {"type": "reasoning", "text": "why", "providerMetadata": {"anthropic": {"signature": "s"}}}, {"type": "text", "text": text}]}})),
        1 => model.prop_map(|model| json!({"type": "assistant", "model": model, "message": {"role": "assistant", "content": [{"type": "reasoning", "text": "why"}]}})),
        3 => (ids.clone(), text).prop_map(|(ids, text)| {
            let calls: Vec<Value> = ids.iter().map(|id| json!({"id": id, "name": "t", "arguments": {}})).collect();
            json!({"type": "assistant", "message": {"role": "assistant", "content": text, "toolCalls": calls}})
        }),
        3 => (ids, any::<bool>()).prop_map(|(ids, preliminary)| {
            let result = |id| json!({"toolCallId": id, "content": "done", "preliminary": preliminary});
            let results: Vec<Value> = ids.iter().map(result).collect();
            json!({"type": "tool_result", "toolResults": results})
        }),
        1 => Just(json!({"type": "system", "message": {"role": "system", "content": "be brief"}})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_conversation_is_the_same_in_windows(lines in prop::collection::vec(line(), 0..24)) {
        let mut text = String::new();
        for (at, mut line) in lines.into_iter().enumerate() {
            line["uuid"] = format!("r{at}").into();
            line["parentUuid"] = at.checked_sub(1).map(|before| format!("r{before}")).into();
            line["format"] = 2.into();
            text += &format!("{line}\n");
        }
        for name in ["native", "claude-code"] {
            let reading = ReadOptions::plain(jiff::Timestamp::MAX);
            let session = Session::from_bytes(dialect::named(name).unwrap(), text.clone().into_bytes(), &reading);
            compare(&session, &text);
        }
    }
}
