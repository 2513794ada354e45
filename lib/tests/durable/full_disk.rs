//! P7: on a full disk a record is refused, the file stays as it was, and there is more once there is room.

use crate::{after, process, said};

const MOUNTED: &str = "mount -t tmpfs -o size=4m tmpfs \"$1\" || exit 77";

#[test]
fn a_real_disk_that_is_full_from_any_byte_on_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mounted = after(MOUNTED, folder.path(), &process("filler", folder.path(), 0));
    let mut whole = std::process::Command::new("unshare");
    whole.arg("-m").arg(mounted.get_program()).args(mounted.get_args());
    whole.envs(mounted.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = match whole.output() {
        Ok(output) if output.status.code() != Some(77) && !output.stdout.is_empty() => output,
        Ok(output) => return println!("skipped: no tmpfs here: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => return println!("skipped: no unshare here: {error}"),
    };
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    let offsets: u64 = said(&told, "done ").next().unwrap().parse().unwrap();
    assert!(offsets > 500, "{offsets}");
}
