//! axe-core, which judges whether everybody can use a page. Needs npm; it is installed once into the target directory.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::chromium::Tab;

/// What axe-core finds serious or worse in a page whose folds are all open: the rule, how bad, and the first place.
pub(crate) fn violations(tab: &Tab<'_>) -> Vec<String> {
    tab.eval("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })");
    tab.eval(source());
    let found = tab.eval_later(
        "axe.run(document, { resultTypes: ['violations'] }).then((found) => found.violations.map((one) => \
         `${one.id} (${one.impact}), ${one.nodes.length} times: ${one.nodes[0].html.slice(0, 200)} ${one.nodes[0].failureSummary}`))",
    );
    let found = found.as_array().cloned().unwrap_or_default();
    let is_bad = |one: &&str| one.contains("(serious)") || one.contains("(critical)");
    found.iter().filter_map(Value::as_str).filter(is_bad).map(str::to_owned).collect()
}

/// The script itself; npm runs only when `package.json` has changed.
fn source() -> &'static str {
    static SOURCE: OnceLock<String> = OnceLock::new();
    SOURCE.get_or_init(|| {
        let wanted = include_str!("../axe/package.json");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("axe");
        fs::create_dir_all(&folder).unwrap();
        // Two test processes at once must not install over each other.
        let lock = fs::File::create(folder.join("lock")).unwrap();
        lock.lock().unwrap();
        let installed = folder.join("installed.json");
        if !fs::read_to_string(&installed).is_ok_and(|installed| installed == wanted) {
            fs::write(folder.join("package.json"), wanted).unwrap();
            let npm = Command::new("npm")
                .args(["install", "--no-package-lock", "--no-audit", "--no-fund"])
                .current_dir(&folder)
                .output()
                .unwrap_or_else(|error| panic!("this test asks axe-core and needs `npm` in PATH: {error}"));
            assert!(npm.status.success(), "npm install failed:\n{}", String::from_utf8_lossy(&npm.stderr));
            fs::write(&installed, wanted).unwrap();
        }
        fs::read_to_string(folder.join("node_modules/axe-core/axe.min.js")).unwrap()
    })
}
