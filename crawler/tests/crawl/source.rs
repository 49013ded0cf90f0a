//! Fetches of cards: both well-known paths, conditional requests, and the result of each response.

use a2a_crawler::AttemptOutcome::{
    self, BadBody, BadRedirect, BadStatus, Card, Forbidden, Gone, NotACard, NotFound, NotModified,
    Refused, Throttled, Timeout, TlsInvalid, Unreachable,
};
use a2a_crawler::{FetchTarget, Freshness, SourceOutcome, SourceResult, SourceTask, Validators};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::{Canary, HOST, OPEN, Request, ScriptedReply, Server, fetcher, hasty_fetcher};

const CARD: &str = "/.well-known/agent-card.json";
const OLD: &str = "/.well-known/agent.json";

fn card(name: &str) -> String {
    serde_json::json!({
        "protocolVersion": "0.3.0", "name": name, "description": "Books flights.", "version": "1.0.0",
        "url": "https://agents.example.com/a2a", "preferredTransport": "JSONRPC", "capabilities": {},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "book", "name": "Book", "description": "Books.", "tags": ["travel"]}],
    })
    .to_string()
}

fn well_known(server: &Server, validators: Option<Validators>) -> SourceTask {
    SourceTask {
        source_key: 7,
        target: FetchTarget::WellKnown {
            origin: server.url("/ignored?x=y"),
        },
        validators,
        credential: None,
    }
}

fn one_url(server: &Server, path: &str, validators: Option<Validators>) -> SourceTask {
    SourceTask {
        source_key: 7,
        target: FetchTarget::CardUrl {
            url: server.url(path),
        },
        validators,
        credential: None,
    }
}

/// The attempts as (path, outcome); checks what must hold for every attempt.
fn attempts(outcome: &SourceOutcome) -> Vec<(String, AttemptOutcome)> {
    assert_eq!(outcome.source_key, 7);
    outcome
        .attempts
        .iter()
        .map(|attempt| {
            assert!(
                !attempt.detail.is_empty() && attempt.detail.chars().count() <= 300,
                "{attempt:?}"
            );
            assert!(!attempt.detail.chars().any(char::is_control), "{attempt:?}");
            let url: url::Url = attempt.url.parse().unwrap();
            (url.path().to_owned(), attempt.outcome)
        })
        .collect()
}

fn failed(outcome: &SourceOutcome) -> (AttemptOutcome, Option<u32>) {
    match &outcome.result {
        SourceResult::Failed {
            outcome,
            retry_after,
        } => (*outcome, *retry_after),
        other => panic!("{other:?}"),
    }
}

/// A server with one response for each well-known path.
async fn pair(first: ScriptedReply, second: ScriptedReply) -> Server {
    Server::start(move |request: &Request| match request.path.as_str() {
        CARD => first.clone(),
        OLD => second.clone(),
        other => panic!("{other} was asked"),
    })
    .await
}

fn status(status: u16) -> ScriptedReply {
    ScriptedReply::new(status, "", "")
}

fn html() -> ScriptedReply {
    ScriptedReply::new(
        200,
        "content-type: text/html; charset=utf-8\r\n",
        "<!doctype html><title>Shop</title>",
    )
}

#[tokio::test]
async fn a_card_comes_with_its_exact_bytes_and_its_freshness() {
    let body = card("Flights");
    let reply = ScriptedReply::new(
        200,
        "etag: \"1\"\r\nlast-modified: Sun, 06 Nov 1994 08:49:37 GMT\r\ncache-control: max-age=60\r\n",
        &body,
    );
    let server = pair(reply, status(500)).await;
    let outcome = fetcher().fetch_source(&well_known(&server, None)).await;
    assert_eq!(attempts(&outcome), [(CARD.to_owned(), Card)]);
    assert_eq!(outcome.attempts[0].status, Some(200));
    assert_eq!(outcome.attempts[0].address, Some(server.at.ip()));
    let SourceResult::Fetched(fetched) = outcome.result else {
        panic!()
    };
    assert_eq!(fetched.bytes, body.as_bytes());
    assert_eq!(fetched.parsed.card.name, "Flights");
    assert_eq!(fetched.url, server.url(CARD).as_str());
    assert!(!fetched.over_tls);
    assert_eq!(fetched.freshness.max_age, Some(60));
    let validators = fetched.freshness.validators.unwrap();
    assert_eq!(validators.url, server.url(CARD).as_str());
    assert_eq!(validators.etag.as_deref(), Some("\"1\""));
}

/// S3 and `CloudFront` answer 403 for a file that is missing, gateways 401 or 405.
#[tokio::test]
async fn the_older_path_is_fetched_after_any_response_without_a_card() {
    for (first, outcome) in [
        (status(404), NotFound),
        (status(410), Gone),
        (html(), NotACard),
        (ScriptedReply::json("{}"), NotACard),
        (status(401), Forbidden),
        (status(403), Forbidden),
        (status(400), BadStatus),
        (status(405), BadStatus),
        (status(406), BadStatus),
        (status(500), BadStatus),
        (status(501), BadStatus),
        (status(204), BadStatus),
        (status(303), BadRedirect),
        (
            ScriptedReply::redirect("https://elsewhere.test.net/"),
            BadRedirect,
        ),
        (
            ScriptedReply::new(200, "content-encoding: unheard-of\r\n", "x"),
            BadBody,
        ),
    ] {
        let server = pair(first, ScriptedReply::json(card("Flights"))).await;
        let found = fetcher().fetch_source(&well_known(&server, None)).await;
        assert_eq!(
            attempts(&found),
            [(CARD.to_owned(), outcome), (OLD.to_owned(), Card)]
        );
        assert!(matches!(found.result, SourceResult::Fetched(_)));
    }
}

/// An overloaded server gets no second request, and neither does one that asks for a pause.
#[tokio::test]
async fn the_older_path_is_not_fetched_from_an_overloaded_server() {
    for (first, outcome, retry_after) in [
        (status(304), BadStatus, None),
        (status(429), Throttled, None),
        (status(502), BadStatus, None),
        (status(503), BadStatus, None),
        (status(504), BadStatus, None),
        (
            ScriptedReply::new(403, "retry-after: 90\r\n", ""),
            Forbidden,
            Some(90),
        ),
    ] {
        let server = pair(first, ScriptedReply::json(card("Flights"))).await;
        let found = fetcher().fetch_source(&well_known(&server, None)).await;
        assert_eq!(attempts(&found), [(CARD.to_owned(), outcome)]);
        assert_eq!(failed(&found), (outcome, retry_after));
    }
    // Neither a silent server nor a connection that ends within the body has responded.
    for (reply, outcome) in [
        (ScriptedReply::raw("").then_hang(), Timeout),
        (
            ScriptedReply::raw("HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\n{").then_hang(),
            Timeout,
        ),
        (ScriptedReply::raw("").then_close(), Unreachable),
    ] {
        let server = pair(reply, ScriptedReply::json(card("Flights"))).await;
        let found = hasty_fetcher()
            .fetch_source(&well_known(&server, None))
            .await;
        assert_eq!(attempts(&found), [(CARD.to_owned(), outcome)]);
    }
}

/// Of two responses without a card the one counts that tells more, and never one that ends an agent sooner than the
/// first alone.
#[tokio::test]
async fn the_telling_answer_decides() {
    let rests = || ScriptedReply::new(503, "retry-after: 90\r\n", "");
    for (first, second, expected) in [
        (status(404), status(404), (NotFound, None)),
        (status(404), status(410), (NotFound, None)),
        (status(410), status(404), (Gone, None)),
        (html(), status(404), (NotACard, None)),
        (status(404), html(), (NotACard, None)),
        (status(404), status(500), (BadStatus, None)),
        (html(), html(), (NotACard, None)),
        (status(403), status(404), (Forbidden, None)),
        (status(403), status(410), (Forbidden, None)),
        (status(404), status(403), (Forbidden, None)),
        (status(405), status(403), (BadStatus, None)),
        (status(403), html(), (NotACard, None)),
        (html(), status(403), (NotACard, None)),
        (html(), rests(), (NotACard, Some(90))),
        (status(403), rests(), (Throttled, Some(90))),
    ] {
        let server = pair(first, second).await;
        let found = fetcher().fetch_source(&well_known(&server, None)).await;
        assert_eq!(found.attempts.len(), 2);
        assert_eq!(failed(&found), expected);
    }
}

/// A registered URL without a card may be a base URL, as long as it has brought nothing.
#[tokio::test]
async fn a_card_is_looked_for_under_a_base_url() {
    let server = Server::start(|request| match request.path.as_str() {
        "/agents/one/.well-known/agent-card.json" => ScriptedReply::json(card("One")),
        "/agents/one" | "/agents/one/" => ScriptedReply::new(403, "", ""),
        _ => ScriptedReply::new(404, "", ""),
    })
    .await;
    let ask = async |path: &str, may_be_base| {
        let slot = FetchTarget::RegisteredUrl {
            url: server.url(path),
            may_be_base,
        };
        let task = SourceTask {
            source_key: 7,
            target: slot,
            validators: None,
            credential: None,
        };
        fetcher().fetch_source(&task).await
    };
    for path in ["/agents/one", "/agents/one/"] {
        let found = ask(path, true).await;
        let under = "/agents/one/.well-known/agent-card.json".to_owned();
        let expected = [(path.to_owned(), Forbidden), (under, Card)];
        assert_eq!(attempts(&found), expected);
    }
    for (path, may_be_base, requests) in [
        ("/agents/one", false, 1),
        ("/agents/one?card", true, 1),
        (CARD, true, 1),
        (OLD, true, 1),
        ("/agents/two", true, 2),
    ] {
        let found = ask(path, may_be_base).await;
        assert_eq!(found.attempts.len(), requests, "{path}");
        assert!(matches!(found.result, SourceResult::Failed { .. }));
    }
}

#[tokio::test]
async fn a_card_that_is_what_it_was_is_not_sent_again() {
    let server = Server::start(|request| match request.header("if-none-match") {
        Some("\"1\"") => ScriptedReply::new(304, "etag: \"2\"\r\ncache-control: max-age=9\r\n", ""),
        _ => ScriptedReply::json(card("Flights")),
    })
    .await;
    let sent = Validators {
        url: server.url(CARD).into(),
        etag: Some("\"1\"".to_owned()),
        last_modified: Some("Sun, 06 Nov 1994 08:49:37 GMT".to_owned()),
    };
    let found = fetcher()
        .fetch_source(&well_known(&server, Some(sent.clone())))
        .await;
    assert_eq!(attempts(&found), [(CARD.to_owned(), NotModified)]);
    let SourceResult::NotModified(freshness) = found.result else {
        panic!()
    };
    let refreshed = Freshness {
        validators: Some(Validators {
            etag: Some("\"2\"".to_owned()),
            ..sent
        }),
        max_age: Some(9),
        vary: None,
    };
    assert_eq!(freshness, refreshed);
}

/// A source whose card is at the older path still tries the newer path first, and never with a validator of the other
/// path.
#[tokio::test]
async fn each_path_is_asked_with_its_own_validators() {
    let server =
        Server::start(
            |request| match (request.path.as_str(), request.header("if-none-match")) {
                (CARD, None) => ScriptedReply::new(404, "", ""),
                (OLD, Some("\"1\"")) => ScriptedReply::new(304, "", ""),
                other => panic!("{other:?}"),
            },
        )
        .await;
    let sent = Validators {
        url: server.url(OLD).into(),
        etag: Some("\"1\"".to_owned()),
        last_modified: None,
    };
    let found = fetcher()
        .fetch_source(&well_known(&server, Some(sent.clone())))
        .await;
    assert_eq!(
        attempts(&found),
        [(CARD.to_owned(), NotFound), (OLD.to_owned(), NotModified)]
    );
    let SourceResult::NotModified(freshness) = found.result else {
        panic!()
    };
    assert_eq!(freshness.validators, Some(sent));
}

#[tokio::test]
async fn a_304_to_no_condition_is_an_error() {
    let server = Server::always(status(304)).await;
    let found = fetcher()
        .fetch_source(&one_url(&server, "/card", None))
        .await;
    assert_eq!(failed(&found), (BadStatus, None));
}

#[tokio::test]
async fn a_page_in_place_of_a_card_is_named() {
    for reply in [
        html(),
        ScriptedReply::json("\n <html>"),
        ScriptedReply::new(200, "content-type: TEXT/HTML\r\n", "hello"),
    ] {
        let server = Server::always(reply).await;
        let found = fetcher()
            .fetch_source(&one_url(&server, "/card", None))
            .await;
        assert_eq!(failed(&found), (NotACard, None));
        assert!(
            found.attempts[0].detail.contains("HTML page"),
            "{:?}",
            found.attempts
        );
    }
    let server = Server::always(ScriptedReply::json(" ")).await;
    let found = fetcher()
        .fetch_source(&one_url(&server, "/card", None))
        .await;
    assert!(
        found.attempts[0].detail.contains("empty"),
        "{:?}",
        found.attempts
    );
}

#[tokio::test]
async fn each_status_settles_something() {
    let later = "retry-after: 120\r\n";
    for (status, headers, outcome, retry_after) in [
        (404, "", NotFound, None),
        (410, "", Gone, None),
        (401, "", Forbidden, None),
        (403, "", Forbidden, None),
        (429, later, Throttled, Some(120)),
        (429, "", Throttled, None),
        (503, later, Throttled, Some(120)),
        (503, "", BadStatus, None),
        (500, "", BadStatus, None),
        (204, "", BadStatus, None),
        (206, "", BadStatus, None),
        (418, "", BadStatus, None),
        (
            429,
            "retry-after: 99999999\r\n",
            Throttled,
            Some(7 * 24 * 60 * 60),
        ),
    ] {
        let server = Server::always(ScriptedReply::raw(format!(
            "HTTP/1.1 {status} X\r\n{headers}content-length: 0\r\n\r\n"
        )))
        .await;
        let found = fetcher()
            .fetch_source(&one_url(&server, "/card", None))
            .await;
        assert_eq!(failed(&found), (outcome, retry_after), "{status}");
        assert_eq!(found.attempts[0].status, Some(status));
        attempts(&found);
    }
}

#[tokio::test]
async fn a_moved_card_says_where_it_lies_and_keeps_its_validators() {
    let server = Server::start(|request| match request.path.as_str() {
        "/card" => ScriptedReply::redirect("/moved"),
        _ => ScriptedReply::new(200, "etag: \"1\"\r\n", card("Flights")),
    })
    .await;
    let found = fetcher()
        .fetch_source(&one_url(&server, "/card", None))
        .await;
    assert!(
        found.attempts[0].detail.contains("/moved"),
        "{:?}",
        found.attempts
    );
    let SourceResult::Fetched(fetched) = found.result else {
        panic!()
    };
    assert_eq!(fetched.url, server.url("/moved").as_str());
    // The next fetch requests the source's own URL.
    assert_eq!(
        fetched.freshness.validators.unwrap().url,
        server.url("/card").as_str()
    );
}

#[tokio::test]
async fn a_refused_target_is_an_attempt_without_a_packet() {
    let canary = Canary::new();
    for host in ["127.0.0.2", "localhost", "intranet"] {
        let task = SourceTask {
            source_key: 7,
            target: FetchTarget::WellKnown {
                origin: format!("http://{host}:{}/", canary.at.port())
                    .parse()
                    .unwrap(),
            },
            validators: None,
            credential: None,
        };
        let found = fetcher().fetch_source(&task).await;
        assert_eq!(attempts(&found), [(CARD.to_owned(), Refused)]);
        assert_eq!(found.attempts[0].address, None);
    }
    canary.assert_untouched();
}

/// Names of cards and texts of servers are shown to owners; neither may contain control sequences of a terminal.
#[tokio::test]
async fn hostile_text_is_made_fit_to_read() {
    let server = Server::always(ScriptedReply::json(card(
        "\u{1b}]0;pwned\u{7}\u{202e}evil $(id) <script>",
    )))
    .await;
    let found = fetcher()
        .fetch_source(&one_url(&server, "/card", None))
        .await;
    assert_eq!(attempts(&found)[0].1, Card);
    assert!(!found.attempts[0].detail.contains(['\u{202e}', '\u{1b}']));
    let server = Server::always(ScriptedReply::json("\u{1b}[2J{{{")).await;
    let found = fetcher()
        .fetch_source(&one_url(&server, "/card", None))
        .await;
    assert_eq!(attempts(&found)[0].1, NotACard);
}

/// Many fetches share one fetcher and its connections, and each gets its own response.
#[tokio::test]
async fn concurrent_fetches_do_not_mix() {
    let server = Server::start(|request| ScriptedReply::json(card(&request.path))).await;
    let fetcher = fetcher();
    let fetches = (0..100).map(|n| {
        let task = one_url(&server, &format!("/{n}"), None);
        let fetcher = &fetcher;
        async move { fetcher.fetch_source(&task).await }
    });
    for (n, found) in futures::future::join_all(fetches)
        .await
        .into_iter()
        .enumerate()
    {
        let SourceResult::Fetched(fetched) = found.result else {
            panic!()
        };
        assert_eq!(fetched.parsed.card.name, format!("/{n}"));
        assert!(fetched.url.starts_with(&format!("http://{HOST}:")));
    }
}

/// The detail of the attempt at the https origin of a port.
async fn detail_over_https(port: u16) -> (AttemptOutcome, String) {
    let origin = format!("https://{HOST}:{port}/").parse().unwrap();
    let task = SourceTask {
        source_key: 7,
        target: FetchTarget::WellKnown { origin },
        validators: None,
        credential: None,
    };
    let outcome = hasty_fetcher().fetch_source(&task).await;
    (failed(&outcome).0, outcome.attempts[0].detail.clone())
}

/// A bare `host:port` whose server responds without TLS gets a hint to write `http://`, if plain http is allowed. One that
/// falls silent may be asleep, and gets none.
#[tokio::test]
async fn a_port_without_tls_is_told_how_to_be_written() {
    let listener = TcpListener::bind((OPEN, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let plain = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut hello = [0; 8192];
            let _read = stream.read(&mut hello).await;
            let _written = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            // A stream that is dropped with bytes unread is reset, and the response may be lost.
            let _rest = stream.read_to_end(&mut Vec::new()).await;
        }
    });
    let (outcome, detail) = detail_over_https(port).await;
    assert_eq!(outcome, TlsInvalid, "{detail}");
    let written = format!("register http://{HOST}:{port}{CARD}");
    assert!(detail.contains(&written), "{detail}");
    plain.abort();

    // It waits for the end of a request.
    let server = Server::start(|_: &Request| ScriptedReply::json(card("Plain"))).await;
    let (outcome, detail) = detail_over_https(server.at.port()).await;
    assert_eq!(outcome, Timeout, "{detail}");
    assert!(!detail.contains("http://"), "{detail}");
}
