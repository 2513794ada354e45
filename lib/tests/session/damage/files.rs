//! Files that cannot be read, are no files, change under the reader, or are archives.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use scrollback::dialect::Dialect;
use scrollback::model::Error;
use scrollback::session::{Session, Source};
use scrollback::view::listing::{self, Depth};
use tempfile::TempDir;

use crate::damage::{content_issues, ids};
use crate::support::{native, reading};

/// What a walk that opened a pipe would wait for forever.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn an_empty_file_is_an_empty_session() {
    let store = Store::new();
    let session = open(&store.log("empty", b"")).unwrap();
    assert_eq!((session.records().len(), session.heads().len(), session.issues().len()), (0, 0, 0));
    assert!(session.row().is_ok() && session.tree_view().is_ok());
}

#[test]
fn what_is_no_file_is_an_error_with_its_path() {
    let store = Store::new();
    let folder = store.sessions().join("a/messages.jsonl");
    fs::create_dir_all(&folder).unwrap();
    assert!(matches!(open(&folder), Err(Error::NotAFile(path)) if path == folder));
    let missing = store.sessions().join("b/messages.jsonl");
    assert!(matches!(open(&missing), Err(Error::Io { path, .. }) if path == missing));
    assert!(matches!(&store.walk()[..], [Err(Error::NotAFile(path))] if *path == folder));
}

#[cfg(unix)]
#[test]
fn what_may_not_be_read_is_an_error_and_hides_nothing_else() {
    use std::os::unix::fs::PermissionsExt;
    let store = Store::new();
    let (locked, open_log) = (store.log("locked", &lines(3)), store.log("open", &lines(3)));
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&locked).is_ok() {
        return; // For root nothing is locked.
    }
    assert!(matches!(open(&locked), Err(Error::Io { path, .. }) if path == locked));
    let folder = locked.parent().unwrap();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o000)).unwrap();
    let walked = store.walk();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
    assert!(matches!(&walked[0], Err(Error::Io { path, .. }) if *path == locked));
    assert!(matches!(&walked[1], Ok(source) if source.path == open_log));
}

#[cfg(unix)]
#[test]
fn a_pipe_in_a_store_is_never_opened() {
    let store = Store::new();
    let beside = store.log("beside", &lines(2));
    let log = store.log("real", &lines(2));
    let pipe = store.sessions().join("pipe/messages.jsonl");
    fs::create_dir_all(pipe.parent().unwrap()).unwrap();
    let pipes = [pipe.clone(), log.with_file_name("metadata.json"), log.with_file_name("snapshots.jsonl")];
    for pipe in &pipes {
        assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    }
    let (done, finished) = mpsc::channel();
    std::thread::spawn(move || {
        let (walked, told): (Vec<_>, Vec<_>) = store.walk().into_iter().partition(Result::is_ok);
        let walked: Vec<Source> = walked.into_iter().map(Result::unwrap).collect();
        assert!(matches!(&told[..], [Err(Error::NotAFile(path))] if *path == pipe), "it is told");
        let read: Vec<usize> = walked.iter().map(|source| open(&source.path).unwrap().records().len()).collect();
        let refused = matches!(open(&pipe), Err(Error::NotAFile(path)) if path == pipe);
        done.send((walked.into_iter().map(|source| source.path).collect::<Vec<_>>(), read, refused))
            .unwrap();
    });
    let (walked, read, refused) = finished.recv_timeout(PATIENCE).expect("it waits for a pipe");
    assert_eq!((walked, read, refused), (vec![beside, log], vec![2, 2], true));
}

#[cfg(unix)]
#[test]
fn links_that_lead_nowhere_or_in_a_circle_hide_nothing() {
    use std::os::unix::fs::symlink;
    let store = Store::new();
    let log = store.log("m", &lines(2));
    symlink("circle", store.sessions().join("circle")).unwrap();
    symlink("gone", store.sessions().join("nowhere")).unwrap();
    symlink("..", store.sessions().join("up")).unwrap();
    symlink("m", store.sessions().join("z")).unwrap();
    let shown: Vec<String> = store
        .walk()
        .into_iter()
        .map(|found| match found {
            Ok(source) => source.path.strip_prefix(store.sessions()).unwrap().display().to_string(),
            Err(Error::Io { path, .. }) => {
                format!("error at {}", path.strip_prefix(store.sessions()).unwrap().display())
            }
            Err(other) => other.to_string(),
        })
        .collect();
    assert_eq!(shown, ["error at circle", "m/messages.jsonl", "z/messages.jsonl"]);
    assert_eq!(ids(&open(&log).unwrap()), ["r0", "r1"]);
}

#[test]
fn a_file_that_changes_after_it_was_read_is_told() {
    let store = Store::new();
    let log = store.log("s", &lines(9));
    let session = open(&log).unwrap();
    let file = fs::File::options().write(true).open(&log).unwrap();
    file.set_len(lines(4).len() as u64).unwrap();
    let changed = |record: usize| {
        let body = session.records().nth(record).unwrap().body();
        matches!(body, Err(Error::Changed(path)) if path == log)
    };
    assert!(!changed(3) && changed(4) && changed(8));
    assert!(session.tree_view().is_err() && session.head_rows().is_err());
    fs::write(&log, lines(9).to_ascii_uppercase()).unwrap();
    assert!(changed(0) && changed(8));
    fs::write(&log, lines(9)).unwrap();
    assert!(!changed(0) && !changed(8));
}

#[test]
fn the_models_of_a_long_log_are_known_only_when_all_of_it_is_read() {
    let said =
        |model: &str| format!("{{\"type\":\"assistant\",\"model\":\"{model}\",\"message\":{{\"content\":\"ok\"}}}}\n");
    let log = [said("a"), said("b"), said("x").repeat(2_000), said("b"), said("c"), said("a")].concat();
    let store = Store::new();
    let source = Source::file(native(), &store.log("s", log.as_bytes()));
    let models = |depth| listing::row(&source, &reading(), depth).unwrap().models;
    assert_eq!(models(Depth::Ends), [""; 0]);
    assert_eq!(models(Depth::Whole), ["a", "b", "x", "c"]);
}

#[test]
fn an_archive_is_read_as_its_content() {
    let store = Store::new();
    for (name, archive) in [("gz", gzip(&lines(200))), ("zst", zstd::encode_all(&lines(200)[..], 3).unwrap())] {
        let log = store.log(name, &archive);
        let session = open(&log).unwrap();
        assert_eq!((ids(&session).len(), session.issues().len()), (200, 0), "{name}");
        assert_eq!(
            session.records().next_back().unwrap().raw().unwrap()[0],
            lines(200).split_off(lines(199).len())[..].trim_ascii()
        );
        let listed = listing::row(&Source::file(native(), &log), &reading(), Depth::Ends).unwrap();
        assert_eq!(listed.head.unwrap().as_str(), "r199");
        // Archives are appended to like logs.
        let rest = lines(210).split_off(lines(200).len());
        let more = if name == "gz" { gzip(&rest) } else { zstd::encode_all(&rest[..], 3).unwrap() };
        assert_eq!(ids(&open(&store.log(name, &[archive, more].concat())).unwrap()).len(), 210, "{name}");
    }
    for empty in [gzip(b""), zstd::encode_all(&b""[..], 3).unwrap()] {
        let session = open(&store.log("empty", &empty)).unwrap();
        assert_eq!((session.records().len(), session.issues().len()), (0, 0));
    }
}

#[test]
fn of_a_torn_archive_is_read_what_there_is() {
    let store = Store::new();
    // Noise, so that an archive has many blocks.
    let noise = |at: u32| format!("{:x}", u128::from(at.wrapping_mul(2_654_435_761)).pow(3)).repeat(90);
    let line =
        |at: u32| format!("{{\"type\":\"user\",\"uuid\":\"r{at}\",\"message\":{{\"content\":\"{}\"}}}}\n", noise(at));
    let whole: Vec<u8> = (0..300).flat_map(|at| line(at).into_bytes()).collect();
    for archive in [gzip(&whole), zstd::encode_all(&whole[..], 3).unwrap()] {
        let mut read_at_most = 0;
        for cut in (1..archive.len()).step_by(archive.len() / 40).chain([archive.len() - 1]) {
            let session = open(&store.log("torn", &archive[..cut])).unwrap();
            let read = ids(&session);
            assert!(read.iter().cloned().eq((0..read.len()).map(|at| format!("r{at}"))), "cut at {cut}: {read:?}");
            assert!(session.has_errors(), "cut at {cut}");
            assert!(read.len() >= read_at_most, "cut at {cut}");
            read_at_most = read.len();
        }
        assert!(read_at_most > 150, "{read_at_most}");
    }
}

#[test]
fn a_log_that_only_begins_like_an_archive_is_read() {
    let store = Store::new();
    for magic in [&b"\x1f\x8b\x08\x00"[..], b"\x1f\x8b", b"\x28\xb5\x2f\xfd"] {
        let session = open(&store.log("s", &[magic, b" garbage\n", &lines(3)].concat())).unwrap();
        assert_eq!(ids(&session), ["r0", "r1", "r2"]);
        assert!(content_issues(&session).contains(&"not-json 1".to_owned()), "{:?}", content_issues(&session));
    }
}

/// A store of the native dialect.
struct Store(TempDir);

impl Store {
    fn new() -> Store {
        Store(tempfile::tempdir().unwrap())
    }

    fn sessions(&self) -> PathBuf {
        self.0.path().join("sessions")
    }

    fn log(&self, session: &str, bytes: &[u8]) -> PathBuf {
        let path = self.sessions().join(session).join("messages.jsonl");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn walk(&self) -> Vec<Result<Source, Error>> {
        let layouts = native().layouts_in(self.0.path());
        layouts.iter().flat_map(|layout| Source::walk(native(), layout)).collect()
    }
}

fn open(log: &Path) -> Result<Session, Error> {
    let native: &'static dyn Dialect = native();
    Session::open(&Source::file(native, log), &reading())
}

fn lines(count: usize) -> Vec<u8> {
    let line = |at| format!("{{\"type\":\"user\",\"uuid\":\"r{at}\",\"message\":{{\"content\":\"hello {at}\"}}}}\n");
    (0..count).flat_map(|at| line(at).into_bytes()).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut archive = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    archive.write_all(bytes).unwrap();
    archive.finish().unwrap()
}
