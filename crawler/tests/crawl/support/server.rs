//! An HTTP/1 server that writes exactly the scripted bytes.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use url::Url;

use super::{HOST, Identity, OPEN};

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    fn read(head: &str) -> Self {
        let mut lines = head.split("\r\n");
        let mut first = lines.next().unwrap().split(' ').map(str::to_owned);
        let (method, path) = (first.next().unwrap(), first.next().unwrap());
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        Self {
            method,
            path,
            headers,
            body: Vec::new(),
        }
    }

    /// The announced length of the body; no request of the crawler is chunked.
    fn length(&self) -> usize {
        let length = self.header("content-length");
        length.map_or(0, |length| length.parse().unwrap())
    }
}

/// The bytes to write, and what to do afterwards.
#[derive(Debug, Clone)]
pub struct ScriptedReply {
    bytes: Vec<u8>,
    then: Then,
}

#[derive(Debug, Clone)]
enum Then {
    KeepAlive,
    Close,
    Hang,
    /// Writes this again and again, with this pause, until the client closes the connection.
    Repeat(Vec<u8>, Duration),
}

impl ScriptedReply {
    /// Exactly these bytes, and the connection stays open.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            bytes: bytes.into(),
            then: Then::KeepAlive,
        }
    }

    /// A status, header lines (each ending in CRLF) and a body with its true length.
    pub fn new(status: u16, headers: &str, body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut bytes = format!(
            "HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n",
            body.len()
        )
        .into_bytes();
        bytes.extend_from_slice(body);
        Self::raw(bytes)
    }

    pub fn json(body: impl AsRef<[u8]>) -> Self {
        Self::new(200, "content-type: application/json\r\n", body)
    }

    pub fn redirect(location: &str) -> Self {
        Self::new(302, &format!("location: {location}\r\n"), "")
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The reply with one text in its bytes replaced by another, if the bytes are text.
    pub fn replacing(&self, from: &str, to: &str) -> Self {
        let bytes = match std::str::from_utf8(&self.bytes) {
            Ok(text) => text.replace(from, to).into_bytes(),
            Err(_) => self.bytes.clone(),
        };
        Self {
            bytes,
            then: self.then.clone(),
        }
    }

    pub fn then_close(mut self) -> Self {
        self.then = Then::Close;
        self
    }

    pub fn then_hang(mut self) -> Self {
        self.then = Then::Hang;
        self
    }

    pub fn then_repeat(mut self, bytes: impl Into<Vec<u8>>, pause: Duration) -> Self {
        self.then = Then::Repeat(bytes.into(), pause);
        self
    }
}

/// Connections of a server so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Connections {
    pub accepted: usize,
    pub open: usize,
}

/// Counts a connection as open until it is dropped.
struct OpenConnection(watch::Sender<Connections>);

impl OpenConnection {
    fn new(connections: &watch::Sender<Connections>) -> Self {
        connections.send_modify(|now| {
            now.accepted += 1;
            now.open += 1;
        });
        Self(connections.clone())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.send_modify(|now| now.open -= 1);
    }
}

type Handler = dyn Fn(&Request) -> ScriptedReply + Send + Sync;

/// A running server. Stops when dropped.
pub struct Server {
    pub at: SocketAddr,
    scheme: &'static str,
    requests: Arc<Mutex<Vec<Request>>>,
    count: watch::Receiver<usize>,
    connections: watch::Receiver<Connections>,
    written: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub async fn start(
        handler: impl Fn(&Request) -> ScriptedReply + Send + Sync + 'static,
    ) -> Self {
        Self::bind(OPEN.into(), None, handler).await
    }

    pub async fn always(reply: ScriptedReply) -> Self {
        Self::start(move |_| reply.clone()).await
    }

    pub async fn with_tls(identity: &Identity, reply: ScriptedReply) -> Self {
        Self::bind(OPEN.into(), Some(identity.acceptor(None)), move |_| {
            reply.clone()
        })
        .await
    }

    pub async fn bind(
        address: IpAddr,
        tls: Option<TlsAcceptor>,
        handler: impl Fn(&Request) -> ScriptedReply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let at = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::new(AtomicUsize::new(0));
        let (sender, count) = watch::channel(0);
        let (opened, connections) = watch::channel(Connections::default());
        let scheme = if tls.is_some() { "https" } else { "http" };
        let task = tokio::spawn(accept(
            listener,
            tls,
            Arc::new(handler),
            Arc::clone(&requests),
            sender,
            opened,
            Arc::clone(&written),
        ));
        Self {
            at,
            scheme,
            requests,
            count,
            connections,
            written,
            task,
        }
    }

    /// Number of bytes that the client, or system buffers on the way, have taken so far.
    pub fn written(&self) -> usize {
        self.written.load(Ordering::Relaxed)
    }

    /// A URL of this server under [`HOST`].
    pub fn url(&self, path: &str) -> Url {
        self.url_of(HOST, path)
    }

    pub fn url_of(&self, host: &str, path: &str) -> Url {
        format!("{}://{host}:{}{path}", self.scheme, self.at.port())
            .parse()
            .unwrap()
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// The connections so far.
    pub fn connections(&self) -> Connections {
        *self.connections.borrow()
    }

    /// Waits until the connections are as expected, and returns them; if they never are the test fails instead of hanging.
    pub async fn connections_are(&self, expected: impl Fn(Connections) -> bool) -> Connections {
        let mut connections = self.connections.clone();
        let reached = connections.wait_for(|now| expected(*now));
        let reached = tokio::time::timeout(Duration::from_secs(60), reached).await;
        *reached
            .unwrap_or_else(|_| panic!("it stayed at {:?}", self.connections()))
            .unwrap()
    }

    /// Waits until this many requests have arrived.
    pub fn arrived(&self, count: usize) -> impl Future<Output = ()> + use<> {
        let mut counter = self.count.clone();
        async move {
            counter.wait_for(|arrived| *arrived >= count).await.unwrap();
        }
    }
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    handler: Arc<Handler>,
    requests: Arc<Mutex<Vec<Request>>>,
    count: watch::Sender<usize>,
    opened: watch::Sender<Connections>,
    written: Arc<AtomicUsize>,
) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        let open = OpenConnection::new(&opened);
        let (handler, requests, count, written, tls) = (
            Arc::clone(&handler),
            Arc::clone(&requests),
            count.clone(),
            Arc::clone(&written),
            tls.clone(),
        );
        tokio::spawn(async move {
            let _open = open;
            match tls {
                None => serve(stream, &handler, &requests, &count, &written).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        serve(stream, &handler, &requests, &count, &written).await;
                    }
                }
            }
        });
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    handler: &Arc<Handler>,
    requests: &Mutex<Vec<Request>>,
    count: &watch::Sender<usize>,
    written: &AtomicUsize,
) {
    let mut buffer = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end;
            }
            if stream.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                return;
            }
        };
        let mut request = Request::read(std::str::from_utf8(&buffer[..end]).unwrap());
        buffer.drain(..end + 4);
        while buffer.len() < request.length() {
            if stream.read_buf(&mut buffer).await.unwrap_or(0) == 0 {
                return;
            }
        }
        request.body = buffer.drain(..request.length()).collect();
        let reply = handler(&request);
        requests.lock().unwrap().push(request);
        count.send_modify(|count| *count += 1);
        if stream.write_all(&reply.bytes).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        written.fetch_add(reply.bytes.len(), Ordering::Relaxed);
        match reply.then {
            Then::KeepAlive => {}
            Then::Close => {
                let _closed = stream.shutdown().await;
                return;
            }
            Then::Hang => {
                // Ends when the client closes the connection.
                let mut rest = Vec::new();
                let _read = stream.read_to_end(&mut rest).await;
                return;
            }
            Then::Repeat(bytes, pause) => loop {
                if stream.write_all(&bytes).await.is_err() || stream.flush().await.is_err() {
                    return;
                }
                written.fetch_add(bytes.len(), Ordering::Relaxed);
                tokio::time::sleep(pause).await;
            },
        }
    }
}
