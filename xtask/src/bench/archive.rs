//! The rows of the archive: what `index/benches/archive` measures, and whole commands.

use std::path::Path;

use super::{ours, printed, timed};
use crate::{Outcome, shell};

pub(super) fn run(home: &Path) -> Outcome {
    let mut command =
        shell::command("cargo bench --profile dist --quiet --package scrollback-index --bench archive --");
    let text = printed(command.arg(home))?;
    let row = |name: &str| {
        let cells: Vec<&str> =
            text.lines().map(|line| line.split('\t').collect()).find(|cells: &Vec<&str>| cells[0] == name)?;
        Some((cells.get(1)?.parse::<f64>().ok()?, cells.get(2).copied().unwrap_or_default().to_owned()))
    };
    let row = |name: &str| row(name).ok_or_else(|| format!("{name}: not measured"));
    let (limit, _) = row("limit: FTS5 of the same texts, one thread")?;
    let (whole, size) = row("ours: text index")?;
    println!(
        "| full text index, 4 KB of each tool result (goal: 1.3 ×, 15 %) | {limit:.3} s (FTS5 of the same texts, one thread) | | {whole:.3} s, {size} | {:.2} × the limit's time | |",
        whole / limit
    );
    let (unchanged, pending) = row("ours: nothing changed")?;
    let command = timed(&ours(home, &["index"]))?;
    println!(
        "| nothing changed? (goal: 0.040 s, process included) | | | {unchanged:.3} s ({pending}); the whole command {:.3} s | | {} MiB |",
        command.seconds, command.rss_mib
    );
    let ((median, remark), (slow, _)) = (row("ours: search, median")?, row("ours: search, 95 of 100")?);
    println!(
        "| search, top 20 with snippets, in process (goal: p50 5 ms, p95 25 ms) | | | p50 {:.1} ms, p95 {:.1} ms ({remark}) | | |",
        median * 1000.0,
        slow * 1000.0
    );
    let search = timed(&ours(home, &["search", "--all", "error"]))?;
    println!(
        "| search error, process included (goal: 0.030 s) | | | {:.3} s | | {} MiB |",
        search.seconds, search.rss_mib
    );
    let (append, remark) = row("ours: after one append")?;
    println!("| after one append, searchable (goal: 100 ms) | | | {:.1} ms {remark} | | |", append * 1000.0);
    Ok(())
}
