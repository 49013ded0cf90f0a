//! What a failed request means.

use std::error::Error;
use std::io;
use std::net::IpAddr;

use rustls::CertificateError;

use super::client::NameError;
use super::sentence::{MAX_DETAIL, bounded};
use crate::AttemptOutcome;
use crate::dns::DnsError;
use crate::guard::GuardRefusal;

/// A request that gave no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct FetchError {
    /// How it ended.
    pub outcome: AttemptOutcome,
    /// One sentence for the owner, at most 300 characters, free of control characters and addresses.
    pub detail: String,
    /// The HTTP status, where there was an answer.
    pub status: Option<u16>,
    /// The address spoken to, where a connection was made.
    pub address: Option<IpAddr>,
}

impl FetchError {
    /// A failure before there was an answer.
    pub(super) fn new(outcome: AttemptOutcome, detail: &str) -> Self {
        Self {
            outcome,
            detail: bounded(detail, MAX_DETAIL),
            status: None,
            address: None,
        }
    }
}

impl From<GuardRefusal> for FetchError {
    fn from(refusal: GuardRefusal) -> Self {
        Self::new(AttemptOutcome::Refused, &refusal.to_string())
    }
}

/// Reads the client's error: its chain of causes holds the resolver's, the guard's, the TLS library's
/// and the system's own words, and the most telling of them decides.
pub(super) fn classify(error: &reqwest::Error) -> FetchError {
    let mut http = None;
    let mut system = None;
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(current) = cause {
        if let Some(name) = current.downcast_ref::<NameError>() {
            return from_name(name);
        }
        if let Some(tls) = current.downcast_ref::<rustls::Error>() {
            return from_tls(tls);
        }
        if let Some(hyper) = current.downcast_ref::<hyper::Error>() {
            http = http.or(Some(hyper));
        }
        if let Some(io) = current.downcast_ref::<io::Error>() {
            if let Some(tls) = wrapped_tls(io) {
                return from_tls(tls);
            }
            // The innermost kind is the system's own.
            system = Some(io.kind());
        }
        cause = current.source();
    }
    if error.is_timeout() {
        return no_connection_in_time();
    }
    if let Some(hyper) = http {
        if hyper.is_parse() {
            return FetchError::new(
                AttemptOutcome::BadBody,
                "the head of the answer is not proper HTTP, or has too many or too long fields",
            );
        }
        if hyper.is_incomplete_message() {
            return FetchError::new(
                AttemptOutcome::Unreachable,
                "the server closed the connection before it answered",
            );
        }
    }
    match system {
        None if !error.is_connect() => FetchError::new(
            AttemptOutcome::Unreachable,
            "the server broke off before it answered, or the head of its answer is too long",
        ),
        kind => from_system(kind),
    }
}

/// TCP and TLS took longer than they may.
pub(super) fn no_connection_in_time() -> FetchError {
    FetchError::new(
        AttemptOutcome::Timeout,
        "no connection was made in time; check that the host is up and a firewall lets the registry in",
    )
}

/// The TLS library's word inside an I/O error. The source of such an error is the source of what it
/// wraps, so that what it wraps, layer by layer, has to be asked for.
fn wrapped_tls(error: &io::Error) -> Option<&rustls::Error> {
    let mut wrapped = error.get_ref();
    while let Some(inner) = wrapped {
        if let Some(tls) = inner.downcast_ref() {
            return Some(tls);
        }
        wrapped = inner.downcast_ref::<io::Error>()?.get_ref();
    }
    None
}

fn from_name(error: &NameError) -> FetchError {
    match error {
        NameError::Refused(refusal) => refusal.clone().into(),
        NameError::Dns(error @ DnsError::NoSuchHost) => {
            FetchError::new(AttemptOutcome::NoSuchHost, &error.to_string())
        }
        NameError::Dns(error @ DnsError::Failure(_)) => {
            FetchError::new(AttemptOutcome::DnsFailure, &error.to_string())
        }
    }
}

fn from_system(kind: Option<io::ErrorKind>) -> FetchError {
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
        ) => "the connection broke before the answer was complete",
        _ => "no connection could be made",
    };
    FetchError::new(AttemptOutcome::Unreachable, detail)
}

fn from_tls(error: &rustls::Error) -> FetchError {
    use CertificateError as C;
    let detail = match error {
        rustls::Error::InvalidCertificate(certificate) => match certificate {
            C::Expired | C::ExpiredContext { .. } => {
                "the TLS certificate has expired; renew it".to_owned()
            }
            C::NotValidYet | C::NotValidYetContext { .. } => {
                "the TLS certificate is not valid yet; check the clocks".to_owned()
            }
            C::NotValidForName | C::NotValidForNameContext { .. } => {
                "the TLS certificate is for another name; serve one that names this host".to_owned()
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
    FetchError::new(AttemptOutcome::TlsInvalid, &detail)
}
