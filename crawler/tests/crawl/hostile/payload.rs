//! Inputs 123 to 131: what is served as a card. Through the fetch and the reader of cards.

use std::sync::Arc;

use a2a_crawler::AttemptOutcome::{self, BadBody, Card, NotACard};
use a2a_crawler::{SourceTask, Verdict};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use super::mutation::Seed;
use super::{FEW, MANY, MOST_BYTES, ask, canary, serve, trapped, urls};
use crate::support::{HOST, Reply};

/// The input that is made of all the others: URLs inside a card, each with any of the inputs 1 to 84.
pub const CARRIED: u8 = 131;

pub struct Case {
    pub number: u8,
    name: &'static str,
    content_type: &'static str,
    body: Vec<u8>,
    outcome: AttemptOutcome,
}

fn card(member: &str) -> Vec<u8> {
    format!(r#"{{"name": "x", "url": "https://a.example/", {member}}}"#).into_bytes()
}

fn utf16(text: &str) -> Vec<u8> {
    let units = [0xfeff].into_iter().chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

pub fn cases() -> Vec<Case> {
    let case = |number, name, body: Vec<u8>, outcome| Case {
        number,
        name,
        content_type: "application/json",
        body,
        outcome,
    };
    let deep = |open: &str, close: &str| {
        card(&format!(
            r#""x": {}{}"#,
            open.repeat(10_000),
            close.repeat(10_000)
        ))
    };
    let skills = vec!["{}"; 100_000].join(",");
    let with_bom = [b"\xef\xbb\xbf".as_slice(), &card(r#""x": 1"#)].concat();
    vec![
        Case {
            content_type: "text/html",
            ..case(
                123,
                "a page",
                b"<!doctype html><title>Not found</title>".to_vec(),
                NotACard,
            )
        },
        case(
            123,
            "a page that says it is JSON",
            b"<html>".to_vec(),
            NotACard,
        ),
        case(124, "arrays 10 000 deep", deep("[", "]"), NotACard),
        case(
            124,
            "objects 10 000 deep",
            deep(r#"{"a":"#, "}").into_iter().collect(),
            NotACard,
        ),
        case(124, "ten thousand openings", b"[".repeat(10_000), NotACard),
        case(
            125,
            "duplicate keys",
            card(r#""name": "y", "name": "z""#),
            Card,
        ),
        case(126, "1e400", card(r#""x": 1e400"#), Card),
        case(
            126,
            "-0 and 2^63",
            card(r#""x": -0, "y": 9223372036854775808"#),
            Card,
        ),
        case(
            127,
            "a lone surrogate",
            card(r#""description": "\ud800""#),
            Card,
        ),
        case(127, "NUL", card(r#""description": "\u0000""#), Card),
        case(127, "a byte order mark", with_bom, Card),
        case(
            127,
            "UTF-16",
            utf16(r#"{"name": "x", "url": "https://a.example/"}"#),
            NotACard,
        ),
        case(
            128,
            "100 000 skills",
            card(&format!(r#""skills": [{skills}]"#)),
            Card,
        ),
        case(
            129,
            "10 MB of description",
            card(&format!(r#""description": "{}""#, "y".repeat(10_000_000))),
            BadBody,
        ),
        case(
            130,
            "__proto__",
            card(r#""__proto__": {"admin": true}, "constructor": {"prototype": {}}"#),
            Card,
        ),
    ]
}

async fn fetch(case: &Case, body: Vec<u8>) -> AttemptOutcome {
    let reply = Reply::new(
        200,
        &format!("content-type: {}\r\n", case.content_type),
        body,
    );
    let server = serve(move |_| reply.clone()).await;
    let (attempt, verdict) = ask(&trapped(), &server.url_of(HOST, "/"), case.name).await;
    if let Verdict::Fetched(card) = verdict {
        assert!(card.parsed.findings.len() < 100_000, "{}", case.name);
    }
    assert!(server.written() < MOST_BYTES);
    attempt.outcome
}

#[tokio::test]
async fn whatever_is_served_is_read_or_refused() {
    for case in cases() {
        let outcome = fetch(&case, case.body.clone()).await;
        assert_eq!(
            outcome, case.outcome,
            "input {}, {}",
            case.number, case.name
        );
    }
}

/// A card with this URL wherever a card has URLs that somebody may ask for.
fn carrier(url: &str) -> String {
    let header = json!({"alg": "ES256", "kid": "k", "jku": url}).to_string();
    json!({
        "name": "x",
        "url": url,
        "iconUrl": url,
        "documentationUrl": url,
        "provider": {"organization": "x", "url": url},
        "supportedInterfaces": [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
        "securitySchemes": {
            "a": {"type": "openIdConnect", "openIdConnectUrl": url},
            "b": {"type": "oauth2", "oauth2MetadataUrl": url, "flows": {
                "clientCredentials": {"tokenUrl": url, "scopes": {}},
                "authorizationCode": {"tokenUrl": url, "authorizationUrl": url, "refreshUrl": url, "scopes": {}},
            }},
        },
        "signatures": [{"protected": URL_SAFE_NO_PAD.encode(header), "signature": "AAAA"}],
    })
    .to_string()
}

/// The URLs of inputs 1 to 84 as they are, and as redirects would lead to them.
fn carried(port: u16) -> impl Iterator<Item = (u8, String)> {
    urls::cases()
        .into_iter()
        .map(move |case| (case.number, case.at(port)))
}

async fn carries(number: u8, url: &str) {
    let body = carrier(url);
    let server = serve(move |_| Reply::json(&body)).await;
    let (attempt, verdict) = ask(&trapped(), &server.url_of(HOST, "/card"), url).await;
    let Verdict::Fetched(card) = verdict else {
        panic!("input {number}: {attempt:?}");
    };
    for set in &card.key_sets {
        assert!(set.answer.is_err(), "input {number}: {set:?}");
    }
    assert_eq!(server.requests().len(), 1, "input {number}: {url}");
}

/// Of all the URLs of a card, only that of a key set is ever asked, and only where the card itself lies.
#[tokio::test]
async fn urls_inside_a_card_are_not_asked() {
    let canary = canary();
    for (number, url) in carried(canary.at.port()) {
        carries(number, &url).await;
    }
    canary.assert_untouched();
}

/// A key set on the card's own origin that leads on to any of them.
#[tokio::test]
async fn a_key_set_leads_nowhere() {
    let canary = canary();
    for (number, url) in carried(canary.at.port()) {
        let server = serve(move |request| match request.path.as_str() {
            "/card" => {
                let host = request.header("host").unwrap_or_default();
                Reply::json(carrier(&format!("http://{host}/keys")))
            }
            _ => Reply::redirect(&url),
        })
        .await;
        let task = SourceTask {
            source_key: 1,
            slot: a2a_crawler::Slot::Url {
                url: server.url_of(HOST, "/card"),
            },
            validators: None,
        };
        let Verdict::Fetched(card) = trapped().fetch_source(&task).await.verdict else {
            panic!("input {number}");
        };
        assert_eq!(card.key_sets.len(), 1);
        assert!(
            card.key_sets[0].answer.is_err(),
            "input {number}: {:?}",
            card.key_sets
        );
        assert_eq!(server.requests().len(), 2);
    }
    canary.assert_untouched();
}

async fn mutated(rounds: usize) {
    for case in cases() {
        // What is too large stays so, whatever its bytes are.
        let small = if case.body.len() > 2 * 1024 * 1024 {
            &case.body[..64 * 1024]
        } else {
            &case.body[..]
        };
        for round in 0..rounds {
            let body = Seed::new(case.number, round).mutate(small, 0);
            fetch(&case, body).await;
        }
    }
    let canary = Arc::new(canary());
    for (number, url) in carried(canary.at.port()) {
        for round in 0..rounds.div_ceil(4) {
            let url = Seed::new(number, round).mutate_text(&url);
            carries(number, &url).await;
        }
    }
    canary.assert_untouched();
}

#[tokio::test]
async fn mutated_payloads_are_read_or_refused() {
    mutated(FEW / 10).await;
}

#[tokio::test]
#[ignore = "the longer run, see the module"]
async fn many_mutated_payloads_are_read_or_refused() {
    mutated(MANY).await;
}
