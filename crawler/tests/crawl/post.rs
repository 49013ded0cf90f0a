//! Posts of JSON: the request, its only receiver, and limits on the response.

use std::io::Write;
use std::net::IpAddr;

use a2a_crawler::AttemptOutcome::{self, BadBody, BadRedirect, Refused, Timeout, Unreachable};
use a2a_crawler::fetch::{
    BearerToken, ClientSecretBasic, FetchLimits, FetchRecord, FetcherConfig, FormOptions,
    PostOptions,
};

use crate::support::{
    Authority, Canary, FORBIDDEN, HOST, OPEN, ScriptedReply, Server, config, fetcher, fetcher_with,
    hasty_fetcher, resolver,
};

const TOKEN: &str = "hush-0123456789";
/// Maximum length of the body of an error response that is read.
const REASON: usize = 100;

fn options(bearer: &BearerToken) -> PostOptions<'_> {
    PostOptions {
        bearer: Some(bearer),
        max_body_bytes: usize::MAX,
        max_error_bytes: REASON,
    }
}

/// Posts with the token, and checks that no part of the response shows it.
async fn post(server: &Server) -> FetchRecord {
    let bearer = BearerToken::new(TOKEN).unwrap();
    let fetched = fetcher()
        .post_json(&server.url("/v1"), b"{}".to_vec(), &options(&bearer))
        .await;
    if let Err(error) = &fetched.result {
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains(TOKEN), "{shown}");
    }
    fetched
}

fn outcome(fetched: &FetchRecord) -> Option<AttemptOutcome> {
    let failed = fetched.result.as_ref().err();
    failed.map(|error| error.outcome)
}

#[tokio::test]
async fn what_is_posted_arrives_as_it_is() {
    let server = Server::always(ScriptedReply::json("[]")).await;
    let (fetcher, bearer) = (fetcher(), BearerToken::new(TOKEN).unwrap());
    let json = r#"{"a":"ä"}"#.as_bytes();
    for options in [options(&bearer), PostOptions::default()] {
        let fetched = fetcher
            .post_json(&server.url("/v1?x=y"), json.to_vec(), &options)
            .await;
        let answer = fetched.result.unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, &b"[]"[..]));
        assert_eq!(answer.address, Some(OPEN.into()));
        assert_eq!(answer.url, server.url("/v1?x=y"));
    }
    let requests = server.requests();
    let [with, without] = requests.as_slice() else {
        panic!("{requests:?}");
    };
    for request in [with, without] {
        assert_eq!((&*request.method, &*request.path), ("POST", "/v1?x=y"));
        assert_eq!(request.body, json);
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.header("accept"), Some("application/json"));
        assert_eq!(request.header("accept-encoding"), Some("gzip, br"));
        for absent in ["cookie", "referer", "expect", "transfer-encoding"] {
            assert_eq!(request.header(absent), None, "{absent}");
        }
    }
    assert_eq!(with.header("authorization"), Some("Bearer hush-0123456789"));
    assert_eq!(without.header("authorization"), None);
}

#[tokio::test]
async fn a_form_is_sent_with_the_password_of_its_client_and_its_refusal_read() {
    let refusal = r#"{"error":"invalid_grant"}"#;
    let server = Server::always(ScriptedReply::new(400, "", refusal)).await;
    let password = ClientSecretBasic::new("registry", "hush").unwrap();
    let options = FormOptions {
        client_secret: Some(&password),
        max_body_bytes: REASON,
    };
    let fields = [("code", "a b&c"), ("grant_type", "authorization_code")];
    let url = server.url("/token");
    let fetched = fetcher().post_form(&url, &fields, &options).await;
    let answer = fetched.result.unwrap();
    assert_eq!(
        (answer.status, answer.body.as_slice()),
        (400, refusal.as_bytes())
    );
    let requests = server.requests();
    let [sent] = requests.as_slice() else {
        panic!("{requests:?}");
    };
    assert_eq!(sent.body, b"code=a+b%26c&grant_type=authorization_code");
    let media = "application/x-www-form-urlencoded";
    assert_eq!(sent.header("content-type"), Some(media));
    let pair = format!("Basic {}", data_encoding::BASE64.encode(b"registry:hush"));
    assert_eq!(sent.header("authorization"), Some(pair.as_str()));
}

#[tokio::test]
async fn tls_is_checked_as_ever() {
    let authority = Authority::new("post");
    let server = Server::with_tls(&authority.identity(HOST), ScriptedReply::json("[]")).await;
    let with = FetcherConfig {
        extra_ca: vec![authority.pem()],
        ..config(FetchLimits::default())
    };
    let options = PostOptions::default();
    let answer = fetcher_with(with, resolver())
        .post_json(&server.url("/"), Vec::new(), &options)
        .await
        .result
        .unwrap();
    assert!(answer.over_tls);
    let stranger = fetcher()
        .post_json(&server.url("/"), Vec::new(), &options)
        .await;
    assert_eq!(outcome(&stranger), Some(AttemptOutcome::TlsInvalid));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn no_redirect_is_followed() {
    let canary = Canary::new();
    for status in [300, 301, 302, 303, 304, 305, 307, 308, 399] {
        for location in [canary.url().as_str(), "/v2", "https://example.org/"] {
            let headers = format!("location: {location}\r\n");
            let server = Server::always(ScriptedReply::new(status, &headers, "")).await;
            let fetched = post(&server).await;
            assert_eq!(outcome(&fetched), Some(BadRedirect), "{status}");
            assert_eq!(fetched.result.unwrap_err().status, Some(status));
            assert_eq!(server.requests().len(), 1, "{status} {location}");
        }
    }
    canary.assert_untouched();
}

#[tokio::test]
async fn nothing_is_sent_where_the_guard_is_against_it() {
    let canary = Canary::new();
    let port = canary.at.port();
    let resolver = resolver();
    resolver.set("private.example.com", [IpAddr::V4(FORBIDDEN)]);
    resolver.set(
        "mixed.example.com",
        [IpAddr::V4(OPEN), IpAddr::V4(FORBIDDEN)],
    );
    let fetcher = fetcher_with(config(FetchLimits::default()), resolver);
    let bearer = BearerToken::new(TOKEN).unwrap();
    for url in [
        canary.url().to_string(),
        format!("http://private.example.com:{port}/"),
        format!("http://mixed.example.com:{port}/"),
        format!("http://user:password@private.example.com:{port}/"),
        format!("http://localhost:{port}/"),
        "file:///etc/passwd".to_owned(),
    ] {
        let fetched = fetcher
            .post_json(&url.parse().unwrap(), b"{}".to_vec(), &options(&bearer))
            .await;
        assert_eq!(outcome(&fetched), Some(Refused), "{url}");
    }
    canary.assert_untouched();
}

#[tokio::test]
async fn no_more_is_sent_than_may_be() {
    let server = Server::always(ScriptedReply::json("[]")).await;
    let limits = FetchLimits {
        request_body_bytes: 1000,
        ..FetchLimits::default()
    };
    let fetcher = fetcher_with(config(limits), resolver());
    for (bytes, expected) in [(1000, None), (1001, Some(Refused))] {
        let fetched = fetcher
            .post_json(&server.url("/"), vec![b'1'; bytes], &PostOptions::default())
            .await;
        assert_eq!(outcome(&fetched), expected, "{bytes}");
    }
    let sent: Vec<usize> = server
        .requests()
        .iter()
        .map(|request| request.body.len())
        .collect();
    assert_eq!(sent, [1000]);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn the_bound_of_an_answer_holds_to_the_byte() {
    let zip = |length: usize| {
        ScriptedReply::new(200, "content-encoding: gzip\r\n", gzip(&vec![b'1'; length]))
    };
    let plain = |length: usize| ScriptedReply::json(vec![b'1'; length]);
    for (reply, expected) in [
        (plain(500), None),
        (plain(501), Some(BadBody)),
        (zip(500), None),
        (zip(501), Some(BadBody)),
        (zip(10_000_000), Some(BadBody)),
    ] {
        let server = Server::always(reply).await;
        let options = PostOptions {
            max_body_bytes: 500,
            ..PostOptions::default()
        };
        let fetched = fetcher()
            .post_json(&server.url("/"), b"{}".to_vec(), &options)
            .await;
        assert_eq!(outcome(&fetched), expected);
        if let Ok(answer) = fetched.result {
            assert_eq!(answer.body, vec![b'1'; 500]);
        }
    }
}

/// The body of an error response is read up to its limit; a longer or broken body leaves the status.
#[tokio::test]
async fn the_reason_of_a_refusal_is_read_within_its_bound() {
    let broken = ScriptedReply::raw("HTTP/1.1 401 X\r\ncontent-length: 9\r\n\r\nno").then_close();
    for (reply, expected) in [
        (ScriptedReply::new(401, "", "no"), "no"),
        (
            ScriptedReply::new(401, "", "n".repeat(REASON)),
            &*"n".repeat(REASON),
        ),
        (ScriptedReply::new(401, "", "n".repeat(REASON + 1)), ""),
        (ScriptedReply::new(401, "content-encoding: x\r\n", "no"), ""),
        (broken, ""),
    ] {
        let server = Server::always(reply).await;
        let answer = post(&server).await.result.unwrap();
        assert_eq!(answer.status, 401);
        assert_eq!(String::from_utf8(answer.body).unwrap(), expected);
    }
    let server = Server::always(ScriptedReply::new(401, "", "no")).await;
    let unasked = fetcher()
        .post_json(&server.url("/"), Vec::new(), &PostOptions::default())
        .await;
    assert_eq!(unasked.result.unwrap().body, b"");
}

#[tokio::test]
async fn improper_servers_are_told_apart() {
    for (reply, expected) in [
        (ScriptedReply::raw("").then_hang(), Timeout),
        (
            ScriptedReply::raw("HTTP/1.1 200 OK\r\nx: ").then_hang(),
            Timeout,
        ),
        (
            ScriptedReply::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n1").then_hang(),
            Timeout,
        ),
        (
            ScriptedReply::raw("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n1").then_close(),
            BadBody,
        ),
        (ScriptedReply::raw("").then_close(), Unreachable),
        (ScriptedReply::raw("hello\r\n\r\n").then_close(), BadBody),
    ] {
        let server = Server::always(reply.clone()).await;
        let fetched = hasty_fetcher()
            .post_json(&server.url("/"), b"{}".to_vec(), &PostOptions::default())
            .await;
        assert_eq!(outcome(&fetched), Some(expected), "{reply:?}");
        // The service may have acted on the request, so it is not sent again.
        assert!(server.requests().len() < 2, "{reply:?}");
    }
}
