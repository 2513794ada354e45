//! A file that grows, and the end of a large one, read as the whole file is; and which instant counts as newest (P13).

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;

use crate::support::{cases, describe, logs, logs_of_all, native, now, read, reading};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use scrollback::model::Message;
use scrollback::redact::Redactor;
use scrollback::session::{ReadOptions, RecordRef, Session, Source};
use scrollback::view::listing::{self, Depth};
use scrollback::view::{Conversation, Page};

/// All that a session says.
fn told(session: &Session) -> String {
    let mut told = describe(session);
    for head in session.heads() {
        write!(told, "\n{} {:?}", head.record.id(), head.kind).unwrap();
        let branch = session.branch(head.record);
        let conversation = Conversation::new(&branch);
        for message in conversation.messages(0..conversation.len()) {
            write!(told, "\n{}", serde_json::to_string(&message.unwrap()).unwrap()).unwrap();
        }
    }
    write!(told, "\n{:?} {:?} {:?} {:?}", session.title(), session.usage(), session.updated(), session.line_count())
        .unwrap();
    for issue in session.issues() {
        write!(told, "\n{issue:?}").unwrap();
    }
    told
}

/// Pushes the bytes between each two cuts, and compares with the whole after each.
fn grows_as_it_is_read(bytes: &[u8], mut cuts: Vec<usize>) {
    cuts.iter_mut().for_each(|cut| *cut %= bytes.len() + 1);
    cuts.push(bytes.len());
    cuts.sort_unstable();
    let mut live = read(&bytes[..cuts[0]]);
    for step in cuts.windows(2) {
        live.push(&bytes[step[0]..step[1]], &reading());
        assert_eq!(told(&live), told(&read(&bytes[..step[1]])), "cut at {cuts:?}, now at {}", step[1]);
    }
}

/// Places where a reader is most likely to go wrong: around each LF, and inside each character of several bytes.
fn awkward(bytes: &[u8]) -> Vec<usize> {
    let around = |at: usize| if bytes[at] == b'\n' { vec![at, at + 1] } else { vec![at] };
    let awkward = |at: &usize| bytes[*at] == b'\n' || bytes[*at] & 0xc0 == 0x80;
    (0..bytes.len()).filter(awkward).flat_map(around).collect()
}

#[test]
fn every_log_of_the_corpus_grows_as_it_is_read() {
    for log in logs() {
        let bytes = fs::read(log).unwrap();
        if bytes.len() < 64 * 1024 {
            let cuts = awkward(&bytes);
            let step = cuts.len() / 40 + 1;
            grows_as_it_is_read(&bytes, cuts.into_iter().step_by(step).collect());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(300, 30_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_log_cut_anywhere_grows_as_it_is_read(
        log in prop::sample::select(logs()),
        cuts in prop::collection::vec(any::<usize>(), 1..6),
    ) {
        let bytes = fs::read(log).unwrap();
        prop_assume!(bytes.len() < 64 * 1024);
        grows_as_it_is_read(&bytes, cuts);
    }

    #[test]
    fn any_lines_cut_anywhere_grow_as_they_are_read(
        lines in prop::collection::vec(any_line(), 0..8),
        end in any::<bool>(),
        cuts in prop::collection::vec(any::<usize>(), 1..6),
    ) {
        let mut text = lines.join("\n");
        if end {
            text.push('\n');
        }
        grows_as_it_is_read(text.as_bytes(), cuts);
    }
}

/// Whole lines, plain ones, torn ones and none.
fn any_line() -> impl Strategy<Value = String> {
    let record =
        (0..4_u8, 0..5_u8, prop::sample::select(vec!["user", "assistant", "title", "wave"]), "[a-zäß😀\"\\\\]{0,6}");
    let whole = record.prop_map(|(id, parent, kind, text)| {
        let message = serde_json::json!({"role": "user", "content": text});
        serde_json::json!({"type": kind, "uuid": id.to_string(), "parentUuid": parent.to_string(), "message": message})
            .to_string()
    });
    let plain = "[a-z漢]{0,5}".prop_map(|text| serde_json::json!({"role": "user", "content": text}).to_string());
    let torn = (whole.boxed(), 0..60_usize).prop_map(|(line, keep)| line.chars().take(keep).collect::<String>());
    let torn = torn.boxed();
    let whole = (0..4_u8, "[a-zäß]{0,6}")
        .prop_map(|(id, text)| format!(r#"{{"type":"user","uuid":"{id}","message":{{"content":"{text}"}}}}"#));
    prop_oneof![3 => whole, 2 => plain, 2 => torn, 1 => "\\PC{0,8}", 1 => Just("\r".to_owned())]
}

#[test]
fn every_log_of_the_corpus_continues_from_a_checkpoint_as_it_is_read() {
    let home = tempfile::tempdir().unwrap();
    let mask = std::sync::Arc::new(Redactor::built_in());
    let reading = ReadOptions { mask: Some(&mask), ..reading() };
    let mut continued = 0;
    for (dialect, log) in logs_of_all() {
        let bytes = fs::read(&log).unwrap();
        let path = home.path().join(log.file_name().unwrap());
        let source = Source::file(dialect, &path);
        for cut in awkward(&bytes).into_iter().chain([0, bytes.len() / 2]).step_by(7).take(cases(5, 200) as usize) {
            fs::write(&path, &bytes[..cut]).unwrap();
            let checkpoint = Session::open(&source, &reading).unwrap().checkpoint().unwrap();
            fs::write(&path, &bytes).unwrap();
            let Some(checkpoint) = checkpoint else { continue };
            let Some(resumed) = Session::resume(&source, &checkpoint, &reading).unwrap() else { continue };
            continued += 1;
            let whole = Session::open(&source, &reading).unwrap();
            assert_eq!(told(&resumed.session), told(&whole), "{} from byte {cut} on", log.display());
            let lines_end = bytes[..cut].iter().rposition(|byte| *byte == b'\n').unwrap_or(0) as u64;
            let is_known = |record: RecordRef<'_>| record.place().offset < lines_end;
            let first = resumed.session.records().find(|record| resumed.is_new(*record));
            assert!(
                first.is_none_or(|first| !is_known(first) || first.raw().unwrap().len() > 1),
                "{} at {cut}",
                log.display()
            );
        }
    }
    assert!(continued > 300, "only {continued} checkpoints fit");
}

#[test]
fn a_checkpoint_fits_only_the_file_that_it_was_made_of() {
    let bytes = fs::read(crate::support::corpus().join("native/every-kind/messages.jsonl")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("messages.jsonl");
    let source = Source::file(native(), &path);
    fs::write(&path, &bytes).unwrap();
    let checkpoint = Session::open(&source, &reading()).unwrap().checkpoint().unwrap().unwrap();
    let resume = |checkpoint: &[u8]| Session::resume(&source, checkpoint, &reading()).unwrap().is_some();
    assert!(resume(&checkpoint));
    let changed = |change: fn(&mut Vec<u8>)| {
        let mut bytes = bytes.clone();
        change(&mut bytes);
        fs::write(&path, bytes).unwrap();
        resume(&checkpoint)
    };
    assert!(changed(|bytes| bytes.extend_from_slice(b"{}\n")));
    let beside = dir.path().join("beside");
    fs::write(&beside, &bytes).unwrap();
    fs::rename(&beside, &path).unwrap();
    assert!(resume(&checkpoint), "a copy says the same");
    let mut edited = [&bytes[..], b"{}\n"].concat();
    edited[bytes.len() / 2] ^= 1;
    fs::write(&beside, &edited).unwrap();
    fs::rename(&beside, &path).unwrap();
    assert!(!resume(&checkpoint), "another middle, in a file that grew and was put in its place");
    assert!(!changed(|bytes| bytes.truncate(bytes.len() / 2)), "truncated");
    assert!(!changed(|bytes| bytes[2] ^= 1), "another beginning");
    assert!(!changed(|bytes| *bytes.iter_mut().rev().nth(20).unwrap() ^= 1), "another end");
    assert!(!changed(|bytes| bytes.clear()), "empty");
    fs::write(&path, &bytes).unwrap();
    for at in 0..checkpoint.len() {
        let mut damaged = checkpoint.clone();
        damaged[at] ^= 0x20;
        // Some bits of a compressed text say nothing.
        if let Some(resumed) = Session::resume(&source, &damaged, &reading()).unwrap() {
            assert_eq!(told(&resumed.session), told(&read(&*bytes)), "damaged at {at}");
        }
        assert!(!resume(&checkpoint[..at]), "cut at {at}");
    }
    let mask = std::sync::Arc::new(Redactor::built_in());
    let masked = ReadOptions { mask: Some(&mask), ..reading() };
    assert!(Session::resume(&source, &checkpoint, &masked).unwrap().is_none(), "made without a mask");
}

#[test]
fn a_checkpoint_has_no_secret() {
    let key =
        concat!("sk-ant-api03-", "Zx7Qp2Lm9Vt4Rk8Wd3Yb6Nc1Hf5Js0GaTeUiOpAsDfGhJkLzXcVbNmQwErTyUiOpAsDfGhJkLzXcVb-AAAA");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("messages.jsonl");
    let source = Source::file(native(), &path);
    let mask = std::sync::Arc::new(Redactor::built_in());
    let check = |line: String| {
        fs::write(&path, line).unwrap();
        let checkpoint = |mask| {
            let reading = ReadOptions { mask, ..reading() };
            Session::open(&source, &reading).unwrap().checkpoint().unwrap()
        };
        assert!(checkpoint(None).is_some());
        checkpoint(Some(&mask)).is_some()
    };
    let record = |id: &str, text: &str| format!(r#"{{"type":"user","uuid":"{id}","message":{{"content":"{text}"}}}}"#);
    assert!(check(record("a", &format!("my key is {key}")) + "\n"));
    assert!(!check(record(key, "hello") + "\n"));
    assert!(!check(format!(
        "{}\n{}\n",
        record("a", "hello"),
        r#"{"type":"custom_title","uuid":"n","title":"KEY"}"#.replace("KEY", key)
    )));
}

#[test]
fn a_file_on_disk_grows_as_it_is_read() {
    let bytes = fs::read(crate::support::corpus().join("native/every-kind/messages.jsonl")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("messages.jsonl");
    fs::write(&path, &bytes[..bytes.len() / 3]).unwrap();
    let source = Source::file(native(), &path);
    let mut live = Session::open(&source, &reading()).unwrap();
    for piece in bytes[bytes.len() / 3..].chunks(777) {
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(piece).unwrap();
        live.push(piece, &reading());
        assert_eq!(told(&live), told(&Session::open(&source, &reading()).unwrap()));
    }
}

/// A long session of every awkward sort; `seed` chooses which.
fn long_session(seed: u64, turns: usize) -> String {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut roll = move |sides: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % sides
    };
    let plain = seed.is_multiple_of(5);
    let mut lines = String::new();
    let mut head = String::from("null");
    let mut count = 0;
    let mut late: Vec<(String, u32)> = Vec::new();
    let mut write = |lines: &mut String, kind: &str, parent: &str, rest: &str| {
        count += 1;
        if plain && (kind == "user" || kind == "assistant") {
            let text = format!("{kind} {count} {}", "x".repeat(count as usize % 700));
            writeln!(lines, r#"{{"role":"{kind}","content":"{text}"}}"#).unwrap();
        } else if !plain {
            let filling = "y".repeat(count as usize * 37 % 1500);
            let line =
                format!(r#"{{"type":"{kind}","uuid":"{count}","parentUuid":{parent},"filling":"{filling}"{rest}}}"#);
            writeln!(lines, "{line}").unwrap();
        }
        format!("\"{count}\"")
    };
    for turn in 0..turns {
        head = write(&mut lines, "user", &head, &format!(r#","message":{{"content":"prompt {turn}"}}"#));
        let responses = if roll(12) == 0 { 80 + roll(300) } else { 1 + roll(4) };
        for step in 0..responses {
            let calls: Vec<String> = (0..roll(3)).map(|call| format!("t{turn}-{step}-{call}")).collect();
            let made: Vec<String> =
                calls.iter().map(|id| format!(r#"{{"id":"{id}","name":"x","arguments":{{}}}}"#)).collect();
            let said = format!(r#","message":{{"content":"answer {turn} {step}","toolCalls":[{}]}}"#, made.join(","));
            head = write(&mut lines, "assistant", &head, &said);
            let caller = head.clone();
            for call in calls {
                let result = format!(r#","toolResults":[{{"toolCallId":"{call}","content":"done"}}]"#);
                match roll(20) {
                    0 => late.push((result, turn as u32 + 1 + roll(40) as u32)),
                    1 => {}
                    2..8 => drop(write(&mut lines, "tool_result", &caller, &result)),
                    _ => head = write(&mut lines, "tool_result", &head, &result),
                }
            }
        }
        for (result, _) in late.extract_if(.., |(_, due)| *due <= turn as u32) {
            head = write(&mut lines, "tool_result", &head, &result);
        }
        match roll(10) {
            0 => drop(write(&mut lines, "user", &head, r#","message":{"content":"another branch"}"#)),
            1 => drop(write(&mut lines, "file_history_snapshot", "null", "")),
            2 => head = write(&mut lines, "compaction", &head, r#","summary":"short""#),
            3 => {
                for _ in 0..roll(200) {
                    write(&mut lines, "assistant", &head, r#","isSidechain":true,"message":{"content":"aside"}"#);
                }
            }
            4 if roll(8) == 0 => head = write(&mut lines, "user", "null", r#","message":{"content":"anew"}"#),
            _ => {}
        }
    }
    lines
}

/// The messages of a page: the last ones before the one that holds `before`.
fn page(session: &Session, page: Page<'_>) -> Vec<Message> {
    let branch = session.branch(session.head().unwrap());
    let conversation = Conversation::new(&branch);
    let end = match page.before {
        Some(before) => conversation.position(session.find(before).unwrap()).unwrap(),
        None => conversation.len(),
    };
    conversation.messages(end.saturating_sub(page.messages)..end).map(Result::unwrap).collect()
}

#[test]
fn the_end_of_a_session_is_the_end_of_the_whole_session() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("messages.jsonl");
    let (mut tails, mut wholes) = (0, 0);
    for seed in 0..u64::from(cases(5, 2000)) {
        fs::write(&path, long_session(seed, 150 + seed as usize % 7 * 60)).unwrap();
        let source = Source::file(native(), &path);
        let whole = Session::open(&source, &reading()).unwrap();
        let last = page(&whole, Page { messages: 20, before: None });
        let size = fs::metadata(&path).unwrap().len();
        let near_end = last[seed as usize % last.len()].id.clone();
        let near_start = whole.branch(whole.head().unwrap()).records[3].id().into_owned();
        for count in [0, 1, 5, 60] {
            for before in [None, Some(near_end.as_str()), Some(near_start.as_str())] {
                let wanted = Page { messages: count, before };
                let tail = Session::open_page(&source, &reading(), wanted).unwrap();
                assert_eq!(page(&tail, wanted), page(&whole, wanted), "seed {seed}, {wanted:?}");
                assert!(tail.whole() || tail.records().len() < whole.records().len(), "a tail that is everything");
                assert!(tail.whole() || size > 256 * 1024, "the window holds all of {size} bytes");
                if tail.whole() {
                    wholes += 1;
                    assert_eq!(describe(&tail), describe(&whole));
                } else {
                    tails += 1;
                }
            }
        }
    }
    assert!(tails > wholes / 2 && wholes > 0, "{tails} tails and {wholes} whole sessions prove little");
}

#[test]
fn a_turn_longer_than_the_window_is_counted_from_its_beginning() {
    let mut lines = "{\"type\":\"user\",\"uuid\":\"0\",\"message\":{\"content\":\"Go\"}}\n".to_owned();
    for at in 1..=1050 {
        let message = format!(r#""message":{{"content":"{}"}}"#, "u".repeat(1000));
        writeln!(lines, r#"{{"type":"assistant","uuid":"{at}","parentUuid":"{}",{message}}}"#, at - 1).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("messages.jsonl");
    fs::write(&path, lines).unwrap();
    let source = Source::file(native(), &path);
    let tail = Session::open_page(&source, &reading(), Page { messages: 1, before: None }).unwrap();
    assert_eq!(page(&tail, Page { messages: 1, before: None })[0].id, "1001");
    // No message of it: the end of the turn is enough.
    let tail = Session::open_page(&source, &reading(), Page { messages: 0, before: None }).unwrap();
    assert!(!tail.whole());
}

#[test]
fn an_end_of_nothing_but_sidechains_is_no_conversation() {
    let mut lines = "{\"type\":\"user\",\"uuid\":\"q\",\"message\":{\"content\":\"Go\"}}\n".to_owned();
    for at in 0..4000 {
        let text = "z".repeat(200);
        let message = format!(r#""message":{{"content":"{text}"}}"#);
        writeln!(lines, r#"{{"type":"user","uuid":"s{at}","parentUuid":"q","isSidechain":true,{message}}}"#).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("messages.jsonl");
    fs::write(&path, lines).unwrap();
    let source = Source::file(native(), &path);
    let tail = Session::open_page(&source, &reading(), Page { messages: 1, before: None }).unwrap();
    assert_eq!(tail.head().unwrap().id(), "q");
    let row = listing::row(&source, &reading(), Depth::Ends).unwrap();
    assert_eq!(row.head.unwrap().as_str(), "q");
}

/// One instant, written in some way, and whether it counts.
fn any_instant() -> impl Strategy<Value = (String, Option<Timestamp>)> {
    let minute = prop_oneof![8 => -5_000_000..0_i64, 1 => 0..1400_i64, 1 => 1500..100_000_i64];
    (minute, prop::sample::select(vec![-720, -300, 0, 60, 330, 840]), 0..5_u8).prop_map(|(minute, offset, way)| {
        let at = now() + SignedDuration::from_mins(minute);
        let local = at.to_zoned(jiff::tz::TimeZone::fixed(jiff::tz::Offset::from_seconds(offset * 60).unwrap()));
        let text = match way {
            0 => at.to_string(),
            1 => local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            2 => local.strftime("%Y-%m-%dT%H:%M:%S%z").to_string(),
            3 => local.strftime("%Y-%m-%dT%H:%M:%S.000%:z").to_string(),
            _ => "soon".to_owned(),
        };
        (text, (way < 4 && minute <= 24 * 60).then_some(at))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(200, 20_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn newest_is_the_greatest_instant_that_counts(
        mut instants in prop::collection::vec(any_instant(), 1..400),
        in_order in any::<bool>(),
        filling in 0..300_usize,
    ) {
        if in_order {
            instants.sort_by_key(|(_, at)| *at);
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("messages.jsonl");
        let mut lines = String::new();
        for (at, (text, _)) in instants.iter().enumerate() {
            let message = format!(r#""message":{{"content":"{}"}}"#, "w".repeat(filling));
            writeln!(lines, r#"{{"type":"user","uuid":"{at}","timestamp":"{text}",{message}}}"#).unwrap();
        }
        fs::write(&path, lines).unwrap();
        let newest = instants.iter().filter_map(|(_, at)| *at).max();
        let rows = |modified: i64| {
            let file = fs::File::options().append(true).open(&path).unwrap();
            let modified = std::time::SystemTime::from(now() + SignedDuration::from_hours(modified));
            file.set_modified(modified).unwrap();
            let source = Source::file(native(), &path);
            let row = |depth| listing::row(&source, &reading(), depth).unwrap();
            (row(Depth::Whole), row(Depth::Ends))
        };
        let (whole, windows) = rows(-9000);
        prop_assert_eq!(whole.updated, newest);
        prop_assert_eq!(whole.started, instants.iter().filter_map(|(_, at)| *at).min());
        prop_assert_eq!(&windows.head, &whole.head);
        prop_assert_eq!(&windows.first_prompt, &whole.first_prompt);
        prop_assert!(windows.updated <= whole.updated);
        if in_order {
            prop_assert_eq!(windows.updated, whole.updated);
        }
        let (whole_touched, windows_touched) = rows(9000);
        prop_assert_eq!(whole_touched.updated, whole.updated);
        prop_assert_eq!(windows_touched.updated, windows.updated);
    }
}
