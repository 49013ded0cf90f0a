//! Response bodies at, within and beyond their limits.

use std::io::Write;
use std::time::Duration;

use a2a_crawler::AttemptOutcome::BadBody;
use a2a_crawler::fetch::{FetchError, GetOptions, HttpResponse};

use crate::support::{ScriptedReply, Server, fetcher};

const LIMIT: usize = 1024 * 1024;

async fn get(reply: ScriptedReply) -> Result<HttpResponse, FetchError> {
    let server = Server::always(reply).await;
    fetcher()
        .get(&server.url("/"), &GetOptions::default())
        .await
        .result
}

/// Turns a body into a reply.
type Framing = fn(&[u8]) -> ScriptedReply;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn brotli(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    brotli::CompressorWriter::new(&mut out, 4096, 9, 22)
        .write_all(bytes)
        .unwrap();
    out
}

fn chunked(body: &[u8]) -> ScriptedReply {
    let mut bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for chunk in body.chunks(100_000) {
        bytes.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
        bytes.extend(chunk);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\n\r\n");
    ScriptedReply::raw(bytes)
}

fn until_close(body: &[u8]) -> ScriptedReply {
    let mut bytes = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    bytes.extend(body);
    ScriptedReply::raw(bytes).then_close()
}

fn encoded(encoding: &str, body: &[u8]) -> ScriptedReply {
    ScriptedReply::new(200, &format!("content-encoding: {encoding}\r\n"), body)
}

/// Exactly one mebibyte passes, one byte more does not, however the body is framed or encoded.
#[tokio::test]
async fn the_bound_holds_to_the_byte() {
    let fits = vec![b'a'; LIMIT];
    let beyond = vec![b'a'; LIMIT + 1];
    let framings: [(&str, Framing); 5] = [
        ("length", |body| ScriptedReply::json(body)),
        ("chunked", chunked),
        ("until close", until_close),
        ("gzip", |body| encoded("gzip", &gzip(body))),
        ("br", |body| encoded("br", &brotli(body))),
    ];
    for (name, framing) in framings {
        let answer = get(framing(&fits))
            .await
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(answer.body == fits, "{name}");
        let error = get(framing(&beyond)).await.unwrap_err();
        assert_eq!(error.outcome, BadBody, "{name}");
        assert!(error.detail.contains("1048576"), "{name}: {error}");
    }
}

/// Inputs 116 to 120.
#[tokio::test]
async fn bombs_and_odd_encodings_are_refused() {
    let zeros = vec![0; 64 * LIMIT];
    for reply in [
        encoded("gzip", &gzip(&zeros)),
        encoded("br", &brotli(&zeros)),
        encoded("gzip, gzip", &gzip(&gzip(b"{}"))),
        encoded("gzip", b"{}"),
        encoded("br", b"\xff\xff\xff\xff"),
        encoded("zstd", b"{}"),
        encoded("gzip", &gzip(b"{\"a\":1}")[..20]),
        ScriptedReply::raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").then_repeat(
            format!("10000\r\n{}\r\n", "y".repeat(65536)),
            Duration::ZERO,
        ),
        ScriptedReply::raw("HTTP/1.1 200 OK\r\n\r\n")
            .then_repeat(vec![b'y'; 65536], Duration::ZERO),
        ScriptedReply::raw("HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551615\r\n\r\n")
            .then_hang(),
        ScriptedReply::raw("HTTP/1.1 200 OK\r\ncontent-length: 1048577\r\n\r\n").then_hang(),
    ] {
        let error = get(reply).await.unwrap_err();
        assert_eq!(error.outcome, BadBody, "{error}");
    }
}

/// Input 117, the other way round: bytes beyond the announced length belong to no response.
#[tokio::test]
async fn bytes_beyond_the_length_do_not_become_the_next_answer() {
    let server = Server::start(|request| match request.path.as_str() {
        "/lies" => ScriptedReply::raw("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil"),
        _ => ScriptedReply::json("[]"),
    })
    .await;
    let fetcher = fetcher();
    for _ in 0..3 {
        let lies = fetcher
            .get(&server.url("/lies"), &GetOptions::default())
            .await
            .result
            .unwrap();
        assert_eq!(lies.body, b"{}");
        let next = fetcher
            .get(&server.url("/next"), &GetOptions::default())
            .await
            .result
            .unwrap();
        assert_eq!(next.body, b"[]");
    }
}

/// The body is read for status 200 only; for other statuses it is not even received.
#[tokio::test]
async fn bodies_of_other_answers_are_not_read() {
    let head = format!(
        "HTTP/1.1 404 Not Found\r\ncontent-length: {}\r\n\r\n",
        100 * LIMIT
    );
    let answer = get(ScriptedReply::raw(head).then_repeat(vec![b'y'; 65536], Duration::ZERO))
        .await
        .unwrap();
    assert_eq!((answer.status, answer.body.len()), (404, 0));
}

#[tokio::test]
async fn a_purpose_may_ask_for_less() {
    let server = Server::always(ScriptedReply::json(vec![b'x'; 257])).await;
    let options = GetOptions {
        max_body_bytes: 256,
        ..GetOptions::default()
    };
    let error = fetcher()
        .get(&server.url("/"), &options)
        .await
        .result
        .unwrap_err();
    assert_eq!(error.outcome, BadBody);
}
