//! Which session a name means, in every command that takes one: ids and files of the same name, several sessions of one id.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::fs;
use std::path::PathBuf;

use support::{Ran, TestEnv, line, talk};

const ID: &str = "11111111-2222-4333-8444-555555555555";

/// Every command that takes the name of a session. `#` is added where it needs a record.
const READING: [&[&str]; 6] = [
    &["show"],
    &["tree"],
    &["history", "--for", "openai"],
    &["extract-tools"],
    &["doctor"],
    &["convert", "--to", "codex"],
];
const WRITING: [&[&str]; 6] =
    [&["rename"], &["remove"], &["fork"], &["rewind"], &["record", "--resume"], &["record", "--checkpoint"]];

/// The arguments of a command about a session.
fn about<'a>(command: &[&'a str], name: &'a str) -> Vec<String> {
    let mut args: Vec<String> = command.iter().map(ToString::to_string).collect();
    let needs_record = command.contains(&"rewind") || command.contains(&"--checkpoint");
    args.push(if needs_record { format!("{name}#u1") } else { name.to_owned() });
    args.extend(command.contains(&"rename").then(|| "Title".to_owned()));
    args
}

fn run(env: &TestEnv, args: &[String]) -> Ran {
    env.run_with(&args.iter().map(String::as_str).collect::<Vec<_>>(), b"{\"user\": \"When?\"}\n")
}

#[test]
fn a_file_or_a_folder_hides_no_session() {
    for make in [|path: PathBuf| fs::write(path, "notes\n").unwrap(), |path: PathBuf| fs::create_dir(path).unwrap()] {
        for command in READING.into_iter().chain(WRITING) {
            let env = TestEnv::new();
            env.session("tides", &talk().replace("\"s1\"", "\"tides\""));
            make(env.work().join("tides"));
            let ran = run(&env, &about(command, "tides"));
            let found = if command.contains(&"extract-tools") { 1 } else { 0 };
            assert_eq!(ran.code, found, "{command:?}: {}", ran.all());
            assert!(!ran.err.contains("no session"), "{command:?}: {}", ran.all());
        }
    }
}

#[test]
fn a_file_without_an_ending_is_named_with_a_slash() {
    for command in READING.into_iter().chain(WRITING).chain([&["tail"][..]]) {
        let env = TestEnv::new();
        fs::write(env.work().join("tides"), talk()).unwrap();
        let ran = run(&env, &about(command, "tides"));
        assert_eq!(ran.code, 1, "{command:?}: {}", ran.all());
        assert!(ran.err.contains("no session matches \"tides\"") && ran.err.contains("use ./tides"), "{}", ran.all());
    }
    let env = TestEnv::new();
    for name in ["tides", "tides.jsonl", "tides.json.zst"] {
        fs::write(env.work().join(name), talk()).unwrap();
    }
    for name in ["./tides", "../desk/tides", "tides.jsonl", "./tides#u1", "tides.jsonl#u1"] {
        assert_eq!(env.run(&["show", name]).code, 0, "{name}");
    }
    fs::create_dir(env.work().join("store")).unwrap();
    fs::write(env.work().join("store/messages.jsonl"), talk()).unwrap();
    assert_eq!(env.run(&["doctor", "."]).code, 0);
    assert_eq!(env.run(&["doctor", "./store"]).code, 0);
    assert!(env.run(&["doctor", "store"]).err.contains("use ./store"));
}

#[test]
fn a_recorded_session_is_resumed_as_the_hint_says() {
    let env = TestEnv::new();
    let recorded = env.run_with(&["record", "--id", "tides"], b"{\"user\": \"When?\"}\n");
    fs::create_dir(env.work().join("tides")).unwrap();
    let hint = recorded.err.lines().find_map(|line| line.strip_prefix("Continue later with: scrollback ")).unwrap();
    let ran = run(&env, &hint.split(' ').map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(ran.code, 0, "{}", ran.all());
}

#[test]
fn what_the_hint_says_names_the_session_wherever_it_is() {
    for args in [
        &["record", "--id", "x.jsonl"][..],
        &["record", "--dialect", "ai-sdk", "--id", "tides"],
        &["record", "--dialect", "fluux", "--jid", "ada@example.org"],
        &["record", "--resume", "./elsewhere.jsonl"],
        &["record", "--store", "store"],
    ] {
        let env = TestEnv::new();
        env.run_with(&["record", "--id", "tides"], b"{\"user\": \"When?\"}\n");
        fs::create_dir_all(env.work().join("data/memory")).unwrap();
        fs::write(env.work().join("elsewhere.jsonl"), talk()).unwrap();
        let recorded = env.run_with(args, b"{\"user\": \"When?\"}\n");
        fs::write(env.work().join("x.jsonl"), talk()).unwrap();
        let path = |ran: &Ran| ran.err.lines().find_map(|line| line.strip_prefix("Recording to ")).unwrap().to_owned();
        let hint = recorded.err.lines().find_map(|line| line.strip_prefix("Continue later with: scrollback ")).unwrap();
        let hint = hint.replace("$HOME", &env.home().display().to_string());
        let hint = hint.replace("$DIR", &env.work().parent().unwrap().display().to_string());
        let resumed = env.run_with(&hint.split(' ').collect::<Vec<_>>(), b"{\"user\": \"Again?\"}\n");
        assert_eq!((resumed.code, path(&resumed)), (0, path(&recorded)), "{hint}: {}", resumed.all());
    }
}

#[test]
fn nothing_is_named_by_an_empty_name() {
    let env = TestEnv::new();
    env.run_with(&["record", "--id", "tides"], b"{\"user\": \"When?\"}\n");
    for args in [&["show", "native:"][..], &["remove", "native:"], &["remove", ""]] {
        let ran = env.run(args);
        assert!(ran.code == 2 && ran.err.contains("the name of a session is empty"), "{args:?}: {}", ran.all());
    }
    env.run(&["remove", "tides"]);
    for args in [&["trash", "restore", ""][..], &["trash", "empty", "--yes", ""]] {
        let ran = env.run(args);
        assert!(ran.code == 2 && ran.err.contains("the id is empty"), "{args:?}: {}", ran.all());
    }
    assert_eq!(env.run(&["trash", "--json"]).json().as_array().map(Vec::len), Some(1));
}

/// Two sessions of one id: the copy is in another project's folder.
fn twins(env: &TestEnv, dialect: &str) -> Vec<PathBuf> {
    let recorded = env.run_with(
        &["record", "--dialect", dialect, "--id", ID],
        b"{\"user\": \"When?\"}\n{\"assistant\": \"At noon.\"}\n",
    );
    assert_eq!(recorded.code, 0, "{}", recorded.all());
    let path = recorded.err.lines().find_map(|line| line.strip_prefix("Recording to ")).unwrap().to_owned();
    let path = PathBuf::from(path.replace("$HOME", &env.home().display().to_string()));
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let copy = match dialect {
        "native" => path.parent().unwrap().with_file_name("copy").join(name),
        "codex" => path.with_file_name(format!("rollout-2026-11-15T13-00-00-{ID}.jsonl")),
        "ai-sdk" => path.with_file_name("copy.jsonl"),
        "qwen-code" => path.parent().unwrap().parent().unwrap().with_file_name("-copy").join("chats").join(name),
        _ => path.parent().unwrap().with_file_name("-copy").join(name),
    };
    fs::create_dir_all(copy.parent().unwrap()).unwrap();
    fs::copy(&path, &copy).unwrap();
    vec![path, copy]
}

/// The text of every file of a home.
fn files(env: &TestEnv) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut folders, mut files) = (vec![env.home()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push((path.clone(), fs::read(path).unwrap())) }
        }
    }
    files.sort();
    files
}

#[test]
fn a_full_id_of_two_sessions_is_ambiguous_in_every_command() {
    for dialect in ["native", "claude-code", "codex", "qwen-code"] {
        let env = TestEnv::new();
        let paths = twins(&env, dialect);
        let home = env.home().display().to_string();
        let mut shown: Vec<String> =
            paths.iter().map(|path| path.display().to_string().replace(&home, "$HOME")).collect();
        shown.sort_unstable();
        let before = files(&env);
        for command in READING.into_iter().chain(WRITING).chain([&["tail"][..], &["new"]]) {
            for name in [ID.to_owned(), ID[..8].to_owned(), format!("{dialect}:{ID}")] {
                let ran = run(&env, &about(command, &name));
                assert_eq!(ran.code, 2, "{dialect} {command:?}: {}", ran.all());
                assert!(ran.err.contains("is ambiguous: 2 sessions match"), "{dialect} {command:?}: {}", ran.all());
                for path in &shown {
                    assert!(ran.err.contains(path), "{dialect} {command:?}: {}", ran.all());
                }
            }
        }
        assert!(files(&env) == before, "{dialect}: something was written");
        let listed = env.run(&["list", "--all"]).err;
        let note = listed.lines().find_map(|line| line.strip_prefix("2 sessions have the id 11111111: use its path: "));
        let mut named: Vec<&str> = note.unwrap_or_default().split(" or ").collect();
        named.sort_unstable();
        assert_eq!(named, shown, "{dialect}: {listed}");
        for path in &paths {
            assert_eq!(env.run(&["show", path.to_str().unwrap()]).code, 0, "{dialect}");
            let ran = env.run(&["rename", path.to_str().unwrap(), "Tides"]);
            assert_eq!(ran.code, 0, "{dialect}: {}", ran.all());
        }
    }
}

#[test]
fn copies_that_are_the_same_session_are_not_ambiguous() {
    let env = TestEnv::new();
    let paths = twins(&env, "codex");
    fs::remove_file(&paths[1]).unwrap();
    // What is compressed is known by its content: the name alone says what it is a copy of.
    fs::copy(&paths[0], paths[0].with_extension("jsonl.zst")).unwrap();
    let ran = env.run(&["rename", ID, "Tides"]);
    assert_eq!(ran.code, 0, "a compressed copy beside the log: {}", ran.all());
    let listed = env.run(&["list", "--all"]).err;
    assert!(!listed.contains("have the id"), "{listed}");

    let env = TestEnv::new();
    let paths = twins(&env, "claude-code");
    fs::remove_file(&paths[1]).unwrap();
    let (project, link) = (paths[0].parent().unwrap(), paths[1].parent().unwrap());
    fs::remove_dir(link).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(project, link).unwrap();
    let agent = project.join(ID).join("subagents/agent-1.jsonl");
    fs::create_dir_all(agent.parent().unwrap()).unwrap();
    let line = fs::read_to_string(&paths[0]).unwrap().lines().next().unwrap().to_owned();
    fs::write(agent, line + "\n").unwrap();
    for args in [["show", ID], ["remove", ID]] {
        let ran = env.run(&args);
        assert_eq!(ran.code, 0, "a linked folder, and a sub-agent's session: {}", ran.all());
    }
}

#[test]
fn a_title_stays_when_the_session_grows() {
    for dialect in ["claude-code", "codex", "qwen-code"] {
        let env = TestEnv::new();
        let record = |args: &[&str], input: &str| {
            let ran = env.run_with(&[&["record", "--dialect", dialect][..], args].concat(), input.as_bytes());
            assert_eq!(ran.code, 0, "{dialect}: {}", ran.all());
        };
        record(&["--id", ID], "{\"user\": \"When?\"}\n{\"assistant\": \"At noon.\"}\n");
        assert_eq!(env.run(&["rename", ID, "High water"]).code, 0, "{dialect}");
        let large = "word ".repeat(2000);
        let grown: String =
            (0..30).map(|_| format!("{{\"user\": \"{large}\"}}\n{{\"assistant\": \"{large}\"}}\n")).collect();
        record(&["--resume", ID], &grown);
        let listed = env.run(&["list", "--all", "--json"]).json();
        assert_eq!(listed[0]["title"], "High water", "{dialect}: {}", listed[0]);
        assert!(listed[0]["sizeBytes"].as_u64().unwrap() > 500_000, "{dialect}");
    }
}

/// Prompts and answers of so many kilobytes, as `record` reads them.
fn long_talk(kilobytes: usize) -> String {
    let text = "word ".repeat(1024);
    let turn = format!("{{\"user\": \"{text}\"}}\n{{\"assistant\": \"{text}\"}}\n");
    turn.repeat(kilobytes / 10)
}

#[test]
fn a_recorder_writes_the_title_again_near_the_end() {
    for dialect in ["claude-code", "codex", "qwen-code"] {
        let env = TestEnv::new();
        let record = |args: &[&str], input: &str| {
            let ran = env.run_with(&[&["record", "--dialect", dialect][..], args].concat(), input.as_bytes());
            assert_eq!(ran.code, 0, "{dialect}: {}", ran.all());
        };
        let titles = || {
            let listed = env.run(&["list", "--all", "--json"]).json();
            let path = listed[0]["path"].as_str().unwrap().replace("$HOME", env.home().to_str().unwrap());
            let log = fs::read_to_string(path).unwrap();
            let is_title: Vec<bool> = log.lines().map(|line| line.contains("High water")).collect();
            assert!(!is_title.windows(2).any(|pair| pair[0] && pair[1]), "{dialect}: twice in a row");
            is_title.into_iter().filter(|is_title| *is_title).count()
        };
        record(&["--id", ID], &long_talk(100));
        assert_eq!(titles(), 0, "{dialect}: a session without a title gets none");
        assert_eq!(env.run(&["rename", ID, "High water"]).code, 0, "{dialect}");
        record(&["--resume", ID], "{\"user\": \"When?\"}\n{\"assistant\": \"At noon.\"}\n");
        assert_eq!(titles(), 1, "{dialect}: the title is near the end");
        record(&["--resume", ID], &long_talk(1500));
        assert!((2..100).contains(&titles()), "{dialect}: {}", titles());
        let listed = env.run(&["list", "--all", "--json"]).json();
        assert_eq!(listed[0]["title"], "High water", "{dialect}: {}", listed[0]);
        assert_eq!(listed[0]["titleSource"], "manual", "{dialect}: {}", listed[0]);
        assert!(listed[0]["sizeBytes"].as_u64().unwrap() > 1_500_000, "{dialect}");
        // An agent that reads the session sees what it would see without these lines.
        assert_eq!(env.run(&["doctor", ID]).code, 0, "{dialect}: {}", env.run(&["doctor", ID]).all());
        let history = env.run(&["history", ID, "--for", "openai"]).json();
        let roles: Vec<&str> =
            history.as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
        let expected = roles.iter().enumerate().all(|(at, role)| *role == ["user", "assistant"][at % 2]);
        assert!(expected && roles.len() == 2 * 161, "{dialect}: {} {roles:?}", roles.len());
        let shown = env.run(&["show", ID, "--last", "2"]);
        assert_eq!(shown.code, 0, "{dialect}: {}", shown.all());
        assert!(shown.out.starts_with("High water\n") && shown.out.matches('▌').count() == 2, "{}", shown.all());
    }
}

/// Ids as one moment makes them: they share their first eight to twelve characters, or more.
const OF_ONE_MOMENT: [&str; 7] = [
    "0190f0e2-aaaa-7000-8000-000000000001",
    "0190f0e2-aaaa-7000-8000-000000000002",
    "0190f0e2-aaab-7000-8000-000000000003",
    "0190f0e2-aacb-7000-8000-000000000004",
    "0190f0e2-adcb-7000-8000-000000000005",
    "0190f0e2-edcb-7000-8000-000000000006",
    "0190f0e2-edcb-7001-8000-000000000007",
];

/// The ids that were printed: what begins as ids of that moment do.
fn printed(text: &str) -> Vec<String> {
    let of_id = |c: char| c.is_ascii_hexdigit() || c == '-';
    let words = text.split(|c: char| !of_id(c)).filter(|word| word.starts_with("0190f0e2"));
    words.map(str::to_owned).collect()
}

/// A session whose records have these ids, with a branch, a rewind, a tool call and a gap.
fn of_one_moment(session: &str) -> String {
    let [u1, a1, u2, a2, u3, a3, result] = OF_ONE_MOMENT;
    let call = r#""Let me see.","toolCalls":[{"id":"c1","name":"Bash","arguments":{"command":"expr 2 + 2"}}]"#;
    let lines = [
        line("user", u1, None, "What is two and two?"),
        line("assistant", a1, Some(u1), "Four."),
        line("user", u2, Some(a1), "Sure?"),
        line("assistant", a2, Some(u1), "Five."),
        line("user", u3, Some(a2), "Really?"),
        line("assistant", a3, Some(u3), "CALL").replace("\"CALL\"", call),
        line("tool_result", result, Some(a3), "No."),
        line("user", "lost", Some("0190f0e2-aaac-7000-8000-000000000009"), "Hello?"),
    ];
    lines.concat().replace("\"s1\"", &format!("\"{session}\""))
}

#[test]
fn every_record_id_that_is_printed_names_a_record() {
    let env = TestEnv::new();
    env.session("tides", &of_one_moment("tides"));
    let [u1, a1, u2, a2, .., result] = OF_ONE_MOMENT;
    assert_eq!(env.run(&["rewind", &format!("tides#{result}")]).code, 0);
    let rewound = env.run(&["rewind", &format!("tides#{a1}")]);
    let mut all = printed(&rewound.all());
    assert!(!all.is_empty(), "{}", rewound.all());
    let commands: [&[&str]; 9] = [
        &["tree", "tides"],
        &["show", "tides"],
        &["show", "tides", "--last", "1"],
        &["show", "tides", "--head", u2],
        &["show", "tides", "--head", a2],
        &["show", "tides", "--head", result],
        &["show", "tides", "--head", result, "--last", "1"],
        &["show", "tides#0190f0e2"],
        &["extract-tools", "tides", "--head", result],
    ];
    for command in commands {
        let ran = env.run(command);
        let typed = command[1].split('#').next_back().unwrap();
        let ids: Vec<String> = printed(&ran.all()).into_iter().filter(|id| id != typed).collect();
        assert!(!ids.is_empty(), "{command:?}: {}", ran.all());
        all.extend(ids);
    }
    // A record that is missing can be named by no command.
    all.retain(|id| !id.starts_with("0190f0e2-aaac"));
    all.sort();
    all.dedup();
    for id in &all {
        for command in [&["show"][..], &["history", "--for", "openai"], &["fork"]] {
            let ran = env.run(&[command, &[&format!("tides#{id}")]].concat());
            assert_eq!(ran.code, 0, "{id}: {}", ran.all());
        }
        assert_eq!(env.run(&["show", "tides", "--head", id]).code, 0, "{id}");
    }
    assert!(all.iter().any(|id| id == "0190f0e2-aaab"), "no longer than they must be: {all:?}");
    assert!(all.iter().any(|id| id == u1), "as long as they must be: {all:?}");
    env.session("short", &talk().replace("\"s1\"", "\"short\"").replace("\"u1\"", "\"3f8a1c2d-0001\""));
    let shown = env.run(&["show", "short"]);
    assert!(shown.out.contains("3f8a1c2d\n"), "at least eight characters: {}", shown.all());
}

#[test]
fn every_session_id_that_is_printed_names_a_session() {
    let env = TestEnv::new();
    let [here, fork, sub, codex, other, ..] = OF_ONE_MOMENT;
    let work = env.work().to_str().unwrap().to_owned();
    let session = |id: &str, project: &str| {
        env.session(id, &talk().replace("\"s1\"", &format!("\"{id}\"")).replace("/gone/tide", project));
    };
    session(here, &work);
    session(sub, &work);
    session(other, "/gone/elsewhere");
    assert_eq!(env.run(&["fork", here, "--id", fork]).code, 0);
    let args = ["record", "--dialect", "codex", "--project", &work, "--id", codex];
    assert_eq!(env.run_with(&args, b"{\"user\": \"When?\"}\n").code, 0);
    let commands: [&[&str]; 8] = [
        &["list"],
        &["list", "--limit", "1"],
        &["list", "--dialect", "codex"],
        &["list", "--all", "--full"],
        &["show", fork],
        &["show", "0190f0e2"],
        &["rename", sub, "Title"],
        &["tree", "0190f0e2-a"],
    ];
    for command in commands {
        let ran = env.run(command);
        let ids: Vec<String> = printed(&ran.all()).into_iter().filter(|id| !command.contains(&id.as_str())).collect();
        assert!(!ids.is_empty() || command[0] == "rename", "{command:?}: {}", ran.all());
        for id in ids {
            let shown = env.run(&["show", &id]);
            assert_eq!(shown.code, 0, "{command:?} printed {id}: {}", shown.all());
        }
    }
    for id in [fork, sub] {
        let removed = env.run(&["remove", id]);
        assert_eq!(removed.code, 0, "{}", removed.all());
    }
    let trash = env.run(&["trash"]).out;
    for id in trash.lines().skip(1).filter_map(|line| line.split(' ').next()) {
        assert_eq!(env.run(&["trash", "restore", id]).code, 0, "{id}");
    }
    assert_eq!(env.run(&["show", fork]).code, 0);
}

/// Lists hide sub-agents' sessions, whose ids were made in the same moment: a name is looked up among all.
#[test]
fn an_id_that_a_list_prints_is_not_that_of_a_hidden_sub_agent_too() {
    let env = TestEnv::new();
    let (parent, sub) = ("019a6b1e-4c07-7d31-9a52-6f0b8e21c4d7", "019a6b1e-4c08-7d31-9a52-6f0b8e21c4d7");
    for (id, parent) in [(parent, None), (sub, Some(parent))] {
        let meta = serde_json::json!({"timestamp": "2026-11-15T10:00:00Z", "type": "session_meta", "payload": {
            "id": id, "timestamp": "2026-11-15T10:00:00Z", "cwd": "/gone/tide", "parent_thread_id": parent}});
        let item = serde_json::json!({"timestamp": "2026-11-15T10:00:01Z", "type": "response_item", "payload": {
            "type": "message", "role": "user", "content": [{"type": "input_text", "text": "When?"}]}});
        let path = env.home().join(format!(".codex/sessions/2026/11/15/rollout-2026-11-15T10-00-00-{id}.jsonl"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{meta}\n{item}\n")).unwrap();
    }
    let listed = env.run(&["list", "--all"]);
    let ids: Vec<&str> = listed.out.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    let [id] = ids[..] else { panic!("the sub-agent is hidden: {}", listed.all()) };
    for command in READING.into_iter().take(3).chain([&["doctor"][..]]) {
        let ran = run(&env, &about(command, id));
        assert_eq!(ran.code, 0, "{command:?} {id}: {}", ran.all());
    }
}

#[test]
fn an_id_that_would_be_read_as_something_else_is_printed_in_full() {
    let env = TestEnv::new();
    for id in ["room#general-2026", "codex:abcdefghij", "abc:defghijkl"] {
        env.session(id, &talk().replace("\"s1\"", &format!("\"{id}\"")));
    }
    let listed = env.run(&["list", "--all"]);
    for id in listed.out.lines().skip(1).filter_map(|line| line.split(' ').next()) {
        assert_eq!(env.run(&["show", id]).code, 0, "{id}: {}", listed.all());
    }
    assert_eq!(listed.out.lines().count(), 4, "{}", listed.all());
}

#[test]
fn a_checkpoint_alone_finds_its_session_in_the_project() {
    let env = TestEnv::new();
    let path = env
        .session("tides", &talk().replace("\"s1\"", "\"tides\"").replace("/gone/tide", env.work().to_str().unwrap()));
    env.session("other", &talk().replace("\"s1\"", "\"other\"").replace("\"u", "\"x").replace("\"a", "\"y"));
    let ran = env.run_with(&["record", "--checkpoint", "a1"], b"{\"user\": \"Why?\"}\n");
    assert_eq!(ran.code, 0, "{}", ran.all());
    let last = fs::read_to_string(&path).unwrap().lines().last().unwrap().to_owned();
    assert!(last.contains("\"parentUuid\":\"a1\""), "{last}");
    let none = env.run_with(&["record", "--checkpoint", "nope"], b"{\"user\": \"Why?\"}\n");
    assert_eq!(none.code, 1, "{}", none.all());
    assert_eq!(env.run(&["fork", "tides", "--id", "copy"]).code, 0);
    let several = env.run_with(&["record", "--checkpoint", "a1"], b"{\"user\": \"Why?\"}\n");
    assert_eq!(several.code, 2, "{}", several.all());
    assert!(several.err.contains("tides#a1") && several.err.contains("copy#a1"), "{}", several.all());
}

#[test]
fn a_session_with_a_torn_first_line_belongs_to_the_project_that_is_named() {
    let env = TestEnv::new();
    let path = env.session("torn", "{\"type\":\"user\",\"uuid\":\"u1\",\"sess");
    let ran = env.run_with(&["record", "--resume", "torn", "--project", "/gone/tides"], b"{\"user\": \"When?\"}\n");
    assert_eq!(ran.code, 0, "{}", ran.all());
    let log = fs::read_to_string(path).unwrap();
    assert!(log.contains("/gone/tides") && !log.contains(env.work().to_str().unwrap()), "{log}");
}

#[test]
fn a_directory_that_is_gone_is_said() {
    for args in [
        &["record"][..],
        &["record", "--continue"],
        &["record", "--dialect", "fluux", "--jid", "ada@example.org"],
        &["new", "--dialect", "sage-el"],
    ] {
        let ran = in_gone_directory(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.all());
        assert!(ran.err.contains("the working directory no longer exists\nhint: change to another"), "{}", ran.all());
    }
}

/// Only what records in the working directory needs it.
#[test]
fn a_directory_that_is_gone_stops_nothing_else() {
    for args in [
        &["record", "--project", "/gone/tides"][..],
        &["record", "--resume", "s1"],
        &["rename", "s1", "Title"],
        &["fork", "s1"],
        &["rewind", "s1#u1"],
        &["convert", "s1", "--to", "codex"],
        &["remove", "s1"],
        &["--demo", "list"],
        &["list", "--all"],
    ] {
        let ran = in_gone_directory(args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.all());
    }
    let trash = in_gone_directory(&["trash"]);
    assert!(trash.code == 1 && trash.err.contains("the trash is empty"), "{}", trash.all());
}

/// Runs a command in a directory that no longer exists, with the native session s1.
fn in_gone_directory(args: &[&str]) -> support::Ran {
    let env = TestEnv::new();
    env.session("s1", &talk());
    let gone = env.work().join("gone");
    fs::create_dir(&gone).unwrap();
    let inner = env.command(args);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "cd \"$0\" && rmdir \"$0\" && exec \"$@\""]).arg(&gone).arg(inner.get_program());
    command.args(inner.get_args()).env_clear().env("HOME", env.home()).env("PATH", "/usr/bin:/bin");
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    env.ran(command, b"{\"user\": \"When?\"}\n")
}

#[test]
fn a_checkpoint_that_is_ambiguous_in_one_session_does_not_mean_another() {
    let env = TestEnv::new();
    let here =
        |id: &str| talk().replace("\"s1\"", &format!("\"{id}\"")).replace("/gone/tide", env.work().to_str().unwrap());
    let tides = env.session("tides", &here("tides").replace("\"a1\"", "\"ab1\"").replace("\"a2\"", "\"ab2\""));
    let other = env.session("other", &here("other").replace("\"a1\"", "\"ab3\"").replace("\"a2\"", "\"x2\""));
    let before = (fs::read(&tides).unwrap(), fs::read(&other).unwrap());
    let ran = env.run_with(&["record", "--checkpoint", "ab"], b"{\"user\": \"Why?\"}\n");
    assert_eq!(ran.code, 2, "{}", ran.all());
    assert!(ran.err.contains("tides#ab") && ran.err.contains("other#ab"), "{}", ran.all());
    assert!((fs::read(&tides).unwrap(), fs::read(&other).unwrap()) == before, "something was written");
    // In the only session that has such records, the record is ambiguous.
    fs::remove_dir_all(other.parent().unwrap()).unwrap();
    let ran = env.run_with(&["record", "--checkpoint", "ab"], b"{\"user\": \"Why?\"}\n");
    assert_eq!(ran.code, 2, "{}", ran.all());
    assert!(ran.err.contains("ab1") && ran.err.contains("ab2"), "{}", ran.all());
}

#[test]
fn a_sub_agent_and_an_unrelated_session_are_ambiguous() {
    let env = TestEnv::new();
    let paths = twins(&env, "claude-code");
    fs::remove_file(&paths[1]).unwrap();
    let line = fs::read_to_string(&paths[0]).unwrap().lines().next().unwrap().to_owned() + "\n";
    let agent = paths[0].with_file_name(ID).join("subagents/agent-tides.jsonl");
    fs::create_dir_all(agent.parent().unwrap()).unwrap();
    fs::write(&agent, line.replace("\"sessionId\"", "\"agentId\":\"tides\",\"sessionId\"")).unwrap();
    env.session("agent-times", &talk().replace("\"s1\"", "\"agent-times\""));
    let before = files(&env);
    for args in [&["show", "agent-ti"][..], &["remove", "agent-ti"], &["rename", "agent-ti", "Tides"]] {
        let ran = env.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.all());
        assert!(ran.err.contains("is ambiguous: 2 sessions match"), "{args:?}: {}", ran.all());
        assert!(ran.err.contains("agent-tides") && ran.err.contains("agent-times"), "{args:?}: {}", ran.all());
    }
    assert!(files(&env) == before, "something was written");
    for id in ["agent-tides", "agent-times"] {
        assert_eq!(env.run(&["show", id]).code, 0, "{id}");
    }
}

#[test]
fn a_line_that_mentions_titles_often_does_not_hide_the_title() {
    let env = TestEnv::new();
    let record = |args: &[&str], input: &str| {
        let ran = env.run_with(&[&["record", "--dialect", "codex"][..], args].concat(), input.as_bytes());
        assert_eq!(ran.code, 0, "{}", ran.all());
    };
    record(&["--id", ID], &long_talk(40));
    assert_eq!(env.run(&["rename", ID, "High water"]).code, 0);
    let mentions = format!("{{\"user\": \"{}\"}}\n", "thread_name_updated ".repeat(40));
    // Short lines: the end of the file shows everything but the title.
    let text = "word ".repeat(200);
    let turn = format!("{{\"user\": \"{text}\"}}\n{{\"assistant\": \"{text}\"}}\n");
    record(&["--resume", ID], &(mentions + &turn.repeat(5)));
    let listed = env.run(&["list", "--all", "--json"]).json();
    let path = listed[0]["path"].as_str().unwrap().replace("$HOME", env.home().to_str().unwrap());
    assert_eq!(fs::read_to_string(path).unwrap().matches("High water").count(), 1);
    assert_eq!(listed[0]["title"], "High water", "{}", listed[0]);
}

#[test]
fn short_names_of_dialects_are_known_and_unknown_ones_list_those_that_are() {
    let env = TestEnv::new();
    let full = env.run(&["--demo", "list", "--dialect", "claude-code", "--json"]).out;
    assert!(full.contains("claude-code"), "{full}");
    assert_eq!(env.run(&["--demo", "list", "--dialect", "claude", "--json"]).out, full);
    let newest = env.run(&["--demo", "show", "qwen:@", "--json"]).json();
    assert_eq!(newest["session"]["dialect"], "qwen-code");
    let converted = env.run(&["--demo", "convert", "codex:@", "--to", "claude", "-o", "-"]);
    assert!(converted.out.contains("\"sessionId\""), "{}", converted.err);
    for unknown in [&["show", "gemini:@"][..], &["list", "--dialect", "gemini"], &["convert", "@", "--to", "gemini"]] {
        let failed = env.run(unknown).err;
        assert!(failed.contains("native, claude-code, codex, qwen-code"), "{unknown:?}: {failed}");
    }
    for unsupported in [["show", "gemini:@"], ["show", "copilot-cli:@"], ["list", "--dialect=opencode"]] {
        let failed = env.run(&unsupported);
        assert_eq!(failed.code, 2);
        assert!(failed.err.contains("sessions are not supported yet"), "{unsupported:?}: {}", failed.err);
    }
}
