//! The config file: where it is, what it sets, what is wrong in it.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod support;

use support::{TestEnv, talk};

fn write(env: &TestEnv, text: &str) {
    let path = env.home().join(".config/scrollback/config.toml");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn a_key_is_set_read_and_listed() {
    let env = TestEnv::new();
    assert_eq!(env.run(&["config", "path"]).out, "$HOME/.config/scrollback/config.toml\n");
    let unset = env.run(&["config", "get", "list.limit"]);
    assert_eq!((unset.code, unset.out.as_str()), (1, ""));
    assert_eq!(
        unset.err,
        "scrollback: list.limit is not set (default: no limit)\nhint: run `scrollback config set list.limit VALUE` to set it\n"
    );
    assert_eq!(env.run(&["config", "set", "list.limit", "2"]).code, 0);
    assert_eq!(env.run(&["config", "get", "list.limit"]).out, "2\n");
    assert_eq!(env.run(&["config", "get", "list.limit", "--json"]).json()["value"], 2);
    assert_eq!(env.run(&["config", "list"]).out.lines().count(), 14);
    let listed = env.run(&["config", "list", "--json"]).json();
    assert_eq!((&listed[0]["key"], &listed[0]["value"]), (&"color".into(), &serde_json::Value::Null));
    assert_eq!((&listed[2]["key"], &listed[2]["value"]), (&"list.limit".into(), &2.into()));
}

#[test]
fn setting_a_key_keeps_comments_and_makes_a_private_file() {
    let env = TestEnv::new();
    write(&env, "# mine\ncolor = \"never\" # no colours\n\n[list] # lists\nlimit = 3 # three\n");
    assert_eq!(env.run(&["config", "set", "color", "always"]).code, 0);
    assert_eq!(env.run(&["config", "set", "list.limit", "4"]).code, 0);
    assert_eq!(env.run(&["config", "set", "tail.last", "0"]).code, 0);
    let path = env.home().join(".config/scrollback/config.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let expected = "# mine\ncolor = \"always\" # no colours\n\n[list] # lists\nlimit = 4 # three\n\n[tail]\nlast = 0\n";
    assert_eq!(text, expected);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[cfg(unix)]
#[test]
fn a_config_file_that_is_a_link_stays_one() {
    let env = TestEnv::new();
    write(&env, "");
    let (link, real) = (env.home().join(".config/scrollback/config.toml"), env.home().join("dotfiles.toml"));
    std::fs::rename(&link, &real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    assert_eq!(env.run(&["config", "set", "pager", "less -S"]).code, 0);
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_to_string(real).unwrap(), "pager = \"less -S\"\n");
}

#[test]
fn an_invalid_key_or_value_is_refused() {
    let env = TestEnv::new();
    for (args, error) in [
        (["set", "colour", "never"], "unknown key \"colour\"\nhint: did you mean \"color\"?\n"),
        (["set", "color", "blue"], "invalid value \"blue\" for \"color\"\nhint: use one of: auto, always, never\n"),
        (["set", "list.limit", "0"], "invalid value \"0\" for \"list.limit\"\nhint: use a whole number, at least 1\n"),
    ] {
        let ran = env.run(&[&["config"], &args[..]].concat());
        assert_eq!((ran.code, ran.err), (2, format!("scrollback: {error}")));
    }
    assert!(!env.home().join(".config").exists());
}

#[test]
fn a_mistake_is_a_warning_and_the_command_goes_on() {
    let env = TestEnv::new();
    env.session("s1", &talk());
    write(&env, "[list]\nlimmit = 3\n");
    let ran = env.run(&["list", "--all"]);
    let path = "$HOME/.config/scrollback/config.toml";
    let warning = format!("warning: {path}, line 2: unknown key \"list.limmit\"\nhint: did you mean \"list.limit\"?\n");
    assert_eq!((ran.code, ran.err.as_str()), (0, warning.as_str()));
    let json: serde_json::Value = serde_json::from_str(&env.run(&["list", "--all", "--json"]).err).unwrap();
    assert_eq!(json["warning"]["kind"], "config");

    write(&env, "color = \"never\"\nlist = = 3\n");
    let ran = env.run(&["list", "--all"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    assert!(ran.err.starts_with(&format!("warning: {path}, line 2: ")), "{}", ran.err);
    // What cannot be read is neither shown nor changed.
    for args in [&["config", "list"][..], &["config", "get", "color"], &["config", "set", "color", "auto"]] {
        let ran = env.run(args);
        assert_eq!(ran.code, 2, "{}", ran.all());
        assert!(ran.err.starts_with(&format!("scrollback: {path}, line 2: ")), "{}", ran.err);
    }
    assert_eq!(env.run(&["config", "path"]).code, 0);
}

#[test]
fn defaults_of_options_are_taken_from_the_file_and_the_command_line_counts_more() {
    let env = TestEnv::new();
    for id in ["s1", "s2", "s3"] {
        env.session(id, &talk().replace("\"s1\"", &format!("\"{id}\"")));
    }
    write(&env, "color = \"always\"\nlist.limit = 2\n");
    let ran = env.run(&["list", "--all"]);
    assert!(ran.out.contains('\u{1b}') && ran.out.lines().count() == 3, "{}", ran.all());
    assert_eq!(ran.err, "1 more session; use --limit N to list more.\n");
    assert_eq!(env.run(&["list", "--all", "--limit", "1", "--color", "never"]).out.lines().count(), 2);
    // Programs get everything.
    assert_eq!(env.run(&["list", "--all", "--json"]).json().as_array().unwrap().len(), 3);
}

#[test]
fn everything_of_ours_is_in_scrollback_home() {
    let env = TestEnv::new();
    let mut command = env.command(&["config", "path"]);
    command.env("SCROLLBACK_HOME", env.home().join("own"));
    assert_eq!(env.ran(command, b"").out, "$HOME/own/config.toml\n");
    let mut command = env.command(&["config", "path"]);
    command.env("XDG_CONFIG_HOME", env.home().join("xdg"));
    assert_eq!(env.ran(command, b"").out, "$HOME/xdg/scrollback/config.toml\n");
}

/// A file below the working directory may be anybody's, and it can name a program to run.
#[test]
fn without_a_home_no_config_is_read_from_the_working_directory() {
    let env = TestEnv::new();
    for folder in [".config/scrollback", "relative/.config/scrollback"] {
        std::fs::create_dir_all(env.work().join(folder)).unwrap();
        std::fs::write(env.work().join(folder).join("config.toml"), "pager = \"touch somebodys\"\n").unwrap();
    }
    for home in [None, Some(""), Some("relative")] {
        let run = |args: &[&str]| {
            let mut command = env.command(args);
            command.env_remove("XDG_CONFIG_HOME").env_remove("SCROLLBACK_HOME");
            match home {
                Some(home) => command.env("HOME", home),
                None => command.env_remove("HOME"),
            };
            env.ran(command, b"")
        };
        let listed = run(&["config", "list"]);
        assert!(!listed.all().contains("somebodys"), "{home:?}: {}", listed.all());
        let path = run(&["config", "path"]);
        assert!(path.code == 2 && path.err.contains("HOME"), "{home:?}: {}", path.all());
    }
}

/// A folder that is none would exclude nothing in silence.
#[test]
fn only_folders_are_excluded() {
    let env = TestEnv::new();
    for nonsense in ["\"/home/dev/private\"", "relative/path", "~nope/x", "", "[\"/srv\", \"x\"]"] {
        let ran = env.run(&["config", "set", "exclude", nonsense]);
        assert_eq!(ran.code, 2, "{nonsense}: {}", ran.all());
        assert!(ran.err.contains("use a list of folders"), "{}", ran.all());
    }
    for folders in ["/srv/private", "~", "[\"~/clients\", \"/srv/private\"]"] {
        assert_eq!(env.run(&["config", "set", "exclude", folders]).code, 0, "{folders}");
    }
}
