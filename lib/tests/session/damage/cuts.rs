//! P3: a torn, spliced, NUL or binary region never hides an earlier or later record.

use scrollback::fuzzing;
use scrollback::session::Session;

use crate::damage::{content_issues, ids};
use crate::support::{cases, read, reading};

const RECORDS: usize = 200;
const LINE_LIMIT_BYTES: usize = 120;

#[test]
fn cut_at_any_byte_every_whole_record_is_read_and_no_other() {
    let lines = lines();
    let whole = join(&lines);
    let mut growing = read("");
    let (mut line, mut start) = (0, 0);
    for cut in 0..=whole.len() {
        if line < RECORDS && cut > start + lines[line].len() {
            start += lines[line].len() + 1;
            line += 1;
        }
        // Only the LF is missing: the record is there.
        let ended = line < RECORDS && cut == start + lines[line].len();
        let torn = cut > start && !ended;
        let check = |session: &Session| {
            assert!(ids(session).into_iter().eq((0..line + usize::from(ended)).map(id)), "cut at {cut}");
            let mut found = content_issues(session);
            // A cut inside a character, or between the halves of a pair, leaves a half.
            found.retain(|issue| !torn || *issue != format!("bad-utf8 {}", line + 1));
            assert_eq!(found, if torn { vec![format!("torn {}", line + 1)] } else { vec![] }, "cut at {cut}");
        };
        growing.push(&whole[cut.saturating_sub(1)..cut], &reading());
        check(&growing);
        // A file of that length is the same; reading each from its start is for long runs.
        if cut % cases(64, 1) as usize == 0 {
            check(&read(&whole[..cut]));
        }
    }
}

#[test]
fn no_damage_between_two_records_hides_one() {
    let lines = lines();
    for (number, damage) in damages().iter().enumerate() {
        // At the end there is nothing to share a line with.
        let last = if damage.lines > 0 { RECORDS } else { RECORDS - 1 };
        damage.check(&lines, &(0..=last).collect::<Vec<_>>());
        // Each by itself costs a file each: one in forty at a push.
        for at in (0..=last).filter(|at| (at + number) % cases(40, 1) as usize == 0) {
            damage.check(&lines, &[at]);
        }
    }
}

#[test]
fn a_line_end_lost_or_added_costs_at_most_its_own_record() {
    let lines = lines();
    let windows = String::from_utf8(join(&lines)).unwrap().replace('\n', "\r\n");
    assert_eq!((ids(&read(&*windows)).len(), content_issues(&read(windows))), (RECORDS, vec![]));
    for at in 1..RECORDS {
        let glued = [&join(&lines[..at - 1])[..], lines[at - 1].as_bytes(), &join(&lines[at..])].concat();
        let session = read(&*glued);
        assert!(ids(&session).into_iter().eq((0..RECORDS).map(id)), "LF lost before {at}");
        assert_eq!(content_issues(&session), [format!("glued {at}")]);
        assert_eq!(line_of(&session, RECORDS - 1), RECORDS - 1);

        for cut in (1 + at % 3..lines[at].len()).step_by(cases(3, 1) as usize) {
            let Some((first, second)) = lines[at].split_at_checked(cut) else { continue };
            // The neighbours are enough: what a damaged line may hide stands beside it.
            let near = [lines[at - 1].as_str(), first, second, lines.get(at + 1).map_or("", String::as_str)];
            let session = read(join(&near));
            let kept: Vec<String> = [at - 1, at + 1].into_iter().filter(|near| *near < RECORDS).map(id).collect();
            assert_eq!(ids(&session), kept, "LF added at {cut} of {}", lines[at]);
            assert!(content_issues(&session).iter().all(|issue| issue.ends_with(" 2") || issue.ends_with(" 3")));
            assert!(content_issues(&session).contains(&"torn 2".to_owned()), "{cut} {:?}", content_issues(&session));
        }
    }
}

/// Bytes that came between two records.
struct Damage {
    name: &'static str,
    bytes: Vec<u8>,
    /// How many lines they add.
    lines: usize,
    /// What is found on the first of their lines.
    issues: &'static [&'static str],
    /// A record that is whole among them.
    record: Option<&'static str>,
}

impl Damage {
    /// Puts the damage before each of these records, reads the file and looks for every record at its place.
    fn check(&self, lines: &[String], before: &[usize]) {
        let (mut file, mut line) = (Vec::new(), 1);
        let (mut places, mut issues) = (Vec::new(), Vec::new());
        for at in 0..=RECORDS {
            if before.contains(&at) {
                file.extend(&self.bytes);
                issues.extend(self.issues.iter().map(|kind| format!("{kind} {line}")));
                places.extend(self.record.map(|record| (record.to_owned(), line)));
                line += self.lines;
            }
            if at < RECORDS {
                places.push((id(at), line));
                file.extend(join(&lines[at..=at]));
                line += 1;
            }
        }
        issues.sort();
        let session = read(&*file);
        let found = session.records().map(|record| (record.id().into_owned(), record.place().line as usize));
        let mut known = std::collections::HashSet::new();
        places.retain(|(id, _)| known.insert(id.clone()));
        assert!(found.eq(places), "{} before {before:?}: {:?}", self.name, ids(&session));
        for record in session.records().filter(|record| Some(&*record.id()) != self.record) {
            let number: usize = record.id()[1..].parse().unwrap();
            assert_eq!(record.raw().unwrap(), [lines[number].as_bytes()]);
        }
        assert_eq!(content_issues(&session), issues, "{} before {before:?}", self.name);
        fuzzing::account_for(&session, 0, &file);
    }
}

/// What may come before a record; what has no line end of its own shares that record's line.
fn damages() -> Vec<Damage> {
    let torn = &br#"{"type":"user","uuid":"lost","message":{"role":"user","content":"cut o"#[..];
    let end = &br#"sage":{"role":"user","content":"the \"end\" of {a}"},"list":[{"uuid":"no"}]}"#[..];
    let garbage: Vec<u8> = (0..=255).rev().filter(|byte| !b"\n{}\"".contains(byte)).collect();
    let latin1 = &b"{\"type\":\"user\",\"uuid\":\"latin1\",\"message\":{\"content\":\"caf\xe9\"}}"[..];
    let brackets = b"{".repeat(100 * 1024);
    let beside = |name, bytes: &[u8], issues| Damage { name, bytes: bytes.to_vec(), lines: 0, issues, record: None };
    let own = |name, bytes: &[u8], issues| Damage { lines: 1, ..beside(name, &[bytes, b"\n"].concat(), issues) };
    vec![
        own("a torn line", torn, &["torn"]),
        own("the end of a line", end, &["not-json"]),
        own("a block of NULs", &[0; 4096], &["nul-bytes"]),
        own("a line of garbage", &garbage, &["bad-utf8", "not-json", "nul-bytes"]),
        own("a line of control characters", b"\x01\x02\x1f", &["not-json"]),
        Damage { record: Some("latin1"), ..own("bad UTF-8", latin1, &["bad-utf8"]) },
        own("an array", br#"[{"type":"user","uuid":"no"}]"#, &["not-an-object"]),
        own("a number", b"-12.5e3", &["not-an-object"]),
        own("a string", br#""{\"uuid\":\"no\"}""#, &["not-an-object"]),
        own("a literal", b"null", &["not-an-object"]),
        own("a line of brackets", &brackets, &["torn"]),
        own("an empty line", b"", &[]),
        own("a line of blanks", b" \t\r", &[]),
        beside("a byte order mark", "\u{feff}".as_bytes(), &[]),
        beside("two byte order marks", "\u{feff}\u{feff}".as_bytes(), &["not-json"]),
        beside("NULs", &[0; 512], &["nul-bytes"]),
        beside("control characters", b"\x01\x02\x1f", &["not-json"]),
        beside("a torn record", torn, &["glued", "torn"]),
        beside("the end of a record", end, &["not-json"]),
        beside("garbage", &garbage, &["bad-utf8", "not-json", "nul-bytes"]),
        beside("an array before a record", b"[1,2]", &["not-an-object"]),
        beside("a number before a record", b"7", &["not-an-object"]),
        beside("brackets", &brackets, &["glued", "torn"]),
    ]
}

/// A conversation whose texts are full of what holds JSON together.
fn lines() -> Vec<String> {
    let texts = [r"plain", r"}{ ][ ,:", r#"\"{\\\"uuid\\\":1}"#, r"\ud83d\ude00\n", r"ü 名 😀", r"\\", "{", ""];
    let line = |at: usize| {
        let text = texts[at % texts.len()];
        let parent = if at == 0 { "null".to_owned() } else { format!("\"{}\"", id(at - 1)) };
        let role = if at.is_multiple_of(2) { "user" } else { "assistant" };
        let said = match at % 3 {
            0 => format!(r#"{{"role":"{role}","content":"{text}"}}"#),
            1 => format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#),
            _ => format!(r#"{{"content":["{text}",{at},-1.5e3,true]}}"#),
        };
        format!(r#"{{"type":"{role}","uuid":"{}","parentUuid":{parent},"message":{said}}}"#, id(at))
    };
    let lines: Vec<String> = (0..RECORDS).map(line).collect();
    for line in &lines {
        assert!(line.len() <= LINE_LIMIT_BYTES && serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
    }
    lines
}

fn id(at: usize) -> String {
    format!("r{at}")
}

fn line_of(session: &Session, record: usize) -> usize {
    session.find(&id(record)).unwrap().place().line as usize
}

/// The bytes of whole lines.
fn join<L: AsRef<str>>(lines: &[L]) -> Vec<u8> {
    lines.iter().flat_map(|line| [line.as_ref().as_bytes(), b"\n"].concat()).collect()
}
