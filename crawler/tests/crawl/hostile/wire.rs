//! Servers whose behaviour on the wire is defined by a case.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use url::Url;

use super::{HOME, MOST_BYTES, serve};
use crate::support::{Authority, HOST, Identity, Request, ScriptedReply, Server};

/// The behaviour of the server.
pub enum Wire {
    /// Answers in plain HTTP/1.
    Plain(ScriptedReply),
    /// Answers over TLS with an identity that this function makes.
    Tls(fn(&Authority) -> Identity),
    /// Reads a little, writes all of these bytes instead of a TLS handshake, and then stays silent.
    Handshake(&'static [u8]),
    /// Speaks HTTP/2 over TLS: the frames of a proper start, and then the second ones again and again.
    Frames(&'static [u8], Vec<u8>),
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// `:status: 200` in HPACK, from its static table.
const STATUS_200: u8 = 0x88;

/// A running server, until it is dropped.
pub struct WireServer {
    pub url: Url,
    work: ConnectionTask,
}

enum ConnectionTask {
    Serving(Server),
    /// Ends when the client closes the connection, with the number of bytes sent.
    Writing(JoinHandle<usize>),
}

impl Wire {
    /// Starts the server; `PORT` in a reply is replaced by the canary's port.
    pub async fn start(&self, authority: &Authority, canary: u16) -> WireServer {
        let written_by = |(port, task)| WireServer {
            url: format!("https://{HOST}:{port}/").parse().unwrap(),
            work: ConnectionTask::Writing(task),
        };
        let served_by = |server: Server| WireServer {
            url: server.url_of(HOST, "/"),
            work: ConnectionTask::Serving(server),
        };
        match self {
            Self::Plain(reply) => {
                let reply = reply.replacing("PORT", &canary.to_string());
                served_by(serve(move |_| reply.clone()).await)
            }
            Self::Tls(identity) => {
                let acceptor = identity(authority).acceptor(None);
                let card = ScriptedReply::json(r#"{"name": "x", "url": "https://a.example/"}"#);
                let answer = move |_: &Request| card.clone();
                served_by(Server::bind(HOME.into(), Some(acceptor), answer).await)
            }
            Self::Handshake(bytes) => written_by(handshake(bytes).await),
            Self::Frames(start, again) => written_by(frames(authority, start, again.clone()).await),
        }
    }
}

impl WireServer {
    /// Number of requests that could be read.
    pub fn requests(&self) -> usize {
        match &self.work {
            ConnectionTask::Serving(server) => server.requests().len(),
            ConnectionTask::Writing(_) => 0,
        }
    }

    /// Number of bytes that the client, which has closed by then, or system buffers on the way have taken.
    pub async fn written(self) -> usize {
        match self.work {
            ConnectionTask::Serving(server) => server.written(),
            ConnectionTask::Writing(task) => task.await.unwrap(),
        }
    }
}

/// Reads the first bytes, writes, and keeps the connection open.
async fn handshake(bytes: &'static [u8]) -> (u16, JoinHandle<usize>) {
    let listener = TcpListener::bind((HOME, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut first = [0; 1024];
        let _read = stream.read(&mut first).await;
        let _written = stream.write_all(bytes).await;
        let mut rest = Vec::new();
        let _read = stream.read_to_end(&mut rest).await;
        bytes.len()
    });
    (port, task)
}

/// Speaks HTTP/2 until the client closes the connection; returns the number of bytes sent.
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
        // On a busy machine the handshake may outlast the client's short limits.
        let Ok(stream) = tls.accept(stream).await else {
            return 0;
        };
        let (mut reading, mut writing) = tokio::io::split(stream);
        let drain = tokio::spawn(async move {
            let mut rest = Vec::new();
            let _read = reading.read_to_end(&mut rest).await;
        });
        let mut first = frame(4, 0, 0, &[]);
        if !start.is_empty() {
            // Endless headers.
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
