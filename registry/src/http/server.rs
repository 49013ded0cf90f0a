//! The listening side: workers, TLS, time limits, and a graceful end.

use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use actix_web::{HttpServer, web};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_util::sync::CancellationToken;

use super::{State, application};
use crate::app::App;
use crate::config::ServerConfig;
use crate::metrics::Metrics;

/// How long a connection without a request stays open.
const KEEP_ALIVE: Duration = Duration::from_secs(75);
/// How long the head of a request may take to arrive, and the TLS handshake before it.
const HEAD_ARRIVAL: Duration = Duration::from_secs(10);
/// How long the other side may take to close.
const CLOSING: Duration = Duration::from_secs(2);

/// Serves on `listener` until `shutdown` is cancelled: then no connection is accepted any more, event
/// streams end, and requests under way have `server.drain_seconds` to end.
///
/// HTTPS is spoken where certificate and key are configured. It runs on any Tokio runtime; the workers,
/// one for each core, have threads of their own.
///
/// # Errors
/// Where certificate or key cannot be read or do not fit, or the listener cannot be used.
pub fn run(
    app: Arc<App>,
    listener: TcpListener,
    shutdown: CancellationToken,
    metrics: Arc<Metrics>,
) -> impl Future<Output = io::Result<()>> + Send {
    let started = start(app, listener, shutdown, metrics);
    async move { started?.await }
}

fn start(
    app: Arc<App>,
    listener: TcpListener,
    shutdown: CancellationToken,
    metrics: Arc<Metrics>,
) -> io::Result<actix_web::dev::Server> {
    let tls = tls(&app.config().server)?;
    let drain = app.config().server.drain_seconds;
    let state = web::Data::new(State::new(app, metrics, shutdown.clone()));
    let server = HttpServer::new(move || application(state.clone()))
        .workers(available_parallelism().map_or(1, usize::from))
        .keep_alive(KEEP_ALIVE)
        .client_request_timeout(HEAD_ARRIVAL)
        .client_disconnect_timeout(CLOSING)
        // A listener that has gone frees its stream at once, and not when next something happens.
        .h1_allow_half_closed(false)
        .tls_handshake_timeout(HEAD_ARRIVAL)
        .shutdown_timeout(drain)
        .shutdown_signal(shutdown.cancelled_owned());
    let server = match tls {
        Some(tls) => server.listen_rustls_0_23(listener, tls)?,
        None => server.listen(listener)?,
    };
    Ok(server.run())
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
        .map(Some)
        .map_err(|error| unusable(certificate, &error))
}

fn unusable(file: &Path, error: &dyn std::error::Error) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("{}: {error}", file.display()),
    )
}
