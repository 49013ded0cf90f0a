//! HTTP server: workers, connection limits, TLS, timeouts, and graceful shutdown.

use std::future::{Future, ready};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;
use std::{fmt, io};

use a2a_registry_core::context::AppContext;
use a2a_registry_core::metrics::Metrics;
use a2a_registry_http::limits::connection::{ConnectionTimeouts, TimedConnection};
use a2a_registry_http::limits::connections::ConnectionLimiter;
use a2a_registry_http::requests::server_state::ServerState;
use actix_http::error::DispatchError;
use actix_http::{HttpService, Protocol, Request, Response};
use actix_server::Server;
use actix_service::{
    IntoServiceFactory, Service, ServiceFactory, ServiceFactoryExt as _, fn_service, map_config,
};
use actix_web::body::MessageBody;
use actix_web::dev::AppConfig;
use actix_web::web;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::application::{create_application, create_metrics_application};
use crate::tls::ServerCertificate;

/// Idle timeout of a connection between requests.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(75);
/// Timeout for the head of a request, and for the TLS handshake before it.
const REQUEST_HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for the client to close its side.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of connections beyond the limit that are accepted at a time only to be closed: each uses a file
/// descriptor until then. Other connections wait in the system's queue.
const MAX_REFUSED_CONNECTIONS: usize = 32;

#[derive(Debug)]
pub struct Listeners {
    /// Socket for all routes, unless another process serves them.
    pub main: Option<TcpListener>,
    /// Socket for `/metrics` only, which the main socket then does not serve.
    pub metrics: Option<TcpListener>,
    /// Certificate of the main socket, which then serves HTTPS.
    pub certificate: Option<Arc<ServerCertificate>>,
}

impl Listeners {
    pub fn is_empty(&self) -> bool {
        self.main.is_none() && self.metrics.is_none()
    }
}

impl From<TcpListener> for Listeners {
    fn from(main: TcpListener) -> Self {
        Self {
            main: Some(main),
            metrics: None,
            certificate: None,
        }
    }
}

/// Serves on `listeners` until `shutdown` is cancelled: then the server accepts no more connections, event streams
/// end, and requests in progress have `server.drain_seconds` to finish.
///
/// Works on any Tokio runtime; the workers, one per core, have their own threads.
///
/// # Errors
/// If the listener cannot be used.
pub fn run_server(
    context: Arc<AppContext>,
    listeners: impl Into<Listeners>,
    shutdown: CancellationToken,
    metrics: Arc<Metrics>,
) -> impl Future<Output = io::Result<()>> + Send {
    let started = start_server(context, listeners.into(), shutdown, metrics);
    async move { started?.await }
}

fn start_server(
    context: Arc<AppContext>,
    listeners: Listeners,
    shutdown: CancellationToken,
    metrics: Arc<Metrics>,
) -> io::Result<Server> {
    let drain = context.config().server.drain_seconds;
    let connection_acceptor = ConnectionAcceptor::new(&context, &metrics, &shutdown);
    let state = web::Data::new(ServerState::new(context, metrics, shutdown.clone()));
    let workers = available_parallelism().map_or(1, usize::from);
    let max_accepted = connection_acceptor.limiter.max_connections() + MAX_REFUSED_CONNECTIONS;
    let builder = Server::build()
        .workers(workers)
        .max_concurrent_connections(max_accepted.div_ceil(workers))
        .shutdown_timeout(drain)
        .shutdown_signal(shutdown.cancelled_owned());
    let builder = match listeners.metrics {
        Some(listener) => {
            let (state, connection_acceptor) = (state.clone(), connection_acceptor.clone());
            builder.listen("metrics", listener, move || {
                http_service(
                    create_metrics_application(state.clone()),
                    connection_acceptor.clone(),
                )
            })?
        }
        None => builder,
    };
    let tls = match listeners.certificate {
        Some(certificate) => Some(certificate.tls_config().map_err(io::Error::other)?),
        None => None,
    };
    let builder = match (listeners.main, tls) {
        (Some(listener), Some(tls)) => {
            let acceptor = TlsAcceptor::from(Arc::new(tls));
            builder.listen("https", listener, move || {
                https_service(
                    create_application(state.clone()),
                    connection_acceptor.clone(),
                    acceptor.clone(),
                )
            })?
        }
        (Some(listener), None) => builder.listen("http", listener, move || {
            http_service(
                create_application(state.clone()),
                connection_acceptor.clone(),
            )
        })?,
        (None, _) => builder,
    };
    Ok(builder.run())
}

fn http_service<A, S, B>(
    application: A,
    connection_acceptor: ConnectionAcceptor,
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
    let http = http_dispatcher(application, connection_acceptor.shutdown.clone());
    let error_counter = connection_acceptor.clone();
    fn_service(move |stream: TcpStream| {
        let admitted = connection_acceptor.admit(stream);
        ready(admitted.map(|(connection, peer)| (connection, Protocol::Http1, Some(peer))))
    })
    .and_then(http)
    .map_err(move |error| error_counter.record_error(&error))
}

fn https_service<A, S, B>(
    application: A,
    connection_acceptor: ConnectionAcceptor,
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
    let http = http_dispatcher(application, connection_acceptor.shutdown.clone());
    let error_counter = connection_acceptor.clone();
    fn_service(move |stream: TcpStream| {
        let admitted = connection_acceptor.admit(stream);
        let acceptor = acceptor.clone();
        async move {
            let (connection, peer) = admitted?;
            let handshake = acceptor.accept(connection);
            let stream = tokio::time::timeout(REQUEST_HEAD_TIMEOUT, handshake)
                .await
                .map_err(|_| DispatchError::SlowRequestTimeout)??;
            Ok((stream, Protocol::Http1, Some(peer)))
        }
    })
    .and_then(http)
    .map_err(move |error| error_counter.record_error(&error))
}

/// Serves an application on the connections that one worker accepts.
fn http_dispatcher<T, A, S, B>(
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
    // Every connection polls the token on each event; with one shared token the workers would contend for it.
    let draining = draining.child_token();
    HttpService::build()
        .graceful_shutdown_signal(move || draining.clone().cancelled_owned())
        .keep_alive(KEEP_ALIVE_TIMEOUT)
        .client_request_timeout(REQUEST_HEAD_TIMEOUT)
        .client_disconnect_timeout(DISCONNECT_TIMEOUT)
        // The stream of a closed connection is freed immediately, not only with the next event.
        .h1_allow_half_closed(false)
        .finish(map_config(application, |()| AppConfig::default()))
}

/// Accepts connections within the limits, and counts connection errors.
#[derive(Debug, Clone)]
struct ConnectionAcceptor {
    limiter: Arc<ConnectionLimiter>,
    timeouts: ConnectionTimeouts,
    metrics: Arc<Metrics>,
    shutdown: CancellationToken,
}

impl ConnectionAcceptor {
    fn new(context: &AppContext, metrics: &Arc<Metrics>, shutdown: &CancellationToken) -> Self {
        let limits = &context.config().limits;
        Self {
            limiter: Arc::new(ConnectionLimiter::new(&context.config())),
            timeouts: ConnectionTimeouts {
                idle: KEEP_ALIVE_TIMEOUT + REQUEST_HEAD_TIMEOUT,
                response: Duration::from_secs(limits.request_seconds),
                write: Duration::from_secs(limits.write_seconds),
            },
            metrics: Arc::clone(metrics),
            shutdown: shutdown.clone(),
        }
    }

    /// Wraps the stream with its permit and address. Without a free permit the connection is closed before any byte is
    /// read.
    fn admit(
        &self,
        stream: TcpStream,
    ) -> Result<(TimedConnection<TcpStream>, SocketAddr), DispatchError> {
        let peer = stream.peer_addr()?;
        let Some(permit) = self.limiter.admit(peer.ip()) else {
            self.metrics.count_refused_connection();
            return Err(io::Error::from(io::ErrorKind::ConnectionRefused).into());
        };
        stream.set_nodelay(true)?;
        Ok((TimedConnection::new(stream, permit, self.timeouts), peer))
    }

    /// Counts client errors, and logs them only at debug level, because a client can cause any number of them.
    fn record_error(&self, error: &DispatchError) {
        match error {
            DispatchError::Parse(_) => self.metrics.count_malformed_request(),
            DispatchError::SlowRequestTimeout => self.metrics.count_timed_out_connection(),
            DispatchError::Io(error) if error.kind() == io::ErrorKind::TimedOut => {
                self.metrics.count_timed_out_connection();
            }
            _ => {}
        }
        tracing::debug!(%error, "a connection ended with an error");
    }
}
