//! The disk of the home is full while `record` writes, in every dialect; needs Linux and the right to mount.

use std::fs;
use std::process::{Command, Stdio};

use crate::random::{Random, seed};
use crate::support::TestEnv;
use crate::{DIALECTS, acknowledged, cases, check_nothing_is_lost, line, record};

/// Mounts a small disk as the home, records there, makes room, and takes what is there out of it.
const SCRIPT: &str = "mount -t tmpfs -o size=\"$1\" tmpfs \"$HOME\" || exit 77
shift
head -c 20000 /dev/zero > \"$HOME/filler\" || exit 77
\"$@\" < lines > printed
echo $? > code
rm \"$HOME/filler\"
cp -a \"$HOME/.\" after";
const LINES: u64 = 60;

#[test]
fn nothing_that_was_acknowledged_is_lost_on_a_full_disk() {
    let mut random = Random(seed());
    let mut refused = 0;
    for case in 0..cases(1, 60) {
        for dialect in DIALECTS {
            match fill(dialect, &mut random, &format!("seed {}, {dialect}, case {case}", seed())) {
                Some(count) => refused += count,
                None => return println!("skipped: no disk can be mounted here"),
            }
        }
    }
    assert!(refused > 0, "no disk was full");
}

/// How many lines were refused; none if nothing can be mounted here.
fn fill(dialect: &str, random: &mut Random, about: &str) -> Option<usize> {
    let env = TestEnv::new();
    let words: Vec<String> = (0..LINES).map(|at| format!("<{at}>")).collect();
    let input: String = words.iter().enumerate().map(|(at, word)| line(at as u64, word, random.size(6_000))).collect();
    fs::write(env.work().join("lines"), input).unwrap();
    fs::create_dir(env.work().join("after")).unwrap();
    let ours = env.command(&record(dialect, &[]));
    let mut mounted = Command::new("unshare");
    let size = format!("{}k", 48 + 4 * random.below(20));
    mounted.args(["-m", "sh", "-c", SCRIPT, "sh", &size]).arg(ours.get_program()).args(ours.get_args());
    mounted.current_dir(env.work()).env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
    mounted.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?)))).stderr(Stdio::null());
    if !mounted.status().is_ok_and(|status| status.success()) {
        return None;
    }
    let printed = fs::read_to_string(env.work().join("printed")).unwrap();
    let refused = printed.matches("\"error\":").count();
    let code = fs::read_to_string(env.work().join("code")).unwrap();
    assert!(refused == 0 || code.trim() != "0", "{about}: lines were refused, and the exit code is 0");
    let acknowledged = acknowledged(&printed, &words);
    fs::remove_dir_all(env.home()).unwrap();
    fs::rename(env.work().join("after"), env.home()).unwrap();
    check_nothing_is_lost(&env, &acknowledged, about);
    // With room again, it goes on where it was.
    if let Some((_, session)) = acknowledged.last() {
        let more = env.run_with(
            &record(dialect, &["--resume", session]),
            b"{\"user\": \"<more>\"}\n{\"assistant\": \"<end>\"}\n",
        );
        assert_eq!(more.code, 0, "{about}: {}", more.all());
        let more = crate::acknowledged(&more.out, &["<more>".to_owned(), "<end>".to_owned()]);
        assert_eq!(more.len(), 2, "{about}");
        check_nothing_is_lost(&env, &[acknowledged, more].concat(), about);
    }
    Some(refused)
}
