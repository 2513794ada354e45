//! The commands as a person uses them. What the library promises is tested there; here, that it is wired.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use insta::assert_snapshot;
use support::{TestEnv, line, talk};

#[test]
fn the_demo_is_listed_on_a_fresh_machine() {
    assert_snapshot!(TestEnv::new().run(&["--demo", "list"]).all(), @"
    ID        UPDATED  PROJECT      TITLE                                 AGENT        MSGS  STATE
    c0ffee17  2 h      harbour      The harbour office opens at eight f…  native          4  clean
    78be2c15  1 d      tide-tables  Release 0.5.0. Check everything twi…  native          6  interrupted
    0d93f4ab  3 d      blog         The dark theme flashes white when a…  native          6  degraded
    019a6f90  5 d      tide-tables  Asking the zone for each instant is…  codex           6  clean
    019a6b1e  6 d      tide-tables  The spring tide of 3 March is an ho…  codex           6  clean
    5ac81b7f  6 d      lighthouse   The slow lamp                         native         14  clean
    home-ada  7 d      tide-tables  Which of my functions in tide.el ha…  sage-el         6  clean
    c61f09d4  8 d      lighthouse   The late fog horn                     claude-code     2  clean
    f04b7e92  10 d     blog         A feed where everything was new       qwen-code       6  clean
    91c5e7a0  12 d     lighthouse   Splitting the lamp controller         native          6  clean
    keepers@  12 d                  Who has the rota for the open day o…  fluux          11  clean
    chat-7d2  12 d                  Which way the buoys lie               ai-sdk          4  clean
    e6127d58  2 w      blog         The hour that happened twice          native          5  no answer
    3f8a61c2  3 w      tide-tables  The missing hour of 25 October        native          4  clean
    20261024  3 w      tide-tables  How do I bind tide-insert to a key …  sage-el         2  clean
    8b20e5a7  3 w      tide-tables  Harbours of Brittany                  claude-code     4  clean
    b27d04e9  4 w      tide-tables  A cache for the yearly table: SQLit…  native          6  clean
    [exit 0]
    2 sub-agent sessions; add --sidechains to list them.
    ");
}

#[test]
fn a_history_is_one_document_and_its_repairs_are_told_beside_it() {
    let env = TestEnv::new();
    let call = r#"{"type":"assistant","uuid":"a3","parentUuid":"u2","message":{"content":"Let me see.","toolCalls":[{"id":"c1","name":"Bash","arguments":{"command":"expr 2 + 2"}}]}}"#;
    env.session("s1", &format!("{}{call}\n", talk()));
    assert_snapshot!(env.run(&["history", "s1", "--for", "openai"]).all(), @r#"
    [
    {"role":"user","content":"What is two and two?"},
    {"role":"assistant","content":"Four."},
    {"role":"user","content":"Sure?"},
    {"role":"assistant","content":"Let me see.","tool_calls":[{"id":"c1","type":"function","function":{"name":"Bash","arguments":"{\"command\":\"expr 2 + 2\"}"}}]},
    {"role":"tool","tool_call_id":"c1","content":"[no result was recorded: the session ended before this call finished]"}
    ]
    [exit 0]
    interrupted-turn: Resumed session from 2026-11-15T10:00:00Z: 4 messages, the last answer was interrupted: one call has no result, and it is not run again.
    note: a3: call c1 has no result; a failed result is added
    "#);
    assert_snapshot!(env.run(&["history", "s1#a2", "--for", "text", "--last", "2"]).all(), @r"
    User: Sure?

    Assistant: **Yes.**
    [exit 0]
    clean: Resumed session from 2026-11-15T10:00:00Z: 4 messages, it continues after its last answer.
    ");
    let told = env.run(&["history", "s1#u1", "--for", "anthropic", "--json"]);
    assert_eq!(
        told.json(),
        serde_json::json!([{"role": "user", "content": [{"type": "text", "text": "What is two and two?"}]}])
    );
    assert_eq!(
        told.err,
        "{\"state\":\"interrupted-prompt\",\"notice\":\"Resumed session from 2026-11-15T10:00:00Z: 1 message, the last prompt has no answer yet.\",\"notes\":[]}\n"
    );
    // Of text the document is the text itself.
    let (plain, told) = (["history", "s1", "--for", "text"], ["history", "s1", "--for", "text", "--json"]);
    assert_eq!(env.run(&told).json(), serde_json::json!(env.run(&plain).out));
    assert_eq!(env.run(&["history", "s1", "--for", "nobody"]).code, 2);
    let without_view = env.run(&["history", "s1"]);
    assert!(without_view.err.contains("`scrollback history --help`"), "{}", without_view.err);
    assert_eq!(env.run(&["history", "s1#zzz", "--for", "text"]).code, 1);
    env.session("s2", "{\"type\":\"custom_title\",\"uuid\":\"t\",\"title\":\"Nothing\"}\n");
    assert_eq!(
        (env.run(&["history", "s2", "--for", "openai"]).code, env.run(&["history", "s2", "--for", "openai"]).out),
        (1, "[]\n".to_owned())
    );
    assert_snapshot!(env.run(&["history", "s2", "--for", "text"]).all(), @r"
    [exit 1]
    clean: Resumed session: 0 messages, nobody has asked anything yet.
    Nothing to send; run `scrollback show` to see the session.
    ");
}

#[test]
fn a_session_is_shown_as_a_conversation() {
    let env = TestEnv::new();
    env.session("s1", &talk());
    assert_snapshot!(env.run(&["show", "s1"]).all(), @"
    What is two and two?
    native · s1 · /gone/tide · main · clean

    ▌ you  15 Nov 2026 10:00 · u1

      What is two and two?

    ▌ assistant  15 Nov 2026 10:00 · a1 · <1 s

      Four.

    ▌ you  15 Nov 2026 10:00 · u2

      Sure?

    ▌ assistant  15 Nov 2026 10:00 · a2 · <1 s

      Yes.

    [exit 0]
    ");
}

#[test]
fn a_room_is_shown_as_a_chat_with_reactions_under_what_they_answer() {
    let env = TestEnv::new();
    let folder = env.work().join("data/memory/lounge@rooms.example.org");
    std::fs::create_dir_all(&folder).unwrap();
    let said = |id: &str, who: &str, more: &str| {
        format!(
            r#"{{"type":"message","role":"user","content":"I am {who}.","msg_id":"{id}","sender":"{who}@muc"{more}}}"#
        )
    };
    let reacts = |who: &str, to: &str, emojis: &str| {
        format!(
            r#"{{"type":"message","role":"user","content":"","msg_id":"r-{who}","sender":"{who}@muc","reaction":{{"message_id":"{to}","emojis":[{emojis}]}}}}"#
        )
    };
    let files = r#","attachments":[{"filename":"photo.png","mime_type":"image/png","size":"926KB"},{"filename":"file","mime_type":"unknown","size":"unknown"}]"#;
    let lines = [
        said("m1", "alice", files),
        said("m2", "bob", ""),
        r#"{"type":"message","role":"assistant","content":"Hello, both.","msg_id":"m3"}"#.to_owned(),
        reacts("alice", "m3", r#""👍""#),
        reacts("bob", "m3", r#""🎉""#),
        // She changes her mind, Carol takes hers back, and what answers nothing that is shown stands by itself.
        reacts("alice", "m3", r#""🎉""#),
        reacts("carol", "m1", r#""👀""#),
        reacts("carol", "m1", ""),
        reacts("dan", "gone", r#""👋""#),
        reacts("eve", "r-eve", r#""😈""#),
    ];
    std::fs::write(folder.join("history.jsonl"), lines.join("\n")).unwrap();
    assert_snapshot!(env.run(&["show", "lounge"]).all(), @"
    I am alice.
    fluux · lounge@rooms.example.org · clean

    ▌ alice@muc  m1

      I am alice.

      ⎘ photo.png (image/png, 926KB)

      ⎘ file

    ▌ bob@muc  m2

      I am bob.

    ▌ assistant  m3

      Hello, both.

      🎉  bob@muc, alice@muc

    ▌ dan@muc  r-dan

      👋 on gone

    ▌ eve@muc  r-eve

      😈 on r-eve

    [exit 0]
    ");
}

#[test]
fn the_agents_reactions_are_not_the_persons() {
    let env = TestEnv::new();
    let folder = env.work().join("data/memory/ada@example.org");
    std::fs::create_dir_all(&folder).unwrap();
    let reacts = |role: &str, id: &str, to: &str, emoji: &str| {
        format!(
            r#"{{"type":"message","role":"{role}","content":"","msg_id":"{id}","reaction":{{"message_id":"{to}","emojis":["{emoji}"]}}}}"#
        )
    };
    let lines = [
        r#"{"type":"message","role":"user","content":"One.","msg_id":"m1"}"#.to_owned(),
        r#"{"type":"message","role":"user","content":"Two.","msg_id":"m2"}"#.to_owned(),
        reacts("user", "r1", "m1", "🎉"),
        reacts("assistant", "r2", "m1", "👀"),
        reacts("assistant", "r3", "m2", "👍"),
    ];
    std::fs::write(folder.join("history.jsonl"), lines.join("\n")).unwrap();
    assert_snapshot!(env.run(&["show", "ada"]).out, @"
    One.
    fluux · ada@example.org · clean

    ▌ you  m1

      One.

      🎉  you
      👀  assistant

    ▌ you  m2

      Two.

      👍  assistant
    ");
}

#[test]
fn calls_are_opened_line_by_line_and_failures_are_no_answers() {
    let env = TestEnv::new();
    let line = |kind: &str, id: &str, parent: &str, message: &str, more: &str| {
        format!(
            r#"{{"type":"{kind}","uuid":"{id}","parentUuid":"{parent}","sessionId":"c1","timestamp":"2026-11-15T10:00:00Z"{more},"message":{message}}}"#
        )
    };
    let call = r#"{"role":"assistant","id":"m1","model":"opus","content":[{"type":"tool_use","id":"t1","name":"Task","input":{"prompt":"Look"}}]}"#;
    let result = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"Seen."}]}"#;
    let failed = r#"{"role":"assistant","id":"m2","model":"<synthetic>","content":[{"type":"text","text":"API Error: overloaded"}]}"#;
    let lines = [
        line("user", "u1", "", r#"{"role":"user","content":"Hi"}"#, "")
            .replace(r#""parentUuid":"""#, r#""parentUuid":null"#),
        line("assistant", "a1", "u1", call, ""),
        line("user", "r1", "a1", result, r#","toolUseResult":{"agentId":"a7","content":"Seen."}"#),
        line("user", "u2", "r1", r#"{"role":"user","content":"And?"}"#, ""),
        line("assistant", "a2", "u2", failed, r#","isApiErrorMessage":true"#),
    ];
    std::fs::write(env.work().join("c1.jsonl"), lines.join("\n")).unwrap();
    assert_snapshot!(env.run(&["show", "c1.jsonl", "--full"]).out, @r#"
    Hi
    claude-code · c1 · no answer

    ▌ you  15 Nov 2026 10:00 · u1

      Hi

    ▌ opus  15 Nov 2026 10:00 · a1 · <1 s

      ✓ Task  Look · ok · t1
        prompt  Look
        Seen.
        └ sub-agent: scrollback show agent-a7

    ▌ you  15 Nov 2026 10:00 · u2

      And?

    ▌ assistant  15 Nov 2026 10:00 · a2 · <1 s

      ✗ API Error: overloaded
    "#);
    let folded = "  ✓ Task  Look · ok\n    Seen.\n    └ sub-agent: scrollback show agent-a7\n";
    assert!(env.run(&["show", "c1.jsonl"]).out.contains(folded));
}

#[test]
fn branches_are_drawn() {
    let env = TestEnv::new();
    let other = line("assistant", "b2", Some("u2"), "It depends.");
    env.session("s1", &(talk() + &other));
    assert_snapshot!(env.run(&["tree", "s1", "--records"]).all(), @"
    │ u1       user        15 Nov 2026 10:00  What is two and two?
    │ a1       assistant   15 Nov 2026 10:00  Four.
    │ u2       user        15 Nov 2026 10:00  Sure?
    ├─╮
    │ ◌ a2       assistant   15 Nov 2026 10:00  **Yes.** ← earlier branch
    ● b2       assistant   15 Nov 2026 10:00  It depends. ← here
    [exit 0]
    ");
}

#[test]
fn damage_is_told_with_its_place() {
    let env = TestEnv::new();
    env.session("s1", &talk().replacen("Sure?\"", "Su", 1));
    env.session("s2", &(talk() + "{\"type\":\"telemetry\",\"hz\":1}\n"));
    assert_snapshot!(env.run(&["doctor", "--all"]).all(), @r#"
    $HOME/.sage/sessions/s1/messages.jsonl  native · 4 lines · 3 records
      line 3         torn               a record that was cut off after 216 bytes
      line 4         orphan             its parent "u2" is missing; what came before is unknown

    $HOME/.sage/sessions/s2/messages.jsonl  native · 5 lines · 5 records
      line 5         unknown-kind       unknown kind of record: "telemetry"; it is kept as it is

    DIALECT  SESSIONS  RECORDS  DAMAGED
    native          2        8        1

    AGENT   VERSION  UNKNOWN KIND  COUNT
    native  0.4.0    telemetry         1
    [exit 1]
    "#);
}

#[test]
fn a_folder_inside_a_store_is_one_agents() {
    let env = TestEnv::new();
    env.session("s1", &talk());
    env.session("s2", &talk());
    let folder = env.home().join(".sage/sessions");
    for named in [folder.as_path(), folder.parent().unwrap()] {
        let examined = env.run(&["doctor", named.to_str().unwrap(), "--json"]).json();
        let dialects: Vec<&str> =
            examined.as_array().unwrap().iter().map(|one| one["dialect"].as_str().unwrap()).collect();
        assert_eq!(dialects, ["native", "native"]);
    }
}

#[test]
fn any_folder_is_walked_and_each_file_is_whose_it_is() {
    let env = TestEnv::new();
    let write = |path: &str, text: &str| {
        let path = env.work().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let codex = r#"{"timestamp":"2026-11-15T10:00:00Z","type":"session_meta","payload":{"id":"c1","cwd":"/gone"}}"#;
    let qwen = r#"{"uuid":"q1","parentUuid":null,"sessionId":"s","timestamp":"2026-11-15T10:00:00Z","type":"user","cwd":"/gone","message":{"role":"user","parts":[{"text":"Hi"}]}}"#;
    write("mix/a/before.jsonl", codex);
    write("mix/a/expected.json", "{\n  \"lines\": 1\n}");
    write("mix/b/chats/before.jsonl", qwen);
    write("mix/c/home/.codex/sessions/2026/11/15/rollout-2026-11-15T10-00-00-c1.jsonl", codex);
    write("mix/c/home/.codex/history.jsonl", r#"{"session_id":"c1","ts":1,"text":"Hi"}"#);
    write("mix/torn.json", r#"{"nobody": [1, "#);
    write("mix/README.md", "Hi");
    let ran = env.run(&["doctor", "./mix", "--json"]);
    let found = ran.json();
    let found = found.as_array().unwrap().iter().map(|one| {
        let path = one["path"].as_str().unwrap().rsplit_once("/mix/").unwrap().1;
        format!("{path} {}", one["dialect"].as_str().unwrap())
    });
    assert_eq!(
        found.collect::<Vec<_>>(),
        [
            "a/before.jsonl codex",
            "b/chats/before.jsonl qwen-code",
            "c/home/.codex/sessions/2026/11/15/rollout-2026-11-15T10-00-00-c1.jsonl codex",
            "torn.json unknown"
        ]
    );
    assert_eq!(ran.code, 1);
    assert!(env.run(&["doctor", "./mix"]).err.contains("belong to no session."));
    write("empty/README.md", "Hi");
    assert_eq!(env.run(&["doctor", "./empty"]).code, 1);
}

#[cfg(unix)]
#[test]
fn a_folder_that_cannot_be_read_is_told_once() {
    let env = TestEnv::new();
    std::fs::create_dir_all(env.home().join(".codex")).unwrap();
    std::os::unix::fs::symlink("sessions", env.home().join(".codex/sessions")).unwrap();
    let ran = env.run(&["list", "--all"]);
    assert_eq!(ran.err.matches("$HOME/.codex/sessions").count(), 1, "{}", ran.all());
}

#[test]
fn a_profile_judges_each_line() {
    let env = TestEnv::new();
    let folder = env.home().join(".emacs.d/sage/projects/-gone-tide");
    std::fs::create_dir_all(&folder).unwrap();
    let lines = [
        r#"{"role":"user","content":"Hello","timestamp":"2026-01-11T17:00:00-0500"}"#,
        r#"{"role":"tool","content":"","tool_call_id":"c"}"#,
        r#"{"role":"assistant","content":"","timestamp":"2026-01-11T22:00:02Z"}"#,
    ];
    std::fs::write(folder.join("conversation.jsonl"), lines.join("\n") + "\n").unwrap();
    assert_snapshot!(env.run(&["doctor", "gone-tide", "--profile", "sage-el"]).all(), @r#"
    $HOME/.emacs.d/sage/projects/-gone-tide/conversation.jsonl  sage-el · 3 lines · 3 records
      line 2         orphan-result      a tool result without its call "c" in the session; it is shown alone
      line 2         role               "tool" is not user, assistant or system
      line 2         content            it is empty
      line 3         content            it is empty
      sage-el: 1 of 3 lines valid

    [exit 1]
    "#);
    let ran = env.run(&["doctor", "gone-tide", "--profile", "sage-el", "--json"]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.json()[0]["verdicts"][2]["field"], "content");
    // A session of somebody else is judged when it is named.
    env.session("s1", &talk());
    let of_all = env.run(&["doctor", "--all", "--profile", "sage-el", "--json"]).json();
    let judged = of_all.as_array().unwrap().iter().filter(|one| one.get("verdicts").is_some());
    assert_eq!(judged.map(|one| one["dialect"].as_str().unwrap()).collect::<Vec<_>>(), ["sage-el"]);
    assert_eq!(env.run(&["doctor", "s1", "--profile", "sage-el"]).code, 1);
    assert_eq!(env.run(&["doctor", "--profile", "nobody"]).code, 2);
}

#[test]
fn only_notes_are_no_problem() {
    let env = TestEnv::new();
    env.session("s1", &(talk() + "{\"type\":\"telemetry\"}\n"));
    let ran = env.run(&["doctor", "s1", "--json"]);
    assert_eq!((ran.code, ran.json()[0]["issues"][0]["severity"].as_str()), (0, Some("note")));
}

#[test]
fn what_cannot_be_meant_is_said_in_a_line_with_a_hint() {
    let env = TestEnv::new();
    env.session("abc1", &talk().replace("\"s1\"", "\"abc1\""));
    env.session("abc2", &talk().replace("\"s1\"", "\"abc2\""));
    std::fs::write(env.work().join("empty.jsonl"), "").unwrap();
    std::fs::write(env.work().join("binary.bin"), [0, 159, 146, 150, 7, 10, 1, 2]).unwrap();
    let cases: &[&[&str]] = &[
        &["show", "nope"],
        &["show", "abc"],
        &["show", "native:abc"],
        &["show", "abc1#nope"],
        &["show", "@~9"],
        &["show", "@x"],
        &["show", "empty.jsonl"],
        &["show", "./binary.bin"],
        &["show", "/dev/null"],
        &["show", "."],
        &["show", "missing/file.jsonl"],
        &["show"],
        &["list", "--dialect", "klingon"],
        &["list", "--store", "nowhere"],
        &["list", "--since", "soon"],
        &["list", "--all", "--project", "."],
        &["show", "abc1", "--sdk", "4"],
        &["show", "abc1", "--failed"],
        &["frobnicate"],
    ];
    let told: Vec<String> = cases
        .iter()
        .map(|args| {
            let ran = env.run(args);
            assert_eq!(ran.out, "", "{args:?}");
            format!("$ scrollback {}  [exit {}]\n{}", args.join(" "), ran.code, ran.err)
        })
        .collect();
    assert_snapshot!(told.join(""), @r#"
    $ scrollback show nope  [exit 1]
    scrollback: no session matches "nope"
    hint: run `scrollback list --all` to see every id
    $ scrollback show abc  [exit 2]
    scrollback: "abc" is ambiguous: 2 sessions match
    hint: use a longer prefix: native:abc1, native:abc2
    $ scrollback show native:abc  [exit 2]
    scrollback: "native:abc" is ambiguous: 2 sessions match
    hint: use a longer prefix: native:abc1, native:abc2
    $ scrollback show abc1#nope  [exit 1]
    scrollback: no record "nope" in session abc1
    hint: run `scrollback tree abc1 --records` to see every record
    $ scrollback show @~9  [exit 1]
    scrollback: there are only 2 sessions
    hint: run `scrollback list` to see them
    $ scrollback show @x  [exit 2]
    scrollback: "@x" is not a session name
    hint: use @ for the newest session of this project, @~1 for the one before it, codex:@ for an agent's
    $ scrollback show empty.jsonl  [exit 1]
    scrollback: $DIR/desk/empty.jsonl: the file is empty
    hint: nothing has been recorded in it yet
    $ scrollback show ./binary.bin  [exit 1]
    scrollback: $DIR/desk/binary.bin: no records
    hint: run `scrollback doctor FILE` for details
    $ scrollback show /dev/null  [exit 2]
    scrollback: /dev/null: not a regular file
    hint: pipe it instead: `… | scrollback show -`
    $ scrollback show .  [exit 2]
    scrollback: $DIR/desk/.: this directory is not a session
    hint: name a file in it, or run `scrollback list --store DIR` to list a store
    $ scrollback show missing/file.jsonl  [exit 2]
    scrollback: $DIR/desk/missing/file.jsonl: No such file or directory (os error 2)
    hint: check the path, or run `scrollback list --all` to see every session
    $ scrollback show  [exit 2]
    scrollback: the following required arguments were not provided: <SESSION>
    hint: run `scrollback show --help`
    $ scrollback list --dialect klingon  [exit 2]
    scrollback: unknown dialect "klingon"
    hint: use one of: native, claude-code, codex, qwen-code, fluux, sage-el, ai-sdk
    $ scrollback list --store nowhere  [exit 2]
    scrollback: $DIR/desk/nowhere: no such directory
    hint: use the folder above an agent's sessions, such as ~/.codex, or a database
    $ scrollback list --since soon  [exit 2]
    scrollback: --since: invalid time "soon"
    hint: use a date (2026-11-01), an instant, or an age (30m, 12h, 3d, 2w)
    $ scrollback list --all --project .  [exit 2]
    scrollback: the argument '--all' cannot be used with '--project <DIR>'
    hint: run `scrollback list --help`
    $ scrollback show abc1 --sdk 4  [exit 2]
    scrollback: invalid value '4' for '--sdk <MAJOR>': unknown AI SDK version "4"; use 5, 6 or 7
    hint: run `scrollback show --help`
    $ scrollback show abc1 --failed  [exit 2]
    scrollback: unexpected argument '--failed' found
    hint: run `scrollback show --help`
    $ scrollback frobnicate  [exit 2]
    scrollback: unrecognized subcommand 'frobnicate'
    hint: run `scrollback --help`
    "#);
}

#[test]
fn errors_are_json_when_json_is_asked_for() {
    let ran = TestEnv::new().run(&["show", "nope", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!((ran.code, error["error"]["kind"].as_str()), (1, Some("not-found")));
    let ran = TestEnv::new().run(&["frobnicate", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&ran.err).unwrap();
    assert_eq!((ran.code, error["error"]["kind"].as_str()), (2, Some("usage")));
}

#[test]
fn sessions_are_named_in_every_way() {
    let env = TestEnv::new();
    let path = env.session("3f2a77", &talk().replace("\"s1\"", "\"3f2a77\""));
    let older = talk().replace("\"s1\"", "\"older\"").replace("2026-11-15T10", "2026-11-14T10");
    env.session("older", &older);
    let id = |name: &str| env.run(&["show", name, "--json"]).json()["session"]["id"].as_str().unwrap().to_owned();
    for name in
        ["3f2a77", "3f2", "native:3f", "@", path.to_str().unwrap(), path.parent().unwrap().to_str().unwrap(), "3f2#u1"]
    {
        assert_eq!(id(name), "3f2a77", "{name}");
    }
    assert_eq!(id("@~1"), "older");
    assert_eq!(env.run_with(&["show", "-", "--json"], talk().as_bytes()).json()["session"]["id"], "s1");
}

#[cfg(unix)]
#[test]
fn a_prefix_is_found_without_opening_other_sessions() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::new();
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&env.session("3f2a77", &talk().replace("\"s1\"", "\"3f2a77\"")), 0o644);
    for other in ["other1", "other2"] {
        mode(&env.session(other, &talk().replace("\"s1\"", &format!("\"{other}\""))), 0o000);
    }
    for name in ["3f2a77", "3f", "native:3f"] {
        let ran = env.run_as_anybody(&["show", name, "--json"]);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{name}: {}", ran.all());
    }
    // What no name shows is looked for in every file.
    assert_eq!(env.run_as_anybody(&["show", "a"]).err.matches("other").count(), 2);
}

#[test]
fn an_id_may_look_like_a_path_and_a_file_may_be_called_otherwise() {
    let env = TestEnv::new();
    env.session("odd", &talk().replace("\"s1\"", r#""../../evil#1""#));
    env.session("windows", &talk().replace("\"s1\"", r#""C:\\x""#));
    let id = |name: &str| env.run(&["show", name, "--json"]).json()["session"]["id"].as_str().unwrap().to_owned();
    for name in ["../../evil#1", "../../ev", "native:../../evil", "../../ev#u1", "odd", "od"] {
        assert_eq!(id(name), "../../evil#1", "{name}");
    }
    assert_eq!((id("C:\\x"), id("native:C:\\x")), ("C:\\x".to_owned(), "C:\\x".to_owned()));
    let rollouts = env.home().join(".codex/sessions/2026/11/15");
    std::fs::create_dir_all(&rollouts).unwrap();
    let meta = r#"{"timestamp":"2026-11-15T10:00:00Z","type":"session_meta","payload":{"id":"other","cwd":"/gone"}}"#;
    std::fs::write(rollouts.join("rollout-2026-11-15T10-00-00-c1c1.jsonl"), meta).unwrap();
    assert_eq!(id("rollout-2026-11-15T10"), "other");
}

#[test]
fn a_summary_in_another_file_is_the_title_everywhere() {
    let env = TestEnv::new();
    let folder = env.home().join(".claude/projects/-gone");
    std::fs::create_dir_all(&folder).unwrap();
    let said = r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"old","timestamp":"2026-11-15T10:00:00Z","message":{"role":"user","content":"Hi"}}"#;
    std::fs::write(folder.join("old.jsonl"), said).unwrap();
    std::fs::write(folder.join("new.jsonl"), r#"{"type":"summary","summary":"A greeting","leafUuid":"u1"}"#).unwrap();
    let listed = env.run(&["list", "--all", "--json"]).json();
    let listed = listed.as_array().unwrap().iter().find(|row| row["id"] == "old").unwrap().clone();
    assert_eq!(listed["title"], "A greeting");
    assert_eq!(env.run(&["show", "old", "--json"]).json()["session"]["title"], listed["title"]);
    assert!(env.run(&["show", "old"]).out.starts_with("A greeting\n"));
}

#[test]
fn a_record_on_another_branch_chooses_that_branch() {
    let env = TestEnv::new();
    env.session("s1", &(talk() + &line("assistant", "b2", Some("u2"), "It depends.")));
    let head = |args: &[&str]| env.run(args).json()["branch"]["head"].as_str().unwrap().to_owned();
    assert_eq!(head(&["show", "s1", "--json"]), "b2");
    assert_eq!(head(&["show", "s1#a2", "--json"]), "a2");
    assert_eq!(head(&["show", "s1#u1", "--json"]), "b2");
    assert_eq!(head(&["show", "s1", "--head", "a1", "--json"]), "a1");
}

#[test]
fn pages_are_counted_from_the_end() {
    let env = TestEnv::new();
    env.session("s1", &talk());
    let ids = |args: &[&str]| -> Vec<String> {
        let shown = env.run(args).json();
        shown["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(ids(&["show", "s1", "--json", "--last", "2"]), ["u2", "a2"]);
    assert_eq!(ids(&["show", "s1", "--json", "--last", "1", "--before", "u2"]), ["a1"]);
    assert_eq!(ids(&["show", "s1", "--json", "--before", "a1"]), ["u1"]);
    assert_eq!(ids(&["show", "s1", "--json", "--last", "99"]).len(), 4);
    assert_eq!(env.run(&["show", "s1", "--json", "--last", "2"]).json()["whole"], false);
}

#[test]
fn raw_lines_are_the_file() {
    let env = TestEnv::new();
    env.session("s1", &talk());
    assert_eq!(env.run(&["show", "s1", "--raw"]).out, talk());
}

#[test]
fn a_project_sees_its_own_sessions_and_is_told_of_others() {
    let env = TestEnv::new();
    std::fs::create_dir(env.work().join(".git")).unwrap();
    let here = env.work().canonicalize().unwrap();
    env.session("here", &talk().replace("\"s1\"", "\"here\"").replace("/gone/tide", &here.to_string_lossy()));
    env.session("there", &talk().replace("\"s1\"", "\"there\""));
    let ran = env.run(&["list"]);
    assert!(ran.out.contains("here") && !ran.out.contains("there"), "{}", ran.all());
    assert_eq!(ran.err, "1 session in other projects; add --all to list them.\n");
    assert_eq!(env.run(&["list", "--all", "--json"]).json().as_array().unwrap().len(), 2);
    assert_eq!(env.run(&["list", "--project", "/gone/tide", "--json"]).json()[0]["id"], "there");
    assert_eq!(env.run(&["list", "--since", "1h", "--json"]).code, 1);
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let env = TestEnv::new();
    let lines: String = (0..20_000).map(|n| format!("{{\"role\":\"user\",\"content\":\"line {n}\"}}\n")).collect();
    env.session("long", &lines);
    let mut child = env.command(&["show", "long"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
}

#[test]
fn nothing_is_written_into_the_home_by_reading() {
    let env = TestEnv::new();
    let path = env.session("s1", &talk());
    for args in [["list", "--all"], ["show", "s1"], ["tree", "s1"], ["doctor", "s1"]] {
        env.run(&args);
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), talk());
    let mut left: Vec<_> = std::fs::read_dir(env.home()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, [".cache", ".sage"], "the index is a cache");
}

#[test]
fn shells_and_readers_of_manuals_are_served() {
    let env = TestEnv::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(env.run(&["completions", shell]).out.contains("scrollback"), "{shell}");
    }
    let man = env.run(&["man"]);
    assert_eq!(man.code, 0, "{}", man.err);
    let commands = ["list", "show", "record", "new", "fork", "convert", "import", "doctor", "completions", "man"];
    for command in commands {
        assert!(man.out.contains(&format!("\\fBscrollback {command}\\fR")), "{command}\n{}", man.out);
    }
    assert_eq!(env.run(&["--version"]).out, format!("scrollback {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(env.run(&["--version", "--json"]).json()["name"], "scrollback");
}

#[test]
fn the_page_of_commands_is_what_help_prints() {
    let env = TestEnv::new();
    let mut page = String::from("# The command line\n\nWhat `--help` prints; a test keeps this page true.\n");
    let mut commands = vec![String::new()];
    // Whatever the program lists has a section, its own commands behind it.
    while let Some(command) = commands.pop() {
        let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let help: String = env.run(&args).out.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        let named = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        let named = named.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help");
        let named: Vec<String> = named.map(|name| format!("{command} {name}").trim_start().to_owned()).collect();
        commands.extend(named.into_iter().rev());
        let name = format!("scrollback {command}");
        page += &format!("\n## {}\n\n```text\n{}```\n", name.trim_end(), help);
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md");
    if std::env::var_os("SCROLLBACK_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == page,
        "docs/cli.md is old: SCROLLBACK_BLESS=1 writes it"
    );
}

#[test]
fn the_tour_in_the_readme_is_real() {
    let env = TestEnv::new();
    let readme =
        std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")).unwrap();
    let blocks: Vec<&str> =
        readme.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 4, "the tour has list, show, tree and doctor");
    for block in blocks {
        let (command, told) = block.strip_prefix("$ scrollback ").unwrap().split_once('\n').unwrap();
        let ran = env.run(&command.split_whitespace().collect::<Vec<_>>());
        let printed = ran.out + &ran.err;
        let mut printed = printed.lines();
        // A line that is only `…` stands for what was left out, and `…/` for where the demo lies.
        let mut left_out = false;
        for line in told.lines() {
            let end = line.rsplit("…/").next().unwrap();
            let is = |real: &str| real.ends_with(end);
            match std::mem::replace(&mut left_out, line.trim() == "…") {
                _ if left_out => {}
                true => assert!(printed.any(is), "README's `{command}` does not go on with: {line}"),
                false => assert!(printed.next().is_some_and(is), "README's `{command}` does not print next: {line}"),
            }
        }
        assert!(left_out || printed.all(str::is_empty), "README's `{command}` prints more");
    }
}

#[test]
fn tool_calls_are_listed_with_what_came_of_them() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["--demo", "extract-tools", "91c5e7a0", "--name", "b*h"]).all(), @"
    MESSAGE   TOOL  STATE               TIME  INPUT                         RESULT
    b0fac623  bash  output-available   30 ms  grep -n '^class \\|^def ' la…  12:class Lamp 188:class Rot…
    641beec7  bash  output-available  210 ms  python tools/move_class.py …  moved Lamp to lamp/lamp.py
    641beec7  bash  output-available   2.3 s  pytest -q tests/lamp          31 passed in 1.84s
    641beec7  bash  output-available  210 ms  python tools/move_class.py …  moved Rotation to lamp/rota…
    641beec7  bash  output-error       1.9 s  pytest -q tests/lamp          exit status 2 ImportError: …
    641beec7  bash  output-available   2.2 s  pytest -q tests/lamp          31 passed in 1.79s
    d9b20e44  bash  output-denied     40.2 s  python tools/prune.py lamp/…  not before the night shift …
    d9b20e44  bash  output-available  42.1 s  pytest -q                     212 passed, 3 skipped in 41…
    [exit 0]
    ");
    let failed = env.run(&["--demo", "extract-tools", "91c5e7a0", "--failed", "--jsonl"]);
    let rows: Vec<serde_json::Value> = failed.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let states: Vec<&str> = rows.iter().map(|row| row["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["output-error", "output-denied"]);
    assert_eq!(rows[0]["durationSource"], "recorded");
    let all = env.run(&["--demo", "extract-tools", "91c5e7a0", "--json"]).json();
    assert_eq!(all.as_array().unwrap().len(), 11);
    let of_message = env.run(&["--demo", "extract-tools", "91c5e7a0#641beec7", "--json"]).json();
    assert_eq!(of_message.as_array().unwrap().len(), 6);
    assert_snapshot!(env.run(&["--demo", "extract-tools", "91c5e7a0", "--name", "nope"]).all(), @"
    [exit 1]
    scrollback: no matching tool call
    hint: leave out --name and --failed to list every call
    ");
    assert_eq!(env.run(&["--demo", "extract-tools", "91c5e7a0", "--name", "nope", "--json"]).all(), "[]\n[exit 1]\n");
}
