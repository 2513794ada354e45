//! What the agent cannot do is told in a word, and nothing is written for it.

use serde_json::json;

use crate::support::messages;
use crate::{ARGUMENTS, Place, said, speak, three_answers};

#[test]
fn a_command_that_cannot_be_done_says_why() {
    for (format, command, why) in [
        ("native", "/nonsense", "unknown command /nonsense; see --help"),
        ("native", "/rewind 9", "no such record"),
        ("native", "/rewind", "/rewind needs an argument; see --help"),
        ("native", "/title", "/title needs an argument; see --help"),
        ("native", "/new y", "/new takes no argument"),
        ("native", "/quit y", "/quit takes no argument"),
        ("native", "/fork y", "/fork takes no argument"),
        ("sage-el", "/fork", "sage-el cannot store this: a fork, because there is only one session at a time"),
        ("fluux", "/fork", "fluux cannot store this: a fork"),
        ("sage-el", "/rewind 1", "continues only from its last record"),
        ("fluux", "/rewind 1", "continues only from its last record"),
    ] {
        let place = Place::new(format, &three_answers());
        let spoken = place.chat(&[], &format!("one\ntwo\n{command}\nthree\n")).well();
        assert!(spoken.err.contains(why), "{format} {command}: {}", spoken.err);
        assert_eq!(place.files().len(), 1, "{format} {command}");
        let whole = said(&messages(&place.newest()));
        assert_eq!(whole[4..], ["user: three", "model: The third answer."], "{format} {command}");
    }
}

#[test]
fn words_after_a_new_session_that_failed_are_not_for_the_old_one() {
    for (format, archive) in [("fluux", "sessions"), ("sage-el", "history")] {
        let place = Place::new(format, &three_answers());
        place.chat(&[], "one\n").well();
        let file = place.files().remove(0);
        std::fs::write(file.with_file_name(archive), "in the way").unwrap();
        assert!(!place.chat(&[], "/new\ntwo\n").is_well, "{format}");
        assert_eq!(said(&messages(&place.read(&file))), ["user: one", "model: The first answer."], "{format}");
    }
}

#[test]
fn what_cannot_be_gone_on_with_is_told_and_nothing_is_written() {
    let place = Place::new("native", &three_answers());
    for (arguments, why) in [
        (&["--resume", "nobody"][..], "no session \"nobody\""),
        (&["--resume", "a#b"], "no session \"a\""),
        (&["--format", "x"], "unknown format \"x\""),
        (&["--continue", "--resume", "x"], "cannot be used with"),
        (&["--what"], "unexpected argument '--what'"),
    ] {
        let refused = place.chat(arguments, "one\n");
        assert!(!refused.is_well && refused.err.contains(why), "{arguments:?}: {}", refused.err);
        assert!(place.files().is_empty(), "{arguments:?}");
    }
    let bare = |arguments: &str| {
        let mut agent = place.agent(&[]);
        agent.env(ARGUMENTS, arguments).env("HOME", place.folder.path());
        speak(agent.env_remove("OPENAI_BASE_URL"), "one\n").err
    };
    for (arguments, why) in [
        ("", "no model: set OPENAI_BASE_URL to an http:// address"),
        ("--format\nx", "unknown format \"x\""),
        ("--format\ncodex", "--format codex needs --store"),
    ] {
        assert!(bare(arguments).contains(why), "{arguments:?}: {}", bare(arguments));
    }
}

#[test]
fn what_a_model_calls_wrongly_is_told() {
    for (call, why) in [
        (json!({"name": "run", "input": {}}), "unknown tool \\\"run\\\""),
        (json!({"name": "read_file", "input": {}}), "path is missing"),
        (json!({"name": "write_file", "input": {"path": "x"}}), "content is missing"),
    ] {
        let place = Place::new("native", &json!([{"calls": [call]}, {"text": "Well."}]));
        let spoken = place.chat(&[], "one\n").well();
        assert!(format!("{}{}", spoken.out, spoken.err).contains(why), "{call}: {}{}", spoken.out, spoken.err);
    }
}
