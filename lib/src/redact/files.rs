//! Files whose content is a secret as a whole, whatever is in it.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, packed};
use memchr::memmem;
use regex::Regex;

use super::RuleError;

/// Patterns of the file's name, or of the end of its path.
#[rustfmt::skip]
const SENSITIVE: &[&str] = &[
    ".env", ".env.*", ".env-*", ".env_*", "*.env", ".envrc", "credentials.json", "credentials.y*ml", "client_secret*.json",
    "service-account*.json", "service_account*.json", "secrets.y*ml", "secrets.json", "secrets.toml",
    "secrets.env", "secret.y*ml", "*.secrets", ".ssh/id_*", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.pem",
    "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.ppk", "*.kdbx", ".npmrc", ".netrc", "_netrc", ".pypirc",
    ".pgpass", ".my.cnf", ".git-credentials", ".htpasswd", ".aws/credentials", ".docker/config.json",
    ".kube/config", "kubeconfig", "*.kubeconfig", "*kubeconfig*.y*ml", ".cargo/credentials",
    ".cargo/credentials.toml", ".gem/credentials", ".config/gcloud/**", ".config/gh/hosts.yml",
    "gcloud/application_default_credentials.json", "terraform.tfvars", "*.auto.tfvars", ".vault-token",
    ".terraformrc", "master.key", ".s3cfg", ".boto", "wp-config.php", ".dockercfg", ".dockerconfigjson", "etc/shadow",
];

/// Examples for people, and the half of a key that is public.
#[rustfmt::skip]
const OPEN: &[&str] = &[
    ".env.example", ".env.sample", ".env.template", ".env.dist", ".env.*.example", "*.env.example", "*.env.sample",
    "*.example", "*.sample", "*.pub", ".env.d.ts", ".env?example", ".env?sample", ".env?template", ".env?dist", "*.env.js", "*.env.ts",
];

/// A longer text is no path.
const MAX_PATH_BYTES: usize = 4096;

/// Which files are secrets as a whole.
#[derive(Clone, Debug)]
pub(super) struct Files {
    /// The user's own.
    users: Option<Users>,
}

#[derive(Clone, Debug)]
struct Users {
    pattern: Regex,
    hints: Hints,
}

/// Our own, compiled when the first file is judged: most runs of the program judge none.
static OURS: LazyLock<Option<Ours>> = LazyLock::new(|| {
    let (sensitive, open) = (compile(SENSITIVE).ok()?, compile(OPEN).ok()?);
    Some(Ours { sensitive, open, hints: Hints::of(SENSITIVE.iter().copied()) })
});

#[derive(Debug)]
struct Ours {
    sensitive: Regex,
    open: Regex,
    hints: Hints,
}

/// Texts of which every path of such a file has one in it, in the case in which people write them.
#[derive(Clone, Debug)]
enum Hints {
    /// Searched many bytes at a time, where the processor can.
    Packed(packed::Searcher),
    OneByOne(AhoCorasick),
    /// A pattern of the user could be anything.
    Anything,
}

impl Files {
    /// Adds the user's globs to our own.
    pub(super) fn new(globs: &[String]) -> Result<Files, RuleError> {
        if let Some(glob) = globs.iter().find(|glob| glob.contains(['[', ']', '{', '}'])) {
            let why = "only `*`, `**` and `?` stand for other characters".to_owned();
            return Err(RuleError::Glob { globs: glob.clone(), why });
        }
        if globs.is_empty() {
            return Ok(Files { users: None });
        }
        let globs: Vec<&str> = globs.iter().map(String::as_str).collect();
        let hints = Hints::of(SENSITIVE.iter().copied().chain(globs.iter().copied()));
        Ok(Files { users: Some(Users { pattern: compile(&globs)?, hints }) })
    }

    /// Whether a text could have the path of such a file in it: most have not, and this is fast.
    pub(super) fn may_be_named_in(&self, text: &[u8]) -> bool {
        let ours = || OURS.as_ref().map(|ours| &ours.hints);
        let has_hint = match self.users.as_ref().map(|users| &users.hints).or_else(ours) {
            Some(Hints::Packed(hints)) => hints.find(text).is_some(),
            Some(Hints::OneByOne(hints)) => hints.is_match(text),
            Some(Hints::Anything) | None => true,
        };
        has_hint || has_quotes_in_word(text)
    }

    pub(super) fn is_sensitive(&self, path: &str) -> bool {
        if path.len() > MAX_PATH_BYTES || path.contains('\n') {
            return false;
        }
        let path = path.trim().trim_matches(['"', '\'', '`']).replace('\\', "/");
        let is_users = self.users.as_ref().is_some_and(|users| users.pattern.is_match(&path));
        let is_ours = |ours: &Ours| ours.sensitive.is_match(&path) && !ours.open.is_match(&path);
        is_users || OURS.as_ref().is_some_and(is_ours)
    }
}

fn compile(globs: &[&str]) -> Result<Regex, RuleError> {
    let alternatives: Vec<String> = globs.iter().copied().map(pattern).collect();
    let whole = format!("(?i)(?:^|/)(?:{})$", alternatives.join("|"));
    Regex::new(&whole).map_err(|error| RuleError::Glob { globs: alternatives.join(" "), why: error.to_string() })
}

/// Whether two quotes are in the middle of a word, as in `cat .en""v`; they may be escaped for JSON.
pub(super) fn has_quotes_in_word(text: &[u8]) -> bool {
    let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'.');
    [&b"''"[..], b"\"\"", b"\\\"\\\"", b"\\\\\\\"\\\\\\\""].iter().any(|quotes| {
        memmem::find_iter(text, quotes)
            .any(|at| at > 0 && is_word(text.get(at - 1)) && is_word(text.get(at + quotes.len())))
    })
}

impl Hints {
    fn of<'g>(globs: impl Iterator<Item = &'g str>) -> Hints {
        globs.map(hint).collect::<Option<Vec<&str>>>().map_or(Hints::Anything, Hints::new)
    }

    fn new(mut hints: Vec<&str>) -> Hints {
        // The few that people write in capitals.
        hints.extend([".ENV", ".PEM", ".KEY", "Credentials", "CREDENTIALS", "Secrets", "SECRETS", "Kubeconfig"]);
        // `.env` is in `.envrc`, and fewer are faster.
        let all = hints.clone();
        hints.retain(|hint| !all.iter().any(|other| other != hint && hint.contains(other)));
        hints.sort_unstable();
        hints.dedup();
        match packed::Config::new().builder().extend(&hints).build() {
            Some(packed) => Hints::Packed(packed),
            None => AhoCorasick::new(&hints).map_or(Hints::Anything, Hints::OneByOne),
        }
    }
}

/// The longest part of a glob that stands in every path that it matches, if it is long enough to be rare.
fn hint(glob: &str) -> Option<&str> {
    let parts = glob.trim_start_matches("~/").split(['*', '?', '/']);
    parts.max_by_key(|part| part.len()).filter(|part| part.len() >= 3)
}

/// A glob as an expression: `*` and `?` stay in a folder, `**` does not.
fn pattern(glob: &str) -> String {
    let glob = glob.strip_prefix("~/").or_else(|| glob.strip_prefix('/')).unwrap_or(glob);
    let mut out = String::new();
    let mut rest = glob;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("**/") {
            out.push_str("(?:.*/)?");
            rest = after;
        } else if let Some(after) = rest.strip_prefix("**") {
            out.push_str(".*");
            rest = after;
        } else {
            match c {
                '*' => out.push_str("[^/]*"),
                '?' => out.push_str("[^/]"),
                c => out.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
            }
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_name_and_folder() {
        let files = Files::new(&["*.tide".to_owned(), "vault/**".to_owned()]).unwrap();
        for path in [
            ".env",
            "/srv/app/.env.production",
            "C:\\app\\.env",
            "credentials.json",
            "deploy/secrets.yaml",
            "secrets.yml",
            "/home/ada/.ssh/id_ed25519",
            "~/.ssh/id_work",
            "server.pem",
            ".npmrc",
            "~/.netrc",
            "/home/ada/.aws/credentials",
            "kubeconfig",
            ".env-prod",
            ".env_prod",
            ".envrc",
            "my-kubeconfig-dev.yaml",
            "~/.kube/config",
            "a.tide",
            "x/vault/deep/file",
        ] {
            assert!(files.is_sensitive(path), "{path}");
        }
        for path in [
            ".env.example",
            ".env.sample",
            ".env-example",
            ".env_template",
            "src/environment.ts",
            "id_ed25519.pub",
            "README.md",
            "credentials.rs",
            "config",
            "/home/ada/.aws/config",
            "pem.rs",
            "",
            "~/.ssh/known_hosts",
        ] {
            assert!(!files.is_sensitive(path), "{path}");
        }
    }
}
