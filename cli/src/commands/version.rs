//! `--version`: prints the version of the program; with `--json` also the dialects.

use std::process::ExitCode;

use scrollback::dialect;
use serde_json::json;

use crate::ctx::Ctx;
use crate::failure::Failure;

pub(crate) fn run(ctx: &mut Ctx) -> Result<ExitCode, Failure> {
    let version = env!("CARGO_PKG_VERSION");
    if ctx.json {
        let dialects: Vec<&str> = dialect::all().iter().map(|dialect| dialect.name()).collect();
        ctx.print_json(
            &json!({"name": "scrollback", "version": version, "dialects": dialects, "sdk": ["5", "6", "7"]}),
        )?;
    } else {
        ctx.line(&format!("scrollback {version}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
