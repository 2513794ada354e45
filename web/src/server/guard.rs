//! Who may see the pages: exactly our own hosts, with the token of the printed address or the cookie that it was exchanged for.
//!
//! A page of another site can make a browser ask us (DNS rebinding, forms, links). It cannot name our host and port, has neither token nor
//! cookie, and the cookie does not travel from its pages.

use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use maud::{Markup, html};

use super::reads;
use crate::api::is_api;
use crate::render::text;

/// 128 random bits, as hexadecimal digits.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Makes one. Fails if the system has no random numbers.
    pub fn random() -> Result<Secret, getrandom::Error> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Secret(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compares in a time that does not tell how much is right.
    fn is(&self, other: &str) -> bool {
        let differs = self.0.bytes().zip(other.bytes()).fold(0_u8, |differs, (a, b)| differs | (a ^ b));
        self.0.len() == other.len() && differs == 0
    }
}

/// What is asked of every request.
pub struct Guard {
    /// The names of this server, each with its port.
    hosts: Vec<String>,
    port: u16,
    /// One of the names: before it may be a proxy that speaks HTTPS.
    public: Option<String>,
    /// Other sites whose pages may ask the API, with the token.
    origins: Vec<String>,
    /// In the printed address.
    token: Secret,
    /// In the cookie; it dies with the process.
    cookie: Secret,
}

/// What becomes of a request.
pub(super) enum Verdict {
    /// It is answered.
    Pass,
    /// It brought the token: it gets the cookie, and goes to the same address without the token.
    Enter { to: String, cookie: String },
    /// It came from a link on another site, where cookies do not travel: one step on our own page opens it.
    Open(String),
    /// It has neither token nor cookie.
    Unknown,
    /// A browser asks whether a page of another site may ask the API; that site may.
    Preflight,
    /// It is no request that HTTP knows.
    Malformed(&'static str),
    /// It is not meant for us, or not from us.
    Refused(&'static str),
}

impl Guard {
    /// A guard for this port. `public` is one further name, with its port if it is not the usual one.
    pub fn new(port: u16, public: Option<&str>) -> Result<Guard, getrandom::Error> {
        let names = ["localhost", "127.0.0.1", "[::1]"];
        let mut hosts: Vec<String> = names.iter().map(|name| format!("{name}:{port}")).collect();
        if port == 80 {
            hosts.extend(names.map(str::to_owned));
        }
        let public = public.map(str::to_ascii_lowercase);
        hosts.extend(public.clone());
        Ok(Guard { hosts, port, public, origins: Vec::new(), token: Secret::random()?, cookie: Secret::random()? })
    }

    /// Lets pages of these sites ask the API, with the token: each is exactly what a browser sends as `Origin`.
    pub fn allowing(mut self, origins: Vec<String>) -> Guard {
        self.origins = origins;
        self
    }

    /// The token of the printed address.
    pub fn token(&self) -> &Secret {
        &self.token
    }

    /// Whether a program may ask: it names this server and brings the token, as a bearer or in one of these headers. A cookie does not
    /// count.
    pub(crate) fn knows(&self, uri: &Uri, headers: &HeaderMap, keys: &[&str]) -> bool {
        let bearer = bearer(headers);
        let mut given = keys.iter().filter_map(|name| headers.get(*name)?.to_str().ok()).chain(bearer);
        self.names_us(uri, headers) && given.any(|given| self.token.is(given))
    }

    pub(super) fn judge(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Verdict {
        if headers.get_all(header::HOST).iter().count() > 1 {
            return Verdict::Malformed("a request names one host\n");
        }
        if !self.names_us(uri, headers) {
            return Verdict::Refused("this server has another name\n");
        }
        let is_allowed = self.allowed_origin(uri, headers).is_some();
        if let Some(origin) = headers.get(header::ORIGIN).filter(|_| !is_allowed) {
            let is_ours = |origin: &str| self.own_rest(origin).is_some_and(str::is_empty);
            if !origin.to_str().is_ok_and(is_ours) {
                return Verdict::Refused("another site asked for this\n");
            }
        }
        if is_allowed && method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) {
            // A browser asks this without the token.
            return Verdict::Preflight;
        }
        let bearer = bearer(headers);
        if bearer.is_some_and(|bearer| self.token.is(bearer)) {
            return Verdict::Pass;
        }
        if is_allowed {
            // Another site never asks with the cookie of our own pages.
            return Verdict::Unknown;
        }
        if cookie(headers, &self.cookie_name()).is_some_and(|value| self.cookie.is(value)) {
            // A form of another page has no cookie; one without an origin is none of ours.
            return if reads(method) || headers.contains_key(header::ORIGIN) {
                Verdict::Pass
            } else {
                Verdict::Refused("this form has no origin\n")
            };
        }
        if !reads(method) {
            return Verdict::Unknown;
        }
        if uri.path().starts_with("/assets/") {
            // The same for everybody, and the page without a cookie needs its style.
            return Verdict::Pass;
        }
        let (token, rest) = without_token(uri.query().unwrap_or_default());
        if token.is_some_and(|token| self.token.is(&token)) {
            let to = if rest.is_empty() { uri.path().to_owned() } else { format!("{}?{rest}", uri.path()) };
            let cookie = format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name(), self.cookie.as_str());
            return Verdict::Enter { to: own_path(&to), cookie };
        }
        match headers.get("sec-fetch-site").and_then(|site| site.to_str().ok()) {
            Some("cross-site" | "same-site") => {
                Verdict::Open(own_path(uri.path_and_query().map_or("/", |path| path.as_str())))
            }
            _ => Verdict::Unknown,
        }
    }

    /// The other site that asks, if its pages may ask the API.
    pub(super) fn allowed_origin(&self, uri: &Uri, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let (origin, more) = (origins.next()?, origins.next());
        let is_known = self.origins.iter().any(|known| known.as_bytes() == origin.as_bytes());
        (is_api(uri.path()) && is_known && more.is_none()).then(|| origin.clone())
    }

    /// Whether pages of other sites may ask at all.
    pub(super) fn has_other_origins(&self) -> bool {
        !self.origins.is_empty()
    }

    fn cookie_name(&self) -> String {
        format!("scrollback_{}", self.port)
    }

    /// Whether a request names this server, and only once.
    fn names_us(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (host, more) = (hosts.next(), hosts.next());
        let named = host.and_then(|host| host.to_str().ok()).is_some_and(|host| self.is_host(host));
        // An absolute address may name another one.
        let in_uri = uri.authority().is_none_or(|authority| self.is_host(authority.as_str()));
        named && more.is_none() && in_uri
    }

    fn is_host(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    }

    /// The page of ours that a request came from; the list, if it came from anywhere else.
    pub(super) fn own_path_before(&self, headers: &HeaderMap) -> String {
        let referer = headers.get(header::REFERER).and_then(|referer| referer.to_str().ok()).unwrap_or_default();
        self.own_rest(referer).map_or_else(|| "/".to_owned(), own_path)
    }

    /// What stands behind scheme and host of an address, if they are ours.
    fn own_rest<'a>(&self, address: &'a str) -> Option<&'a str> {
        let (scheme, rest) = address.split_once("://")?;
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let is_public = || self.public.as_ref().is_some_and(|public| public.eq_ignore_ascii_case(host));
        let is_ours = match scheme {
            "http" => self.is_host(host),
            "https" => is_public(),
            _ => false,
        };
        is_ours.then_some(path)
    }
}

/// A path on this server: never one that a browser takes for another host.
fn own_path(path: &str) -> String {
    let is_ours = path.starts_with('/') && !path.starts_with("//") && !path.contains(['\\', '\r', '\n']);
    if is_ours { path.to_owned() } else { "/".to_owned() }
}

/// The token of a query, and the rest of it.
fn without_token(query: &str) -> (Option<String>, String) {
    let (mut token, mut rest) = (None, Vec::new());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.strip_prefix("token=") {
            Some(value) => token = Some(value.to_owned()),
            None => rest.push(pair),
        }
    }
    (token, rest.join("&"))
}

/// The token that a program brings. The name of the scheme has no case.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// The value of a cookie.
pub(super) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// For a link on another site: cookies do not travel with it, but they do with a step on our own page.
pub(super) fn open_page(path: &str) -> Markup {
    html! {
        div.empty {
            h1 { "A link from another site" }
            p { "Your sessions are shown to you only. If you meant to come here:" }
            p { a class="btn btn-main" href=(text::shown(path)) { "Open" } }
        }
    }
}

/// For somebody without token and cookie.
pub(super) fn unknown_page() -> Markup {
    html! {
        div.empty {
            h1 { "This server does not know you" }
            p { "Open the address that " code { "scrollback serve" } " printed: it ends in a token, which opens these pages for this browser until the server stops." }
        }
    }
}
