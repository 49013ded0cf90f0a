//! Inputs 123 to 130: bodies served as a card, through the fetcher and the card parser.

use a2a_crawler::AttemptOutcome::{self, BadBody, Card, NotACard};
use a2a_crawler::SourceResult;

use super::mutation::Seed;
use super::setup::FetchSetup;
use super::{FEW, MANY, MOST_BYTES, serve};
use crate::support::{HOST, ScriptedReply};

pub struct PayloadCase {
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

pub fn cases() -> Vec<PayloadCase> {
    let case = |number, name, body: Vec<u8>, outcome| PayloadCase {
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
        PayloadCase {
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

impl PayloadCase {
    pub fn what(&self) -> String {
        format!("input {}, {}", self.number, self.name)
    }

    /// The reply with the body of the case.
    pub fn reply(&self) -> ScriptedReply {
        self.reply_with(&self.body)
    }

    fn reply_with(&self, body: &[u8]) -> ScriptedReply {
        let headers = format!("content-type: {}\r\n", self.content_type);
        ScriptedReply::new(200, &headers, body)
    }
}

async fn fetch(case: &PayloadCase, reply: ScriptedReply) -> AttemptOutcome {
    let world = FetchSetup::trap().await;
    let server = serve(move |_| reply.clone()).await;
    let (attempt, verdict) = world.ask(&server.url_of(HOST, "/"), case.name).await;
    if let SourceResult::Fetched(card) = verdict {
        assert!(card.parsed.findings.len() < 100_000, "{}", case.name);
    }
    assert!(server.written() < MOST_BYTES);
    attempt.outcome
}

#[tokio::test]
async fn whatever_is_served_is_read_or_refused() {
    for case in cases() {
        let outcome = fetch(&case, case.reply()).await;
        assert_eq!(outcome, case.outcome, "{}", case.what());
    }
}

async fn mutated(rounds: usize) {
    for case in cases() {
        // A body above the size limit stays so, with any bytes.
        let small = if case.body.len() > 2 * 1024 * 1024 {
            &case.body[..64 * 1024]
        } else {
            &case.body[..]
        };
        for round in 0..rounds {
            let body = Seed::new(case.number, round).mutate(small, 0);
            fetch(&case, case.reply_with(&body)).await;
        }
    }
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
