//! Who may ask: hosts, origins, tokens and cookies, and addresses of every wrong shape.
#![expect(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode};
use scrollback_web::server::Guard;
use support::{PORT, Served, talk};

fn served() -> Served {
    Served::of(&[("sa", talk("hello", "world")), ("sb", talk("another", "one"))])
}

/// Sends a request with these headers; `TOKEN` stands for the token.
fn ask(served: &Served, method: Method, path: &str, headers: &[(&str, &str)]) -> (StatusCode, String) {
    let token = served.guard.token().as_str();
    let mut request = Request::builder().method(method).uri(path.replace("TOKEN", token));
    for (name, value) in headers {
        request = request.header(*name, value.replace("TOKEN", token));
    }
    let answer = served.send(request.body(Body::empty()).unwrap());
    (answer.status, answer.body)
}

#[test]
fn a_request_must_name_this_server_exactly() {
    let served = served();
    let bearer = ("authorization", "Bearer TOKEN");
    for (host, is_ours) in [
        ("localhost:4747", true),
        ("LOCALHOST:4747", true),
        ("127.0.0.1:4747", true),
        ("[::1]:4747", true),
        ("pages.example:8443", true),
        ("localhost", false),
        ("localhost:80", false),
        ("localhost:47470", false),
        ("localhost:4747.evil.example", false),
        ("localhost.:4747", false),
        ("evil.example", false),
        ("evil.example:4747", false),
        ("127.0.0.1.nip.io:4747", false),
        ("127.1:4747", false),
        ("0.0.0.0:4747", false),
        ("user@localhost:4747", false),
        ("pages.example", false),
        ("", false),
    ] {
        let (status, body) = ask(&served, Method::GET, "/", &[("host", host), bearer]);
        let wanted = if is_ours { StatusCode::OK } else { StatusCode::FORBIDDEN };
        assert_eq!(status, wanted, "{host:?}");
        assert!(is_ours || !body.contains("hello"), "{host:?}");
    }
    assert_eq!(ask(&served, Method::GET, "/", &[bearer]).0, StatusCode::FORBIDDEN, "no host");
    let twice = [("host", "localhost:4747"), ("host", "evil.example"), bearer];
    assert_eq!(ask(&served, Method::GET, "/", &twice).0, StatusCode::BAD_REQUEST, "two hosts");
    let absolute = ask(&served, Method::GET, "http://evil.example/", &[("host", "localhost:4747"), bearer]);
    assert_eq!(absolute.0, StatusCode::FORBIDDEN, "an absolute address of another host");
}

#[test]
fn another_site_gets_nothing_whatever_it_sends() {
    let served = served();
    let host = ("host", "localhost:4747");
    for (what, headers, wanted) in [
        ("nothing", vec![], StatusCode::UNAUTHORIZED),
        ("a wrong bearer", vec![("authorization", "Bearer 00")], StatusCode::UNAUTHORIZED),
        ("a bearer of another kind", vec![("authorization", "Basic TOKEN")], StatusCode::UNAUTHORIZED),
        ("a wrong cookie", vec![("cookie", "scrollback_4747=TOKEN")], StatusCode::UNAUTHORIZED),
        ("a link", vec![("sec-fetch-site", "cross-site")], StatusCode::UNAUTHORIZED),
        (
            "an origin",
            vec![("authorization", "Bearer TOKEN"), ("origin", "http://evil.example")],
            StatusCode::FORBIDDEN,
        ),
        ("a null origin", vec![("authorization", "Bearer TOKEN"), ("origin", "null")], StatusCode::FORBIDDEN),
        ("https", vec![("authorization", "Bearer TOKEN"), ("origin", "https://localhost:4747")], StatusCode::FORBIDDEN),
        ("our own", vec![("authorization", "Bearer TOKEN"), ("origin", "http://localhost:4747")], StatusCode::OK),
    ] {
        let headers: Vec<_> = [host].into_iter().chain(headers).collect();
        let (status, body) = ask(&served, Method::GET, "/s/sa", &headers);
        assert_eq!(status, wanted, "{what}");
        assert_eq!(body.contains("hello"), wanted == StatusCode::OK, "{what}");
    }
    let (_, body) = ask(&served, Method::GET, "/s/sa?x=%22%3E", &[host, ("sec-fetch-site", "cross-site")]);
    assert!(body.contains("href=\"/s/sa?x=%22%3E\"") && body.contains(">Open</a>"), "{body}");
    let answer = served.page("/");
    assert!(!answer.headers.contains_key("access-control-allow-origin"));
    let policy = answer.headers["content-security-policy"].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';") && !policy.contains("unsafe"),
        "{policy}"
    );
}

#[test]
fn a_proxy_may_speak_https_for_the_public_name_only() {
    let guard = Guard::new(PORT, Some("tide.example.org")).unwrap();
    let served = Served { guard: Arc::new(guard), ..served() };
    for (origin, wanted) in [
        ("https://tide.example.org", StatusCode::OK),
        ("http://tide.example.org", StatusCode::OK),
        ("https://localhost:4747", StatusCode::FORBIDDEN),
        ("https://tide.example.org:444", StatusCode::FORBIDDEN),
        ("https://tide.example.org.evil.example", StatusCode::FORBIDDEN),
        ("ftp://tide.example.org", StatusCode::FORBIDDEN),
    ] {
        let headers = [("host", "tide.example.org"), ("authorization", "Bearer TOKEN"), ("origin", origin)];
        assert_eq!(ask(&served, Method::GET, "/s/sa", &headers).0, wanted, "{origin}");
    }
}

#[test]
fn the_token_opens_a_page_once_and_leads_to_no_other_place() {
    let served = served();
    for (path, to) in [
        ("/?token=TOKEN", Some("/")),
        ("/s/sa?at=u1&token=TOKEN&show=prompts", Some("/s/sa?at=u1&show=prompts")),
        ("//evil.example/?token=TOKEN", Some("/")),
        ("/?token=", None),
        ("/?token=TOKENx", None),
        ("/?Token=TOKEN", None),
    ] {
        let token = served.guard.token().as_str();
        let request = Request::get(path.replace("TOKEN", token)).header("host", "localhost:4747");
        let answer = served.send(request.body(Body::empty()).unwrap());
        let location = answer.headers.get("location").and_then(|location| location.to_str().ok());
        assert_eq!(location, to, "{path}");
        let wanted = if to.is_some() { StatusCode::SEE_OTHER } else { StatusCode::UNAUTHORIZED };
        assert_eq!(answer.status, wanted, "{path}");
    }
}

#[test]
fn a_form_needs_our_origin_and_goes_back_to_our_pages_only() {
    let served = served();
    let post = |headers: &[(&str, &str)]| {
        let token = served.guard.token().as_str();
        let mut request = Request::post("/theme").header("host", "localhost:4747");
        for (name, value) in headers {
            request = request.header(*name, value.replace("TOKEN", token));
        }
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        served.send(request.body(Body::from("theme=dark")).unwrap())
    };
    let own = [("authorization", "Bearer TOKEN"), ("origin", "http://localhost:4747")];
    for (referer, to) in [
        ("http://localhost:4747/s/sa?at=u1", "/s/sa?at=u1"),
        ("http://evil.example/x", "/"),
        ("http://localhost:4747//evil.example", "/"),
        ("javascript:alert(1)", "/"),
    ] {
        let answer = post(&[own[0], own[1], ("referer", referer)]);
        assert_eq!(answer.status, StatusCode::SEE_OTHER);
        assert_eq!(answer.headers["location"], to, "{referer}");
    }
    assert_eq!(post(&[("origin", "http://localhost:4747")]).status, StatusCode::UNAUTHORIZED);
    assert_eq!(post(&[own[0], ("origin", "http://evil.example")]).status, StatusCode::FORBIDDEN);
}

#[test]
fn an_address_of_any_shape_gets_a_readable_answer_and_reaches_no_file() {
    let served = served();
    for (path, wanted) in [
        ("/s/s", 300),
        ("/s/sa", 200),
        ("/s/none", 404),
        ("/s/..%2f..%2fetc%2fpasswd", 404),
        ("/s/%2e%2e", 404),
        ("/s/%00", 404),
        ("/s/%ff%fe", 400),
        ("/s/%ff/tree", 400),
        ("/s/sa/tree?a=zzz&b=%00", 404),
        ("/s/sa/export?head=zzz", 404),
        ("/s/sa/export?to=md&head=a1", 200),
        ("/s/none/export", 404),
        ("/s/s/export", 300),
        ("/s/sa?head=nope", 404),
        ("/s/sa?before=nope", 404),
        ("/s/sa?after=nope", 404),
        ("/s/sa?at=%22%3E%3Cscript%3E", 404),
        ("/s/native:sa", 200),
        ("/s/claude:sa", 404),
        ("/s/sa?message=u1&part=99999999999999999999", 400),
        ("/s/sa?show=nothing", 400),
        ("/s/sa?show=", 200),
        ("/s/sa/tree?until=-1", 400),
        ("/s/sa/export?to=pdf", 400),
        ("/s/sa?message=u1&part=999", 200),
        ("/s/sa/replay?turn=-1", 400),
        ("/s/sa/replay?turn=abc", 400),
        ("/s/sa/replay?turn=99999999", 200),
        ("/s/sa/files?file=999999", 200),
        ("/s/sa/files?file=x", 400),
        ("/s/sa/part/u1/0", 200),
        ("/s/sa/part/u1/9", 404),
        ("/s/sa/part/u1/x", 404),
        ("/s/sa/file/u1/0", 404),
        ("/?from=999999999&agent=%22", 200),
        ("/?sort=%3Cscript%3E", 400),
        ("/?state=xx", 400),
        ("/?since=zz", 400),
        ("/?from=-1", 400),
        ("/?state=running&since=7d&by=project&sort=cost", 200),
        ("/stats?since=x", 400),
        ("/search?q=hello&in=nowhere", 400),
        ("/search?q=%22unclosed", 400),
        ("/search?q=%2F(a%2B%2B%2F", 400),
        ("/search?q=hello", 200),
        ("/nope", 404),
        ("/assets/../Cargo.toml", 404),
        ("/s/sa/export/../../x", 404),
    ] {
        let answer = served.page(path);
        assert_eq!(answer.status.as_u16(), wanted, "{path}: {}", answer.body);
        assert!(!answer.body.contains("<script>") && !answer.body.contains("root:"), "{path}");
        assert!(!answer.body.contains("Invalid URL"), "{path}: the framework's words");
    }
    let (status, _) =
        ask(&served, Method::DELETE, "/s/sa", &[("host", "localhost:4747"), ("authorization", "Bearer TOKEN")]);
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
}
