//! Files whose content is a secret as a whole, whatever is in it.

use regex::Regex;

use super::RuleError;

/// Patterns of the file's name, or of the end of its path.
#[rustfmt::skip]
const SENSITIVE: &[&str] = &[
    ".env", ".env.*", "*.env", ".envrc", "credentials.json", "credentials.y*ml", "client_secret*.json",
    "service-account*.json", "service_account*.json", "secrets.y*ml", "secrets.json", "secrets.toml",
    "secrets.env", "secret.y*ml", "*.secrets", ".ssh/id_*", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.pem",
    "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.ppk", "*.kdbx", ".npmrc", ".netrc", "_netrc", ".pypirc",
    ".pgpass", ".my.cnf", ".git-credentials", ".htpasswd", ".aws/credentials", ".docker/config.json",
    ".kube/config", "kubeconfig", "*.kubeconfig", "kubeconfig.y*ml", ".cargo/credentials",
    ".cargo/credentials.toml", ".gem/credentials", ".config/gcloud/**", ".config/gh/hosts.yml",
    "gcloud/application_default_credentials.json", "terraform.tfvars", "*.auto.tfvars", ".vault-token",
    ".terraformrc", "master.key", ".s3cfg", ".boto", "wp-config.php", ".dockercfg", ".dockerconfigjson", "shadow",
];

/// Examples for people, and the half of a key that is public.
#[rustfmt::skip]
const OPEN: &[&str] = &[
    ".env.example", ".env.sample", ".env.template", ".env.dist", ".env.*.example", "*.env.example", "*.env.sample",
    "*.example", "*.sample", "*.pub", ".env.d.ts", "*.env.js", "*.env.ts",
];

/// Which files are secrets as a whole.
#[derive(Clone, Debug)]
pub(super) struct Files {
    sensitive: Regex,
    open: Regex,
    users: Option<Regex>,
}

impl Files {
    /// Adds the user's globs to our own.
    pub(super) fn new(globs: &[String]) -> Result<Files, RuleError> {
        let compile = |globs: &mut dyn Iterator<Item = &str>| {
            let alternatives: Vec<String> = globs.map(pattern).collect();
            let whole = format!("(?i)(?:^|/)(?:{})$", alternatives.join("|"));
            Regex::new(&whole)
                .map_err(|error| RuleError::Glob { globs: alternatives.join(" "), why: error.to_string() })
        };
        let users = match globs {
            [] => None,
            globs => Some(compile(&mut globs.iter().map(String::as_str))?),
        };
        let ours = compile(&mut SENSITIVE.iter().copied())?;
        Ok(Files { sensitive: ours, open: compile(&mut OPEN.iter().copied())?, users })
    }

    pub(super) fn is_sensitive(&self, path: &str) -> bool {
        let path = path.trim().trim_matches(['"', '\'', '`']).replace('\\', "/");
        let is_users = self.users.as_ref().is_some_and(|users| users.is_match(&path));
        is_users || self.sensitive.is_match(&path) && !self.open.is_match(&path)
    }
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
            "~/.kube/config",
            "a.tide",
            "x/vault/deep/file",
        ] {
            assert!(files.is_sensitive(path), "{path}");
        }
        for path in [
            ".env.example",
            ".env.sample",
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
