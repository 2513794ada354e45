//! Converting back over several conversions, after more was recorded, and the losses of that.

use std::fs;
use std::path::Path;

use scrollback::model::{Kind, LossKind};
use scrollback::session::Session;
use scrollback::view::Conversation;
use scrollback::view::history::View;

use super::sidecar::{claude_log, logs, record, there};
use super::support::{corpus, sent};
use super::{convert, folder, host, named, open, outline};

#[test]
fn three_formats_in_a_row_lead_back_to_the_first() {
    let folder = folder();
    let codex = there(folder.path(), "codex");
    let qwen = convert(&open(named("codex"), &codex.path), named("qwen-code"), &folder.path().join("q.jsonl")).unwrap();
    let qwen_session = open(named("qwen-code"), &qwen.path);
    // In one step, and in the two that it came.
    let at_once = convert(&qwen_session, named("claude-code"), &folder.path().join("at-once.jsonl")).unwrap();
    assert_eq!(fs::read(&at_once.path).unwrap(), fs::read(claude_log()).unwrap());
    let middle = convert(&qwen_session, named("codex"), &folder.path().join("middle.jsonl")).unwrap();
    assert_eq!(fs::read(&middle.path).unwrap(), fs::read(&codex.path).unwrap());
    let last = convert(&open(named("codex"), &middle.path), named("claude-code"), &folder.path().join("last.jsonl"));
    assert_eq!(fs::read(last.unwrap().path).unwrap(), fs::read(claude_log()).unwrap());
}

#[test]
fn the_summary_of_a_compaction_goes_to_every_agent_that_has_one() {
    let log = corpus().join("codex/compaction-summary-kind/rollout.jsonl");
    for (to, view) in [("native", View::Anthropic), ("claude-code", View::Anthropic), ("qwen-code", View::OpenAi)] {
        let folder = folder();
        let there = convert(&open(named("codex"), &log), named(to), &folder.path().join("there.jsonl")).unwrap();
        let sent = serde_json::to_string(&sent(&open(named(to), &there.path), view)).unwrap();
        for (text, times) in [("One?", 1), ("They counted.", 1), ("Three?", 1), ("environment", 0), ("brief", 0)] {
            assert_eq!(sent.matches(text).count(), times, "{to}: {text} in {sent}");
        }
        let shown = outline(&open(named(to), &there.path));
        assert!(shown.contains(&"user: One?".to_owned()), "{to}: {shown:?}");
    }
}

/// The model gets more than a person typed: what the agent says about a prompt that was queued, the files that it mentions.
#[test]
fn a_prompt_is_shown_as_it_was_typed_in_every_agents_format() {
    let (original, tags) = (folder(), ["<system-reminder>", "</system-reminder>"]);
    let log =
        |from: &str, case: &str| fs::read_to_string(corpus().join(from).join(case).join("session.jsonl")).unwrap();
    let rendered =
        format!(r#""rendered":[{{"content":"{}\nWhile you were working:\nIn Brest, I mean.\n{}"}}]"#, tags[0], tags[1]);
    let queued = log("claude-code", "queued-prompt")
        .replace(r#""commandMode":"prompt"}"#, &format!(r#""commandMode":"prompt"}},{rendered}"#));
    for (from, lines, typed) in [
        ("claude-code", queued, "In Brest, I mean."),
        ("qwen-code", log("qwen-code", "mention"), "@README.md @tides.txt Explain them."),
    ] {
        let path = original.path().join(format!("{from}.jsonl"));
        fs::write(&path, lines).unwrap();
        let source = open(named(from), &path);
        let shown = |session: &Session| -> Vec<String> {
            let branch = session.branch(session.head().unwrap());
            let messages = Conversation::new(&branch);
            let messages = messages.messages(0..messages.len()).map(Result::unwrap);
            messages.filter_map(|message| Some(message.display()?.text().to_owned())).collect()
        };
        assert!(shown(&source).contains(&typed.to_owned()), "{:?}", shown(&source));
        for to in ["claude-code", "codex", "qwen-code", "native"].into_iter().filter(|to| *to != from) {
            let folder = folder();
            let there = convert(&source, named(to), &folder.path().join("there.jsonl")).unwrap();
            let there = open(named(to), &there.path);
            assert!(shown(&there).contains(&typed.to_owned()), "{from} to {to}: {:?}", shown(&there));
            let view = |session: &Session| serde_json::to_string(&sent(session, View::Text)).unwrap();
            assert_eq!(view(&there), view(&source), "{from} to {to}: the model gets the same");
        }
    }
}

/// Two conversions in a row, gone on with after the first, the second, or both: one step back gives what two give.
#[test]
fn one_step_back_over_two_conversions_gives_what_two_give() {
    for (first, log) in logs() {
        let others: Vec<&str> = super::ALL.into_iter().filter(|other| *other != first).collect();
        for (middle, last) in others.iter().zip(others.iter().cycle().skip(1)) {
            for grown in [[false, true], [true, false], [true, true]] {
                back_over_two((first, &log), middle, last, grown);
            }
        }
    }
}

fn back_over_two((first, log): (&str, &Path), middle: &str, last: &str, [grows_between, grows_after]: [bool; 2]) {
    let (folder, case) = (folder(), format!("{first} → {middle} → {last}, {grows_between} {grows_after}"));
    let at = |name: &str| folder.path().join(format!("{name}.jsonl"));
    let before = open(named(first), log);
    let mut expected = outline(&before);
    let mut grow = |to: &str, path: &Path, said: &str| {
        record(to, path, None, said);
        expected.extend([format!("user: {said}"), "assistant: Then it rained.".to_owned()]);
    };
    let there = convert(&before, named(middle), &at("middle")).unwrap();
    if grows_between {
        grow(middle, &there.path, "And then?");
    }
    let further = convert(&open(named(middle), &there.path), named(last), &at("last")).unwrap();
    if grows_after {
        grow(last, &further.path, "And after that?");
    }
    let end = open(named(last), &further.path);
    let at_once = convert(&end, named(first), &at("at-once")).unwrap();
    assert!(at_once.remarks.is_empty(), "{case}: {:?}", at_once.remarks);
    let step = convert(&end, named(middle), &at("step")).unwrap();
    let two = convert(&open(named(middle), &step.path), named(first), &at("two")).unwrap();
    let is = fs::read(&at_once.path).unwrap();
    assert!(is.starts_with(fs::read(log).unwrap().trim_ascii_end()), "{case}: the original bytes come first");
    assert_eq!(outline(&open(named(first), &at_once.path)), expected, "{case}");
    assert_eq!(outline(&open(named(first), &two.path)), expected, "{case}");
    assert_eq!(at_once.session, two.session, "{case}");
    let left = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let strays: Vec<String> = left.filter(|name| !name.contains(".jsonl")).collect();
    assert!(strays.is_empty(), "{case}: {strays:?}");
}

/// Nothing of the original is reported as made up.
#[test]
fn what_the_original_has_is_not_reported_as_made_up() {
    let titled = corpus().join("claude-code/titles/session.jsonl");
    for (from, log) in logs().into_iter().chain([("claude-code", titled)]) {
        for to in super::ALL.into_iter().filter(|to| *to != from) {
            for is_branch in [false, true] {
                let folder = folder();
                let there = convert(&open(named(from), &log), named(to), &folder.path().join("there.jsonl")).unwrap();
                let session = open(named(to), &there.path);
                let branch = session.branch(session.head().unwrap()).records;
                let first = branch.iter().find(|record| record.kind() == Kind::User).unwrap().id().into_owned();
                let trees = ["native", "claude-code", "qwen-code"];
                if is_branch && !(trees.contains(&from) && trees.contains(&to)) {
                    continue;
                }
                record(to, &there.path, Some(first.as_str()).filter(|_| is_branch), "And then?");
                let back = convert(&open(named(to), &there.path), named(from), &folder.path().join("back.jsonl"));
                let made_up = |row: &&scrollback::transfer::convert::LossRow| {
                    row.kind == LossKind::Synthesised
                        && ["title", "notice", "usage", "prompt", "answer"].contains(&row.what.name())
                };
                let losses = back.unwrap().losses;
                assert_eq!(losses.iter().find(made_up), None, "{from} → {to}, {is_branch}");
            }
        }
    }
}

/// A branch that is converted as a new session stays with the same person.
#[test]
fn a_branch_of_a_chat_that_is_converted_as_new_is_with_the_same_person() {
    for way in [&["native"][..], &["codex", "qwen-code"]] {
        let folder = folder();
        let header = r#"{"type":"session","version":1,"created":"2025-02-08T19:00:00Z","jid":"alice@example.com"}"#;
        let messages = fs::read_to_string(corpus().join("fluux/documented-messages/history.jsonl")).unwrap();
        let mut path = folder.path().join("chat.jsonl");
        fs::write(&path, format!("{header}\n{messages}")).unwrap();
        let with = open(named("fluux"), &path).with().map(str::to_owned);
        let mut dialect = "fluux";
        for to in way {
            path = convert(&open(named(dialect), &path), named(to), &folder.path().join(to)).unwrap().path;
            dialect = to;
        }
        let session = open(named(dialect), &path);
        let branch = session.branch(session.head().unwrap()).records;
        let first = branch.iter().find(|record| record.kind() == Kind::Assistant).unwrap().id().into_owned();
        record(dialect, &path, Some(&first), "Something else?");
        let file = folder.path().join("as_new.jsonl");
        let target = scrollback::transfer::convert::Target::File(&file);
        let how = scrollback::transfer::convert::Conversion { to: named("fluux"), target, head: None, with: None };
        let as_new = open(named(dialect), &path).convert(&how, &host()).unwrap();
        assert!(
            as_new.remarks.len() == 1 && as_new.remarks[0].contains("converted as a new session"),
            "{way:?}: {:?}",
            as_new.remarks
        );
        assert_eq!(open(named("fluux"), &file).with().map(str::to_owned), with, "{way:?}");
    }
}
