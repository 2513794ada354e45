//! What the agent acknowledged before a kill -9 is read after it, and the session goes on.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::time::Duration;

use scrollback::model::Kind;
use scrollback::session::Session;
use serde_json::{Value, json};

use crate::support::random::{Random, seed};
use crate::support::{cases, messages};
use crate::{FORMATS, Place, said};

/// Every word is in one of these only: what was said tells by itself what it is.
const THOUGHT: &str = "Hmm, much seems unclear.";
const WORDS_WITH_CALLS: &str = "I look at it word by word.";
const LAST_WORDS: &str = "That is all one can say.";

/// Kills of one session, each while the agent goes on with it.
const KILLS_PER_SESSION: u32 = 5;

#[test]
fn what_the_agent_acknowledged_survives_a_kill() {
    let seed = seed();
    let mut random = Random(seed);
    let call = |name: &str, input: Value| json!({"name": name, "input": input});
    let script = json!([
        {"think": THOUGHT, "text": WORDS_WITH_CALLS,
         "calls": [call("read_file", json!({"path": "gone"})), call("write_file", json!({"path": "a", "content": "x"}))]},
        {"text": LAST_WORDS},
    ]);
    let kills = cases(20, 200);
    let mut acknowledged = 0;
    for _ in 0..kills / KILLS_PER_SESSION {
        let place = Place::new(FORMATS[random.below(FORMATS.len() as u64) as usize], &script);
        let mut acks = Vec::new();
        for round in 0..KILLS_PER_SESSION {
            acks.extend(acks_before_a_kill(&place, round, &mut random));
            match place.files().first() {
                Some(file) => check(&place.read(file), &acks, place.format, seed),
                None => assert!(acks.is_empty(), "seed {seed}: the session is gone"),
            }
        }
        acknowledged += acks.len();
        place.chat(&["--continue"], "And now?\n").well();
        let session = place.newest();
        check(&session, &acks, place.format, seed);
        let whole = said(&messages(&session));
        assert!(whole.contains(&"user: And now?".to_owned()), "seed {seed}: {whole:?}");
    }
    assert!(acknowledged > kills as usize, "only {acknowledged} records were acknowledged");
}

/// Starts the agent and kills it at any moment; what it had told by then.
fn acks_before_a_kill(place: &Place, round: u32, random: &mut Random) -> Vec<Value> {
    let mut agent = place.agent(&["--continue", "--acks"]).spawn().unwrap();
    let prompts: String = (0..40).map(|number| format!("prompt <{round}.{number}>\n")).collect();
    // The agent may be dead before it has read them all.
    let mut input = agent.stdin.take().unwrap();
    input.write_all(prompts.as_bytes()).unwrap();
    let mut lines = BufReader::new(agent.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut texts = HashMap::new();
    // A line names what was recorded and which entries are on disk since.
    let mut acks_of = |line: String| -> Vec<Value> {
        let Ok(line) = serde_json::from_str::<Value>(&line) else { return Vec::new() };
        let Some(reports) = line["reports"].as_array() else { return Vec::new() };
        texts.insert(line["entry"].as_u64().unwrap(), line["text"].clone());
        let saved = reports.iter().filter_map(|report| Some((report["entry"].as_u64()?, report["result"].get("Ok")?)));
        let ack = |(entry, saved): (u64, &Value)| json!({"text": texts.get(&entry), "id": saved["id"], "losses": saved["losses"]});
        saved.map(ack).collect()
    };
    let wanted = random.below(60) as usize;
    let mut acks: Vec<Value> = lines.by_ref().flat_map(&mut acks_of).take(wanted).collect();
    std::thread::sleep(Duration::from_micros(random.below(3_000)));
    agent.kill().unwrap();
    acks.extend(lines.flat_map(acks_of));
    agent.wait().unwrap();
    acks
}

fn check(session: &Session, acks: &[Value], format: &str, seed: u64) {
    // What a record costs may be told beside it, where nothing has a name.
    for ack in acks.iter().filter(|ack| ack["text"].is_string()) {
        let id = ack["id"].as_str().unwrap();
        let record = session.find(id).unwrap_or_else(|_| panic!("seed {seed}: {format} lost {id}: {ack}"));
        // An answer may be several records, and its last one names them all.
        let before = std::iter::successors(record.parent(), |record| record.parent());
        let turn = std::iter::once(record).chain(before.take_while(|before| before.kind() != Kind::User));
        let text: String = turn.map(|record| String::from_utf8(record.raw().unwrap().concat()).unwrap()).collect();
        let said = ack["text"].as_str().unwrap();
        let is_lost = |what: &str| ack["losses"].as_array().unwrap().iter().any(|loss| loss["what"] == what);
        let is_told = loss_of(said).is_some_and(is_lost);
        assert!(is_told || text.contains(said), "seed {seed}: {format} lost {said:?} of {id}\n{text}\n{ack}");
    }
}

/// What it is called when a format has no place for this. Prompts and last words have one in each.
fn loss_of(said: &str) -> Option<&'static str> {
    if said.starts_with("call-") {
        Some("tool call")
    } else if THOUGHT.contains(said) {
        Some("thinking")
    } else if WORDS_WITH_CALLS.contains(said) {
        Some("text")
    } else {
        assert!(said.starts_with("prompt <") || LAST_WORDS.contains(said), "{said:?} is new");
        None
    }
}
