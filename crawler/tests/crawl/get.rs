//! Requests of the fetcher, and the errors for servers that do not respond properly.

use std::time::Duration;

use a2a_crawler::AttemptOutcome::{self, BadBody, Refused, Timeout, Unreachable};
use a2a_crawler::Validators;
use a2a_crawler::fetch::{FetchError, FetchLimits, GetOptions};
use url::Url;

use crate::support::{
    Canary, ScriptedReply, Server, config, fetcher, fetcher_with, hasty_fetcher, resolver,
};

async fn failure(server: &Server) -> FetchError {
    let fetched = hasty_fetcher()
        .get(&server.url("/"), &GetOptions::default())
        .await;
    fetched.result.expect_err("the fetch should have failed")
}

#[tokio::test]
async fn a_request_says_who_asks_and_nothing_more() {
    let server = Server::start(|request| match request.path.as_str() {
        "/from" => ScriptedReply::new(302, "location: /to\r\nset-cookie: a=b; path=/\r\n", ""),
        _ => ScriptedReply::json("{}"),
    })
    .await;
    let fetcher = fetcher();
    let fetched = fetcher
        .get(&server.url("/from"), &GetOptions::default())
        .await;
    let answer = fetched.result.unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"{}"[..]));
    assert_eq!(answer.address, Some(server.at.ip()));
    assert!(!answer.over_tls);
    assert_eq!(answer.url, server.url("/to"));
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    for request in &requests {
        assert_eq!(request.header("accept"), Some("application/json"));
        assert_eq!(request.header("accept-encoding"), Some("gzip, br"));
        let agent = request.header("user-agent").unwrap();
        assert!(agent.starts_with("a2a-registry/"), "{agent}");
        assert!(
            agent.ends_with(" (+https://registry.example.com/crawler)"),
            "{agent}"
        );
        for absent in [
            "a2a-version",
            "cookie",
            "referer",
            "authorization",
            "if-none-match",
            "if-modified-since",
        ] {
            assert_eq!(request.header(absent), None, "{absent}");
        }
    }
}

#[tokio::test]
async fn a_conditional_request_prefers_the_entity_tag() {
    let server = Server::always(ScriptedReply::new(304, "etag: \"2\"\r\n", "")).await;
    let fetcher = fetcher();
    let mut validators = Validators {
        url: String::new(),
        etag: Some("W/\"1\"".to_owned()),
        last_modified: Some("Sun, 06 Nov 1994 08:49:37 GMT".to_owned()),
    };
    for (etag, date) in [
        (Some("W/\"1\""), None),
        (None, Some("Sun, 06 Nov 1994 08:49:37 GMT")),
    ] {
        let options = GetOptions {
            validators: Some(&validators),
            ..GetOptions::default()
        };
        let answer = fetcher
            .get(&server.url("/"), &options)
            .await
            .result
            .unwrap();
        assert_eq!(answer.status, 304);
        let request = server.requests().pop().unwrap();
        assert_eq!(request.header("if-none-match"), etag);
        assert_eq!(request.header("if-modified-since"), date);
        validators.etag = None;
    }
}

#[tokio::test]
async fn a_401_is_answered_with_no_credentials() {
    let server = Server::always(ScriptedReply::new(
        401,
        "www-authenticate: Basic realm=x\r\n",
        "",
    ))
    .await;
    let answer = fetcher()
        .get(&server.url("/"), &GetOptions::default())
        .await
        .result
        .unwrap();
    assert_eq!(answer.status, 401);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn sixty_four_header_fields_pass_and_one_more_does_not() {
    for (fields, outcome) in [
        (64, None),
        (65, Some(BadBody)),
        (500, Some(BadBody)),
        (10_000, Some(BadBody)),
    ] {
        // `content-length` is one of the fields.
        let headers: String = (1..fields).map(|n| format!("x-{n}: y\r\n")).collect();
        let server = Server::always(ScriptedReply::new(200, &headers, "{}")).await;
        let fetched = fetcher()
            .get(&server.url("/"), &GetOptions::default())
            .await;
        assert_eq!(
            fetched.result.err().map(|error| error.outcome),
            outcome,
            "{fields}"
        );
    }
}

/// Inputs 110 to 114, 117, 121: each is a typed error, in bounded time and memory.
#[tokio::test]
async fn improper_servers_are_told_apart() {
    let every = Duration::from_millis(5);
    let drip = Duration::from_millis(20);
    let cases: Vec<(&str, ScriptedReply, &[AttemptOutcome])> = vec![
        ("silence", ScriptedReply::raw("").then_hang(), &[Timeout]),
        (
            "half a head",
            ScriptedReply::raw("HTTP/1.1 200 OK\r\nx: ").then_hang(),
            &[Timeout],
        ),
        (
            "head drip",
            ScriptedReply::raw("HTTP/1.1 200 OK\r\nx: ").then_repeat("y", drip),
            &[Timeout],
        ),
        (
            "endless head",
            ScriptedReply::raw("HTTP/1.1 200 OK\r\nx: ")
                .then_repeat(vec![b'y'; 65536], Duration::ZERO),
            &[BadBody],
        ),
        (
            "endless 1xx",
            ScriptedReply::raw("").then_repeat("HTTP/1.1 103 Early Hints\r\n\r\n", every),
            &[Timeout],
        ),
        (
            "closed at once",
            ScriptedReply::raw("").then_close(),
            &[Unreachable],
        ),
        (
            "closed in the head",
            ScriptedReply::raw("HTTP/1.1 200").then_close(),
            &[Unreachable],
        ),
        (
            "garbage",
            ScriptedReply::raw("\u{1b}]0;x\u{7} hello\r\n\r\n").then_close(),
            &[BadBody],
        ),
        (
            "HTTP/0.9",
            ScriptedReply::raw("{\"name\":\"x\"}").then_close(),
            &[BadBody, Unreachable],
        ),
        (
            "bad status",
            ScriptedReply::raw("HTTP/1.1 99999 X\r\n\r\n").then_close(),
            &[BadBody],
        ),
        (
            "two lengths",
            ScriptedReply::raw(
                "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx",
            )
            .then_close(),
            &[BadBody],
        ),
        (
            "body drip",
            ScriptedReply::raw("HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n")
                .then_repeat("y", drip),
            &[Timeout],
        ),
        (
            "body hang",
            ScriptedReply::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx").then_hang(),
            &[Timeout],
        ),
        (
            "closed in the body",
            ScriptedReply::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx").then_close(),
            &[BadBody],
        ),
        (
            "closed in a chunk",
            ScriptedReply::raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\nx")
                .then_close(),
            &[BadBody],
        ),
        (
            "bad chunk",
            ScriptedReply::raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n")
                .then_close(),
            &[BadBody],
        ),
    ];
    for (name, reply, outcomes) in cases {
        let server = Server::always(reply).await;
        let error = failure(&server).await;
        assert!(outcomes.contains(&error.outcome), "{name}: {error:?}");
        assert!(
            !error.detail.is_empty() && !error.detail.chars().any(char::is_control),
            "{name}: {error:?}"
        );
    }
}

/// The limits are independent: a body that trickles fast enough still ends at the total.
#[tokio::test]
async fn the_total_limit_ends_what_no_other_limit_does() {
    let server = Server::always(
        ScriptedReply::raw("HTTP/1.1 200 OK\r\ncontent-length: 999999\r\n\r\n")
            .then_repeat(vec![b'y'; 64], Duration::from_millis(5)),
    )
    .await;
    let limits = FetchLimits {
        total: Duration::from_millis(500),
        ..FetchLimits::default()
    };
    let fetcher = fetcher_with(config(limits), resolver());
    let fetched = fetcher.get(&server.url("/"), &GetOptions::default()).await;
    let error = fetched.result.unwrap_err();
    assert_eq!(error.outcome, Timeout);
    assert!(error.detail.contains("500ms"), "{error}");
    // The part of the response received by then is reported.
    assert_eq!(error.status, Some(200));
    assert_eq!(error.address, Some(server.at.ip()));
}

#[tokio::test]
async fn a_closed_port_is_unreachable() {
    let gone = Server::always(ScriptedReply::json("{}")).await;
    let url = gone.url("/");
    drop(gone);
    // The listener closes when its task ends; until then connections are reset.
    let error = fetcher()
        .get(&url, &GetOptions::default())
        .await
        .result
        .unwrap_err();
    assert_eq!(error.outcome, Unreachable);
}

/// Literals that mean a forbidden loopback address, in every spelling; the crawler connects to none of them.
#[tokio::test]
async fn forbidden_literals_are_never_connected_to() {
    let canary = Canary::new();
    let port = canary.at.port();
    let hosts = [
        "127.0.0.2",
        "2130706434",
        "0x7f000002",
        "0177.0.0.2",
        "127.2",
        "[::ffff:127.0.0.2]",
        "[::127.0.0.2]",
    ];
    let fetcher = fetcher();
    for host in hosts {
        let url: Url = format!("http://{host}:{port}/").parse().unwrap();
        let error = fetcher
            .get(&url, &GetOptions::default())
            .await
            .result
            .unwrap_err();
        assert_eq!(error.outcome, Refused, "{host}");
    }
    let everywhere = Canary::on("0.0.0.0".parse().unwrap());
    for host in ["0.0.0.0", "0", "[::]"] {
        let url: Url = format!("http://{host}:{}/", everywhere.at.port())
            .parse()
            .unwrap();
        let error = fetcher
            .get(&url, &GetOptions::default())
            .await
            .result
            .unwrap_err();
        assert_eq!(error.outcome, Refused, "{host}");
    }
    everywhere.assert_untouched();
    canary.assert_untouched();
}

#[tokio::test]
async fn an_opened_literal_is_a_host_like_any_other() {
    let server = Server::always(ScriptedReply::json("{}")).await;
    let url = server.url_of("127.0.0.1", "/");
    assert_eq!(
        fetcher()
            .get(&url, &GetOptions::default())
            .await
            .result
            .unwrap()
            .status,
        200
    );
}

/// A child process ignores the proxies in its environment and fetches directly.
#[tokio::test]
async fn proxies_of_the_environment_are_ignored() {
    let proxy = Canary::new();
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "get::an_opened_literal_is_a_host_like_any_other"]);
    for name in [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
    ] {
        child.env(name, proxy.url().as_str());
    }
    for name in ["NO_PROXY", "no_proxy"] {
        child.env_remove(name);
    }
    let output = child.output().await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
    proxy.assert_untouched();
}

/// The first-byte limit runs from the moment the connection is there, be it new or reused.
#[tokio::test]
async fn a_silent_server_ends_with_the_first_byte_limit() {
    let server = Server::start(|request| match request.path.as_str() {
        "/silent" => ScriptedReply::raw("").then_hang(),
        _ => ScriptedReply::json("{}"),
    })
    .await;
    let limits = FetchLimits {
        first_byte: Duration::from_millis(100),
        ..FetchLimits::default()
    };
    for paths in [&["/silent"][..], &["/", "/silent"]] {
        let fetcher = fetcher_with(config(limits), resolver());
        let mut last = None;
        for path in paths {
            last = fetcher
                .get(&server.url(path), &GetOptions::default())
                .await
                .result
                .err();
        }
        let error = last.unwrap();
        assert_eq!(error.outcome, Timeout);
        assert!(error.detail.contains("begin to respond"), "{error}");
    }
}
