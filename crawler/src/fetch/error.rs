//! Classification of failed requests.

use std::error::Error;
use std::io;
use std::net::IpAddr;

use rustls::{AlertDescription, CertificateError};

use super::client::GuardedResolveError;
use crate::AttemptOutcome;
use crate::descriptors;
use crate::dns::DnsError;
use crate::foreign_text::{MAX_DETAIL, sanitize_text};
use crate::guard::GuardError;

/// A request without a usable response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct FetchError {
    /// The outcome of the attempt.
    pub outcome: AttemptOutcome,
    /// One sentence for the owner, at most 300 characters, without control characters and addresses.
    pub detail: String,
    /// The HTTP status, if there was a response.
    pub status: Option<u16>,
    /// The address of the peer, if a connection was made.
    pub address: Option<IpAddr>,
    /// Whether this process caused the failure by running out of file descriptors. If so, the host received no
    /// request.
    pub is_local_failure: bool,
    /// Whether the server ended the TLS handshake because the client has no certificate.
    pub wants_client_certificate: bool,
}

impl FetchError {
    pub(super) fn new(outcome: AttemptOutcome, detail: &str) -> Self {
        Self {
            outcome,
            detail: sanitize_text(detail, MAX_DETAIL),
            status: None,
            address: None,
            is_local_failure: false,
            wants_client_certificate: false,
        }
    }
}

impl From<GuardError> for FetchError {
    fn from(error: GuardError) -> Self {
        Self::new(AttemptOutcome::Refused, &error.to_string())
    }
}

/// Classifies the client's error. Its chain of causes contains the errors of the resolver, the guard, the TLS library
/// and the system; the most specific one decides.
pub(super) fn classify_request_error(error: &reqwest::Error) -> FetchError {
    let mut hyper_error = None;
    let mut io_kind = None;
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(current) = cause {
        if let Some(name) = current.downcast_ref::<GuardedResolveError>() {
            return dial_fetch_error(name);
        }
        if let Some(tls) = current.downcast_ref::<rustls::Error>() {
            return tls_fetch_error(tls);
        }
        if let Some(hyper) = current.downcast_ref::<hyper::Error>() {
            hyper_error = hyper_error.or(Some(hyper));
        }
        if let Some(io) = current.downcast_ref::<io::Error>() {
            if let Some(tls) = find_tls_error(io) {
                return tls_fetch_error(tls);
            }
            if descriptors::is_out_of_descriptors(io) {
                return out_of_descriptors_error();
            }
            // The innermost error is the system's own.
            io_kind = Some(io.kind());
        }
        cause = current.source();
    }
    if error.is_timeout() {
        return connect_timeout_error();
    }
    if let Some(hyper) = hyper_error {
        if hyper.is_parse() {
            return FetchError::new(
                AttemptOutcome::BadBody,
                "the response is not valid HTTP, or has too many or too long header fields",
            );
        }
        if hyper.is_incomplete_message() {
            return FetchError::new(
                AttemptOutcome::Unreachable,
                "the server closed the connection before it responded",
            );
        }
    }
    match io_kind {
        None if !error.is_connect() => FetchError::new(
            AttemptOutcome::Unreachable,
            "the server closed the connection before it responded, or its response header is too long",
        ),
        kind => io_fetch_error(kind),
    }
}

fn out_of_descriptors_error() -> FetchError {
    let detail = "the registry has no file descriptors left; this says nothing about the host";
    FetchError {
        is_local_failure: true,
        ..FetchError::new(AttemptOutcome::Unreachable, detail)
    }
}

pub(super) fn connect_timeout_error() -> FetchError {
    FetchError::new(
        AttemptOutcome::Timeout,
        "no connection could be made in time; check that the host is up and that no firewall blocks the registry",
    )
}

/// Finds the TLS library's error inside an I/O error. The source of an I/O error is the source of the error it wraps,
/// so the wrapped errors must be checked layer by layer.
fn find_tls_error(error: &io::Error) -> Option<&rustls::Error> {
    let mut wrapped = error.get_ref();
    while let Some(inner) = wrapped {
        if let Some(tls) = inner.downcast_ref() {
            return Some(tls);
        }
        wrapped = inner.downcast_ref::<io::Error>()?.get_ref();
    }
    None
}

fn dial_fetch_error(error: &GuardedResolveError) -> FetchError {
    match error {
        GuardedResolveError::RejectedByGuard(error) => error.clone().into(),
        GuardedResolveError::Dns(error @ DnsError::NoSuchHost) => {
            FetchError::new(AttemptOutcome::NoSuchHost, &error.to_string())
        }
        GuardedResolveError::Dns(error @ DnsError::Failure(_)) => {
            FetchError::new(AttemptOutcome::DnsFailure, &error.to_string())
        }
        GuardedResolveError::Dns(DnsError::OutOfDescriptors) => out_of_descriptors_error(),
    }
}

fn io_fetch_error(kind: Option<io::ErrorKind>) -> FetchError {
    let detail = match kind {
        Some(io::ErrorKind::ConnectionRefused) => {
            "the host refused the connection; is the server running on this port?"
        }
        Some(io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => {
            "there is no route to the host"
        }
        Some(
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof,
        ) => "the connection broke before the response was complete",
        _ => "no connection could be made",
    };
    FetchError::new(AttemptOutcome::Unreachable, detail)
}

fn tls_fetch_error(error: &rustls::Error) -> FetchError {
    use CertificateError as C;
    let detail = match error {
        rustls::Error::InvalidCertificate(certificate) => match certificate {
            C::Expired | C::ExpiredContext { .. } => {
                "the TLS certificate has expired; renew it".to_owned()
            }
            C::NotValidYet | C::NotValidYetContext { .. } => {
                "the TLS certificate is not valid yet; check its dates and the clocks".to_owned()
            }
            C::NotValidForName | C::NotValidForNameContext { .. } => {
                "the TLS certificate is for another name; serve one for this host".to_owned()
            }
            C::UnknownIssuer => {
                "the TLS certificate is not signed by an authority this registry trusts \
                 (self-signed, or an intermediate certificate is missing)"
                    .to_owned()
            }
            other => format!("the TLS certificate is not valid: {other}"),
        },
        rustls::Error::InvalidMessage(_) => "the port does not speak TLS".to_owned(),
        rustls::Error::PeerIncompatible(_) | rustls::Error::AlertReceived(_) => {
            format!("the TLS handshake failed ({error}); TLS 1.2 or 1.3 is needed")
        }
        other => format!("TLS failed: {other}"),
    };
    FetchError {
        wants_client_certificate: matches!(
            error,
            rustls::Error::AlertReceived(AlertDescription::CertificateRequired)
        ),
        ..FetchError::new(AttemptOutcome::TlsInvalid, &detail)
    }
}
