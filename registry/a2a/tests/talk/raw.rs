//! A server that sends bytes as a test wrote them down: streams that break, hang or lie.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// The response to one request, which is the only one on its connection.
#[derive(Debug, Clone)]
pub struct RawReply {
    head: String,
    pieces: Vec<Vec<u8>>,
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The body is complete.
    Closed,
    /// The connection is closed in the middle of the body.
    Dead,
    /// Nothing further is sent, and the connection stays open.
    Silent,
}

impl RawReply {
    /// A stream of these events, each as `data`.
    pub fn events(events: &[Value]) -> Self {
        let pieces = events
            .iter()
            .map(|event| format!("data: {event}\n\n").into());
        Self::bytes("text/event-stream", pieces.collect())
    }

    /// A body of these pieces.
    pub fn bytes(content_type: &str, pieces: Vec<Vec<u8>>) -> Self {
        Self {
            head: format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\n"),
            pieces,
            end: End::Closed,
        }
    }

    pub fn json(document: &Value) -> Self {
        Self::bytes("application/json", vec![document.to_string().into()])
    }

    /// A status and no body.
    pub fn status(status: &str) -> Self {
        Self {
            head: format!("HTTP/1.1 {status}\r\n"),
            pieces: Vec::new(),
            end: End::Closed,
        }
    }

    pub fn then_dies(self) -> Self {
        let end = End::Dead;
        Self { end, ..self }
    }

    pub fn then_is_silent(self) -> Self {
        let end = End::Silent;
        Self { end, ..self }
    }
}

/// A request that arrived.
#[derive(Debug, Clone)]
pub struct RawRequest {
    pub line: String,
    pub head: String,
    pub body: Value,
}

/// The running server; dropping it ends it.
pub struct RawServer {
    pub base: String,
    seen: Arc<Mutex<Vec<RawRequest>>>,
    /// A piece of a body is sent for each permit.
    pub permits: Arc<Semaphore>,
    task: JoinHandle<()>,
}

impl RawServer {
    /// A server with these replies in order; the last one is repeated.
    pub async fn start(replies: Vec<RawReply>) -> Self {
        Self::paced(replies, Semaphore::MAX_PERMITS).await
    }

    /// A server that sends this many pieces, and more as permits are added.
    pub async fn paced(replies: Vec<RawReply>, permits: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let permits = Arc::new(Semaphore::new(permits));
        let task = tokio::spawn(serve(
            listener,
            replies,
            Arc::clone(&seen),
            Arc::clone(&permits),
        ));
        Self {
            base,
            seen,
            permits,
            task,
        }
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<RawRequest> {
        self.seen.lock().unwrap().clone()
    }

    /// The JSON-RPC methods of the requests so far, or their request lines.
    pub fn methods(&self) -> Vec<String> {
        let named = |request: RawRequest| match request.body["method"].as_str() {
            Some(method) => method.to_owned(),
            None => request.line.trim_end_matches(" HTTP/1.1").to_owned(),
        };
        self.seen().into_iter().map(named).collect()
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    listener: TcpListener,
    replies: Vec<RawReply>,
    seen: Arc<Mutex<Vec<RawRequest>>>,
    permits: Arc<Semaphore>,
) {
    let mut open = Vec::new();
    let mut replies = replies.into_iter().peekable();
    while let Ok((mut socket, _)) = listener.accept().await {
        let Some(request) = request(&mut socket).await else {
            continue;
        };
        seen.lock().unwrap().push(request);
        let reply = match replies.len() {
            0 | 1 => replies.peek().cloned(),
            _ => replies.next(),
        };
        let permits = Arc::clone(&permits);
        // Each connection is served beside the others, and held until the server ends.
        open.push(tokio::spawn(async move {
            // A client may have gone away already; the test looks at what that led to.
            let _ = send(&mut socket, &reply.unwrap(), &permits).await;
        }));
    }
}

async fn send(
    socket: &mut TcpStream,
    reply: &RawReply,
    permits: &Semaphore,
) -> std::io::Result<()> {
    let head = format!(
        "{}transfer-encoding: chunked\r\nconnection: close\r\n\r\n",
        reply.head
    );
    socket.write_all(head.as_bytes()).await?;
    for piece in &reply.pieces {
        permits.acquire().await.unwrap().forget();
        let size = format!("{:x}\r\n", piece.len());
        socket.write_all(size.as_bytes()).await?;
        socket.write_all(piece).await?;
        socket.write_all(b"\r\n").await?;
    }
    match reply.end {
        End::Closed => socket.write_all(b"0\r\n\r\n").await,
        End::Dead => Ok(()),
        End::Silent => std::future::pending().await,
    }
}

async fn request(socket: &mut TcpStream) -> Option<RawRequest> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length = length.map_or(0, |length| length.trim().parse().unwrap());
    while bytes.len() < end + length {
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    let first = String::from_utf8_lossy(&bytes).lines().next()?.to_owned();
    Some(RawRequest {
        line: first,
        head,
        body: serde_json::from_slice(&bytes[end..]).unwrap_or_default(),
    })
}
