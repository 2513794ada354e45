//! The agents themselves, in the versions that the table was made with: installed by npm, never part of this repository.

use std::path::{Path, PathBuf};

use super::AGENTS;
use crate::Outcome;
use crate::shell::{command, run};

/// Claude Code and Qwen Code need Node 22; with an older one npm installs old versions of them in silence.
const NODE_VERSION: &str = "22";

/// Installs Node, then each agent with that Node.
pub(super) fn install(folder: &Path) -> Outcome {
    let arch = if std::env::consts::ARCH == "aarch64" { "arm64" } else { "x64" };
    npm(folder, "node", &format!("node-linux-{arch}@{NODE_VERSION}"))?;
    AGENTS
        .iter()
        .try_for_each(|agent| npm(folder, agent.name, &format!("{}@{}", agent.package, agent.version)))
}

fn npm(folder: &Path, name: &str, package: &str) -> Outcome {
    println!("installing {package} …");
    let path = format!("{}:{}", node(folder).display(), std::env::var("PATH").unwrap_or_default());
    let mut npm = command("npm install --no-save --no-package-lock --no-audit --no-fund --prefix");
    run(npm.arg(folder.join("inst").join(name)).arg(package).env("PATH", path))
}

/// The folder of the program `node`.
pub(super) fn node(folder: &Path) -> PathBuf {
    folder.join("inst/node/node_modules/.bin")
}

pub(super) fn program(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("inst/{name}/node_modules/.bin/{name}"))
}
