//! The same limits over HTTP/2, which most https servers speak.

use a2a_crawler::AttemptOutcome::{self, BadBody, Unreachable};
use a2a_crawler::fetch::{FetchError, FetchLimits, FetcherConfig, GetOptions, HttpResponse};
use h2::Reason;
use hyper::Response;
use hyper::body::Bytes;
use tokio::net::TcpListener;

use crate::support::{Authority, HOST, OPEN, config, fetcher_with, resolver};

/// The server's behaviour on its one request.
enum Http2Script {
    Answer(Response<()>, Bytes),
    Reset,
    GoAway,
}

async fn get(script: Http2Script) -> Result<HttpResponse, FetchError> {
    let authority = Authority::new("h2");
    let tls = authority.identity(HOST).acceptor(Some(b"h2"));
    let listener = TcpListener::bind((OPEN, 0)).await.unwrap();
    let url = format!("https://{HOST}:{}/", listener.local_addr().unwrap().port());
    let server = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let stream = tls.accept(stream).await.unwrap();
        let mut connection = h2::server::handshake(stream).await.unwrap();
        let (_, mut respond) = connection.accept().await.unwrap().unwrap();
        match script {
            Http2Script::Answer(head, body) => {
                let mut stream = respond.send_response(head, false).unwrap();
                stream.send_data(body, true).unwrap();
            }
            Http2Script::Reset => respond.send_reset(Reason::INTERNAL_ERROR),
            Http2Script::GoAway => connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM),
        }
        // Drives the connection until the client is done with it.
        let _ended = connection.accept().await;
    });
    let config = FetcherConfig {
        extra_ca: vec![authority.pem()],
        ..config(FetchLimits::default())
    };
    let fetcher = fetcher_with(config, resolver());
    let answer = fetcher
        .get(&url.parse().unwrap(), &GetOptions::default())
        .await
        .result;
    server.abort();
    answer
}

fn head(fields: usize, value: usize) -> Response<()> {
    let mut head = Response::builder();
    for n in 0..fields {
        head = head.header(format!("x-{n}"), "y".repeat(value));
    }
    head.body(()).unwrap()
}

async fn outcome(script: Http2Script) -> Option<AttemptOutcome> {
    get(script).await.err().map(|error| {
        assert!(!error.detail.contains("no connection"), "{error}");
        error.outcome
    })
}

#[tokio::test]
async fn an_answer_comes_over_http2() {
    let answer = get(Http2Script::Answer(head(64, 1), Bytes::from_static(b"{}")))
        .await
        .unwrap();
    assert!(answer.over_tls);
    assert_eq!(answer.address, Some(OPEN.into()));
    assert_eq!(answer.body, b"{}");
}

#[tokio::test]
async fn bounds_hold_over_http2() {
    let body = |bytes| Bytes::from(vec![b'y'; bytes]);
    assert_eq!(
        outcome(Http2Script::Answer(head(0, 0), body(1024 * 1024))).await,
        None
    );
    assert_eq!(
        outcome(Http2Script::Answer(head(0, 0), body(1024 * 1024 + 1))).await,
        Some(BadBody)
    );
    assert_eq!(
        outcome(Http2Script::Answer(head(65, 1), body(2))).await,
        Some(BadBody)
    );
    // Seven fields of 2 KiB fit into 16 KiB, eight do not.
    assert_eq!(
        outcome(Http2Script::Answer(head(7, 2048), body(2))).await,
        None
    );
    assert!(
        outcome(Http2Script::Answer(head(8, 2048), body(2)))
            .await
            .is_some()
    );
}

/// Input 115, as far as a client sees it.
#[tokio::test]
async fn broken_streams_are_typed_errors() {
    assert_eq!(outcome(Http2Script::Reset).await, Some(Unreachable));
    assert_eq!(outcome(Http2Script::GoAway).await, Some(Unreachable));
    let lies = Response::builder()
        .header("content-length", "5")
        .body(())
        .unwrap();
    assert_eq!(
        outcome(Http2Script::Answer(lies, Bytes::from_static(b"{}"))).await,
        Some(BadBody)
    );
}
