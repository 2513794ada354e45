//! The examples on docs/recording.md are run; those in Rust are doc tests of the library.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail anywhere, and says why it did not run")]

mod support;

use std::path::Path;
use std::process::Command;

use support::TestEnv;

/// The blocks of a language on a page.
fn blocks_of(page: &str, language: &str) -> Vec<String> {
    let fence = format!("\n```{language}\n");
    page.split(&fence).skip(1).map(|block| block.split("\n```").next().unwrap().to_owned()).collect()
}

fn blocks(language: &str) -> Vec<String> {
    blocks_of(include_str!("../../docs/recording.md"), language)
}

/// Runs a block with `scrollback` in its PATH; nothing where the machine has no such program.
fn run(env: &TestEnv, program: &str, file: &str, block: &str) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        println!("not run: there is no {program} on this machine");
        return None;
    }
    std::fs::write(env.work().join(file), block).unwrap();
    let ours = Path::new(env!("CARGO_BIN_EXE_scrollback")).parent().unwrap().to_path_buf();
    let first = [ours, env.work().join("bin")];
    let with_ours = std::env::join_paths(first.into_iter().chain(std::env::split_paths(&path))).unwrap();
    let mut command = Command::new(program);
    command.arg(file).current_dir(env.work()).env("PATH", with_ours).env("HOME", env.home());
    for name in ["XDG_DATA_HOME", "SCROLLBACK_HOME", "SCROLLBACK_NOW"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    Some(said)
}

fn branch(env: &TestEnv) -> Vec<String> {
    let tree = env.run(&["tree", "@", "--json"]).json();
    let records = tree["records"].as_array().unwrap().clone();
    records
        .iter()
        .map(|record| record["text"].as_str().unwrap_or_default().to_owned())
        .filter(|text| !text.is_empty())
        .collect()
}

#[test]
fn the_shells_example_runs() {
    let env = TestEnv::new();
    let [block] = &blocks("sh")[..] else { panic!("one block") };
    if let Some(said) = run(&env, "sh", "example.sh", block) {
        assert_eq!(said.matches("\"durability\":\"sync\"").count(), 3, "{said}");
        assert!(said.contains("no answer  ← here"), "{said}");
    }
}

/// What Claude Code prints for a prompt, which it does not repeat.
#[cfg(unix)]
const CLAUDE: &str = r#"#!/bin/sh
[ "$*" = "-p When is high water? --output-format stream-json --verbose" ] || exit 1
cat <<'END'
{"type":"system","subtype":"init","cwd":"/home/ada/tide","session_id":"5e55","tools":[],"model":"model-1","uuid":"1"}
{"type":"assistant","message":{"id":"msg_1","type":"message","role":"assistant","model":"model-1","content":[{"type":"text","text":"At 04:12."}],"usage":{"input_tokens":20,"output_tokens":5}},"parent_tool_use_id":null,"session_id":"5e55","uuid":"2"}
{"type":"result","subtype":"success","is_error":false,"duration_ms":900,"num_turns":1,"result":"At 04:12.","session_id":"5e55","total_cost_usd":0.01,"usage":{"input_tokens":20,"output_tokens":5},"uuid":"3"}
END
"#;

#[cfg(unix)]
#[test]
fn claudes_example_records_the_prompt_too() {
    use std::os::unix::fs::PermissionsExt;

    let env = TestEnv::new();
    let [block] = &blocks("bash")[..] else { panic!("one block") };
    let claude = env.work().join("bin/claude");
    std::fs::create_dir(env.work().join("bin")).unwrap();
    std::fs::write(&claude, CLAUDE).unwrap();
    std::fs::set_permissions(&claude, std::fs::Permissions::from_mode(0o755)).unwrap();
    if let Some(said) = run(&env, "sh", "example.sh", block) {
        assert!(said.starts_with("{\"seq\":0,\"id\":"), "{said}");
        assert_eq!(branch(&env), ["When is high water?", "At 04:12."]);
    }
}

#[test]
fn pythons_example_runs() {
    let env = TestEnv::new();
    let [block] = &blocks("python")[..] else { panic!("one block") };
    if run(&env, "python3", "example.py", block).is_some() {
        let told = branch(&env);
        assert!(told.ends_with(&["At 04:12.".to_owned(), "Thanks.".to_owned()]), "{told:?}");
    }
}

#[test]
fn nodes_example_runs() {
    let env = TestEnv::new();
    let [block] = &blocks("javascript")[..] else { panic!("one block") };
    if let Some(said) = run(&env, "node", "example.mjs", block) {
        assert!(said.contains("unknown key \"nonsense\""), "{said}");
        assert!(said.trim_end().ends_with(" 1"), "the exit code tells of it: {said}");
        let told = branch(&env);
        assert!(told.contains(&"At 04:12.".to_owned()), "{told:?}");
    }
}

#[test]
fn the_recording_in_the_readme_is_real() {
    let env = TestEnv::new();
    let readme = include_str!("../../README.md");
    let section = readme.split("\n## Record\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let ([block], [told]) = (&blocks_of(section, "sh")[..], &blocks_of(section, "text")[..]) else {
        panic!("one block of commands, one of what they print");
    };
    // Ids and times are other ones each time.
    let words = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.rsplit("  ").next().unwrap_or_default().to_owned()).collect()
    };
    if let Some(said) = run(&env, "sh", "example.sh", block) {
        let tree: Vec<&str> = said.lines().filter(|line| !line.starts_with('{')).collect();
        assert_eq!(words(&tree.join("\n")), words(told), "{said}");
    }
}
