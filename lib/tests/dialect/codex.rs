//! Codex: what the corpus's one line cannot say. Places, parts, usage, chains of forks, archives, damage.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::{messages, reading};
use scrollback::dialect::{self, Dialect};
use scrollback::model::{Body, Home, Host, IssueKind, Kind, Part, ToolState, Usage};
use scrollback::session::{ReadOptions, Session, Source, State, folder};
use scrollback::view::counting::{EventKind, SessionCounts};
use scrollback::view::find::Places;
use scrollback::view::listing::{self, Depth};
use scrollback::view::texts::SearchTexts;
use scrollback::view::tool_calls::{self, CallState};
use scrollback::view::{Conversation, Page, TurnEnd};
use scrollback::write::{Fork, Store};
use serde_json::{Value, json};

fn codex() -> &'static dyn Dialect {
    dialect::named("codex").unwrap()
}

fn case(name: &str) -> Session {
    let path = crate::support::corpus().join("codex").join(name).join("rollout.jsonl");
    Session::open(&Source::file(codex(), &path), &reading()).unwrap()
}

fn line(ordinal: u64, kind: &str, payload: &Value) -> String {
    json!({"timestamp": "2026-10-02T09:00:00Z", "ordinal": ordinal, "type": kind, "payload": payload}).to_string()
        + "\n"
}

fn said(ordinal: u64, role: &str, text: &str) -> String {
    let kind = if role == "user" { "input_text" } else { "output_text" };
    let content = json!([{"type": kind, "text": text}]);
    line(ordinal, "response_item", &json!({"type": "message", "role": role, "content": content}))
}

/// A session of one turn that begins in another one, at an ordinal.
fn fork(id: &str, of: Option<&str>, at: u64) -> String {
    let base = of.map(|of| json!({"thread_id": of, "end_ordinal_exclusive": at}));
    let meta = json!({"id": id, "cwd": "/x", "cli_version": "0.166.0", "history_base": base});
    line(at, "session_meta", &meta) + &said(at + 1, "user", id) + &said(at + 2, "assistant", "ok")
}

/// Finds sessions in a folder, by the names of their files.
fn open_in(folder: &Path, id: &str) -> Session {
    let path = |id: &str| folder.join(format!("rollout-2026-10-02T09-00-00-{id}.jsonl"));
    let find = |id: &str| path(id).is_file().then(|| Source::file(codex(), &path(id)));
    Session::open(&find(id).unwrap(), &ReadOptions { find: &find, ..reading() }).unwrap()
}

fn write(folder: &Path, id: &str, lines: &str) {
    fs::write(folder.join(format!("rollout-2026-10-02T09-00-00-{id}.jsonl")), lines).unwrap();
}

#[test]
fn a_session_is_found_in_every_place_and_named_by_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let id = "01a1e0f7-bc87-7ea3-9152-fdcfa4291034";
    let name = format!("rollout-2026-11-15T20-48-14-{id}.jsonl");
    let places = ["sessions/2026/11/15/", "sessions/", "archived_sessions/", "archived_sessions/2026/11/15/"];
    for place in places {
        let folder = dir.path().join("codex").join(place);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(&name), fork(id, None, 0)).unwrap();
        fs::write(folder.join("notes.jsonl"), "{}").unwrap();
    }
    let vars = [("CODEX_HOME".to_owned(), "codex".to_owned())].into();
    let home = Home { dir: "/nowhere".into(), cwd: dir.path().to_path_buf(), vars };
    let found = Places { home: home.clone(), store: None, dialect: Some(codex()), mask: None }.sources();
    let found: Vec<Source> = found.into_iter().map(Result::unwrap).collect();
    assert_eq!(found.len(), places.len());
    assert!(found.iter().all(|source| source.name() == id));
    let store = Some(dir.path().join("codex"));
    assert_eq!(Places { home: home.clone(), store, dialect: Some(codex()), mask: None }.sources().len(), places.len());
    let row = listing::row(&found[0], &reading(), Depth::Ends).unwrap();
    assert_eq!((row.id.as_str(), row.dialect.as_str(), row.project.as_deref()), (id, "codex", Some("/x")));
}

#[test]
fn one_response_of_several_items_is_one_step() {
    let messages = messages(&case("plain"));
    assert_eq!(messages.len(), 2, "context is no message");
    let kinds: Vec<Value> =
        messages[1].parts.iter().map(|part| serde_json::to_value(part).unwrap()["type"].clone()).collect();
    assert_eq!(kinds, ["step-start", "reasoning", "text", "dynamic-tool", "step-start", "text"]);
    let Part::Reasoning(thought) = &messages[1].parts[1] else { panic!("no reasoning") };
    assert_eq!(thought.text, "Look it up.");
    let kept = json!({"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "ENC"}});
    assert_eq!(Value::from(thought.provider_metadata.clone().unwrap()), kept);
}

#[test]
fn reasoning_is_kept_with_and_without_its_text() {
    let all = messages(&case("reasoning"));
    let thoughts: Vec<&str> = all
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(|part| if let Part::Reasoning(thought) = part { Some(thought.text.as_str()) } else { None })
        .collect();
    assert_eq!(thoughts, ["", "Aloud.", "", "In full."]);
}

#[test]
fn every_shape_of_output_reaches_its_call() {
    let messages = messages(&case("outputs"));
    let states: Vec<String> = messages[1]
        .parts
        .iter()
        .filter_map(|part| if let Part::Tool(call) = part { Some(&call.state) } else { None })
        .map(|state| match state {
            ToolState::OutputAvailable { output, .. } => format!("done {}", output.as_ref().unwrap()[0]["text"]),
            ToolState::OutputError { error_text, .. } => format!("failed {error_text}"),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(states, ["done \"a.rs\"", "failed no such file", "failed exit code 1: x"]);
}

#[test]
fn the_first_prompt_is_the_first_that_somebody_typed() {
    let row = case("injected-context").row().unwrap();
    assert_eq!((row.first_prompt.as_deref(), row.message_count), (Some("One?"), Some(4)));
    assert_eq!(case("name").row().unwrap().title, "Counting");
    let copied = case("two-session-metas");
    assert_eq!(
        (copied.id().as_str(), copied.cwd()),
        ("019a0000-0000-7000-8000-000000000002", Some("/home/ada/tide-tables"))
    );
    assert_eq!(copied.agent_version(), Some("0.166.0"));
}

#[test]
fn an_answer_is_of_the_model_that_its_turn_names() {
    let turn = |at, model: &str| line(at, "turn_context", &json!({"cwd": "/x", "model": model}));
    let state = line(3, "world_state", &json!({"full": true}));
    let log = turn(0, "m1") + &said(1, "user", "One?") + &said(2, "assistant", "Two.") + &state;
    let log = log + &said(4, "assistant", "Or three.") + &turn(5, "m2") + &said(6, "user", "Sure?");
    let session = Session::from_bytes(codex(), (log + &said(7, "assistant", "No.")).into_bytes(), &reading());
    let models: Vec<Option<Value>> =
        messages(&session).iter().map(|message| message.metadata.as_ref()?.get("model").cloned()).collect();
    assert_eq!(models, [None, Some("m1".into()), None, Some("m2".into())]);
    assert_eq!(session.models(), ["m1", "m2"]);
}

#[test]
fn what_a_fork_inherits_names_its_model() {
    let dir = tempfile::tempdir().unwrap();
    let parent = line(0, "session_meta", &json!({"id": "a", "cwd": "/x"}))
        + &line(1, "turn_context", &json!({"model": "old"}))
        + &said(2, "user", "One?")
        + &said(3, "assistant", "Two.");
    write(dir.path(), "a", &parent);
    write(dir.path(), "b", &fork("b", Some("a"), 4));
    write(dir.path(), "c", &fork("c", Some("b"), 7));
    for id in ["a", "b", "c"] {
        let session = open_in(dir.path(), id);
        assert_eq!(messages(&session)[1].metadata.as_ref().unwrap()["model"], "old", "{id}");
        assert!(!session.has_errors(), "{id}: {:?}", session.issues());
    }
}

#[test]
fn a_compaction_holds_what_the_model_sees_instead() {
    let compaction = |name| {
        let session = case(name);
        let record = session.records().find(|record| record.kind() == Kind::Compaction).unwrap();
        let Body::Compaction(compaction) = record.body().unwrap() else { panic!("{name}") };
        compaction
    };
    let replaced = compaction("compaction");
    let seen: Vec<&Part> =
        replaced.replacement.iter().flatten().map(|body| &body.content().unwrap().parts[0]).collect();
    assert_eq!(seen, [&Part::text("One?"), &Part::text("They counted.")]);
    assert!(replaced.cuts);
    let plain = compaction("compaction-plain");
    assert_eq!((plain.replacement, plain.cuts), (None, true));
}

#[test]
fn a_call_that_started_an_agent_names_its_session() {
    let call = json!({"type": "function_call", "name": "spawn_agent", "call_id": "c", "arguments": "{}"});
    let result = |output: &str| {
        let output = json!({"type": "function_call_output", "call_id": "c", "output": output});
        let log = line(1, "response_item", &call) + &line(2, "response_item", &output);
        let session = Session::from_bytes(codex(), log.into_bytes(), &reading());
        serde_json::to_value(&messages(&session)[0].parts[1]).unwrap()["callProviderMetadata"]["scrollback"].take()
    };
    assert_eq!(result(r#"{"agent_id":"child","nickname":"Pauli"}"#)["session"], "child");
    for other in
        [r#"{"agent_id":"child","nickname":"x","more":1}"#, r#"{"agent_id":7,"nickname":"x"}"#, "{", "agent_id"]
    {
        assert!(result(other).get("session").is_none(), "{other}");
    }
}

fn usage(counts: [u64; 5]) -> Usage {
    let [input, output, cache_read, cache_write, reasoning] = counts.map(Some);
    Usage { input, output, cache_read, cache_write, reasoning }
}

#[test]
fn usage_counts_each_response_once() {
    let by_response = usage([1100, 70, 1100, 0, 7]);
    assert_eq!(case("plain").usage(), Some(by_response));
    let by_difference = Usage { cache_write: None, ..usage([190, 9, 60, 0, 1]) };
    assert_eq!(case("token-counts").usage(), Some(by_difference));
    assert_eq!(case("legacy").usage(), None);
}

#[test]
fn a_total_that_starts_anew_counts_by_its_latest_request() {
    let count = |total: u64, last: u64| {
        let tokens = |input| json!({"input_tokens": input, "output_tokens": 1});
        let info = json!({"total_token_usage": tokens(total), "last_token_usage": tokens(last)});
        line(1, "event_msg", &json!({"type": "token_count", "info": info}))
    };
    let log = count(100, 100) + &count(130, 30) + &count(20, 20) + &count(25, 5);
    let session = Session::from_bytes(codex(), log.into_bytes(), &reading());
    assert_eq!(session.usage().unwrap().input, Some(155));
}

#[test]
fn a_fork_pays_for_its_own_requests_only() {
    let dir = tempfile::tempdir().unwrap();
    let cost = |ordinal, response: &str| {
        let usage = json!({"input_tokens": 10, "output_tokens": 1});
        line(ordinal, "token_usage_record", &json!({"turn_id": "t", "response_id": response, "usage": usage}))
    };
    write(dir.path(), "a", &(fork("a", None, 0) + &cost(3, "r1")));
    write(dir.path(), "b", &(fork("b", Some("a"), 4) + &cost(7, "r2")));
    let session = open_in(dir.path(), "b");
    assert_eq!(session.branch(session.head().unwrap()).records.len(), 4);
    assert_eq!(session.usage().unwrap().input, Some(10));
}

#[test]
fn a_chain_of_fifty_forks_is_one_branch() {
    let dir = tempfile::tempdir().unwrap();
    for link in 0..50 {
        let before = (link > 0).then(|| format!("s{}", link - 1));
        write(dir.path(), &format!("s{link}"), &fork(&format!("s{link}"), before.as_deref(), link * 3));
    }
    let session = open_in(dir.path(), "s49");
    let branch = session.branch(session.head().unwrap());
    assert_eq!((branch.records.len(), branch.gaps.len()), (100, 0));
    assert_eq!(branch.records[99].id(), "ord-149");
    let all = messages(&session);
    let prompts: Vec<&Part> = all.iter().step_by(2).map(|message| &message.parts[0]).collect();
    let expected: Vec<Part> = (0..50).map(|link| Part::text(format!("s{link}"))).collect();
    assert_eq!(prompts, expected.iter().collect::<Vec<_>>());
    assert_eq!(session.row().unwrap().first_prompt.as_deref(), Some("s49"));
}

#[test]
fn a_fork_of_itself_and_a_circle_of_forks_end() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a", &fork("a", Some("a"), 9));
    let session = open_in(dir.path(), "a");
    assert_eq!(session.state(&session.branch(session.head().unwrap())), State::Degraded);
    for (id, of) in [("x", "z"), ("y", "x"), ("z", "y")] {
        write(dir.path(), id, &fork(id, Some(of), 9));
    }
    let session = open_in(dir.path(), "z");
    let branch = session.branch(session.head().unwrap());
    assert_eq!(branch.gaps.len(), 1);
}

#[test]
fn a_parent_cut_anywhere_leaves_the_fork_readable() {
    let dir = tempfile::tempdir().unwrap();
    let parent = fork("a", None, 0) + &said(3, "user", "more") + &said(4, "assistant", "yes");
    write(dir.path(), "b", &fork("b", Some("a"), 5));
    for cut in 0..=parent.len() {
        write(dir.path(), "a", &parent[..cut]);
        let session = open_in(dir.path(), "b");
        let branch = session.branch(session.head().unwrap());
        let own = branch.records.iter().filter(|record| !record.is_inherited()).count();
        assert_eq!(own, 2, "cut at {cut}");
        let whole = cut + 1 >= parent.len();
        assert_eq!(branch.gaps.is_empty(), whole, "cut at {cut}");
        assert_eq!(session.state(&branch) == State::Degraded, !whole, "cut at {cut}");
        messages(&session);
    }
}

#[test]
fn a_compressed_session_is_read_as_its_content_and_a_broken_one_up_to_the_break() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rollout-2026-10-02T09-00-00-a.jsonl.zst");
    let log: String = fork("a", None, 0) + &(3..4000).map(|at| said(at, "user", &at.to_string())).collect::<String>();
    let packed = zstd::encode_all(log.as_bytes(), 3).unwrap();
    fs::write(&path, &packed).unwrap();
    let source = Source::file(codex(), &path);
    assert_eq!(source.name(), "a");
    let session = Session::open(&source, &reading()).unwrap();
    assert_eq!((session.records().len(), session.issues().len()), (4000, 0));
    let page = Session::open_page(&source, &reading(), Page { messages: 2, before: None }).unwrap();
    assert_eq!(page.head().unwrap().id(), "ord-3999");
    fs::write(&path, &packed[..packed.len() / 2]).unwrap();
    let torn = Session::open(&source, &reading()).unwrap();
    assert!(torn.issues().iter().any(|issue| issue.kind.name() == "torn"));
    fs::write(&path, b"\x28\xb5\x2f\xfd no archive").unwrap();
    assert!(Session::open(&source, &reading()).unwrap().has_errors());
}

#[test]
fn a_growing_file_is_the_whole_file_at_every_byte() {
    for name in
        ["plain", "rollback-twice", "compaction", "future", "duplicate-line", "two-session-metas", "token-counts"]
    {
        let bytes = fs::read(crate::support::corpus().join("codex").join(name).join("rollout.jsonl")).unwrap();
        let mut live = Session::from_bytes(codex(), Vec::new(), &reading());
        for (at, chunk) in bytes.chunks(7).enumerate() {
            live.push(chunk, &reading());
            if at % 16 == 0 || (at + 1) * 7 >= bytes.len() {
                let read = &bytes[..(at * 7 + chunk.len())];
                let whole = Session::from_bytes(codex(), read.to_vec(), &reading());
                assert_eq!(crate::support::describe(&live), crate::support::describe(&whole), "{name} at {}", at * 7);
                assert_eq!(live.usage(), whole.usage(), "{name} at {}", at * 7);
            }
        }
    }
}

#[test]
fn fields_of_any_shape_are_no_failure() {
    let shapes = [json!(null), json!(7), json!("x"), json!([1]), json!({"a": {"b": []}}), json!(-1.5), json!(true)];
    let kinds =
        ["session_meta", "turn_context", "response_item", "event_msg", "token_usage_record", "compacted", "new"];
    let types = ["message", "reasoning", "function_call", "function_call_output", "web_search_call", "token_count"];
    let fields = ["role", "content", "summary", "output", "call_id", "arguments", "usage", "info", "id", "source"];
    let mut log = String::new();
    for shape in &shapes {
        log += &line(1, "response_item", shape);
        for kind in kinds {
            for item in types {
                let mut payload = json!({"type": item});
                for field in fields {
                    payload[field] = shape.clone();
                }
                log += &line(2, kind, &payload);
            }
        }
    }
    let session = Session::from_bytes(codex(), log.into_bytes(), &reading());
    assert!(session.records().len() > 100);
    session.tree_view().unwrap();
    messages(&session);
    session.usage();
}

/// Codex archives file by file; a list of titles is no session, and a file of a session is none of its own.
#[test]
fn the_files_of_one_session_may_be_in_both_folders() {
    let home = tempfile::tempdir().unwrap();
    let store = home.path().join(".codex");
    let case = crate::support::corpus().join("codex/segments");
    for (at, file) in fs::read_dir(case).unwrap().map(|file| file.unwrap()).enumerate() {
        if file.path().extension().is_some_and(|ending| ending == "jsonl") {
            let folder = store.join(if at % 2 == 0 { "archived_sessions" } else { "sessions/2026/10/02" });
            fs::create_dir_all(&folder).unwrap();
            fs::copy(file.path(), folder.join(file.file_name())).unwrap();
        }
    }
    let title = json!({"id": "019a0000-0000-7000-8000-000000000001", "thread_name": "Tides"});
    fs::write(store.join("session_index.jsonl"), format!("{title}\n")).unwrap();
    let layouts: Vec<_> = codex().layouts_in(&store).into_iter().map(|layout| (codex(), layout)).collect();
    let listed: Vec<Source> = Source::walk_all(&layouts).into_iter().map(Result::unwrap).collect();
    let at_home = Home { dir: home.path().into(), cwd: home.path().into(), vars: Default::default() };
    let below = folder::sessions(home.path(), &at_home, None);
    assert_eq!(below.ignored, 0);
    let found: Vec<Source> = below.sources.into_iter().map(Result::unwrap).collect();
    for sources in [listed, found] {
        assert_eq!(sources.len(), 1, "{sources:?}");
        let session = Session::open(&sources[0], &reading()).unwrap();
        assert_eq!(session.title().map(|title| title.text.as_str()), Some("Tides"));
        assert_eq!((session.heads().len(), session.issues().len()), (3, 0), "{:?}", session.issues());
        let examined = session.examine();
        let named: BTreeSet<&String> = examined.other_paths.iter().chain([&examined.path]).collect();
        assert_eq!((named.len(), examined.other_paths.len()), (3, 2), "every file of the thread is named once");
        // A name that only the index has goes along with a fork, of which every record is counted.
        let host = Host { cwd: "/gone".into(), ..Host::system("test 1").unwrap() };
        let forked = Store::open(codex(), &store, host).unwrap().fork(&session, Fork { head: None, id: None }).unwrap();
        let fork = Session::open(&Source::file(codex(), &forked.path), &reading()).unwrap();
        assert_eq!(fork.title().map(|title| title.text.as_str()), Some("Tides"));
        assert_eq!(fs::read_to_string(&forked.path).unwrap().lines().count(), forked.records);
        fs::remove_file(&forked.path).unwrap();
    }
}

/// A copy that somebody left in the archive does not repeat the conversation.
#[test]
fn a_file_of_a_session_that_is_in_both_folders_counts_once() {
    let case = crate::support::corpus().join("codex/segments");
    let mut files: Vec<_> = fs::read_dir(case).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "jsonl"));
    files.sort();
    let check = |copied: &[usize], added: &str, expected: &[IssueKind]| {
        let home = tempfile::tempdir().unwrap();
        let store = home.path().join(".codex");
        let [own, archive] = ["sessions/2026/10/02", "archived_sessions"].map(|folder| store.join(folder));
        [&own, &archive].iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
        for (at, file) in files.iter().enumerate() {
            let text = fs::read_to_string(file).unwrap();
            fs::write(own.join(file.file_name().unwrap()), &text).unwrap();
            if copied.contains(&at) {
                fs::write(archive.join(file.file_name().unwrap()), text + added).unwrap();
            }
        }
        let layouts: Vec<_> = codex().layouts_in(&store).into_iter().map(|layout| (codex(), layout)).collect();
        let listed: Vec<Source> = Source::walk_all(&layouts).into_iter().map(Result::unwrap).collect();
        let at_home = Home { dir: home.path().into(), cwd: home.path().into(), vars: Default::default() };
        let below = folder::sessions(home.path(), &at_home, None).sources;
        for sources in [listed, below.into_iter().map(Result::unwrap).collect()] {
            assert_eq!(sources.len(), 1, "{copied:?}: {sources:?}");
            assert!(sources[0].path.starts_with(&own), "{copied:?}: {sources:?}");
            let session = Session::open(&sources[0], &reading()).unwrap();
            let branch = session.branch(session.head().unwrap()).records;
            let ids: Vec<String> = branch.into_iter().map(|record| record.id().into_owned()).collect();
            assert_eq!(ids.join(" "), "ord-1 ord-2 ord-4~2 ord-5 ord-7~2 ord-8", "{copied:?}");
            let found: Vec<IssueKind> = session.issues().iter().map(|issue| issue.kind).collect();
            assert_eq!(found, expected, "{copied:?}");
        }
    };
    check(&[0], "", &[]);
    check(&[2], "", &[]);
    check(&[0, 1, 2], "", &[]);
    check(&[0], &said(9, "user", "Only in the copy"), &[IssueKind::OtherCopy]);
    check(&[1, 2], &said(9, "user", "Only in the copy"), &[IssueKind::OtherCopy; 2]);
}

/// The model gets a result while the command runs; people see how it ended.
#[test]
fn a_command_that_outlives_its_result_ends_as_its_event_tells() {
    let call = |id: &str| json!({"type": "function_call", "name": "exec_command", "arguments": r#"{"cmd":"make"}"#, "call_id": id});
    let output = |id: &str, text: &str| json!({"type": "function_call_output", "call_id": id, "output": text});
    let ended = |id: &str, code: i64, printed: &str| {
        let item = json!({"type": "CommandExecution", "id": id, "source": "unified_exec_startup", "exit_code": code, "aggregated_output": printed});
        json!({"type": "item_completed", "item": item, "started_at_ms": 1_000, "completed_at_ms": 6_000})
    };
    let running = "Chunk ID: 1\nWall time: 1.0 seconds\nProcess running with session ID 7\nOutput:\nstarted\n";
    let lines = [
        line(
            0,
            "session_meta",
            &json!({"id": "t1", "cwd": "/x", "cli_version": "0.166.0", "history_mode": "paginated"}),
        ),
        said(1, "user", "Build it"),
        line(2, "response_item", &call("c1")),
        line(3, "response_item", &output("c1", running)),
        line(4, "response_item", &call("c2")),
        line(5, "event_msg", &ended("c2", 3, "before its result")),
        line(6, "response_item", &output("c2", "Wall time: 1.0 seconds\naborted by user")),
        said(7, "assistant", "It runs."),
        line(8, "event_msg", &ended("c1", 4, "started\ndone\n")),
    ];
    let session = Session::from_bytes(codex(), lines.concat().into_bytes(), &reading());
    assert!(session.issues().is_empty(), "{:?}", session.issues());
    let calls: Vec<_> = messages(&session).into_iter().flat_map(|message| message.parts).collect();
    let states: Vec<&ToolState> = calls.iter().filter_map(Part::as_call).map(|call| &call.state).collect();
    let [ToolState::OutputError { error_text: late, .. }, ToolState::OutputError { error_text: known, .. }] =
        states[..]
    else {
        panic!("{states:?}")
    };
    assert_eq!(late, "exit code 4: started\ndone");
    assert!(known.ends_with("aborted by user"), "its result came later: {known}");
    let Body::ToolResult(sent) = session.find("ord-3").unwrap().body().unwrap() else { panic!("a result") };
    assert_eq!(sent.results[0].output, running, "the model's result stays as it is");
    let row = session.turns().unwrap().row(0).unwrap();
    assert_eq!((row.failed_calls, row.interrupted_calls), (1, 1));
    let counts = SessionCounts::of(&session).unwrap();
    let has_failed = |kind: &EventKind| matches!(kind, EventKind::Call { has_failed: true, .. });
    assert_eq!(counts.events.iter().filter(|event| has_failed(&event.kind)).count(), 2);
    let mut texts = SearchTexts::new(&session);
    let of_event = texts.of(session.find("ord-8").unwrap()).unwrap();
    assert_eq!((of_event.len(), of_event[0].is_error, of_event[0].tool.as_deref()), (1, true, Some("exec_command")));
}

#[test]
fn what_a_command_printed_of_a_sensitive_file_stays_masked_after_its_result() {
    let call =
        json!({"type": "function_call", "name": "exec_command", "arguments": r#"{"cmd":"cat .env"}"#, "call_id": "c1"});
    let running = json!({"type": "function_call_output", "call_id": "c1", "output": "Process running with session ID 7\nOutput:\n"});
    let item =
        json!({"type": "CommandExecution", "id": "c1", "exit_code": 1, "aggregated_output": "HARBOUR=Brest-canary\n"});
    let lines = [
        line(
            0,
            "session_meta",
            &json!({"id": "t1", "cwd": "/x", "cli_version": "0.166.0", "history_mode": "paginated"}),
        ),
        said(1, "user", "Read it"),
        line(2, "response_item", &call),
        line(3, "response_item", &running),
        line(4, "event_msg", &json!({"type": "item_completed", "item": item})),
    ];
    let mask = std::sync::Arc::new(scrollback::redact::Redactor::built_in());
    let masked = ReadOptions { mask: Some(&mask), ..reading() };
    let session = Session::from_bytes(codex(), lines.concat().into_bytes(), &masked);
    let shown = serde_json::to_string(&messages(&session)).unwrap();
    assert!(!shown.contains("canary") && shown.contains("REDACTED"), "{shown}");
    let searched = SearchTexts::new(&session).of(session.find("ord-4").unwrap()).unwrap();
    assert!(searched.iter().all(|text| !text.text.contains("canary")), "{searched:?}");
}

#[test]
fn a_refused_question_is_denied_everywhere() {
    let asks = json!({"cmd": "rm a", "sandbox_permissions": "require_escalated"}).to_string();
    let call = |id: &str, input: &str| json!({"type": "function_call", "name": "exec_command", "arguments": input, "call_id": id});
    let ended = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "Wall time: 1.5 seconds\naborted by user"});
    let lines = [
        line(0, "session_meta", &json!({"id": "t1", "cwd": "/x", "cli_version": "0.166.0"})),
        said(1, "user", "Remove it"),
        line(2, "response_item", &call("c1", &asks)),
        line(3, "response_item", &ended("c1")),
        said(4, "user", "Run it"),
        line(5, "response_item", &call("c2", r#"{"cmd":"sleep 60"}"#)),
        line(6, "response_item", &ended("c2")),
    ];
    let session = Session::from_bytes(codex(), lines.concat().into_bytes(), &reading());
    let turns = session.turns().unwrap();
    let rows = [0, 1].map(|turn| turns.row(turn).unwrap());
    let ended = rows.map(|row| (row.failed_calls, row.denied_calls, row.interrupted_calls, row.end));
    let interrupted = Some(TurnEnd::Interrupted);
    assert_eq!(ended, [(0, 1, 0, interrupted), (0, 0, 1, interrupted)]);
    let branch = session.branch(session.head().unwrap());
    let calls: Vec<_> = tool_calls::of(&Conversation::new(&branch)).flat_map(Result::unwrap).collect();
    assert_eq!(calls[0].state, CallState::OutputDenied);
    assert_eq!(calls[1].state, CallState::OutputError);
}

#[test]
fn what_a_person_typed_in_tags_is_the_title() {
    assert_eq!(case("typed-tags").row().unwrap().title, "ls");
    let typed = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<summary>a sum</summary>"}],
        "internal_chat_message_metadata_passthrough": {"content_item_kinds": ["user.text"]}});
    let log = line(0, "session_meta", &json!({"id": "t1", "cwd": "/x"}))
        + &line(1, "response_item", &typed)
        + &said(2, "user", "Two?");
    let session = Session::from_bytes(codex(), log.into_bytes(), &reading());
    assert_eq!(session.row().unwrap().title, "a sum");
}

#[test]
fn a_command_that_failed_is_a_failed_turn() {
    let shell = "<user_shell_command>\n<command>\nls x\n</command>\n<result>\nExit code: 2\nDuration: 0.03 seconds\nOutput:\nno x\n</result>\n</user_shell_command>";
    let log = line(0, "session_meta", &json!({"id": "t1", "cwd": "/x"}));
    let ended = |text: &str| {
        let session = Session::from_bytes(codex(), (log.clone() + &said(1, "user", text)).into_bytes(), &reading());
        session.turns().unwrap().row(0).unwrap().end
    };
    assert_eq!(ended(shell), Some(TurnEnd::Failed));
    assert_eq!(ended(&shell.replace("code: 2", "code: 0")), None);
}
