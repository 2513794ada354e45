//! How much free memory a program keeps.
//!
//! A command that lists thousands of sessions takes memory on all threads and is done. glibc lets the heap of a thread grow by one page at
//! a time, each with a call of the system that the other threads wait for: that was a tenth of the work of `stats`. So each thread takes
//! some megabytes at once and gives them back, which stay with its heap.
//!
//! Much passes through a server's memory, and little stays there. But glibc keeps a heap for each thread, and returns less the more it was
//! once asked for. It reads its settings only when a program starts, so `serve` starts itself once more with other ones.

use std::ffi::OsString;

/// What glibc calls its settings: how many heaps there are, from which size on a piece is memory of its own that is returned when it is
/// free, and how much may be free at the end of a heap.
pub(crate) const SETTINGS: [(&str, &str); 3] =
    [("MALLOC_ARENA_MAX", "2"), ("MALLOC_MMAP_THRESHOLD_", "524288"), ("MALLOC_TRIM_THRESHOLD_", "524288")];

/// What a thread takes at first. Pages that nobody writes to take no memory.
const THREAD_BYTES: usize = 16 * 1024 * 1024;

/// Prepares the heaps of the threads of a command that reads much and ends soon. It must come before their first work.
pub(crate) fn prepare_threads() {
    // What was mapped on its own and given back is what glibc takes from heaps, and leaves there, from now on: if it is less than 32 MiB.
    take_and_give_back(THREAD_BYTES / 2 * 3);
    let threads = rayon::ThreadPoolBuilder::new().start_handler(|_| take_and_give_back(THREAD_BYTES));
    // Threads that work already go on as they are.
    drop(threads.build_global());
}

fn take_and_give_back(bytes: usize) {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(bytes)));
}

/// Starts this program again with the same arguments and smaller heaps, unless somebody has chosen how large they are. Returns where that
/// is not possible.
pub(crate) fn restart_small(typed: &[OsString]) {
    let is_set = SETTINGS.iter().any(|(name, _)| std::env::var_os(name).is_some());
    if cfg!(all(target_os = "linux", target_env = "gnu")) && !is_set {
        restart(typed);
    }
}

#[cfg(unix)]
fn restart(typed: &[OsString]) {
    use std::os::unix::process::CommandExt;
    let Ok(program) = std::env::current_exe() else { return };
    let mut command = std::process::Command::new(program);
    if let [name, arguments @ ..] = typed {
        command.arg0(name).args(arguments);
    }
    // It only returns if it fails: then this process goes on as it is.
    drop(command.envs(SETTINGS).exec());
}

#[cfg(not(unix))]
fn restart(_: &[OsString]) {}
