//! Files are replaced only by what was compared with them.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use super::*;
use crate::redact::Rule;
use crate::redact::Settings;

const LINES: &str = concat!(
    r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s1","message":{"role":"user","content":"the password is tide-4-morning, ok"}}"#,
    "\n",
    r#"{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s1","message":{"role":"assistant","content":"Good."}}"#,
    "\n",
);

/// A folder, and a log in it that nobody has written to for an hour.
fn log(text: impl AsRef<[u8]>) -> (tempfile::TempDir, SecretFile, Host) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sessions/s1/messages.jsonl");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    let file = fs::File::options().append(true).open(&path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
    let host = Host { data: Some(dir.path().join("data")), ..Host::system("test").unwrap() };
    let source = Source::file(crate::dialect::named("native").unwrap(), &path);
    (dir, SecretFile::of_session(&source).remove(0), host)
}

fn redactor() -> Redactor {
    Redactor::new(Settings::with_key([7; 32])).unwrap()
}

fn names(file: &SecretFile) -> usize {
    fs::read_dir(file.path.parent().unwrap()).unwrap().count()
}

#[test]
fn a_file_that_changes_meanwhile_stays_as_it_is() {
    let (_dir, file, host) = log(LINES);
    let staged = Staged::new(&Real, &file, &redactor(), &host).unwrap();
    assert_eq!(names(&file), 2);
    let longer = format!("{LINES}\n");
    fs::write(&file.path, &longer).unwrap();
    assert!(matches!(staged.commit(&host), Err(Error::Changed(_))));
    assert_eq!((fs::read_to_string(&file.path).unwrap(), names(&file)), (longer, 1));
    // The same length, and other bytes.
    let staged = Staged::new(&Real, &file, &redactor(), &host).unwrap();
    fs::write(&file.path, format!("{LINES} ")).unwrap();
    assert!(matches!(staged.check_unchanged(), Err(Error::Changed(_))));
    drop(staged);
    // Another file in its place.
    let staged = Staged::new(&Real, &file, &redactor(), &host).unwrap();
    let other = file.path.with_file_name("other");
    fs::copy(&file.path, &other).unwrap();
    fs::rename(&other, &file.path).unwrap();
    assert!(matches!(staged.check_unchanged(), Err(Error::Changed(_))));
}

#[test]
fn what_was_done_before_a_failure_is_told_and_noted_and_the_rest_stays() {
    let (dir, first, host) = log(LINES);
    let second = first.path.with_file_name("notes.txt");
    fs::write(&second, "the password is tide-4-morning, ok").unwrap();
    fs::File::options()
        .append(true)
        .open(&second)
        .unwrap()
        .set_modified(SystemTime::now() - Duration::from_secs(3600))
        .unwrap();
    // Another program writes to the second file when the first one has just been replaced.
    let (written, replaced, now) = ("somebody's words", first.path.clone(), host.now.clone());
    let (other, is_replaced) = (second.clone(), move || !fs::read_to_string(&replaced).unwrap().contains("tide-4"));
    let meddling = move || {
        if is_replaced() {
            fs::write(&other, written).unwrap();
        }
        now()
    };
    let host = Host { now: std::sync::Arc::new(meddling), ..host };
    let Cleaning { done, failed } = clean_in_place(&[&first, &SecretFile::text(&second)], &redactor(), &host).unwrap();
    assert_eq!(done.iter().map(|file| &file.path).collect::<Vec<_>>(), [&first.path]);
    assert!(matches!(failed, Some(Error::Changed(path)) if path == second));
    assert!(!fs::read_to_string(&first.path).unwrap().contains("tide-4"));
    assert_eq!((fs::read_to_string(&second).unwrap().as_str(), names(&first)), (written, 2));
    let notes = fs::read_to_string(dir.path().join("data").join(NOTES)).unwrap();
    assert!(notes.lines().count() == 1 && notes.contains("messages.jsonl"), "{notes}");
}

/// Changes what it does not report.
struct Careless(&'static str, &'static str);

impl Rule for Careless {
    fn scrub<'t>(&self, _: Option<&str>, text: &'t str) -> Cow<'t, str> {
        text.replace(self.0, self.1).into()
    }
}

#[test]
fn a_rule_that_changes_more_than_it_finds_changes_no_file() {
    let (_dir, file, host) = log(LINES);
    for (from, to) in [("Good", "Bad"), ("u1", "u2"), ("tide-4-morning", "[REDACTED]")] {
        let careless = Redactor::of_rules(vec![Box::new(Careless(from, to))]);
        let refused = clean_in_place(&[&file], &careless, &host);
        assert!(matches!(refused, Err(Error::NotCleaned { why: NotCleaned::Differs(_), .. })), "{from}: {refused:?}");
        assert_eq!((fs::read_to_string(&file.path).unwrap().as_str(), names(&file)), (LINES, 1));
    }
    assert!(!host.data.unwrap().join(NOTES).exists());
}

#[test]
fn records_without_an_id_may_move_and_no_other_may_change() {
    let dir = tempfile::tempdir().unwrap();
    let dialect = crate::dialect::named("native").unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        records(dialect, &path, Timestamp::UNIX_EPOCH).unwrap()
    };
    let before = write("a", LINES);
    assert_eq!(before, write("b", &LINES.replace("tide-4-morning", "x")));
    assert_ne!(before, write("c", &LINES.replace("\"a1\"", "\"a2\"")));
    assert_ne!(before, write("d", LINES.lines().next().unwrap()));
    let nameless = LINES.replace(r#""uuid":"u1","#, "").replace(r#""uuid":"a1","#, "");
    assert_eq!(write("e", &nameless), write("f", &nameless.replace("tide-4-morning", "x")));
}

#[test]
fn a_byte_order_mark_and_bytes_that_are_no_utf8_stay() {
    let (_dir, file, host) = log([b"\xef\xbb\xbf", LINES.as_bytes()].concat());
    clean_in_place(&[&file], &redactor(), &host).unwrap();
    let cleaned = fs::read_to_string(&file.path).unwrap();
    assert_eq!(cleaned, format!("\u{feff}{}", LINES.replace("tide-4-morning", "[REDACTED:password]")));
    let latin = b"caf\xe9: the password is tide-4-morning, \xfc\xff";
    let cleaned = clean_bytes(latin.to_vec(), &redactor()).unwrap();
    assert_eq!(cleaned, b"caf\xe9: the password is [REDACTED:password], \xfc\xff");
}
