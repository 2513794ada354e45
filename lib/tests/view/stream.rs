//! Sessions as a stream: however the bytes are cut, the messages told are those of the whole, and nothing is told twice.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::support::{cases, corpus, native, reading};
use proptest::prelude::*;
use scrollback::dialect::{self, Dialect, Format};
use scrollback::model::{Home, Message, Part, Sdk, ToolState};
use scrollback::session::{Session, Source, detect};
use scrollback::view::Conversation;
use scrollback::view::stream::{Begin, Change, Chunks, Follower, Growing, Update};
use serde_json::Value;

/// What somebody who applies updates has.
#[derive(Default)]
struct Page(Vec<Message>);

impl Page {
    fn apply(&mut self, updates: Vec<Update>) {
        for update in updates {
            match update {
                Update::Removed(ids) => {
                    let before = self.0.len();
                    self.0.retain(|message| !ids.contains(&message.id));
                    assert_eq!(before - self.0.len(), ids.len(), "only what is there can go");
                }
                Update::Message(message) => match self.0.iter_mut().find(|known| known.id == message.id) {
                    Some(known) => {
                        assert_ne!(*known, *message, "nothing new was told");
                        *known = *message;
                    }
                    None => self.0.push(*message),
                },
            }
        }
    }
}

fn batch(session: &Session) -> Vec<Message> {
    let Some(head) = session.head() else { return Vec::new() };
    let branch = session.branch(head);
    let conversation = Conversation::new(&branch);
    conversation.messages(0..conversation.len()).map(Result::unwrap).collect()
}

/// Every log of lines in the corpus, of every dialect that writes lines.
fn logs() -> Vec<(&'static dyn Dialect, PathBuf)> {
    let mut logs = Vec::new();
    for dialect in dialect::all().iter().copied() {
        let layouts = dialect.layouts_in(Path::new(""));
        if !layouts.is_empty() && !layouts.iter().any(|layout| matches!(layout.format, Format::Lines)) {
            continue;
        }
        let mut open = vec![corpus().join(dialect.name())];
        while let Some(folder) = open.pop() {
            for file in fs::read_dir(folder).into_iter().flatten().map(|file| file.unwrap().path()) {
                if file.is_dir() {
                    open.push(file);
                } else if file.extension().is_some_and(|ending| ending == "jsonl") {
                    logs.push((dialect, file));
                }
            }
        }
    }
    logs.sort_by(|a, b| a.1.cmp(&b.1));
    assert!(logs.len() > 200, "the corpus is gone");
    logs
}

/// Places where a reader is most likely to go wrong: around each LF, and inside each character of several bytes.
fn awkward(bytes: &[u8]) -> Vec<usize> {
    let around = |at: usize| if bytes[at] == b'\n' { vec![at, at + 1] } else { vec![at] };
    let awkward = |at: &usize| bytes[*at] == b'\n' || bytes[*at] & 0xc0 == 0x80;
    (0..bytes.len()).filter(awkward).flat_map(around).collect()
}

fn streams_as_it_is_read(dialect: &'static dyn Dialect, bytes: &[u8], mut cuts: Vec<usize>) -> bool {
    if !is_lines(dialect, bytes) {
        return false;
    }
    cuts.iter_mut().for_each(|cut| *cut %= bytes.len() + 1);
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    let mut follower = Follower::of_bytes(dialect, Begin::Everything, &reading());
    let mut page = Page::default();
    for step in cuts.windows(2) {
        follower.push(&bytes[step[0]..step[1]], &reading());
        page.apply(follower.updates(&reading()).unwrap());
        let whole = Session::from_bytes(dialect, bytes[..step[1]].to_vec(), &reading());
        assert_eq!(page.0, batch(&whole), "cut at {cuts:?}, now at {}", step[1]);
    }
    assert!(follower.updates(&reading()).unwrap().is_empty(), "nothing came, nothing is told");
    true
}

/// A dialect without a layout of its own may be a document, which nobody appends to.
fn is_lines(dialect: &'static dyn Dialect, bytes: &[u8]) -> bool {
    let grown = {
        let mut session = Session::from_bytes(dialect, Vec::new(), &reading());
        session.push(bytes, &reading());
        session.records().len()
    };
    grown == Session::from_bytes(dialect, bytes.to_vec(), &reading()).records().len()
}

#[test]
fn every_log_of_the_corpus_streams_as_it_is_read() {
    let mut streamed = 0;
    for (dialect, log) in logs() {
        let bytes = fs::read(&log).unwrap();
        if bytes.len() < 64 * 1024 {
            let cuts = awkward(&bytes);
            let step = cuts.len() / 30 + 1;
            streamed += usize::from(streams_as_it_is_read(dialect, &bytes, cuts.into_iter().step_by(step).collect()));
        }
    }
    assert!(streamed > 200, "only {streamed} logs were streamed");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(200, 20_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_log_cut_anywhere_streams_as_it_is_read(
        (name, log) in prop::sample::select(logs().into_iter().map(|(dialect, log)| (dialect.name(), log)).collect::<Vec<_>>()),
        cuts in prop::collection::vec(any::<usize>(), 1..6),
        lines in any::<u64>(),
    ) {
        let bytes = fs::read(log).unwrap();
        prop_assume!(bytes.len() < 64 * 1024);
        // Half of the logs are damaged: lines are left out, and garbage comes between.
        let keep = |at: usize| lines & 1 == 0 || (lines >> (at % 63 + 1)) & 3 != 0;
        let mut damaged = Vec::new();
        for (at, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            if keep(at) {
                damaged.extend_from_slice(line);
            } else {
                damaged.extend_from_slice(b"\x00\xff}{\"type\":\n");
            }
        }
        streams_as_it_is_read(dialect::named(name).unwrap(), &damaged, cuts);
    }
}

fn user(id: &str, parent: &str, text: &str) -> String {
    format!("{{\"type\":\"user\",\"uuid\":\"{id}\",\"parentUuid\":{parent},\"message\":{{\"content\":\"{text}\"}}}}\n")
}

fn called(id: &str, parent: &str, call: &str) -> String {
    let call = format!(r#"[{{"id":"{call}","name":"Bash","arguments":{{"command":"ls"}}}}]"#);
    let message = format!(r#""message":{{"content":"Let me look.","toolCalls":{call}}}"#);
    format!("{{\"type\":\"assistant\",\"uuid\":\"{id}\",\"parentUuid\":\"{parent}\",{message}}}\n")
}

fn result(id: &str, parent: &str, call: &str, content: &str) -> String {
    let results = format!(r#""toolResults":[{{"toolCallId":"{call}","content":"{content}"}}]"#);
    format!("{{\"type\":\"tool_result\",\"uuid\":\"{id}\",\"parentUuid\":\"{parent}\",{results}}}\n")
}

fn said(id: &str, parent: &str, text: &str) -> String {
    let message = format!(r#""message":{{"content":"{text}"}}"#);
    format!("{{\"type\":\"assistant\",\"uuid\":\"{id}\",\"parentUuid\":\"{parent}\",{message}}}\n")
}

/// What each push tells, in few words.
fn told(pushes: &[&str]) -> String {
    let mut follower = Follower::of_bytes(native(), Begin::Everything, &reading());
    let mut lines = Vec::new();
    for push in pushes {
        follower.push(push.as_bytes(), &reading());
        let updates = follower.updates(&reading()).unwrap();
        let words = updates.iter().map(|update| match update {
            Update::Removed(ids) => format!("removed {}", ids.join(" ")),
            Update::Message(message) => {
                format!("{} {}", message.id, message.parts.iter().map(word).collect::<Vec<_>>().join("+"))
            }
        });
        lines.push(words.collect::<Vec<_>>().join(", "));
    }
    lines.join("\n")
}

fn word(part: &Part) -> String {
    match part {
        Part::Text(text) => text.text.clone(),
        Part::Tool(call) if call.is_open() => format!("{}?", call.call_id),
        Part::Tool(call) => format!("{}!", call.call_id),
        Part::StepStart => "|".to_owned(),
        Part::Data(data) => format!("<{} to {}>", data.kind, data.data["to"]),
        _ => "…".to_owned(),
    }
}

#[test]
fn a_result_updates_its_call_and_a_rewind_takes_back() {
    let (q, a) = (user("q", "null", "Hi"), called("a", "q", "t1"));
    let (head, tail) = a.split_at(a.len() / 2);
    let pushes = [
        &q,
        head,
        tail,
        &result("r", "a", "t1", "ok"),
        &said("b", "r", "Done."),
        &user("n", "\"b\"", "More"),
        "\x00 garbage \u{fffd}}{\n",
        // Somebody goes on from the question.
        &said("c", "q", "Another."),
    ];
    insta::assert_snapshot!(told(&pushes), @"
    q Hi

    a |+Let me look.+t1?
    a |+Let me look.+t1!
    a |+Let me look.+t1!+|+Done.
    n More

    removed a n, c |+Another.
    ");
}

/// What a message says can change though its own records do not.
#[test]
fn what_a_message_learns_from_its_neighbours_is_told() {
    // A result alone, until its call comes.
    let pushes =
        [&user("q", "null", "Hi"), &result("r", "q", "t1", "ok"), &user("u", "\"r\"", "And?"), &called("a", "u", "t1")];
    insta::assert_snapshot!(told(&pushes.map(String::as_str)), @"
    q Hi
    r t1!
    u And?
    r , a |+Let me look.+t1?
    ");
    // A rewind to a record that comes late.
    let rewind = "{\"type\":\"rewind\",\"uuid\":\"w\",\"parentUuid\":\"z\"}\n".to_owned() + &user("n", "\"w\"", "Anew");
    let late = user("z", "null", "Late") + &user("m", "\"n\"", "On");
    insta::assert_snapshot!(told(&[&rewind, &late]), @r#"
    n <rewind to null>+Anew
    removed n, z Late, n <rewind to "z">+Anew, m On
    "#);
}

/// The chunks of a whole stream of pushes.
fn chunks_of(pushes: &[&str]) -> Vec<Value> {
    let mut follower = Follower::of_bytes(native(), Begin::Everything, &reading());
    let mut chunks = Chunks::new(Sdk::V7);
    let mut said = Vec::new();
    for push in pushes {
        follower.push(push.as_bytes(), &reading());
        said.extend(follower.updates(&reading()).unwrap().into_iter().flat_map(|update| chunks.of(update)));
    }
    said.extend(chunks.finish());
    said
}

#[test]
fn a_turn_is_told_in_the_chunks_of_the_sdk() {
    let pushes = [
        &user("q", "null", "Hi"),
        &called("a", "q", "t1"),
        &result("r", "a", "t1", "ok"),
        &said("b", "r", "Done."),
        &user("n", "\"b\"", "More"),
    ];
    let kinds: Vec<String> = chunks_of(&pushes.map(String::as_str))
        .iter()
        .map(|chunk| chunk["type"].as_str().unwrap().to_owned())
        .collect();
    insta::assert_snapshot!(kinds.join("\n"), @"
    data-message
    start
    start-step
    text-start
    text-delta
    text-end
    tool-input-start
    tool-input-available
    message-metadata
    tool-output-available
    message-metadata
    finish-step
    start-step
    text-start
    text-delta
    text-end
    finish-step
    finish
    data-message
    ");
}

#[test]
fn telling_can_begin_with_the_last_messages() {
    let log = [user("q", "null", "1"), said("a", "q", "2"), user("r", "\"a\"", "3"), said("b", "r", "4")].concat();
    let ids = |begin, more: &str| {
        let session = Session::from_bytes(native(), log.clone().into_bytes(), &reading());
        let mut follower = Follower::new(session, begin);
        let mut told = Vec::new();
        for push in ["", more] {
            follower.push(push.as_bytes(), &reading());
            let updates = follower.updates(&reading()).unwrap();
            told.push(
                updates
                    .into_iter()
                    .map(|update| match update {
                        Update::Message(message) => message.id,
                        Update::Removed(ids) => format!("-{}", ids.join("-")),
                    })
                    .collect::<Vec<_>>()
                    .join(" "),
            );
        }
        told.join(", ")
    };
    let more = user("s", "\"b\"", "5");
    assert_eq!(ids(Begin::Everything, &more), "q a r b, s");
    assert_eq!(ids(Begin::Last(2), &more), "r b, s");
    assert_eq!(ids(Begin::Last(0), &more), ", s");
    assert_eq!(ids(Begin::At(log.len() as u64 - 5), &more), "r b, s");
    assert_eq!(ids(Begin::At(log.len() as u64), &more), ", s");
    // Going back behind what was told.
    assert_eq!(ids(Begin::Last(1), &said("x", "q", "anew")), "b, -b x");
    assert_eq!(ids(Begin::Last(0), &said("x", "q", "anew")), ", x");
}

#[test]
fn a_file_is_followed_through_all_that_can_happen_to_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("messages.jsonl");
    let mut growing = Growing::new(Source::file(native(), &path), Begin::Last(10));
    let mut page = Page::default();
    let mut look = |page: &mut Page| {
        let look = growing.look(&reading()).unwrap();
        page.apply(look.updates);
        look.change
    };
    let same = |page: &Page| {
        let whole = Session::open(&Source::file(native(), &path), &reading()).unwrap();
        assert_eq!(page.0, batch(&whole));
    };
    let append = |text: &str| {
        let mut file = fs::OpenOptions::new().append(true).create(true).open(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    assert_eq!(look(&mut page), Some(Change::Gone));
    assert_eq!(look(&mut page), None, "it is told once");
    append(&user("q", "null", "Hi"));
    assert_eq!(look(&mut page), Some(Change::Appeared));
    same(&page);
    let line = said("a", "q", "Grüße");
    let (head, tail) = line.as_bytes().split_at(line.find('ü').unwrap() + 1);
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(head).unwrap();
    assert_eq!((look(&mut page), page.0.len()), (None, 1), "half a line is nothing");
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(tail).unwrap();
    assert_eq!((look(&mut page), page.0.len()), (None, 2));
    same(&page);
    // Cut back.
    fs::write(&path, user("q", "null", "Hi")).unwrap();
    assert_eq!((look(&mut page), page.0.len()), (Some(Change::Rewritten), 1));
    same(&page);
    // Cut, and longer than before at once.
    fs::write(&path, [user("p", "null", "Other"), said("b", "p", "Longer than what was there before")].concat())
        .unwrap();
    assert_eq!(look(&mut page), Some(Change::Rewritten));
    same(&page);
    // Another file under its name.
    let beside = dir.path().join("beside");
    fs::write(&beside, [user("p", "null", "Other"), said("c", "p", "New")].concat()).unwrap();
    fs::rename(&beside, &path).unwrap();
    assert_eq!(look(&mut page), Some(Change::Replaced));
    same(&page);
    append(&user("r", "\"c\"", "On"));
    assert_eq!(look(&mut page), None);
    same(&page);
    append(&user("s", "\"r\"", &"and more ".repeat(100)));
    assert_eq!(look(&mut page), None);
    // Something else far from the end, as long as what was there.
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("Other", "Outer", 1)).unwrap();
    assert_eq!(look(&mut page), Some(Change::Rewritten));
    same(&page);
    // It is written, and holds what it held.
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(1)).unwrap();
    assert_eq!(look(&mut page), None);
    same(&page);
    fs::remove_file(&path).unwrap();
    assert_eq!(look(&mut page), Some(Change::Gone));
    assert_eq!(page.0.len(), 4, "what was told stays told");
    append(&user("z", "null", "Back"));
    assert_eq!(look(&mut page), Some(Change::Appeared));
    same(&page);
}

#[test]
fn whose_it_is_shows_while_it_is_piped_in() {
    for (_, path) in logs() {
        let bytes = fs::read(&path).unwrap();
        let whole = Session::from_bytes(detect::of_bytes(&bytes), bytes.clone(), &reading());
        let mut follower = Follower::guessing(Begin::Everything, &reading());
        let mut page = Page::default();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            follower.push(piece, &reading());
            page.apply(follower.updates(&reading()).unwrap());
        }
        assert_eq!(follower.session(&reading()).dialect().name(), whole.dialect().name(), "{}", path.display());
        assert_eq!(page.0, batch(&whole), "{}", path.display());
    }
}

#[test]
fn a_file_becomes_whose_it_is() {
    let home = Home { dir: "/nowhere".into(), cwd: "/".into(), vars: Default::default() };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.jsonl");
    fs::write(&path, "").unwrap();
    let mut growing = Growing::guessing(Source::file(native(), &path), Begin::Last(1000), home.clone());
    let mut page = Page::default();
    let mut look_and_compare = || {
        let look = growing.look(&reading()).unwrap();
        page.apply(look.updates);
        let dialect = detect::of_file(&path, &home).unwrap();
        assert_eq!(page.0, batch(&Session::open(&Source::file(dialect, &path), &reading()).unwrap()));
        (look.change, dialect.name())
    };
    assert_eq!(look_and_compare(), (None, "native"));
    // One line of Claude Code's could be another's.
    let of = |dialect: &str, case: &str| fs::read_to_string(corpus().join(dialect).join(case)).unwrap();
    let claude = of("claude-code", "blocks-of-one-answer/session.jsonl");
    for at in [20, claude.find('\n').unwrap() + 1, claude.len()] {
        fs::OpenOptions::new().write(true).open(&path).unwrap().write_all(&claude.as_bytes()[..at]).unwrap();
        assert_eq!(look_and_compare().0, None);
    }
    assert_eq!(look_and_compare(), (None, "claude-code"));
    let beside = dir.path().join("beside");
    fs::write(&beside, of("codex", "compaction/rollout.jsonl")).unwrap();
    fs::rename(&beside, &path).unwrap();
    assert_eq!(look_and_compare(), (Some(Change::Replaced), "codex"));
    fs::write(&path, "").unwrap();
    assert_eq!(look_and_compare(), (Some(Change::Rewritten), "native"));
    fs::write(&path, of("ai-sdk", "array/messages.json")).unwrap();
    assert_eq!(look_and_compare(), (None, "ai-sdk"));
}

/// A session longer than the first window of its end.
fn long_log() -> String {
    let mut lines = user("0", "null", "Go");
    lines += &called("1", "0", "early");
    for at in 2..2000 {
        lines += &match at % 2 {
            0 => user(&at.to_string(), &format!("\"{}\"", at - 1), &"x".repeat(500)),
            _ => said(&at.to_string(), &(at - 1).to_string(), &"y".repeat(500)),
        };
    }
    lines
}

fn append(path: &Path, text: &str) {
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn a_result_of_a_call_before_the_window_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("messages.jsonl");
    fs::write(&path, long_log()).unwrap();
    let mut growing = Growing::new(Source::file(native(), &path), Begin::Last(2));
    growing.look(&reading()).unwrap();
    append(&path, &result("2000", "1999", "early", "at last"));
    let updates = growing.look(&reading()).unwrap().updates;
    assert_eq!(updates.len(), 0, "its message is not among those told");
    append(&path, &said("2001", "2000", "So it was."));
    let updates = growing.look(&reading()).unwrap().updates;
    let [Update::Message(message)] = &updates[..] else { panic!("{} updates", updates.len()) };
    assert_eq!(message.parts.last().map(word).as_deref(), Some("So it was."));
}

#[test]
fn what_did_not_change_is_not_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("messages.jsonl");
    let log =
        [user("q", "null", "Hi"), said("a", "q", &"y".repeat(2000)), user("r", "\"a\"", &"x".repeat(2000))].concat();
    fs::write(&path, &log).unwrap();
    let mut growing = Growing::new(Source::file(native(), &path), Begin::Everything);
    assert_eq!(growing.look(&reading()).unwrap().updates.len(), 3);
    // The bytes of the first message are others now: who read them would notice.
    let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all(&log.replace("Hi", "Ho").as_bytes()[..100]).unwrap();
    append(&path, &said("b", "r", "Done."));
    let look = growing.look(&reading()).unwrap();
    assert_eq!((look.change, look.updates.len()), (None, 1));
}

#[test]
fn of_a_large_file_only_the_end_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("messages.jsonl");
    fs::write(&path, long_log()).unwrap();
    let mut growing = Growing::new(Source::file(native(), &path), Begin::Last(2));
    let first = growing.look(&reading()).unwrap().updates;
    assert_eq!(first.len(), 2);
    assert!(!growing.session(&reading()).unwrap().whole());
    let line = called("2000", "1999", "t1");
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(line.as_bytes()).unwrap();
    let next = growing.look(&reading()).unwrap().updates;
    let [Update::Message(message)] = &next[..] else { panic!("{} updates", next.len()) };
    assert!(
        message
            .parts
            .iter()
            .any(|part| matches!(part, Part::Tool(call) if matches!(call.state, ToolState::InputAvailable { .. })))
    );
}
