//! The HTTP server: workers, slots for connections, TLS, timeouts, and graceful shutdown.

use std::future::{Future, ready};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;
use std::{fmt, io};

use a2a_registry_core::config::ServerConfig;
use a2a_registry_core::context::Context;
use a2a_registry_core::metrics::Metrics;
use a2a_registry_http::limits::connection::{Connection, ConnectionTimeouts};
use a2a_registry_http::limits::connections::Connections;
use a2a_registry_http::requests::state::State;
use actix_http::error::DispatchError;
use actix_http::{HttpService, Protocol, Request, Response};
use actix_server::Server;
use actix_service::{
    IntoServiceFactory, Service, ServiceFactory, ServiceFactoryExt as _, fn_service, map_config,
};
use actix_web::body::MessageBody;
use actix_web::dev::AppConfig;
use actix_web::web;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::application::{application, metrics_application};

/// Idle timeout of a connection between requests.
const KEEP_ALIVE: Duration = Duration::from_secs(75);
/// Timeout for the head of a request, and for the TLS handshake before it.
const HEAD_ARRIVAL: Duration = Duration::from_secs(10);
/// Timeout for the client to close its side.
const CLOSING: Duration = Duration::from_secs(2);
/// Connections beyond the limit that are accepted only to be refused, at a time: each has a file descriptor until then. The
/// others wait in the system's queue.
const REFUSED_AT_ONCE: usize = 32;
/// The only protocol: HTTP/2 is left to TLS proxies.
const ALPN: &[u8] = b"http/1.1";

#[derive(Debug)]
pub struct Listeners {
    /// The socket for all routes.
    pub main: TcpListener,
    /// The socket for `/metrics` alone, which the main socket then does not serve.
    pub metrics: Option<TcpListener>,
}

impl From<TcpListener> for Listeners {
    fn from(main: TcpListener) -> Self {
        Self {
            main,
            metrics: None,
        }
    }
}

/// Serves on `listeners` until `shutdown` is cancelled: then no connection is accepted any more, event streams end, and
/// requests in progress have `server.drain_seconds` to end.
///
/// HTTPS is served if certificate and key are configured. Any Tokio runtime will do; the workers, one for each core,
/// have threads of their own.
///
/// # Errors
/// If certificate or key cannot be read or do not match, or the listener cannot be used.
pub fn run(
    context: Arc<Context>,
    listeners: impl Into<Listeners>,
    shutdown: CancellationToken,
    metrics: Arc<Metrics>,
) -> impl Future<Output = io::Result<()>> + Send {
    let started = start(context, listeners.into(), shutdown, metrics);
    async move { started?.await }
}

fn start(
    context: Arc<Context>,
    listeners: Listeners,
    shutdown: CancellationToken,
    metrics: Arc<Metrics>,
) -> io::Result<Server> {
    let tls = tls(&context.config().server)?;
    let drain = context.config().server.drain_seconds;
    let acceptance = Acceptance::new(&context, &metrics, &shutdown);
    let state = web::Data::new(State::new(context, metrics, shutdown.clone()));
    let workers = available_parallelism().map_or(1, usize::from);
    let accepted = acceptance.connections.most() + REFUSED_AT_ONCE;
    let builder = Server::build()
        .workers(workers)
        .max_concurrent_connections(accepted.div_ceil(workers))
        .shutdown_timeout(drain)
        .shutdown_signal(shutdown.cancelled_owned());
    let builder = match listeners.metrics {
        Some(listener) => {
            let (state, acceptance) = (state.clone(), acceptance.clone());
            builder.listen("metrics", listener, move || {
                plain(metrics_application(state.clone()), acceptance.clone())
            })?
        }
        None => builder,
    };
    let listener = listeners.main;
    let builder = match tls {
        Some(tls) => {
            let acceptor = TlsAcceptor::from(Arc::new(tls));
            builder.listen("https", listener, move || {
                encrypted(
                    application(state.clone()),
                    acceptance.clone(),
                    acceptor.clone(),
                )
            })?
        }
        None => builder.listen("http", listener, move || {
            plain(application(state.clone()), acceptance.clone())
        })?,
    };
    Ok(builder.run())
}

fn plain<A, S, B>(
    application: A,
    acceptance: Acceptance,
) -> impl ServiceFactory<TcpStream, Config = (), Response = (), Error = (), InitError = ()>
where
    A: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig> + 'static,
    S::Error: Into<actix_web::Error> + 'static,
    S::InitError: fmt::Debug,
    S::Response: Into<Response<B>> + 'static,
    <S::Service as Service<Request>>::Future: 'static,
    S::Service: 'static,
    B: MessageBody + 'static,
{
    let http = speak_http(application, acceptance.shutdown.clone());
    let counting = acceptance.clone();
    fn_service(move |stream: TcpStream| {
        let admitted = acceptance.admit(stream);
        ready(admitted.map(|(connection, peer)| (connection, Protocol::Http1, Some(peer))))
    })
    .and_then(http)
    .map_err(move |error| counting.tell(&error))
}

fn encrypted<A, S, B>(
    application: A,
    acceptance: Acceptance,
    acceptor: TlsAcceptor,
) -> impl ServiceFactory<TcpStream, Config = (), Response = (), Error = (), InitError = ()>
where
    A: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig> + 'static,
    S::Error: Into<actix_web::Error> + 'static,
    S::InitError: fmt::Debug,
    S::Response: Into<Response<B>> + 'static,
    <S::Service as Service<Request>>::Future: 'static,
    S::Service: 'static,
    B: MessageBody + 'static,
{
    let http = speak_http(application, acceptance.shutdown.clone());
    let counting = acceptance.clone();
    fn_service(move |stream: TcpStream| {
        let admitted = acceptance.admit(stream);
        let acceptor = acceptor.clone();
        async move {
            let (connection, peer) = admitted?;
            let handshake = acceptor.accept(connection);
            let stream = tokio::time::timeout(HEAD_ARRIVAL, handshake)
                .await
                .map_err(|_| DispatchError::SlowRequestTimeout)??;
            Ok((stream, Protocol::Http1, Some(peer)))
        }
    })
    .and_then(http)
    .map_err(move |error| counting.tell(&error))
}

/// Serves an application on the connections that one worker accepts.
fn speak_http<T, A, S, B>(
    application: A,
    draining: CancellationToken,
) -> impl ServiceFactory<
    (T, Protocol, Option<SocketAddr>),
    Config = (),
    Response = (),
    Error = DispatchError,
    InitError = (),
>
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
    A: IntoServiceFactory<S, Request>,
    S: ServiceFactory<Request, Config = AppConfig> + 'static,
    S::Error: Into<actix_web::Error> + 'static,
    S::InitError: fmt::Debug,
    S::Response: Into<Response<B>> + 'static,
    <S::Service as Service<Request>>::Future: 'static,
    S::Service: 'static,
    B: MessageBody + 'static,
{
    let application = application
        .into_factory()
        .map_err(|error| error.into().error_response());
    // Each connection looks at it whenever something happens: workers with one token wait for one another.
    let draining = draining.child_token();
    HttpService::build()
        .graceful_shutdown_signal(move || draining.clone().cancelled_owned())
        .keep_alive(KEEP_ALIVE)
        .client_request_timeout(HEAD_ARRIVAL)
        .client_disconnect_timeout(CLOSING)
        // The stream of a closed connection is freed at once, and not only with the next event.
        .h1_allow_half_closed(false)
        .finish(map_config(application, |()| AppConfig::default()))
}

/// Accepts connections within the limits, and counts those that end with an error.
#[derive(Debug, Clone)]
struct Acceptance {
    connections: Arc<Connections>,
    patience: ConnectionTimeouts,
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
}

impl Acceptance {
    fn new(context: &Context, metrics: &Arc<Metrics>, shutdown: &CancellationToken) -> Self {
        let limits = &context.config().limits;
        Self {
            connections: Arc::new(Connections::new(context.config())),
            patience: ConnectionTimeouts {
                idle: KEEP_ALIVE + HEAD_ARRIVAL,
                answer: Duration::from_secs(limits.request_seconds),
                write: Duration::from_secs(limits.write_seconds),
            },
            metrics: Arc::clone(metrics),
            shutdown: shutdown.clone(),
        }
    }

    /// Wraps the stream with its slot and its address. Without a free slot the connection is closed before any byte is
    /// read.
    fn admit(
        &self,
        stream: TcpStream,
    ) -> Result<(Connection<TcpStream>, SocketAddr), DispatchError> {
        let peer = stream.peer_addr()?;
        let Some(place) = self.connections.admit(peer.ip()) else {
            self.metrics.connection_refused();
            return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into());
        };
        stream.set_nodelay(true)?;
        Ok((Connection::new(stream, place, self.patience), peer))
    }

    /// Counts errors caused by a client, and logs them at debug level only: any client can cause as many as it likes.
    fn tell(&self, error: &DispatchError) {
        match error {
            DispatchError::Parse(_) => self.metrics.malformed_request(),
            DispatchError::SlowRequestTimeout => self.metrics.connection_cut_off(),
            DispatchError::Io(error) if error.kind() == io::ErrorKind::TimedOut => {
                self.metrics.connection_cut_off();
            }
            _ => {}
        }
        tracing::debug!(%error, "a connection ended");
    }
}

fn tls(config: &ServerConfig) -> io::Result<Option<rustls::ServerConfig>> {
    let (Some(certificate), Some(key)) = (&config.tls_cert, &config.tls_key) else {
        return Ok(None);
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unusable(certificate, &error))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(chain, secret)
        })
        .map(|mut config| {
            config.alpn_protocols = vec![ALPN.to_vec()];
            Some(config)
        })
        .map_err(|error| unusable(certificate, &error))
}

fn unusable(file: &Path, error: &dyn std::error::Error) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("{}: {error}", file.display()),
    )
}
