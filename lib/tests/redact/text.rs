//! Texts: what is masked, and how it looks afterwards.

use super::effort::check_linear;
use super::fakes::{self, BASE64, HEX, WORD, signs};
use super::{plain, redactor};

#[test]
fn every_fake_is_masked_wherever_it_stands() {
    let redactor = redactor();
    for (text, secret) in (1..20).flat_map(fakes::all) {
        for (before, after) in [
            ("", ""),
            ("日本語、", "。終わり"),
            ("a\\n", "\\n"),
            ("\u{1f511} ", " \u{1f511}"),
            ("{\\\"x\\\": \\\"", "\\\"}"),
        ] {
            let whole = format!("{before}{text}{after}");
            let redacted = redactor.text(&whole).text.into_owned();
            let survives =
                secret.as_bytes().windows(8).any(|part| redacted.as_bytes().windows(8).any(|known| known == part));
            assert!(!survives, "{whole}\n→ {redacted}");
        }
    }
}

#[test]
fn passwords_of_any_shape_are_masked() {
    let redactor = redactor();
    for (text, secret) in [
        ("DB_PASSWORD=kX9vQ(2mTz8)LpW4", "2mTz8"),
        ("DB_PASSWORD=kX9vQ2[mTz8LpW4", "mTz8LpW4"),
        ("DB_PASSWORD=kX9vQ<2mTz8>LpW4", "2mTz8"),
        ("DB_PASSWORD=\"kX9vQ(2mTz8)LpW4\"", "LpW4"),
        ("{\"password\": \"kX9vQ2mTz(8LpW4)\"}", "8LpW4"),
        ("password: kX9vQ(2mTz8)LpW4", "LpW4"),
        ("SECRET_KEY = 'kx9vq(2mtz8)lpw4^r7n0b%y6j3h5g1f-d_s=a+q'", "lpw4"),
        ("password: kX9vQ2,mTz8LpW4", "mTz8LpW4"),
        ("password: kX9vQ2;mTz8LpW4", "mTz8LpW4"),
        ("password: KvdlbrnXzmsN", "Kvdlb"),
        ("<password>qHcoUlkynfSw</password>", "qHcoU"),
        ("the password is xkqvzjwmpt.", "xkqvz"),
        ("use password xkqvzjwmpt to log in", "xkqvz"),
        ("The password is\nrY8DY79tFpJ7", "rY8DY"),
        ("Password:\n\nrY8DY79tFpJ7", "rY8DY"),
        ("postgres://app:kX9vQ2#mTz8@db:5432/app", "mTz8"),
        ("export X=4031148964493078", "40311489"),
        ("n=4031-1489-6449-3078", "4031-1489"),
    ] {
        let redacted = redactor.text(text).text.into_owned();
        assert!(!redacted.contains(secret) && redacted.contains("[REDACTED"), "{text}\n→ {redacted}");
    }
    for text in [
        "password: getPassword(user)",
        "password = os.environ[\"DB_PASSWORD\"]",
        "password: tokens[0]",
        "password: hunter, then the rest",
        "{user: ada, password: secret, host: db}",
        "the password is incorrect",
        "password: gardening",
        "order_id=4031148964493078",
    ] {
        assert_eq!(redactor.text(text).text, text);
    }
}

#[test]
fn words_and_a_number_are_a_password_and_a_token_may_be_joined_to_an_id() {
    let redactor = redactor();
    for text in [
        "My password is horse-staple-correct-purple14.",
        "POSTGRES_PASSWORD: correct-horse-battery-staple9",
        r#"password = "horse_cloud_correct_purple03""#,
    ] {
        assert!(redactor.text(text).text.contains("[REDACTED:password]"), "{}", redactor.text(text).text);
    }
    for text in ["password: user-form-input-field2", "the password is in reset-password-link-2"] {
        assert_eq!(redactor.text(text).text, text);
    }
    let token = format!("ghp_{}", signs(1, WORD, 36));
    for before in
        ["f47ac10b-58cc-4372-a567-0e02b2c3d479-", "uid_550e8400e29b41d4_", "file-8f14e45fceea167a5a36dedd4bea2543_"]
    {
        let masked = redactor.text(&format!("{before}{token}")).text.into_owned();
        assert!(masked.starts_with(&format!("{before}[REDACTED:github-token")), "{masked}");
    }
    assert_eq!(redactor.text("card number 4111_1111_1111_1111").text, "card number [REDACTED:card]");
    assert_eq!(redactor.text("4111\u{2011}1111\u{2011}1111\u{2011}1111").text, "[REDACTED:card]");
}

#[test]
fn a_token_that_goes_on_in_the_next_line_is_masked_whole() {
    let redactor = redactor();
    let (first, second) = (signs(5, WORD, 16), signs(6, WORD, 20));
    for broken in ["\n", "\r\n", "\\\n", "\n  "] {
        let text = format!("key: {}{first}{broken}{second} and more", "ghp_");
        let redacted = redactor.text(&text).text.into_owned();
        assert!(!redacted.contains(&second) && redacted.ends_with(" and more"), "{text}\n→ {redacted}");
    }
    let whole = format!("{}{}", "ghp_", signs(7, WORD, 36));
    let redacted = redactor.text(&format!("{whole}\nNEXT_LINE=4")).text.into_owned();
    assert!(redacted.ends_with("]\nNEXT_LINE=4"), "{redacted}");
    assert!(redactor.text(&format!("bogus{whole}")).text.starts_with("bogus[REDACTED:"));
}

#[test]
fn a_key_that_a_search_printed_is_masked() {
    let lines: String = (0..4).map(|at| format!("keys/id_x:{}:{}\n", at + 2, signs(at, BASE64, 64))).collect();
    let text =
        format!("keys/id_x:1:-----BEGIN RSA PRIVATE KEY-----\n{lines}keys/id_x:6:-----END RSA PRIVATE KEY-----\n");
    let redacted = redactor().text(&text).text.into_owned();
    assert!(redacted.len() < 200, "{redacted}");
}

#[test]
fn a_key_with_something_before_each_of_its_lines_is_masked() {
    let lines: Vec<String> = (1..9).map(|seed| signs(seed, BASE64, 64)).collect();
    let prefixes: [fn(usize) -> String; 6] = [
        |at| format!("2026-01-11T22:00:{at:02}Z app[web.1]: "),
        |at| format!("{}: ", at + 7),
        |_| "> ".to_owned(),
        |_| "+".to_owned(),
        |_| "# ".to_owned(),
        |at| format!("Jan 11 22:00:{at:02} host sshd[812]: \u{1b}[32m"),
    ];
    for prefix in prefixes {
        let body: String = lines.iter().enumerate().map(|(at, line)| format!("{}{line}\n", prefix(at + 1))).collect();
        let (begin, end) =
            (format!("-----BEGIN {} KEY-----", "RSA PRIVATE"), format!("-----END {} KEY-----", "RSA PRIVATE"));
        let text = format!("{}{begin}\n{body}{}{end}\nafter\n", prefix(0), prefix(9));
        for text in [text.clone(), text.replace('\n', "\\n")] {
            let redacted = redactor().text(&text).text.into_owned();
            assert!(lines.iter().all(|line| !redacted.contains(&line[..12])), "{text}\n→ {redacted}");
            assert!(redacted.contains("after"), "{redacted}");
        }
    }
}

#[test]
fn every_row_of_a_table_is_masked() {
    let redactor = redactor();
    for text in [
        "INSERT INTO users (name, password) VALUES ('ada', 'tide4x9!'), ('bob', 'kelp27q%');",
        "username,password,email\nada,tide4x9!,ada@example.com\nbob,kelp27q%,bob@example.com\n",
        "| user | password |\n|:--|--:|\n| ada | tide4x9! |\n| bob | `kelp27q%` |\n",
    ] {
        let redacted = redactor.text(text);
        assert_eq!(redacted.findings.len(), 2, "{}", redacted.text);
        assert!(redacted.text.contains("ada") && redacted.text.contains("bob"), "{}", redacted.text);
        assert!(!redacted.text.contains("tide4x9!") && !redacted.text.contains("kelp27q%"), "{}", redacted.text);
    }
}

#[test]
fn the_same_secret_has_the_same_placeholder_and_what_can_be_guessed_has_no_hash() {
    let redactor = redactor();
    let token = format!("{}{}", "ghp_", signs(3, WORD, 36));
    let text = format!("{token} and {token}");
    let redacted = redactor.text(&text);
    let parts: Vec<&str> = redacted.text.split(" and ").collect();
    assert_eq!(parts[0], parts[1]);
    assert!(
        parts[0].starts_with("[REDACTED:github-token:") && parts[0].len() == "[REDACTED:github-token:12345678]".len()
    );
    assert_eq!(redacted.findings[1].span, token.len() + 5..text.len());
    assert_eq!(redactor.text("Authorization: Bearer abc123...").text, "Authorization: Bearer abc123...");
    for end in [".", ",", "..."] {
        assert_eq!(redactor.text(&format!("{token}{end}")).text, format!("{}{end}", parts[0]));
    }
    let lines =
        ["-----BEGIN PRIVATE KEY-----", &signs(4, BASE64, 64), &signs(5, BASE64, 64), "-----END PRIVATE KEY-----"];
    assert_eq!(redactor.text(&lines.join("\n")).text, redactor.text(&lines.join("\\n")).text);
    let other = super::Redactor::new(super::Settings::with_key([8; 32])).unwrap();
    assert_ne!(other.text(&token).text, redactor.text(&token).text);
    for (text, wanted) in [
        ("card 4111111111111111", "card [REDACTED:card]"),
        ("SSN 219-09-9998", "SSN [REDACTED:ssn]"),
        ("password=tide4x", "password=[REDACTED:password]"),
        ("redis://:tide4x@host", "redis://:[REDACTED:url-password]@host"),
    ] {
        assert_eq!(redactor.text(text).text, wanted);
    }
}

#[test]
fn the_plain_style_gives_the_outputs_of_seed_002() {
    let plain = plain();
    let key = format!("{}{}", "sk-ant-api03-", signs(1, WORD, 95));
    let jwt = format!("eyJ{}.eyJ{}.{}", signs(1, WORD, 30), signs(2, WORD, 50), signs(3, WORD, 43));
    for (text, wanted) in [
        (format!("ANTHROPIC_API_KEY={key}"), "ANTHROPIC_API_KEY=[REDACTED]"),
        (format!("OPENAI_API_KEY=\"{key}\""), "OPENAI_API_KEY=[REDACTED]"),
        (format!("export GEMINI_API_KEY='{key}' && run"), "export GEMINI_API_KEY=[REDACTED] && run"),
        (format!("ANTHROPIC_API_KEY={key} and more"), "ANTHROPIC_API_KEY=[REDACTED] and more"),
        ("OPENAI_API_KEY=abc123".to_owned(), "OPENAI_API_KEY=[REDACTED]"),
        (format!("Authorization: Bearer {jwt}"), "Authorization: Bearer [REDACTED]"),
        ("Bearer abc123-def".to_owned(), "Bearer [REDACTED]"),
    ] {
        let redacted = plain.text(&text).text.into_owned();
        assert_eq!(redacted, wanted, "{text}");
        assert_eq!(plain.text(&redacted).text, wanted);
    }
}

#[test]
fn what_is_no_secret_stays() {
    let redactor = redactor();
    for text in [
        "const token = await getToken(user);",
        "let password = std::env::var(\"DB_PASSWORD\")?;",
        "password: Option<String>,",
        "The password is required and must have 8 characters.",
        "export OPENAI_API_KEY=your-key-here",
        "ANTHROPIC_API_KEY=${KEY}",
        "sk-ant-xxxxxxxxxxxxxxxxxxxxxxxx",
        "commit 3db1815f2c9e4b7a8d6e5f4c3b2a190807060504",
        "uuid 0199a3f0-8d43-7b51-9a5e-3c1f2b7d9e10",
        "\"integrity\": \"sha512-v2kDEe57lecTulaDIuNTPy3Ry4gLGJ6Z1O3vE1krgXZNrsQ+LFTGHVxVjcXPs17LhbZVGedAJv8XZ1tvj5FvSg==\"",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl ada@host",
        "2026-11-15T12:00:00.123Z took 1731672000123 ms",
        "call +49 170 1234567 or (555) 123-4567",
        "<input type=\"password\" name=\"password\" placeholder=\"Password\">",
        "max_tokens: 4096, input_tokens: 1234",
        "toolu_01A09q90qw90lq917835lq9 and call_8Yk2JmQ1xXv3",
        "if token == Token::Key { return key; }",
        "token usage: 12,345 (secret sauce)",
        "git clone https://github.com/ada/tides.git",
        "see http://localhost:3000/login?next=/home",
        "key: value",
        "secretKeyRef:\n  name: db-secret\n  key: password",
        "POSTGRES_PASSWORD=password",
        "version = \"1.2.3-alpha.4+build.5\"",
    ] {
        assert_eq!(redactor.text(text).text, text);
    }
}

#[test]
fn keys_are_masked_whole_or_cut_off() {
    let redactor = redactor();
    let lines: Vec<String> = (1..20).map(|seed| signs(seed, BASE64, 64)).collect();
    for joined in [
        lines.join("\n"),
        lines.join("\\n"),
        lines.join("\r\n"),
        lines.join(" "),
        format!("     2→{}", lines.join("\n     3→")),
    ] {
        for label in ["RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK", "PRIVATE KEY"] {
            let whole = format!("-----BEGIN {label}-----\n{joined}\n-----END {label}-----\n");
            assert_eq!(redactor.text(&whole).findings.len(), 1);
            assert!(redactor.text(&whole).text.ends_with("]\n"), "{}", redactor.text(&whole).text);
            let cut = format!("x -----BEGIN {label}-----\n{joined}");
            let redacted = redactor.text(&cut).text;
            assert!(lines.iter().all(|line| !redacted.contains(&line[..12])), "{redacted}");
        }
    }
}

#[test]
fn base64_is_looked_through_once() {
    let redactor = redactor();
    let yaml = "apiVersion: v1\ndata:\n  user: YWRtaW4tdGlkZQ==\n  pin: aHVudGVyMjAyNg==\nkind: Secret\n";
    let redacted = redactor.text(yaml).text.into_owned();
    assert!(
        !redacted.contains("YWRt") && !redacted.contains("aHVu") && redacted.contains("kind: Secret"),
        "{redacted}"
    );
    let config = "data:\n  mode: production\n  level: debug\n";
    assert_eq!(redactor.text(config).text, config);
}

#[test]
fn hostile_texts_take_linear_time() {
    let redactor = redactor();
    let pieces = [
        "ghp_",
        "eyJ-",
        "password=",
        "-----BEGIN RSA PRIVATE KEY-----\n",
        "Private-Lines: 1\n",
        "key key ",
        "://a:",
        "4111 ",
        "curl -u ",
        "data:\n ",
        "\"\\\"",
        "[REDACTED",
        "sk-ant-aaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "Cookie: a=",
        "token:\n",
        "MIIEvQIBADAN",
        "<",
        "[REDACTED:",
        "deepseek ",
        "a,password\n",
        "password,",
        "(a,password) values ('",
        "(password) values (('",
        "|password|b|\n|--|--|\n",
        "password\\n,",
        "{{",
        "password: '%(${{",
        "12:00 -----BEGIN RSA PRIVATE KEY-----\n12:01 ",
    ];
    for piece in pieces {
        check_linear(
            piece,
            25_000,
            |bytes| piece.repeat(bytes / piece.len()),
            |text| {
                let redacted = redactor.text(text);
                assert!(redacted.text.len() <= text.len() * 12, "{piece}: {} bytes", redacted.text.len());
            },
        );
    }
    let noise = format!("{} {}", signs(1, HEX, 500_000), signs(2, BASE64, 500_000));
    assert_eq!(redactor.text(&noise).text, noise);
}

#[test]
fn a_quoted_phrase_after_a_secrets_name_and_a_whole_cookie_are_masked() {
    let redactor = redactor();
    let sid = signs(9, super::fakes::WORD, 32);
    for text in [
        "PASSWORD='my s3cret pass'".to_owned(),
        "export SERVICE_API_KEY=\"abc def ghi99\"".to_owned(),
        format!("Cookie: sid={sid}; zzz=9dKs82hdj2Hs82jdK2s1"),
    ] {
        let redacted = redactor.text(&text).text.into_owned();
        for secret in ["s3cret", "ghi99", &sid[..8], "9dKs82hd"] {
            assert!(!redacted.contains(secret), "{redacted}");
        }
    }
    for text in ["TITLE='my s3cret pass'", "PASSWORD_HINT=\"at least 8 characters\"", "TOKEN=\"$A and $B2\""] {
        assert_eq!(redactor.text(text).text, text);
    }
}

#[test]
fn a_long_text_is_masked_like_its_pieces_and_twice_is_once() {
    let redactor = redactor();
    let filler = "the tide comes in twice a day, and goes out again\n".repeat(6000);
    let fakes: Vec<String> = fakes::all(3).into_iter().map(|(text, _)| format!("\n{text}\n\n")).collect();
    let (mut long, mut wanted) = (String::new(), String::new());
    for fake in &fakes {
        long += &filler;
        long += fake;
        wanted += &filler;
        wanted += &redactor.text(fake).text;
    }
    // Many masks beside each other, more than a part has.
    let dense = "password: tide4x9kq, and then\n".repeat(60_000);
    long += &dense;
    wanted += &dense.replace("tide4x9kq", "[REDACTED:password]");
    let once = redactor.text(&long);
    assert!(once.text == wanted, "{} findings", once.findings.len());
    assert!(once.findings.is_sorted_by_key(|finding| finding.span.start));
    assert!(redactor.text(&wanted).findings.is_empty());
}
