//! What the library does not read by itself: the clock, new ids, and where it runs. [`Host::system`] and [`Host::at`] are the only places that do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

use crate::model::error::{At, Result};

/// The surroundings of a recorder.
///
/// ```
/// use scrollback::model::Host;
///
/// let host = Host::system("my-agent 0.3.1").expect("there is a working directory");
/// assert_ne!((host.new_id)(), (host.new_id)());
/// ```
#[derive(Clone)]
pub struct Host {
    /// The clock.
    pub now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// Makes a unique id.
    pub new_id: Arc<dyn Fn() -> String + Send + Sync>,
    /// Where the agent works, absolute.
    pub cwd: PathBuf,
    /// Our own data folder ([`Home::data`](crate::model::Home::data)): recorders note there which sessions they have open, so that
    /// none is moved away under them. `None`: they do not.
    pub data: Option<PathBuf>,
    /// macos, linux, windows.
    pub platform: String,
    /// The agent's own version.
    pub version: String,
}

impl Host {
    /// The machine that this runs on; `version` is the agent's own.
    pub fn system(version: &str) -> Result<Host> {
        Ok(Host::at(std::env::current_dir().at(Path::new("."))?, version))
    }

    /// The same, for an agent that works in another directory.
    pub fn at(cwd: PathBuf, version: &str) -> Host {
        Host {
            now: Arc::new(Timestamp::now),
            // Random from the first digit on, so that a short prefix is unique; and Qwen Code accepts no version above 5.
            new_id: Arc::new(|| uuid::Uuid::new_v4().to_string()),
            cwd,
            data: None,
            platform: std::env::consts::OS.to_owned(),
            version: version.to_owned(),
        }
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in {}", self.version, self.cwd.display())
    }
}
