//! The statuses of gRPC as errors of a call.

use std::error::Error as _;

use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::forms::UNREADABLE;
use crate::TalkError;
use crate::error::{refused, shorten};
use crate::exchange::{BODY_LIMIT, innermost};

/// Beginning of the message of `tonic`'s own status for a message beyond the limit.
const TOO_LONG: &str = "Error, decoded message length too large";

/// Beginning of the message of `tonic`'s own status for a response without one.
const NO_END: &str = "protocol error: missing grpc-status trailer";

/// The names of the codes in gRPC's order.
const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// The error that a status stands for: the agent's own, or what happened on the way.
pub(crate) fn agents_error(status: &Status, url: &str, sent_credentials: bool) -> TalkError {
    if let Some(reason) = lost(status) {
        return reason.unwrap_or_else(|reason| TalkError::Broken {
            url: url.to_owned(),
            reason,
        });
    }
    if is_too_long(status) {
        return TalkError::TooLarge {
            url: url.to_owned(),
            limit: BODY_LIMIT,
        };
    }
    if let Some(reason) = status.message().strip_prefix(UNREADABLE) {
        return TalkError::NotAnAnswer {
            beginning: shorten(reason),
        };
    }
    let name = NAMES[status.code() as usize];
    if matches!(
        status.code(),
        Code::Unauthenticated | Code::PermissionDenied
    ) {
        return refused(name, sent_credentials, None, status.message());
    }
    TalkError::Status {
        name,
        reason: status
            .get_details_error_info()
            .map(|info| shorten(&info.reason)),
        message: shorten(match status.message() {
            "" => "no message",
            message => message,
        }),
        hint: match status.code() {
            Code::Unimplemented => {
                "; the agent does not know the method, its card may name the wrong protocol version"
            }
            _ => "",
        },
    }
}

/// Why a connection was lost, if that is what a status stands for: an error of this client, or the cause.
pub(crate) fn lost(status: &Status) -> Option<Result<TalkError, String>> {
    if status.code() == Code::Unknown && status.message().starts_with(NO_END) {
        return Some(Err("it ended without a status".to_owned()));
    }
    let source = status.source()?;
    if let Some(own) = source.downcast_ref::<TalkError>() {
        return Some(Ok(own.clone()));
    }
    Some(Err(innermost(source)))
}

/// Whether a message was longer than [`BODY_LIMIT`].
pub(crate) fn is_too_long(status: &Status) -> bool {
    status.code() == Code::OutOfRange && status.message().starts_with(TOO_LONG)
}
