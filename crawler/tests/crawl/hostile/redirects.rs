//! Inputs 95 to 107: targets of redirects, and headers that must not be sent to them.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use a2a_crawler::AttemptOutcome::{
    self, BadBody, BadRedirect, Card, Forbidden, NotACard, NotFound, Refused,
};
use a2a_crawler::fetch::{FetchLimits, FetcherConfig};
use a2a_crawler::guard::{AllowedPorts, GuardConfig, SsrfGuard};

use super::mutation::Seed;
use super::setup::FetchSetup;
use super::{FEW, HOME, MANY, canary, config, serve, short};
use crate::support::{Authority, Canary, HOST, Request, ScriptedReply, Server};

pub struct RedirectCase {
    pub number: u8,
    name: &'static str,
    /// The reply to `/`, in which `PORT` is the canary's port and `OPEN` the server's own. Every other path has a card.
    reply: ScriptedReply,
    outcome: AttemptOutcome,
    requests: usize,
}

const A_CARD: &str = r#"{"name": "x", "url": "https://a.example/"}"#;

pub fn cases() -> Vec<RedirectCase> {
    let case = |number, name, reply: ScriptedReply, outcome, requests| RedirectCase {
        number,
        name,
        reply,
        outcome,
        requests,
    };
    let to = |number, location: &'static str, outcome| {
        case(
            number,
            location,
            ScriptedReply::redirect(location),
            outcome,
            1,
        )
    };
    let hop = |status, headers: &str| ScriptedReply::new(status, headers, "");
    vec![
        to(95, "http://127.0.0.1:PORT/", Refused),
        to(95, "http://10.0.0.1/", Refused),
        to(95, "http://[::ffff:127.0.0.1]:PORT/", Refused),
        to(96, "file:///etc/passwd", Refused),
        to(96, "gopher://127.0.0.1:PORT/", Refused),
        to(97, "http://agents.example.com:0/", Refused),
        to(98, "http://agents.example.org/", BadRedirect),
        to(98, "http://other.example.com:PORT/", Refused),
        to(99, "http://user:pw@agents.example.com:OPEN/card", Refused),
        to(100, "/", BadRedirect),
        to(100, "http://agents.example.com:OPEN/#again", BadRedirect),
        case(
            101,
            "four hops",
            ScriptedReply::redirect("/hop/1"),
            BadRedirect,
            4,
        ),
        case(102, "303", hop(303, "location: /card\r\n"), BadRedirect, 1),
        case(102, "300", hop(300, "location: /card\r\n"), BadRedirect, 1),
        case(
            102,
            "304 unasked",
            hop(304, ""),
            AttemptOutcome::BadStatus,
            1,
        ),
        case(103, "no Location", hop(302, ""), BadRedirect, 1),
        case(
            103,
            "two Locations",
            hop(302, "location: /card\r\nlocation: /card\r\n"),
            BadRedirect,
            1,
        ),
        // The text after the line end is a header field of its own, and not a part of the URL.
        case(
            103,
            "a line end in the Location",
            hop(302, "location: /card\r\nx: http://127.0.0.1:PORT/\r\n"),
            Card,
            2,
        ),
        case(
            103,
            "a bare line end in the Location",
            hop(302, "location: /card\rx\r\n"),
            BadBody,
            1,
        ),
        to(104, "//169.254.169.254", Refused),
        to(104, "//127.0.0.1:PORT/", Refused),
        case(
            105,
            "Refresh",
            ScriptedReply::new(404, "refresh: 0; url=http://127.0.0.1:PORT/\r\n", ""),
            NotFound,
            1,
        ),
        case(
            105,
            "meta refresh",
            ScriptedReply::new(
                200,
                "content-type: text/html\r\n",
                "<meta http-equiv=refresh content='0; url=http://127.0.0.1:PORT/'>",
            ),
            NotACard,
            1,
        ),
        case(
            106,
            "a cookie for the next hop",
            hop(
                302,
                "location: /card\r\nset-cookie: a=b; path=/; domain=example.com\r\n",
            ),
            Card,
            2,
        ),
        case(
            107,
            "401",
            hop(
                401,
                "www-authenticate: Basic realm=x\r\nwww-authenticate: Negotiate\r\n",
            ),
            Forbidden,
            1,
        ),
    ]
}

fn answer(request: &Request, first: &[u8]) -> ScriptedReply {
    match request.path.as_str() {
        "/" => ScriptedReply::raw(first),
        hop if hop.starts_with("/hop/") => {
            let step: usize = hop["/hop/".len()..].parse().unwrap_or(0);
            ScriptedReply::redirect(&format!("/hop/{}", step + 1))
        }
        _ => ScriptedReply::json(A_CARD),
    }
}

impl RedirectCase {
    /// The bytes of the reply, with the ports filled in.
    pub fn bytes(&self, canary: &Canary, server: u16) -> Vec<u8> {
        // Wrong lengths of these bodies do no harm: the fetch ends before the body, or the body contains no port.
        let text = std::str::from_utf8(self.reply.bytes()).unwrap();
        text.replace("PORT", &canary.at.port().to_string())
            .replace("OPEN", &server.to_string())
            .into_bytes()
    }
}

/// A server whose reply can contain its own port.
async fn server(make: impl Fn(u16) -> Vec<u8> + Send + Sync + 'static) -> Server {
    serve(move |request| {
        let host = request.header("host").unwrap_or_default();
        let port = host.rsplit(':').next().unwrap_or_default();
        answer(request, &make(port.parse().unwrap_or_default()))
    })
    .await
}

#[tokio::test]
async fn no_redirect_leads_to_a_forbidden_place() {
    let canary = Arc::new(canary());
    let world = FetchSetup::trap().await;
    for case in cases().into_iter().map(Arc::new) {
        let (at, made) = (Arc::clone(&canary), Arc::clone(&case));
        let server = server(move |port| made.bytes(&at, port)).await;
        let (attempt, _) = world.ask(&server.url_of(HOST, "/"), case.name).await;
        let what = format!("input {}, {}", case.number, case.name);
        assert_eq!(attempt.outcome, case.outcome, "{what}: {attempt:?}");
        let requests = server.requests();
        assert_eq!(requests.len(), case.requests, "{what}");
        for request in requests {
            for secret in ["cookie", "authorization", "referer", "proxy-authorization"] {
                assert_eq!(request.header(secret), None, "{what}");
            }
        }
    }
    canary.assert_untouched();
}

/// A redirect from TLS to plain http is refused, and so is one to a port that is not allowed.
#[tokio::test]
async fn a_redirect_takes_no_protection_away() {
    let canary = canary();
    let authority = Authority::new("downgrade");
    let location = format!("http://{HOST}:{}/", canary.at.port());
    for (location, outcome) in [
        (location.clone(), BadRedirect),
        (location.replace("http:", "https:"), Refused),
    ] {
        let acceptor = authority.identity(HOST).acceptor(None);
        let server = Server::bind(HOME.into(), Some(acceptor), move |_| {
            ScriptedReply::redirect(&location)
        })
        .await;
        let port = server.at.port();
        let allow_ports = match outcome {
            Refused => AllowedPorts::List(vec![port]),
            _ => AllowedPorts::Any,
        };
        let world = FetchSetup::trap_for(FetcherConfig {
            guard: SsrfGuard::new(GuardConfig {
                allow_networks: vec![IpAddr::V4(HOME).into()],
                allow_http: true,
                allow_ports,
                ..GuardConfig::default()
            }),
            extra_ca: vec![authority.pem()],
            ..config(FetchLimits::default())
        })
        .await;
        let (attempt, _) = world.ask(&server.url_of(HOST, "/"), "downgrade").await;
        assert_eq!(attempt.outcome, outcome, "{attempt:?}");
    }
    canary.assert_untouched();
}

async fn mutated(rounds: usize) {
    let canary = Arc::new(canary());
    for case in cases().into_iter().map(Arc::new) {
        let round = Arc::new(AtomicUsize::new(0));
        let (at, turn) = (Arc::clone(&canary), Arc::clone(&round));
        let made = Arc::clone(&case);
        let server = server(move |port| {
            let mut seed = Seed::new(made.number, turn.load(Ordering::Relaxed));
            seed.mutate(&made.bytes(&at, port), "HTTP/1.1 302 X\r\n".len())
        })
        .await;
        // On the open address only the server's port is allowed, so that no other program's port is tried.
        let guard = SsrfGuard::new(GuardConfig {
            allow_networks: vec![IpAddr::V4(HOME).into()],
            allow_http: true,
            allow_ports: AllowedPorts::List(vec![server.at.port(), canary.at.port()]),
            ..GuardConfig::default()
        });
        let world = FetchSetup::trap_for(FetcherConfig {
            guard,
            ..config(short())
        })
        .await;
        let url = server.url_of(HOST, "/");
        for turn in 0..rounds {
            round.store(turn, Ordering::Relaxed);
            let before = server.written();
            let (attempt, _) = world.ask_again(&url, case.name).await;
            let written = server.written() - before;
            assert!(written < super::MOST_BYTES, "{attempt:?}");
        }
    }
    canary.assert_untouched();
}

#[tokio::test]
async fn mutated_redirects_lead_nowhere() {
    mutated(FEW / 2).await;
}

#[tokio::test]
#[ignore = "the longer run, see the module"]
async fn many_mutated_redirects_lead_nowhere() {
    mutated(MANY).await;
}
