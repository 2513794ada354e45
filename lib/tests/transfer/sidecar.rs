//! The file beside a converted session: the way back, and when it is not believed.

use std::fs;
use std::path::Path;

use scrollback::model::{Content, Error, Kind, Outcome, Part, TextPart, TitleSource, ToolState};
use scrollback::transfer::convert::Converted;
use scrollback::write::Store;

use super::support::{corpus, said};
use super::{convert, folder, host, named, open, outline};

pub(super) fn claude_log() -> std::path::PathBuf {
    corpus().join("claude-code/real-full/session.jsonl")
}

pub(super) fn there(folder: &Path, to: &str) -> Converted {
    convert(&open(named("claude-code"), &claude_log()), named(to), &folder.join(format!("{to}.jsonl"))).unwrap()
}

/// Converts a session, continues it there, converts it back, and does all that once more.
fn there_on_and_back(from: &str, log: &Path, to: &str) {
    let (folder, case) = (folder(), format!("{} → {to}", log.display()));
    let mut source = log.to_path_buf();
    for round in ["And then?", "And after that?"] {
        let at = |name: &str| folder.path().join(format!("{name}-{}.jsonl", round.len()));
        let before = open(named(from), &source);
        let there = convert(&before, named(to), &at("there")).unwrap();
        let store = Store::open(named(to), folder.path(), host()).unwrap();
        let source_there = scrollback::session::Source::file(named(to), &there.path);
        let mut recorder = store.resume_source(&source_there, None).unwrap();
        recorder.user(round).unwrap();
        recorder.assistant("Then it rained.").unwrap();
        recorder.close().unwrap();
        let back = convert(&open(named(to), &there.path), named(from), &at("back")).unwrap();
        let (was, is) = (fs::read(&source).unwrap(), fs::read(&back.path).unwrap());
        let is_document = was.starts_with(b"[");
        assert!(is_document || is.starts_with(was.trim_ascii_end()), "{case}: the original bytes come first");
        let after = open(named(from), &back.path);
        let mut expected = outline(&before);
        expected.extend([format!("user: {round}"), "assistant: Then it rained.".to_owned()]);
        assert_eq!(outline(&after), expected, "{case}");
        assert_eq!(after.heads().len(), before.heads().len(), "{case}: it continues from the head");
        assert!(after.has_errors() == before.has_errors(), "{case}: {:?}", after.issues());
        source = back.path;
    }
}

#[test]
fn a_session_that_went_on_comes_back_with_what_is_new() {
    let cases = [
        ("claude-code", "real-full/session.jsonl"),
        // The model's answers to two prompts have the same name.
        ("claude-code", "real-file-history/session.jsonl"),
        // It went back, and on from elsewhere.
        ("native", "every-kind/messages.jsonl"),
        ("codex", "plain/rollout.jsonl"),
        ("qwen-code", "real-full/session.jsonl"),
        // One document.
        ("ai-sdk", "seed-types/messages.json"),
    ];
    for (from, log) in cases {
        for to in super::ALL.into_iter().filter(|to| *to != from) {
            there_on_and_back(from, &corpus().join(from).join(log), to);
        }
    }
}

#[test]
fn a_line_that_went_on_comes_back_to_a_line() {
    let folder = folder();
    let log = corpus().join("fluux/room/history.jsonl");
    let source = open(named("fluux"), &log);
    let there = convert(&source, named("native"), &folder.path().join("there.jsonl")).unwrap();
    let store = Store::open(named("native"), folder.path(), host()).unwrap();
    let there_source = scrollback::session::Source::file(named("native"), &there.path);
    let mut recorder = store.resume_source(&there_source, None).unwrap();
    recorder.user("And then?").unwrap();
    recorder.close().unwrap();
    let back = convert(&open(named("native"), &there.path), named("fluux"), &folder.path().join("back.jsonl")).unwrap();
    let (was, is) = (fs::read_to_string(&log).unwrap(), fs::read_to_string(&back.path).unwrap());
    assert!(is.starts_with(was.trim_end_matches('\n')));
    assert_eq!(is.lines().count(), was.lines().count() + 1);
    assert!(is.lines().last().unwrap().contains("And then?"));
}

/// A session of each dialect with messages.
pub(super) fn logs() -> Vec<(&'static str, std::path::PathBuf)> {
    [
        ("native", "native/branches/messages.jsonl"),
        ("claude-code", "claude-code/real-full/session.jsonl"),
        ("codex", "codex/plain/rollout.jsonl"),
        ("qwen-code", "qwen-code/real-full/session.jsonl"),
        ("fluux", "fluux/documented-messages/history.jsonl"),
        ("sage-el", "sage-el/tool-calls/conversation.jsonl"),
    ]
    .map(|(dialect, log)| (dialect, corpus().join(log)))
    .to_vec()
}

/// Goes on with a converted session at its head, or at a record.
pub(super) fn record(to: &str, there: &Path, at: Option<&str>, prompt: &str) {
    let store = Store::open(named(to), there.parent().unwrap(), host()).unwrap();
    let source = scrollback::session::Source::file(named(to), there);
    let mut recorder = store.resume_source(&source, at).unwrap();
    recorder.user(prompt).unwrap();
    recorder.assistant("Then it rained.").unwrap();
    recorder.close().unwrap();
}

#[test]
fn a_title_that_was_given_meanwhile_hangs_on_what_was_said() {
    for (from, log) in logs() {
        for to in super::ALL.into_iter().filter(|to| *to != from) {
            let folder = folder();
            let before = open(named(from), &log);
            let there = convert(&before, named(to), &folder.path().join("there.jsonl")).unwrap();
            let store = Store::open(named(to), folder.path(), host()).unwrap();
            let source = scrollback::session::Source::file(named(to), &there.path);
            let title = scrollback::model::Title { text: "Mine".to_owned(), source: TitleSource::Manual };
            if store.rename(&source, title).is_err() {
                continue;
            }
            let back = convert(&open(named(to), &there.path), named(from), &folder.path().join("back.jsonl")).unwrap();
            let after = open(named(from), &back.path);
            assert_eq!(outline(&after), outline(&before), "{from} → {to}");
            assert_eq!(after.heads().len(), before.heads().len(), "{from} → {to}");
            let is_told = back.losses.iter().any(|row| ["title", "header"].contains(&row.what.name()));
            let title = after.title().map(|title| title.text.as_str());
            assert!(title == Some("Mine") || is_told, "{from} → {to}: {title:?} {:?}", back.losses);
        }
    }
}

#[test]
fn a_call_that_was_made_meanwhile_keeps_its_result() {
    for (from, log) in logs() {
        for to in super::ALL.into_iter().filter(|to| *to != from && *to != "fluux" && from != "fluux") {
            let folder = folder();
            let before = open(named(from), &log);
            let there = convert(&before, named(to), &folder.path().join("there.jsonl")).unwrap();
            let store = Store::open(named(to), folder.path(), host()).unwrap();
            let source = scrollback::session::Source::file(named(to), &there.path);
            let mut recorder = store.resume_source(&source, None).unwrap();
            recorder.user("Look.").unwrap();
            let call = said::call("read", "p1", ToolState::called(serde_json::json!({})));
            recorder
                .assistant(Content {
                    model: Some("m".to_owned()),
                    ..said::said([Part::Text(TextPart { text: "I look.".to_owned(), ..TextPart::default() }), call])
                })
                .unwrap();
            recorder.tool_results(said::result("p1", "ebb", Outcome::Done)).unwrap();
            recorder.close().unwrap();
            let back = convert(&open(named(to), &there.path), named(from), &folder.path().join("back.jsonl")).unwrap();
            let mut expected = outline(&before);
            expected.extend(["user: Look.", "assistant: I look.", "call read: output-available"].map(str::to_owned));
            assert_eq!(outline(&open(named(from), &back.path)), expected, "{from} → {to}");
        }
    }
}

#[test]
fn a_torn_line_of_the_original_is_closed_before_anything_follows_it() {
    for (from, log) in logs() {
        for to in super::ALL.into_iter().filter(|to| *to != from) {
            let (folder, case) = (folder(), format!("{from} → {to}"));
            let whole = fs::read(&log).unwrap();
            let torn = folder.path().join("torn.jsonl");
            fs::write(&torn, &whole[..whole.len() - 9]).unwrap();
            let before = open(named(from), &torn);
            let there = convert(&before, named(to), &folder.path().join("there.jsonl")).unwrap();
            record(to, &there.path, None, "And then?");
            let back = convert(&open(named(to), &there.path), named(from), &folder.path().join("back.jsonl")).unwrap();
            let is = fs::read(&back.path).unwrap();
            assert_eq!(is[whole.len() - 9], b'\n', "{case}");
            let after = open(named(from), &back.path);
            let mut expected = outline(&before);
            expected.extend(["user: And then?".to_owned(), "assistant: Then it rained.".to_owned()]);
            assert_eq!(outline(&after), expected, "{case}");
        }
    }
}

#[test]
fn a_branch_that_was_begun_meanwhile_is_the_one_that_comes_back() {
    for (from, log) in logs() {
        for to in ["native", "claude-code", "qwen-code"].into_iter().filter(|to| *to != from) {
            let (folder, case) = (folder(), format!("{from} → {to}"));
            let before = open(named(from), &log);
            let there = convert(&before, named(to), &folder.path().join("there.jsonl")).unwrap();
            let session = open(named(to), &there.path);
            let branch = session.branch(session.head().unwrap()).records;
            let first = branch.iter().find(|record| record.kind() == Kind::User).unwrap().id().into_owned();
            record(to, &there.path, Some(&first), "Something else?");
            let there = open(named(to), &there.path);
            let back = convert(&there, named(from), &folder.path().join("back.jsonl")).unwrap();
            let after = open(named(from), &back.path);
            let texts = |session: &scrollback::session::Session| {
                let mut texts = outline(session);
                texts.retain(|line| !line.starts_with("call "));
                texts
            };
            assert_eq!(texts(&after), texts(&there), "{case}");
            let has_branches = ["native", "claude-code", "qwen-code"].contains(&from);
            let is_original = fs::read(&back.path).unwrap().starts_with(&fs::read(&log).unwrap());
            let is_told = back.losses.iter().any(|row| row.what.name() == "other branch") && back.remarks.len() == 1;
            assert_eq!((is_original, is_told), (has_branches, !has_branches), "{case}: {:?}", back.remarks);
        }
    }
}

/// The lines of the original are not changed: what was added to one of its messages is reported.
#[test]
fn what_was_added_to_an_old_message_is_reported() {
    let folder = folder();
    let there = there(folder.path(), "native");
    let store = Store::open(named("native"), folder.path(), host()).unwrap();
    let mut recorder =
        store.resume_source(&scrollback::session::Source::file(named("native"), &there.path), None).unwrap();
    recorder.todos(vec![said::todo("Look")]).unwrap();
    recorder.close().unwrap();
    let back = convert(&open(named("native"), &there.path), named("claude-code"), &folder.path().join("back.jsonl"));
    assert_eq!(back.unwrap().losses.len(), 1);
}

/// Where a format names its head, nothing but that may be added.
#[test]
fn a_step_back_that_was_taken_meanwhile_is_taken_in_the_original() {
    for (from, log) in logs().into_iter().filter(|(from, _)| ["native", "claude-code", "qwen-code"].contains(from)) {
        for to in ["native", "claude-code", "qwen-code"].into_iter().filter(|to| *to != from) {
            let (folder, case) = (folder(), format!("{from} → {to}"));
            let there = convert(&open(named(from), &log), named(to), &folder.path().join("there.jsonl")).unwrap();
            let session = open(named(to), &there.path);
            let branch = session.branch(session.head().unwrap()).records;
            let first = branch.iter().find(|record| record.kind() == Kind::User).unwrap().id().into_owned();
            let store = Store::open(named(to), folder.path(), host()).unwrap();
            store.rewind(&scrollback::session::Source::file(named(to), &there.path), &first, None).unwrap();
            let there = open(named(to), &there.path);
            assert_ne!(outline(&there), outline(&session), "{case}");
            let back = convert(&there, named(from), &folder.path().join("back.jsonl")).unwrap();
            assert_eq!(outline(&open(named(from), &back.path)), outline(&there), "{case}");
        }
    }
}

/// The copy of the original beside a converted session.
fn original(there: &Converted) -> std::path::PathBuf {
    there.sidecar.as_ref().unwrap().with_extension("original")
}

#[test]
fn a_sidecar_that_does_not_fit_is_ignored_and_that_is_told() {
    type Harm = fn(&Converted);
    let harms: [(&str, Harm); 10] = [
        ("the file was edited", |there| {
            let text = fs::read_to_string(&there.path).unwrap();
            fs::write(&there.path, text.replacen("FULL", "NULL", 1)).unwrap();
        }),
        ("the file was cut", |there| {
            let text = fs::read_to_string(&there.path).unwrap();
            fs::write(&there.path, &text[..text.len() / 2]).unwrap();
        }),
        ("no JSON", |there| fs::write(there.sidecar.as_ref().unwrap(), "{\"version\":1,").unwrap()),
        ("deep JSON", |there| fs::write(there.sidecar.as_ref().unwrap(), "[".repeat(100_000)).unwrap()),
        ("another version", |there| {
            let text = fs::read_to_string(there.sidecar.as_ref().unwrap()).unwrap();
            fs::write(there.sidecar.as_ref().unwrap(), text.replacen("\"version\": 2", "\"version\": 3", 1)).unwrap();
        }),
        ("a length beyond everything", |there| {
            let text = fs::read_to_string(there.sidecar.as_ref().unwrap()).unwrap();
            let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
            value["convertedBytes"] = u64::MAX.into();
            fs::write(there.sidecar.as_ref().unwrap(), value.to_string()).unwrap();
        }),
        ("an original that was cut", |there| {
            let bytes = fs::read(original(there)).unwrap();
            fs::write(original(there), &bytes[..bytes.len() - 9]).unwrap();
        }),
        ("an original that was changed", |there| {
            let text = fs::read_to_string(original(there)).unwrap();
            fs::write(original(there), text.replacen("FULL", "NULL", 1)).unwrap();
        }),
        ("no copy of the original", |there| fs::remove_file(original(there)).unwrap()),
        ("a huge one", |there| {
            let file = fs::File::options().write(true).open(there.sidecar.as_ref().unwrap()).unwrap();
            file.set_len(3 << 30).unwrap();
        }),
    ];
    for (what, harm) in harms {
        let folder = folder();
        let there = there(folder.path(), "codex");
        harm(&there);
        let session = open(named("codex"), &there.path);
        let back = convert(&session, named("claude-code"), &folder.path().join("back.jsonl")).unwrap();
        assert_eq!(back.remarks.len(), 1, "{what}");
        assert!(back.remarks[0].contains("is ignored"), "{what}: {}", back.remarks[0]);
        assert_ne!(fs::read(&back.path).unwrap(), fs::read(claude_log()).unwrap(), "{what}");
    }
}

#[cfg(unix)]
#[test]
fn a_sidecar_that_is_a_link_or_a_pipe_is_not_followed() {
    let folder = folder();
    let there = there(folder.path(), "codex");
    let sidecar = there.sidecar.unwrap();
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(&sidecar, &elsewhere).unwrap();
    let link = || std::os::unix::fs::symlink(&elsewhere, &sidecar).unwrap();
    let pipe = || assert!(std::process::Command::new("mkfifo").arg(&sidecar).status().unwrap().success());
    for (what, put) in [("link", &link as &dyn Fn()), ("pipe", &pipe)] {
        put();
        let back = convert(&open(named("codex"), &there.path), named("claude-code"), &folder.path().join(what));
        assert!(back.unwrap().remarks[0].contains("not a regular file"), "{what}");
        fs::remove_file(&sidecar).unwrap();
    }
}

#[test]
fn nothing_is_overwritten_and_nothing_stays_of_a_refusal() {
    let folder = folder();
    let source = open(named("claude-code"), &claude_log());
    for taken in ["new.jsonl", "new.jsonl.scrollback.json", "new.jsonl.scrollback.original"] {
        let taken = folder.path().join(taken);
        fs::write(&taken, "mine").unwrap();
        let refused = convert(&source, named("codex"), &folder.path().join("new.jsonl"));
        assert!(matches!(refused, Err(Error::Exists(path)) if path == taken));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(&taken).unwrap(), "mine");
        fs::remove_file(taken).unwrap();
    }
    let long = convert(&source, named("codex"), &folder.path().join("x".repeat(236)));
    assert!(matches!(long, Err(Error::InvalidName { .. })));
    convert(&source, named("codex"), &folder.path().join("y".repeat(235))).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn a_place_that_holds_one_conversation_keeps_the_one_it_has() {
    let folder = folder();
    // Both are of one project, and with one person.
    for to in ["sage-el", "fluux"] {
        let target = scrollback::transfer::convert::Target::Store(folder.path());
        let how = scrollback::transfer::convert::Conversion {
            to: named(to),
            target,
            head: None,
            with: Some("ada@example.org"),
        };
        let first = open(named("claude-code"), &claude_log()).convert(&how, &host()).unwrap();
        let was = fs::read(&first.path).unwrap();
        let other = open(named("claude-code"), &corpus().join("claude-code/real-file-history/session.jsonl"));
        let how = scrollback::transfer::convert::Conversion { head: None, ..how };
        let refused = other.convert(&how, &host());
        assert!(matches!(&refused, Err(Error::Exists(path)) if *path == first.path), "{to}: {refused:?}");
        assert_eq!(fs::read(&first.path).unwrap(), was, "{to}");
    }
}

#[test]
fn the_way_back_into_a_store_needs_no_name_of_a_file() {
    for from in super::ALL {
        let folder = folder();
        let (dialect, log) = super::support::logs_of(from).swap_remove(3);
        let to = named(if from == "native" { "codex" } else { "native" });
        let there = convert(&open(dialect, &log), to, &folder.path().join("there.jsonl"));
        let Ok(there) = there else { panic!("{from}: {}", there.unwrap_err()) };
        let with = None;
        let target = scrollback::transfer::convert::Target::Store(folder.path());
        let how = scrollback::transfer::convert::Conversion { to: dialect, target, head: None, with };
        let back = open(to, &there.path).convert(&how, &host());
        match back {
            Ok(back) => assert_eq!(fs::read(back.path).unwrap(), fs::read(&log).unwrap(), "{from}"),
            // A file outside a store does not name the person.
            Err(Error::CannotCreate { why }) => assert!(from == "fluux", "{from}: {why}"),
            Err(error) => panic!("{from}: {error}"),
        }
    }
}

#[test]
fn a_sidecar_is_no_session() {
    let folder = folder();
    let source = open(named("claude-code"), &claude_log());
    for to in super::ALL.into_iter().filter(|to| *to != "claude-code") {
        let target = scrollback::transfer::convert::Target::Store(folder.path());
        let how = scrollback::transfer::convert::Conversion {
            to: named(to),
            target,
            head: None,
            with: Some("ada@example.org"),
        };
        let converted = source.convert(&how, &host()).unwrap();
        assert!(converted.sidecar.is_some() && converted.remarks.is_empty(), "{:?}", converted.remarks);
        let store = Store::open(named(to), folder.path(), host()).unwrap();
        let listed = store.list(None);
        assert_eq!(listed.rows.len(), 1, "{to}");
        assert_eq!(listed.rows[0].id, converted.session, "{to}");
    }
}
