//! The real `ai` packages 5, 6 and 7 judge our messages. Needs node and npm; the packages are installed once into
//! cargo's target directory.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::{env, fs, process};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use scrollback::dialect::Dialect;
use scrollback::model::{Kind, Message, Part, Role, Sdk, ToolState, model_messages, objection};
use scrollback::session::{Session, Source};
use scrollback::view::Conversation;
use scrollback::view::history::{History, NO_RESULT, View};
use scrollback::view::stream::{Begin, Chunks, Follower, Update};
use serde_json::{Map, Value, json};

const SDKS: [Sdk; 3] = [Sdk::V5, Sdk::V6, Sdk::V7];

#[test]
fn every_sdk_takes_every_part_in_every_state() {
    let mut cases = Map::new();
    for (name, part) in every_part() {
        for role in [Role::System, Role::User, Role::Assistant] {
            let message = Message::new("m1", role, vec![Part::from(part.clone())]);
            add(&mut cases, &format!("{name} ({role:?})"), &[message]);
        }
    }
    let all = every_part().into_iter().map(|(_, part)| Part::from(part)).collect();
    add(&mut cases, "all parts in one message", &[Message::new("m1", Role::Assistant, all)]);
    judge(cases);
}

#[test]
fn every_sdk_takes_messages_without_parts_and_with_unknown_keys() {
    let mut cases = Map::new();
    for role in [Role::System, Role::User, Role::Assistant] {
        add(&mut cases, &format!("{role:?} without parts"), &[Message::new("m1", role, vec![])]);
    }
    for metadata in [json!(null), json!("text"), json!([1]), json!({"scrollback": 1}), json!({"model": "m"})] {
        let message = json!({"id": "m1", "role": "user", "metadata": metadata, "parts": [], "createdAt": 7});
        add(&mut cases, &format!("metadata {metadata}"), &[serde_json::from_value(message).unwrap()]);
    }
    judge(cases);
}

/// One wrong key must not cost a person their whole conversation.
#[test]
fn every_sdk_takes_parts_of_which_any_one_key_is_odd() {
    let odd = [json!(null), json!(-1), json!(true), json!("odd"), json!({"odd": {"id": 1}})];
    let mut cases = Map::new();
    for (name, part) in every_part() {
        let mut messages = Vec::new();
        let mut seen = HashSet::new();
        let mut add_message = |part: &Value| {
            if !seen.insert(part.clone()) {
                return;
            }
            messages.push(Message::new(messages.len().to_string(), Role::Assistant, vec![part.clone().into()]));
        };
        for path in crate::support::paths_of_keys(&part) {
            for value in &odd {
                let mut changed = part.clone();
                *changed.pointer_mut(&path).unwrap() = value.clone();
                add_message(&changed);
            }
            let (parent, key) = path.rsplit_once('/').unwrap();
            let mut without = part.clone();
            without.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key);
            add_message(&without);
            let mut added = part.clone();
            added.pointer_mut(parent).unwrap()["unknown"] = json!({"a": [null]});
            add_message(&added);
        }
        if !messages.is_empty() {
            add(&mut cases, &name, &messages);
        }
    }
    judge(cases);
}

#[test]
fn every_sdk_takes_every_branch_of_the_corpus_and_the_demo() {
    let mut cases = Map::new();
    for (name, messages) in branches() {
        add(&mut cases, &name, &messages);
    }
    assert!(cases.len() > 3 * 100, "only {} cases: the corpus is gone", cases.len());
    judge(cases);
}

/// What a writer is given may be anything: what it writes is judged as it stands in the file.
#[test]
fn the_newest_sdk_takes_every_line_that_we_write() {
    let ai_sdk = scrollback::dialect::named("ai-sdk").unwrap();
    let mut runner = TestRunner::deterministic();
    let mut cases = Map::new();
    for number in 0..200 {
        let bodies = crate::support::bodies::several().new_tree(&mut runner).unwrap().current();
        let made = crate::support::drafted::drafted(ai_sdk, &bodies);
        if !made.lines().is_empty() {
            cases.insert(number.to_string(), case(Sdk::V7, json!(made.lines())));
        }
    }
    assert!(cases.len() > 100);
    judge(cases);
}

/// Each part in every state and role, alone and all together, and every branch of the corpora.
#[test]
fn our_model_messages_are_those_of_the_sdk() {
    let mut cases: Map<String, Value> = Map::new();
    let mut add = |name: String, messages: Vec<Message>| {
        let ready: Vec<Message> = messages.into_iter().map(|message| message.for_sdk(Sdk::V7)).collect();
        cases.insert(name, json!(ready));
    };
    let prompt = || Message::new("p", Role::User, vec![Part::text("Go on.")]);
    for (name, part) in every_part() {
        for role in [Role::System, Role::User, Role::Assistant] {
            let message = Message::new("m", role, vec![Part::from(part.clone())]);
            add(format!("{name} ({role:?})"), vec![message.clone()]);
            add(format!("{name} ({role:?}) before a prompt"), vec![prompt(), message, prompt()]);
        }
    }
    let all: Vec<Part> = every_part().into_iter().map(|(_, part)| Part::from(part)).collect();
    add("all parts in one message".to_owned(), vec![Message::new("m", Role::Assistant, all)]);
    for (name, messages) in branches() {
        add(name, messages);
    }
    let asked = cases.iter().map(|(name, messages)| (name.clone(), case(Sdk::V7, messages.clone())));
    let theirs = told("--model", &Value::Object(asked.collect()));
    let mut wrong = Vec::new();
    for (name, messages) in &cases {
        let messages: Vec<Message> = serde_json::from_value(messages.clone()).unwrap();
        let ours = Value::Array(model_messages(&messages));
        if ours != theirs[name] {
            wrong.push(format!("{name}\n  theirs {}\n  ours   {ours}", theirs[name]));
        }
    }
    assert!(cases.len() > 300, "only {} cases: the corpus is gone", cases.len());
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Where the model sees what people see: no compaction, nothing that only one of them is told.
#[test]
fn our_view_is_what_the_sdk_makes_of_the_messages() {
    let (mut cases, mut ours) = (Map::new(), Map::new());
    for (name, dialect, log) in sessions() {
        let session = Session::open(&Source::file(dialect, &log), &crate::support::reading()).unwrap();
        for head in session.heads() {
            let branch = session.branch(head.record);
            let shared = |kind| matches!(kind, Kind::User | Kind::Assistant | Kind::ToolResult);
            let silent = |kind| matches!(kind, Kind::Snapshot | Kind::Title | Kind::Header | Kind::Rewind);
            let alike = branch.records.iter().all(|record| shared(record.kind()) || silent(record.kind()));
            let history = History::of(&session, head.record).unwrap();
            let only_closed = history.notes.iter().all(|note| note.what.ends_with("closed by a failed one"));
            let conversation = Conversation::new(&branch);
            if !alike || !only_closed || conversation.is_empty() {
                continue;
            }
            let messages = conversation.messages(0..conversation.len()).map(|message| closed(message.unwrap()));
            let messages: Vec<Message> = messages.map(|message| message.for_sdk(Sdk::V7)).collect();
            let name = format!("{name} to {}", head.record.id());
            cases.insert(name.clone(), case(Sdk::V7, json!(messages)));
            ours.insert(name, View::AiSdk.messages(&history).unwrap().0.into());
        }
    }
    let theirs = told("--model", &Value::Object(cases));
    let mut wrong = Vec::new();
    for (name, ours) in &ours {
        let mut theirs = theirs[name].as_array().unwrap().clone();
        // A provider refuses a message that says nothing.
        theirs.retain(|message| message["content"] != json!([]) && message["content"] != "");
        if *ours != json!(theirs) {
            wrong.push(format!("{name}\n  theirs {}\n  ours   {ours}", json!(theirs)));
        }
    }
    assert!(ours.len() > 200, "only {} cases: the corpus is gone", ours.len());
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), ours.len(), wrong.join("\n"));
}

/// The message with every open call failed; a permission stays one.
fn closed(mut message: Message) -> Message {
    for part in &mut message.parts {
        if let Part::Tool(call) = part
            && call.is_open()
        {
            let (input, error_text) = (Some(call.input().cloned().unwrap_or_default()), NO_RESULT.to_owned());
            let approval = match &call.state {
                ToolState::ApprovalResponded { approval, .. } => {
                    Some(approval.clone()).filter(|approval| approval.approved == Some(true))
                }
                _ => None,
            };
            call.state = ToolState::OutputError { input, raw_input: None, error_text, approval };
        }
    }
    message
}

/// Every SDK's own reader makes our messages of our chunks, however the log was cut.
#[test]
fn every_sdk_reads_our_chunks_as_our_messages() {
    let mut cases = Map::new();
    let native = crate::support::logs().into_iter().map(|log| (crate::support::native(), log));
    let others = ["claude-code", "codex", "qwen-code", "fluux", "sage-el", "ai-sdk"]
        .into_iter()
        .flat_map(crate::support::logs_of);
    let (mut streamed, mut whole) = (0, 0);
    for (at, (dialect, log)) in native.chain(others).enumerate() {
        let bytes = fs::read(&log).unwrap();
        let session = Session::from_bytes(dialect, bytes.clone(), &crate::support::reading());
        let Some(head) = session.head() else { continue };
        let branch = session.branch(head);
        let conversation = Conversation::new(&branch);
        let messages: Vec<Message> = conversation.messages(0..conversation.len()).map(Result::unwrap).collect();
        let sdk = SDKS[at % SDKS.len()];
        for (sdk, pieces) in [(Sdk::V7, 1), (Sdk::V7, 7), (sdk, 7)] {
            let mut follower = match pieces {
                1 => Follower::new(
                    Session::from_bytes(dialect, bytes.clone(), &crate::support::reading()),
                    Begin::Everything,
                ),
                _ => Follower::of_bytes(dialect, Begin::Everything, &crate::support::reading()),
            };
            let (mut chunks, mut said) = (Chunks::new(sdk), Vec::new());
            for piece in bytes.chunks(bytes.len() / pieces + 1) {
                if pieces > 1 {
                    follower.push(piece, &crate::support::reading());
                }
                let updates = follower.updates(&crate::support::reading()).unwrap();
                said.extend(updates.into_iter().flat_map(|update| chunks.of(update)));
            }
            said.extend(chunks.finish());
            if pieces > 1 && follower.session(&crate::support::reading()).records().len() != session.records().len() {
                continue; // A document: nobody appends to it.
            }
            streamed += said.iter().filter(|chunk| chunk["type"] == "start").count();
            let is_whole = |chunk: &&Value| {
                chunk["type"] == "data-message" && chunk["transient"] == true && chunk["data"]["role"] == "assistant"
            };
            whole += said.iter().filter(is_whole).count();
            let ready: Vec<Message> = messages.iter().cloned().map(|message| message.for_sdk(sdk)).collect();
            let name = format!("{} in {pieces}, {sdk}", log.display());
            cases.insert(name, json!({"sdk": sdk.to_string(), "chunks": said, "messages": ready}));
        }
    }
    assert!(streamed > 500 && whole < streamed / 4, "{streamed} messages streamed, {whole} sent whole");
    let output = ask("stream.mjs", &Value::Object(cases));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

/// Each part in each state is told in chunks that the reader of SDK 7 turns into that part.
#[test]
fn every_part_comes_out_of_the_stream_as_it_went_in() {
    let mut cases = Map::new();
    for sdk in SDKS {
        for (name, part) in every_part() {
            let metadata = Some(Map::from_iter([("model".to_owned(), json!("m"))]));
            let parts = vec![Part::StepStart, Part::from(part)];
            let message = Message { metadata, ..Message::new("m1", Role::Assistant, parts) };
            let mut chunks = Chunks::new(sdk);
            let mut said = chunks.of(Update::Message(Box::new(message.clone())));
            said.extend(chunks.finish());
            let ready = [message.for_sdk(sdk)];
            cases.insert(format!("{name}, {sdk}"), json!({"sdk": sdk.to_string(), "chunks": said, "messages": ready}));
        }
    }
    let output = ask("stream.mjs", &Value::Object(cases));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
}

/// The verdict of every SDK, and ours, on messages as they are: good ones, and each with one thing wrong.
#[test]
fn our_rules_are_those_of_every_sdk() {
    let mut messages = vec![json!(null), json!(7), json!([]), json!({}), json!({"id": "m", "role": "user"})];
    for role in ["system", "user", "assistant", "data", "tool"] {
        messages.push(json!({"id": "m", "role": role, "parts": []}));
        messages.push(json!({"id": "m", "role": role, "parts": [{"type": "text", "text": ""}]}));
    }
    for (key, value) in [("id", json!(7)), ("role", json!(null)), ("parts", json!({})), ("metadata", json!("x"))] {
        let mut message = json!({"id": "m", "role": "user", "parts": [{"type": "text", "text": "Hello"}], "more": 1});
        message[key] = value;
        messages.push(message);
    }
    let of_type = |kind: &str| json!({"type": kind, "data": 1, "toolCallId": "c", "state": "input-streaming"});
    let mut parts: Vec<Value> =
        ["tool-", "data-", "tool", "data", "unheard-of", "Text", "toolx"].into_iter().map(of_type).collect();
    parts.extend([json!(null), json!("text"), json!({}), json!({"type": 7})]);
    let odd = [json!(null), json!(-1), json!(1.5), json!(true), json!(false), json!("odd"), json!({"a": {"id": 1}})];
    for (_, part) in every_part() {
        parts.push(part.clone());
        for path in crate::support::paths_of_keys(&part) {
            for value in &odd {
                let mut changed = part.clone();
                *changed.pointer_mut(&path).unwrap() = value.clone();
                parts.push(changed);
            }
            let (parent, key) = path.rsplit_once('/').unwrap();
            let mut without = part.clone();
            without.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(key);
            parts.push(without);
        }
        // States exclude one another: each part in every other state, and with what belongs to another one.
        if part.get("toolCallId").is_some() {
            for (key, value) in [
                ("output", json!(1)),
                ("errorText", json!("x")),
                ("approval", json!({"id": "a"})),
                ("approval", json!({"id": "a", "approved": true})),
                ("approval", json!({"id": "a", "approved": false, "reason": "no"})),
                ("title", json!(7)),
                ("toolMetadata", json!(7)),
                ("resultProviderMetadata", json!(7)),
                ("rawInput", json!(7)),
                ("inputEncoding", json!("latin")),
                ("preliminary", json!(7)),
                ("dynamic", json!(true)),
            ] {
                let mut added = part.clone();
                added[key] = value;
                parts.push(added.clone());
                for state in ["input-streaming", "input-available", "approval-requested", "approval-responded"] {
                    added["state"] = json!(state);
                    parts.push(added.clone());
                }
                for state in ["output-available", "output-error", "output-denied"] {
                    added["state"] = json!(state);
                    parts.push(added.clone());
                }
            }
        }
    }
    let seen: HashSet<Value> = parts.into_iter().collect();
    messages.extend(seen.into_iter().map(|part| json!({"id": "m", "role": "assistant", "parts": [part]})));
    let mut lists: Vec<Vec<Value>> = messages.into_iter().map(|message| vec![message]).collect();
    lists.push(vec![]);
    let mut cases = Map::new();
    for sdk in SDKS {
        for (at, list) in lists.iter().enumerate() {
            cases.insert(format!("{sdk} {at}"), case(sdk, json!(list)));
        }
    }
    let said = verdicts(&Value::Object(cases));
    let mut wrong = Vec::new();
    for sdk in SDKS {
        for (at, list) in lists.iter().enumerate() {
            let (theirs, ours) = (&said[&format!("{sdk} {at}")], objection(list, sdk));
            assert!(theirs.is_boolean(), "{theirs}");
            if *theirs != ours.is_none() {
                wrong.push(format!("ai {sdk} says {theirs}, we {ours:?}: {}", json!(list)));
            }
        }
    }
    let both = |verdict: bool| said.as_object().unwrap().values().filter(|said| **said == verdict).count();
    assert!(both(true) > 500 && both(false) > 500, "{} good, {} bad: no table", both(true), both(false));
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_an_sdk_does_not_take_is_found_out() {
    let mut cases = Map::new();
    for (name, part) in [
        ("a good part", json!({"type": "step-start"})),
        ("a missing key", json!({"type": "text"})),
        ("an unknown part", json!({"type": "unheard-of"})),
        ("an unknown key", json!({"type": "text", "text": "Hello", "color": "red"})),
        ("a path for a URL", json!({"type": "file", "mediaType": "image/png", "url": "a.png"})),
    ] {
        let messages = json!([{"id": "m1", "role": "assistant", "parts": [part]}]);
        cases.insert(name.to_owned(), case(Sdk::V7, messages));
    }
    let verdict = verdict(&Value::Object(cases));
    let said = String::from_utf8_lossy(&verdict.stdout).into_owned();
    assert_eq!(verdict.status.code(), Some(1), "{said}");
    let complaints: Vec<&str> = said.lines().map(|line| line.split(" [").next().unwrap_or(line)).collect();
    insta::assert_snapshot!(complaints.join("\n"), @"
    a missing key (ai 7): rejected:
    an unknown part (ai 7): rejected:
    an unknown key (ai 7): stripped: messages[0].parts[0].color
    a path for a URL (ai 7): not converted: TypeError: Invalid URL
    ");
}

/// The messages of every branch of the corpora and the demo.
fn branches() -> Vec<(String, Vec<Message>)> {
    let mut branches = Vec::new();
    for (name, dialect, log) in sessions() {
        let session = Session::open(&Source::file(dialect, &log), &crate::support::reading()).unwrap();
        for head in session.heads() {
            let branch = session.branch(head.record);
            let conversation = Conversation::new(&branch);
            let messages: Vec<Message> = conversation.messages(0..conversation.len()).map(Result::unwrap).collect();
            if !messages.is_empty() {
                branches.push((format!("{name} to {}", head.record.id()), messages));
            }
        }
    }
    branches
}

/// Every session of the corpora and the demo, with its name.
fn sessions() -> Vec<(String, &'static dyn Dialect, PathBuf)> {
    let native = crate::support::logs().into_iter().map(|log| (crate::support::native(), log));
    let others = ["claude-code", "codex", "qwen-code", "fluux", "sage-el", "ai-sdk"];
    let all = native.chain(others.into_iter().flat_map(crate::support::logs_of));
    let named = |(dialect, log): (&'static dyn Dialect, PathBuf)| {
        let file: PathBuf = log.iter().rev().take(2).collect::<Vec<_>>().into_iter().rev().collect();
        (format!("{} {}", dialect.name(), file.display()), dialect, log)
    };
    all.map(named).collect()
}

/// Fails with one line for each case that its SDK does not take as it is.
fn judge(cases: Map<String, Value>) {
    let count = cases.len();
    let verdict = verdict(&Value::Object(cases));
    let said = String::from_utf8_lossy(&verdict.stdout);
    let complaints = String::from_utf8_lossy(&verdict.stderr);
    assert!(verdict.status.success(), "the AI SDK does not take all of {count} cases:\n{said}{complaints}");
}

/// Adds these messages, made ready for each SDK, as three cases. An empty list is no case: every SDK rejects it.
fn add(cases: &mut Map<String, Value>, name: &str, messages: &[Message]) {
    for sdk in SDKS {
        let ready: Vec<Message> = messages.iter().cloned().map(|message| message.for_sdk(sdk)).collect();
        cases.insert(format!("{name}, {sdk}"), case(sdk, json!(ready)));
    }
}

fn case(sdk: Sdk, messages: Value) -> Value {
    json!({"sdk": sdk.to_string(), "messages": messages})
}

fn every_part() -> Map<String, Value> {
    serde_json::from_str(include_str!("../aisdk/parts.json")).unwrap()
}

fn verdict(cases: &Value) -> Output {
    ask("validate.mjs", cases)
}

fn ask(script: &str, cases: &Value) -> Output {
    let packages = packages();
    let name = format!("cases-{}-{:?}.json", process::id(), std::thread::current().id());
    let file = packages.join(name.replace(['(', ')'], ""));
    fs::write(&file, cases.to_string()).unwrap();
    let output = Command::new(program("node")).arg(script).arg(&file).current_dir(packages).output().unwrap();
    fs::remove_file(&file).unwrap();
    output
}

/// Of each case, whether its SDK accepts the messages.
fn verdicts(cases: &Value) -> Value {
    told("--verdicts", cases)
}

/// What the SDKs say to one question about each case.
fn told(question: &str, cases: &Value) -> Value {
    let packages = packages();
    let file = packages.join(format!("told{question}-{}.json", process::id()));
    fs::write(&file, cases.to_string()).unwrap();
    let output = Command::new(program("node"))
        .args(["validate.mjs", question])
        .arg(&file)
        .current_dir(packages)
        .output()
        .unwrap();
    fs::remove_file(&file).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The directory in which the SDKs are installed; npm runs only when `package.json` has changed.
fn packages() -> &'static Path {
    static PACKAGES: OnceLock<PathBuf> = OnceLock::new();
    PACKAGES.get_or_init(|| {
        let wanted = include_str!("../aisdk/package.json");
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("aisdk");
        fs::create_dir_all(&directory).unwrap();
        // Two test processes at once must not install over each other.
        let lock = fs::File::create(directory.join("lock")).unwrap();
        lock.lock().unwrap();
        fs::write(directory.join("validate.mjs"), include_str!("../aisdk/validate.mjs")).unwrap();
        fs::write(directory.join("stream.mjs"), include_str!("../aisdk/stream.mjs")).unwrap();
        let installed = directory.join("installed.json");
        if fs::read_to_string(&installed).is_ok_and(|installed| installed == wanted) {
            return directory;
        }
        fs::write(directory.join("package.json"), wanted).unwrap();
        let npm = Command::new(program("npm"))
            .args(["install", "--no-package-lock", "--no-audit", "--no-fund"])
            .current_dir(&directory)
            .output()
            .unwrap();
        assert!(npm.status.success(), "npm install failed:\n{}", String::from_utf8_lossy(&npm.stderr));
        fs::write(&installed, wanted).unwrap();
        directory
    })
}

fn program(name: &str) -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let names = [name.to_owned(), format!("{name}.exe"), format!("{name}.cmd")];
    env::split_paths(&path)
        .flat_map(|directory| names.iter().map(move |name| directory.join(name)).collect::<Vec<_>>())
        .find(|program| program.is_file())
        .unwrap_or_else(|| panic!("this test asks the real AI SDK and needs `{name}` (Node.js 20 or newer) in PATH"))
}
