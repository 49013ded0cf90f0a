//! Inputs 108 to 122: what a server does on the wire.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use a2a_crawler::AttemptOutcome::{self, BadBody, Card, Timeout, TlsInvalid, Unreachable};
use a2a_crawler::fetch::{FetchLimits, FetcherConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{HOME, MOST_BYTES, Trap, ask, canary, config, serve, short};
use crate::support::{Authority, HOST, Reply, Server, fetcher_with};

/// What the server does.
enum Wire {
    /// Answers in HTTP/1, in the clear.
    Plain(Reply),
    /// Answers over TLS with an identity made by this.
    Tls(fn(&Authority) -> crate::support::Identity),
    /// Reads a little, writes these bytes whole, where the client believes in TLS, and says no more.
    Handshake(&'static [u8]),
    /// Speaks HTTP/2 over TLS: the frames of a proper start, and then this one again and again.
    Frames(&'static [u8], Vec<u8>),
}

pub struct Case {
    pub number: u8,
    name: &'static str,
    wire: Wire,
    /// Whether time is waited for, and the limits are 50 times shorter.
    slow: bool,
    outcomes: &'static [AttemptOutcome],
}

const A_CARD: &str = r#"{"name": "x", "url": "https://a.example/"}"#;

/// A server hello of TLS 1.0, with a cipher of its time.
const TLS_1_0: &[u8] = b"\x16\x03\x01\x00\x2a\x02\x00\x00\x26\x03\x01\
    0123456789abcdef0123456789abcdef\x00\x00\x2f\x00";

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Close to a mebibyte of gzip members that hold close to a gibibyte of nothing together.
fn gzip_bomb() -> Vec<u8> {
    let member = gzip(&vec![0; 16 * 1024 * 1024]);
    member.repeat(1024 * 1024 / member.len())
}

fn brotli_bomb() -> Vec<u8> {
    let mut out = Vec::new();
    let zeros = vec![0; 1024 * 1024];
    {
        let mut writer = brotli::CompressorWriter::new(&mut out, 4096, 5, 22);
        for _ in 0..64 {
            writer.write_all(&zeros).unwrap();
        }
    }
    out
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// `:status: 200` in HPACK, from its static table.
const STATUS_200: u8 = 0x88;

pub fn cases() -> Vec<Case> {
    let case = |number, name, wire, slow, outcomes| Case {
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
        Reply::new(200, &format!("content-encoding: {encoding}\r\n"), body)
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
            Reply::raw(ok).then_repeat("x", drip),
            &[Timeout],
        ),
        slow(
            111,
            "a body of one byte at a time",
            Reply::raw(format!("{ok}content-length: 1000\r\n\r\n")).then_repeat("x", drip),
            &[Timeout],
        ),
        plain(
            112,
            "a field of a mebibyte",
            Reply::raw(format!("{ok}x: {}\r\n\r\n", "y".repeat(1024 * 1024))),
            &[BadBody, Unreachable],
        ),
        plain(
            112,
            "ten thousand fields",
            Reply::raw(format!("{ok}{fields}\r\n")),
            &[BadBody, Unreachable],
        ),
        slow(
            113,
            "endless interim answers",
            Reply::raw("").then_repeat("HTTP/1.1 100 Continue\r\n\r\n", no_pause),
            &[Timeout],
        ),
        plain(114, "HTTP/0.9", Reply::raw(A_CARD).then_close(), &[BadBody]),
        plain(
            114,
            "a garbled status line",
            Reply::raw("HTTP/1.1 2OO OK\r\n\r\n").then_close(),
            &[BadBody],
        ),
        plain(
            114,
            "a status of four digits",
            Reply::raw("HTTP/1.1 2000 OK\r\n\r\n").then_close(),
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
            Reply::raw(format!("{ok}transfer-encoding: chunked\r\n\r\n"))
                .then_repeat(format!("10000\r\n{}\r\n", "y".repeat(65536)), no_pause),
            &[BadBody],
        ),
        plain(
            117,
            "fewer bytes than announced",
            Reply::raw(format!("{ok}content-length: 1000\r\n\r\n{A_CARD}")).then_close(),
            &[BadBody],
        ),
        plain(
            117,
            "more bytes than announced",
            Reply::raw(format!(
                "{ok}content-length: {}\r\n\r\n{A_CARD}{A_CARD}",
                A_CARD.len()
            )),
            &[Card],
        ),
        plain(
            117,
            "two lengths",
            Reply::raw(format!(
                "{ok}content-length: 2\r\ncontent-length: {}\r\n\r\n{A_CARD}",
                A_CARD.len()
            )),
            &[BadBody],
        ),
        plain(
            117,
            "a length beyond all bounds",
            Reply::raw(format!("{ok}content-length: 18446744073709551615\r\n\r\n")).then_hang(),
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
        plain(118, "a br bomb", encoded("br", &brotli_bomb()), &[BadBody]),
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
            Reply::raw(format!("{ok}transfer-encoding: chunked\r\n\r\n2a\r\n{{")).then_close(),
            &[BadBody],
        ),
        plain(
            122,
            "Alt-Svc",
            Reply::new(
                200,
                "alt-svc: h2=\"127.0.0.1:PORT\"; persist=1, h3=\"127.0.0.1:PORT\"\r\n",
                A_CARD,
            ),
            &[Card],
        ),
    ]
}

/// Reads what comes first, writes, and stays.
async fn handshake(bytes: &'static [u8]) -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind((HOME, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut first = [0; 1024];
        let _read = stream.read(&mut first).await;
        let _written = stream.write_all(bytes).await;
        let mut rest = Vec::new();
        let _read = stream.read_to_end(&mut rest).await;
    });
    (port, task)
}

/// Speaks HTTP/2 until the other side goes away, and says how many bytes that took.
async fn frames(
    authority: &Authority,
    start: &'static [u8],
    again: Vec<u8>,
) -> (u16, JoinHandle<usize>) {
    let tls = authority.identity(HOST).acceptor(Some(b"h2"));
    let listener = TcpListener::bind((HOME, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let stream = tls.accept(stream).await.unwrap();
        let (mut reading, mut writing) = tokio::io::split(stream);
        let drain = tokio::spawn(async move {
            let mut rest = Vec::new();
            let _read = reading.read_to_end(&mut rest).await;
        });
        let mut first = frame(4, 0, 0, &[]);
        if !start.is_empty() {
            // Headers that do not end.
            first.extend(frame(1, 0, 1, &[STATUS_200]));
        }
        let mut written = 0;
        let mut next = first;
        while writing.write_all(&next).await.is_ok() && writing.flush().await.is_ok() {
            written += next.len();
            next.clone_from(&again);
            if written > 10 * MOST_BYTES {
                break;
            }
            tokio::task::yield_now().await;
        }
        drain.abort();
        written
    });
    (port, task)
}

#[tokio::test]
async fn every_trick_ends_in_a_typed_outcome() {
    let authority = Authority::new("transport");
    let canary = canary();
    for case in cases() {
        let limits = if case.slow {
            short()
        } else {
            FetchLimits::default()
        };
        let config = FetcherConfig {
            extra_ca: vec![authority.pem()],
            ..config(limits)
        };
        let fetcher = fetcher_with(config, Arc::new(Trap));
        let tls = |port| format!("https://{HOST}:{port}/").parse().unwrap();
        let what = format!("input {}, {}", case.number, case.name);
        let attempt = match case.wire {
            Wire::Plain(reply) => {
                let port = canary.at.port().to_string();
                let server = serve(move |_| reply.replacing("PORT", &port)).await;
                let url = server.url_of(HOST, "/");
                let (attempt, _) = ask(&fetcher, &url, &what).await;
                if attempt.outcome == Card {
                    // What a server says about itself leads nowhere the next time either.
                    assert_eq!(ask(&fetcher, &url, &what).await.0.outcome, Card);
                }
                assert!(
                    server.written() < MOST_BYTES,
                    "{what}: {}",
                    server.written()
                );
                attempt
            }
            Wire::Tls(identity) => {
                let identity = identity(&authority);
                let reply = Reply::json(A_CARD);
                let server = Server::bind(HOME.into(), Some(identity.acceptor(None)), move |_| {
                    reply.clone()
                })
                .await;
                let (attempt, _) = ask(&fetcher, &server.url_of(HOST, "/"), &what).await;
                assert!(server.requests().is_empty(), "{what}");
                attempt
            }
            Wire::Handshake(bytes) => {
                let (port, task) = handshake(bytes).await;
                let (attempt, _) = ask(&fetcher, &tls(port), &what).await;
                task.abort();
                attempt
            }
            Wire::Frames(start, again) => {
                let (port, task) = frames(&authority, start, again).await;
                let (attempt, _) = ask(&fetcher, &tls(port), &what).await;
                drop(fetcher);
                let written = super::in_time(&what, task).await.unwrap();
                assert!(written < MOST_BYTES, "{what}: {written}");
                attempt
            }
        };
        assert!(
            case.outcomes.contains(&attempt.outcome),
            "{what}: {attempt:?}"
        );
    }
    canary.assert_untouched();
}
