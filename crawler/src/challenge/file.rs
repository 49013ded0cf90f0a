//! What a server says where the file of a challenge should be.

use crate::AttemptOutcome;
use crate::fetch::{FetchError, HttpResponse};

/// Most bytes of the file that are read; a longer one is wrong without being read further.
pub const MAX_FILE_BYTES: usize = 256;

/// The outcome of asking for the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAnswer {
    /// 200 with these bytes.
    Body(Vec<u8>),
    /// 404 or 410, or a host that does not exist. The sentence says which.
    Absent(String),
    /// An answer that is not the file: another status, a redirect, too many bytes.
    Wrong(String),
    /// No usable answer for now: no address, no connection, no valid TLS, a failing or throttling server.
    ///
    /// TLS that is not valid stands here because whoever is in the way can bring that about, and must not
    /// thereby end a proof faster than by being silent.
    Failed(String),
    /// The guard refuses the target; nothing was sent to it.
    Refused(String),
}

impl FileAnswer {
    /// Reads what came of a fetch.
    pub(super) fn of(answer: Result<HttpResponse, FetchError>) -> Self {
        match answer {
            Ok(answer) => match answer.status {
                200 => Self::Body(answer.body),
                404 | 410 => Self::Absent(format!("the server answered {}", answer.status)),
                408 | 425 | 429 | 500..=599 => Self::Failed(format!(
                    "the server answered {}, so this is asked again later",
                    answer.status
                )),
                401 | 403 => Self::Wrong(format!(
                    "the server answered {}, and the file must be readable without credentials",
                    answer.status
                )),
                status => Self::Wrong(format!("the server answered {status} instead of 200")),
            },
            Err(error) => match error.outcome {
                AttemptOutcome::NoSuchHost => Self::Absent(error.detail),
                AttemptOutcome::BadBody | AttemptOutcome::BadRedirect => Self::Wrong(error.detail),
                AttemptOutcome::Refused => Self::Refused(error.detail),
                _ => Self::Failed(error.detail),
            },
        }
    }
}
