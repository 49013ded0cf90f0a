//! Result of requesting the file of a challenge.

use crate::AttemptOutcome;
use crate::fetch::{FetchError, HttpResponse};

/// Maximum number of bytes read of the file; a longer file is wrong, and the rest is not read.
pub const MAX_FILE_BYTES: usize = 256;

/// Result of a request for the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProofFileResult {
    /// Status 200 with these bytes.
    Body(Vec<u8>),
    /// Status 404 or 410, or a host that does not exist; the sentence says which.
    Absent(String),
    /// A response that is not the file: another status, a redirect, too many bytes.
    NotTheFile(String),
    /// No usable response for now: no address, no connection, no valid TLS, or a failing or throttling server.
    ///
    /// Invalid TLS counts as a failure and not as a wrong file: anyone between us and the server can cause it, and
    /// must not be able to end a proof sooner than by dropping packets.
    Failed(String),
    /// The guard rejects the target; nothing was sent to it.
    RejectedByGuard(String),
}

impl ProofFileResult {
    pub(super) fn from_fetch_result(fetch_result: Result<HttpResponse, FetchError>) -> Self {
        match fetch_result {
            Ok(response) => match response.status {
                200 => Self::Body(response.body),
                404 | 410 => Self::Absent(format!(
                    "the server answered with status {}",
                    response.status
                )),
                408 | 425 | 429 | 500..=599 => Self::Failed(format!(
                    "the server answered with status {}; the registry will try again later",
                    response.status
                )),
                401 | 403 => Self::NotTheFile(format!(
                    "the server answered with status {}; make the file readable without credentials",
                    response.status
                )),
                status => Self::NotTheFile(format!(
                    "the server answered with status {status} instead of 200"
                )),
            },
            Err(error) => match error.outcome {
                AttemptOutcome::NoSuchHost => Self::Absent(error.detail),
                AttemptOutcome::BadBody | AttemptOutcome::BadRedirect => {
                    Self::NotTheFile(error.detail)
                }
                AttemptOutcome::Refused => Self::RejectedByGuard(error.detail),
                _ => Self::Failed(error.detail),
            },
        }
    }
}
