//! Inputs 108 to 122: behaviour of a server on the wire.

use std::time::Duration;

use a2a_crawler::AttemptOutcome::{self, BadBody, Card, Timeout, TlsInvalid, Unreachable};
use a2a_crawler::fetch::{FetchLimits, FetcherConfig};

use super::bombs::{brotli_bomb, gzip, gzip_bomb};
use super::setup::FetchSetup;
use super::wire::{Wire, frame};
use super::{MOST_BYTES, canary, config, in_time, short};
use crate::support::{Authority, HOST, ScriptedReply};

pub struct TransportCase {
    pub number: u8,
    name: &'static str,
    pub wire: Wire,
    /// Whether a timeout is expected, with limits 50 times shorter.
    pub slow: bool,
    outcomes: &'static [AttemptOutcome],
}

impl TransportCase {
    pub fn what(&self) -> String {
        format!("input {}, {}", self.number, self.name)
    }
}

/// The limits of a case. The name server is not under test, and has its usual timeout.
pub fn limits(slow: bool) -> FetchLimits {
    let usual = FetchLimits::default();
    if slow {
        FetchLimits {
            dns: usual.dns,
            ..short()
        }
    } else {
        usual
    }
}

const A_CARD: &str = r#"{"name": "x", "url": "https://a.example/"}"#;

/// A server hello of TLS 1.0, with a cipher of that era.
const TLS_1_0: &[u8] = b"\x16\x03\x01\x00\x2a\x02\x00\x00\x26\x03\x01\
    0123456789abcdef0123456789abcdef\x00\x00\x2f\x00";

pub fn cases() -> Vec<TransportCase> {
    let case = |number, name, wire, slow, outcomes| TransportCase {
        number,
        name,
        wire,
        slow,
        outcomes,
    };
    let plain =
        |number, name, reply, outcomes| case(number, name, Wire::Plain(reply), false, outcomes);
    let slow =
        |number, name, reply, outcomes| case(number, name, Wire::Plain(reply), true, outcomes);
    let encoded = |encoding: &str, body: &[u8]| {
        ScriptedReply::new(200, &format!("content-encoding: {encoding}\r\n"), body)
    };
    let ok = "HTTP/1.1 200 OK\r\n";
    let drip = Duration::from_millis(20);
    let no_pause = Duration::ZERO;
    let fields: String = (0..10_000).map(|n| format!("x-{n}: y\r\n")).collect();
    let endless_headers = Wire::Frames(
        const { &[1, 0, 0, 0, 1] },
        frame(9, 0, 1, &[0x40, 1, b'x', 1, b'y'].repeat(3000)),
    );
    vec![
        case(
            108,
            "a stalled handshake",
            Wire::Handshake(b""),
            true,
            &[Timeout],
        ),
        case(
            109,
            "an expired certificate",
            Wire::Tls(|ca| ca.expired_identity(HOST)),
            false,
            &[TlsInvalid],
        ),
        case(
            109,
            "another's certificate",
            Wire::Tls(|ca| ca.identity("other.example.com")),
            false,
            &[TlsInvalid],
        ),
        case(
            109,
            "a certificate of nobody's",
            Wire::Tls(|_| Authority::new("nobody").identity(HOST)),
            false,
            &[TlsInvalid],
        ),
        case(
            109,
            "TLS 1.0",
            Wire::Handshake(TLS_1_0),
            false,
            &[TlsInvalid],
        ),
        slow(
            110,
            "a head of one byte at a time",
            ScriptedReply::raw(ok).then_repeat("x", drip),
            &[Timeout],
        ),
        slow(
            111,
            "a body of one byte at a time",
            ScriptedReply::raw(format!("{ok}content-length: 1000\r\n\r\n")).then_repeat("x", drip),
            &[Timeout],
        ),
        plain(
            112,
            "a field of a mebibyte",
            ScriptedReply::raw(format!("{ok}x: {}\r\n\r\n", "y".repeat(1024 * 1024))),
            &[BadBody, Unreachable],
        ),
        plain(
            112,
            "ten thousand fields",
            ScriptedReply::raw(format!("{ok}{fields}\r\n")),
            &[BadBody, Unreachable],
        ),
        slow(
            113,
            "endless interim answers",
            ScriptedReply::raw("").then_repeat("HTTP/1.1 100 Continue\r\n\r\n", no_pause),
            &[Timeout],
        ),
        plain(
            114,
            "HTTP/0.9",
            ScriptedReply::raw(A_CARD).then_close(),
            &[BadBody],
        ),
        plain(
            114,
            "a garbled status line",
            ScriptedReply::raw("HTTP/1.1 2OO OK\r\n\r\n").then_close(),
            &[BadBody],
        ),
        plain(
            114,
            "a status of four digits",
            ScriptedReply::raw("HTTP/1.1 2000 OK\r\n\r\n").then_close(),
            &[BadBody],
        ),
        case(
            115,
            "endless continuations",
            endless_headers,
            false,
            &[Unreachable, BadBody],
        ),
        case(
            115,
            "a flood of resets",
            Wire::Frames(&[], frame(3, 0, 1, &[0, 0, 0, 2])),
            false,
            &[Unreachable],
        ),
        case(
            115,
            "a flood of settings",
            Wire::Frames(&[], frame(4, 0, 0, &[])),
            true,
            &[Timeout, Unreachable],
        ),
        case(
            115,
            "a flood of pings",
            Wire::Frames(&[], frame(6, 0, 0, b"12345678")),
            true,
            &[Timeout, Unreachable],
        ),
        plain(
            116,
            "endless chunks",
            ScriptedReply::raw(format!("{ok}transfer-encoding: chunked\r\n\r\n"))
                .then_repeat(format!("10000\r\n{}\r\n", "y".repeat(65536)), no_pause),
            &[BadBody],
        ),
        plain(
            117,
            "fewer bytes than announced",
            ScriptedReply::raw(format!("{ok}content-length: 1000\r\n\r\n{A_CARD}")).then_close(),
            &[BadBody],
        ),
        plain(
            117,
            "more bytes than announced",
            ScriptedReply::raw(format!(
                "{ok}content-length: {}\r\n\r\n{A_CARD}{A_CARD}",
                A_CARD.len()
            )),
            &[Card],
        ),
        plain(
            117,
            "two lengths",
            ScriptedReply::raw(format!(
                "{ok}content-length: 2\r\ncontent-length: {}\r\n\r\n{A_CARD}",
                A_CARD.len()
            )),
            &[BadBody],
        ),
        plain(
            117,
            "a length beyond all bounds",
            ScriptedReply::raw(format!("{ok}content-length: 18446744073709551615\r\n\r\n"))
                .then_hang(),
            &[BadBody],
        ),
        plain(
            118,
            "ten megabytes that say they are gzip",
            encoded("gzip", &vec![0; 10_000_000]),
            &[BadBody],
        ),
        plain(
            118,
            "a gzip bomb",
            encoded("gzip", &gzip_bomb()),
            &[BadBody],
        ),
        plain(
            118,
            "a br bomb",
            encoded("br", &brotli_bomb(22, 64)),
            &[BadBody],
        ),
        plain(
            118,
            "a br bomb with the widest window",
            encoded("br", &brotli_bomb(24, 32)),
            &[BadBody],
        ),
        plain(
            118,
            "zstd",
            encoded("zstd", b"\x28\xb5\x2f\xfd"),
            &[BadBody],
        ),
        plain(
            119,
            "gzip of gzip",
            encoded("gzip, gzip", &gzip(&gzip(A_CARD.as_bytes()))),
            &[BadBody],
        ),
        plain(
            120,
            "an unknown encoding",
            encoded("rot13", A_CARD.as_bytes()),
            &[BadBody],
        ),
        plain(
            121,
            "a body that breaks off",
            ScriptedReply::raw(format!("{ok}transfer-encoding: chunked\r\n\r\n2a\r\n{{"))
                .then_close(),
            &[BadBody],
        ),
        plain(
            122,
            "Alt-Svc",
            ScriptedReply::new(
                200,
                "alt-svc: h2=\"127.0.0.1:PORT\"; persist=1, h3=\"127.0.0.1:PORT\"\r\n",
                A_CARD,
            ),
            &[Card],
        ),
    ]
}

#[tokio::test]
async fn every_trick_ends_in_a_typed_outcome() {
    let authority = Authority::new("transport");
    let canary = canary();
    for case in cases() {
        let world = FetchSetup::trap_for(FetcherConfig {
            extra_ca: vec![authority.pem()],
            ..config(limits(case.slow))
        })
        .await;
        let what = case.what();
        let running = case.wire.start(&authority, canary.at.port()).await;
        let (attempt, _) = world.ask(&running.url, &what).await;
        assert!(
            case.outcomes.contains(&attempt.outcome),
            "{what}: {attempt:?}"
        );
        if attempt.outcome == Card {
            // Headers about the server itself (such as `Alt-Svc`) do not redirect the next fetch either.
            let (again, _) = world.ask_again(&running.url, &what).await;
            assert_eq!(again.outcome, Card, "{what}");
        }
        if matches!(case.wire, Wire::Tls(_)) {
            assert_eq!(running.requests(), 0, "{what}");
        }
        // Some servers write for as long as the client is connected.
        drop(world);
        let written = in_time(&what, running.written()).await;
        assert!(written < MOST_BYTES, "{what}: {written}");
    }
    canary.assert_untouched();
}
