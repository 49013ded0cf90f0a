//! HTTP clients of a fetcher, with their resolver and their trust settings.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::phase::{self, ConnectPhaseLayer};
use super::{FetchLimits, FetcherError, local_addresses};
use crate::dns::{DnsError, Resolver};
use crate::guard::{GuardError, SsrfGuard};

/// Number of bytes that a server may send on an HTTP/2 stream before they are read.
const HTTP2_WINDOW_BYTES: u32 = 256 * 1024;

/// Parts shared by all clients of a fetcher, so that a client for a visit need not load certificates or start TLS
/// sessions again.
#[derive(Debug)]
pub(super) struct ClientParts {
    guard: Arc<SsrfGuard>,
    resolver: Arc<dyn Resolver>,
    limits: FetchLimits,
    user_agent: HeaderValue,
    tls: ClientConfig,
}

impl ClientParts {
    pub(super) fn new(
        guard: Arc<SsrfGuard>,
        resolver: Arc<dyn Resolver>,
        limits: FetchLimits,
        user_agent: &str,
        extra_ca: &[Vec<u8>],
    ) -> Result<Self, FetcherError> {
        Ok(Self {
            guard,
            resolver,
            limits,
            tls: tls_config(extra_ca)?,
            user_agent: HeaderValue::from_str(user_agent)
                .map_err(|_| FetcherError::UserAgent(user_agent.to_owned()))?,
        })
    }

    /// A client that keeps up to `max_idle` idle connections to each host, for `idle_timeout` or as long as the client
    /// exists: no proxies, redirects, cookies, referer, retries or decoding of its own.
    pub(super) fn build_client(
        &self,
        max_idle: usize,
        idle_timeout: Option<Duration>,
    ) -> Result<reqwest::Client, FetcherError> {
        self.client_builder(max_idle, idle_timeout)
            .build()
            .map_err(|error| FetcherError::Client(error.to_string()))
    }

    /// A client for one request over HTTP/2, also without TLS, as gRPC wants it.
    pub(super) fn build_http2_client(&self) -> Result<reqwest::Client, FetcherError> {
        self.client_builder(0, None)
            .http2_prior_knowledge()
            .build()
            .map_err(|error| FetcherError::Client(error.to_string()))
    }

    fn client_builder(
        &self,
        max_idle: usize,
        idle_timeout: Option<Duration>,
    ) -> reqwest::ClientBuilder {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip, br"));
        reqwest::Client::builder()
            .tls_backend_preconfigured(self.tls.clone())
            // Required for reading the key of the peer's certificate.
            .tls_info(true)
            .user_agent(self.user_agent.clone())
            .default_headers(headers)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .retry(reqwest::retry::never())
            .dns_resolver(GuardedResolver {
                guard: Arc::clone(&self.guard),
                resolver: Arc::clone(&self.resolver),
                limits: self.limits,
            })
            .connector_layer(ConnectPhaseLayer)
            // Each phase has its own limit; this limit is for connections that outlive their request.
            .connect_timeout(self.limits.dns + self.limits.connect)
            .pool_max_idle_per_host(max_idle)
            .pool_idle_timeout(idle_timeout)
            .http2_max_header_list_size(self.limits.header_bytes)
            .http2_initial_stream_window_size(HTTP2_WINDOW_BYTES)
            .http2_initial_connection_window_size(HTTP2_WINDOW_BYTES)
    }
}

/// TLS 1.2 and 1.3, with the system's root certificates and the operator's own. On a machine without root certificates
/// the client trusts only the operator's.
fn tls_config(extra_ca: &[Vec<u8>]) -> Result<ClientConfig, FetcherError> {
    let mut roots = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    for error in native.errors {
        tracing::warn!(%error, "a system root certificate could not be read");
    }
    roots.add_parsable_certificates(native.certs);
    for file in extra_ca {
        for certificate in read_certificates(file)? {
            roots
                .add(certificate)
                .map_err(|error| FetcherError::Certificate(error.to_string()))?;
        }
    }
    if roots.is_empty() {
        tracing::warn!(
            "no root certificates found: every https fetch will fail until some are installed"
        );
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| FetcherError::Client(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Reads the certificates of one file, PEM (one or more) or DER.
fn read_certificates(file: &[u8]) -> Result<Vec<CertificateDer<'static>>, FetcherError> {
    if !file.windows(11).any(|window| window == b"-----BEGIN ") {
        return Ok(vec![CertificateDer::from(file.to_vec())]);
    }
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(file)
        .collect::<Result<_, _>>()
        .map_err(|error| FetcherError::Certificate(error.to_string()))?;
    if certificates.is_empty() {
        return Err(FetcherError::Certificate(
            "the file has no CERTIFICATE section".to_owned(),
        ));
    }
    Ok(certificates)
}

/// Why a name could not be dialled. Passed through the error chain of the client.
#[derive(Debug, thiserror::Error)]
pub(super) enum GuardedResolveError {
    #[error(transparent)]
    Dns(#[from] DnsError),
    #[error(transparent)]
    RejectedByGuard(#[from] GuardError),
}

/// Resolver of the client, which dials only the addresses returned here.
#[derive(Debug)]
struct GuardedResolver {
    guard: Arc<SsrfGuard>,
    resolver: Arc<dyn Resolver>,
    limits: FetchLimits,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = Arc::clone(&self.guard);
        let resolver = Arc::clone(&self.resolver);
        let limits = self.limits;
        Box::pin(async move {
            let lookup = resolve_and_check_host(&guard, resolver.as_ref(), &limits, name.as_str());
            let addresses = phase::await_lookup_in_resolving_phase(lookup).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// Resolves a name once and checks every address. One rejected address rejects them all: a name with both a public and
/// a private address is an attack or a mistake, and never the host of a card.
async fn resolve_and_check_host(
    guard: &SsrfGuard,
    resolver: &dyn Resolver,
    limits: &FetchLimits,
    host: &str,
) -> Result<Vec<SocketAddr>, GuardedResolveError> {
    if let Some(address) = guard.connect_override(host) {
        guard.check_not_denied(address.ip())?;
        // The client dials this port, because the guard has let only URLs without a port pass.
        return Ok(vec![address]);
    }
    let addresses = tokio::time::timeout(limits.dns, resolver.resolve(host))
        .await
        .map_err(|_| DnsError::Failure(format!("no answer within {:?}", limits.dns)))??;
    if addresses.is_empty() {
        return Err(DnsError::NoSuchHost.into());
    }
    for address in &addresses {
        guard.check_address(*address)?;
        // Services behind this machine's own public address would treat our requests as local.
        if !guard.is_network_allowed(*address) && local_addresses::is_local_address(*address)? {
            return Err(GuardError::OwnAddress { address: *address }.into());
        }
    }
    // Port 0 means the URL's own port.
    Ok(addresses
        .into_iter()
        .take(limits.max_addresses)
        .map(|address| SocketAddr::new(address, 0))
        .collect())
}
