//! Things that somebody can put in the place of a file that is read, and a limit on the time that reading them may take.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

/// Longer than any reading of these files takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);

/// A thing that is not the file that belongs there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hostile {
    Pipe,
    LinkToPipe,
    LinkToDevice,
    LinkToKernelLog,
    Socket,
    Folder,
    LinkToFolder,
    DanglingLink,
    LoopingLink,
    Empty,
    Sparse,
    NotText,
}

impl Hostile {
    pub(crate) const ALL: [Hostile; 12] = [
        Hostile::Pipe,
        Hostile::LinkToPipe,
        Hostile::LinkToDevice,
        Hostile::LinkToKernelLog,
        Hostile::Socket,
        Hostile::Folder,
        Hostile::LinkToFolder,
        Hostile::DanglingLink,
        Hostile::LoopingLink,
        Hostile::Empty,
        Hostile::Sparse,
        Hostile::NotText,
    ];

    /// Whether it is a regular file of a size that can be read.
    pub(crate) fn is_readable(self) -> bool {
        matches!(self, Hostile::Empty | Hostile::NotText | Hostile::LinkToKernelLog)
    }

    /// Puts it at a path, where nothing is.
    pub(crate) fn put(self, path: &Path) {
        use std::os::unix::fs::symlink;
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let beside = || {
            let mut name = path.as_os_str().to_owned();
            name.push("-target");
            std::path::PathBuf::from(name)
        };
        match self {
            Hostile::Pipe => make_pipe(path),
            Hostile::LinkToPipe => {
                make_pipe(&beside());
                symlink(beside(), path).unwrap();
            }
            Hostile::LinkToDevice => symlink("/dev/zero", path).unwrap(),
            Hostile::LinkToKernelLog => symlink("/proc/kmsg", path).unwrap(),
            Hostile::Socket => {
                // The address of a socket has room for about a hundred bytes.
                let short = tempfile::tempdir().unwrap();
                drop(std::os::unix::net::UnixListener::bind(short.path().join("s")).unwrap());
                if fs::rename(short.path().join("s"), path).is_err() {
                    make_pipe(path);
                }
            }
            Hostile::Folder => fs::create_dir(path).unwrap(),
            Hostile::LinkToFolder => {
                fs::create_dir(beside()).unwrap();
                symlink(beside(), path).unwrap();
            }
            Hostile::DanglingLink => symlink("nowhere", path).unwrap(),
            Hostile::LoopingLink => symlink(path.file_name().unwrap(), path).unwrap(),
            Hostile::Empty => fs::write(path, "").unwrap(),
            Hostile::Sparse => File::create(path).unwrap().set_len(10 << 30).unwrap(),
            Hostile::NotText => fs::write(path, b"\xff\xfe{]\x00\x1b[2J\n").unwrap(),
        }
    }
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Runs something that must end; fails if it waits for ever.
pub(crate) fn in_time<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || drop(send.send(work())));
    receive.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{what}: it hangs or panicked"))
}
