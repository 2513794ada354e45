//! What a conversion costs grows with the session, there and back.

use std::fs;
use std::path::Path;

use super::support::effort::{GROWTH, LIMIT, effort};
use super::{convert, folder, named, open};

/// So many prompts, each with its answer, from a number on.
fn talk(from: usize, count: usize) -> String {
    let line = |at: usize| {
        let (before, prompt, answer) = (id(2 * at), id(2 * at + 1), id(2 * at + 2));
        let parent = if at == 0 { "null".to_owned() } else { format!("{before:?}") };
        format!(
            "{{\"uuid\":{prompt:?},\"parentUuid\":{parent},\"type\":\"user\",\"sessionId\":\"s\",\"timestamp\":\"2026-11-01T10:00:00Z\",\
             \"message\":{{\"role\":\"user\",\"content\":\"Tide {at}?\"}}}}\n\
             {{\"uuid\":{answer:?},\"parentUuid\":{prompt:?},\"type\":\"assistant\",\"sessionId\":\"s\",\"timestamp\":\"2026-11-01T10:00:01Z\",\
             \"message\":{{\"role\":\"assistant\",\"content\":\"High {at}.\"}}}}\n"
        )
    };
    (from..from + count).map(line).collect()
}

fn id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// What it costs to convert so many prompts, and to come back with as many more.
fn there_and_back(folder: &Path, prompts: usize) -> Option<[u64; 2]> {
    let file = folder.join(format!("{prompts}.jsonl"));
    fs::write(&file, talk(0, prompts)).unwrap();
    let source = open(named("native"), &file);
    let begun = effort()?;
    let there = convert(&source, named("claude-code"), &folder.join(format!("{prompts}-there.jsonl"))).unwrap();
    let done = effort()?;
    let log = fs::read_to_string(&there.path).unwrap();
    fs::write(&there.path, log + &talk(prompts, prompts)).unwrap();
    let on = open(named("claude-code"), &there.path);
    assert_eq!(on.heads().len(), 1);
    let turned = effort()?;
    let back = convert(&on, named("native"), &folder.join(format!("{prompts}-back.jsonl"))).unwrap();
    let all = effort()?;
    assert_eq!(open(named("native"), &back.path).records().len(), 4 * prompts);
    Some([done - begun, all - turned])
}

#[test]
fn a_longer_session_costs_as_much_more_as_it_is_longer() {
    let folder = folder();
    let few = 100;
    let (Some(less), Some(more)) = (there_and_back(folder.path(), few), there_and_back(folder.path(), few * GROWTH))
    else {
        return;
    };
    for (way, less, more) in [("there", less[0], more[0]), ("back", less[1], more[1])] {
        assert!(more < LIMIT * less, "the way {way} of {GROWTH} times as many records: {less} ns became {more}");
    }
}
