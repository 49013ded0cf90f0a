//! A proxy in front of a registry that checks its exchanges.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::connection_parser::ConnectionParser;
use super::document::ApiDocument;
use super::exchange_counts::{self, ExchangeCounts};
use super::{ObservedRequest, ObservedResponse};

/// The runtime of all proxies, because tests may block the threads of their own runtimes.
static PROXY_RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
});

/// A port that forwards to a registry. When its last clone is dropped, the test fails if any exchange was not as
/// documented.
#[derive(Debug, Clone)]
pub struct ValidatingProxy(Arc<ProxyHandle>);

#[derive(Debug)]
struct ProxyHandle {
    address: SocketAddr,
    shared: Arc<ProxyState>,
    open: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct ProxyState {
    registry: OnceLock<SocketAddr>,
    counts: Mutex<ExchangeCounts>,
    violations: Mutex<Vec<String>>,
}

impl ProxyState {
    fn check(&self, request: &ObservedRequest, answer: &ObservedResponse) {
        let check = ApiDocument::current().check_exchange(request, answer);
        if let Some(operation) = &check.operation {
            exchange_counts::count_exchange(&self.counts, operation, answer.status);
        }
        let mut wrong = self
            .violations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        wrong.extend(check.violations);
    }
}

impl ValidatingProxy {
    /// A proxy on a free port, without a target yet.
    pub async fn new() -> Self {
        let shared = Arc::new(ProxyState::default());
        let (open, until) = watch::channel(true);
        let passing = Arc::clone(&shared);
        let listening = PROXY_RUNTIME.spawn(async move {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
            let address = listener.local_addr().unwrap();
            tokio::spawn(accept_connections(listener, passing, until));
            address
        });
        let address = listening.await.unwrap();
        Self(Arc::new(ProxyHandle {
            address,
            shared,
            open,
        }))
    }

    /// The URL of the proxy, without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.0.address)
    }

    /// Forwards to the registry at that URL from now on. Returns false for TLS, which the proxy cannot read.
    pub fn forward_to(&self, url: &str) -> bool {
        let address = url
            .strip_prefix("http://")
            .and_then(|rest| rest.trim_end_matches('/').parse().ok());
        address.is_some_and(|address| self.0.shared.registry.set(address).is_ok())
    }

    /// Number of responses per operation and status so far.
    pub fn counts(&self) -> ExchangeCounts {
        let tally = self.0.shared.counts.lock();
        tally.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ProxyHandle {
    fn drop(&mut self) {
        let _ = self.open.send(false);
        exchange_counts::write_counts();
        let wrong = self.shared.violations.lock();
        let wrong = wrong.unwrap_or_else(PoisonError::into_inner);
        if wrong.is_empty() {
            return;
        }
        let report = format!(
            "{} exchanges violate openapi/openapi.json:\n{}",
            wrong.len(),
            wrong
                .iter()
                .take(20)
                .cloned()
                .collect::<Vec<_>>()
                .join("\n")
        );
        // A second panic would abort the process and all other tests in it.
        if std::thread::panicking() {
            eprintln!("{report}");
        } else {
            panic!("{report}");
        }
    }
}

async fn accept_connections(
    listener: TcpListener,
    shared: Arc<ProxyState>,
    mut until: watch::Receiver<bool>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = until.wait_for(|open| !open) => return,
        };
        let Ok((client, _)) = accepted else {
            continue;
        };
        let shared = Arc::clone(&shared);
        let mut until = until.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = relay_connection(client, &shared) => {}
                _ = until.wait_for(|open| !open) => {}
            }
        });
    }
}

async fn relay_connection(client: TcpStream, shared: &ProxyState) {
    let Some(address) = shared.registry.get() else {
        return;
    };
    let Ok(registry) = TcpStream::connect(address).await else {
        return;
    };
    for stream in [&client, &registry] {
        let _ = stream.set_nodelay(true);
    }
    let conversation = Mutex::new(ConnectionParser::default());
    let read = || conversation.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_registry, mut to_registry) = registry.into_split();
    let up = relay_bytes(&mut from_client, &mut to_registry, |bytes| {
        read().parse_client_bytes(bytes)
    });
    let down = relay_bytes(&mut from_registry, &mut to_client, |bytes| {
        let complete = read().parse_server_bytes(bytes);
        for (request, answer) in complete {
            shared.check(&request, &answer);
        }
    });
    tokio::pin!(up, down);
    // The registry may still answer a client that has finished sending; once the registry has closed, nothing is left
    // to forward.
    tokio::select! {
        () = &mut down => {}
        () = &mut up => down.await,
    }
    let complete = read().finish();
    if let Some((request, answer)) = complete {
        shared.check(&request, &answer);
    }
}

/// Copies until one side ends; bytes are parsed before they are forwarded.
async fn relay_bytes(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut known: impl FnMut(&[u8]),
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        known(&buffer[..length]);
        if to.write_all(&buffer[..length]).await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
}
