//! Conversion of gRPC statuses to errors of a call.

use std::error::Error as _;

use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::dynamic_messages::DECODE_ERROR_PREFIX;
use crate::CallError;
use crate::error::auth_error;
use crate::foreign_text::shorten_to_line;
use crate::http_session::{BODY_LIMIT, root_cause};

/// Beginning of the message of `tonic`'s own status for a message beyond the limit.
const TOO_LONG_PREFIX: &str = "Error, decoded message length too large";

/// Beginning of the message of `tonic`'s own status for a response without one.
const MISSING_STATUS_PREFIX: &str = "protocol error: missing grpc-status trailer";

/// The names of the codes in gRPC's order.
const CODE_NAMES: [&str; 17] = [
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

/// The error for a status: the agent's own, or a failure of the transport.
pub(crate) fn grpc_status_error(status: &Status, url: &str, sent_credentials: bool) -> CallError {
    if let Some(reason) = connection_loss_cause(status) {
        return reason.unwrap_or_else(|reason| CallError::ConnectionLost {
            url: url.to_owned(),
            reason,
        });
    }
    if is_message_size_error(status) {
        return CallError::TooLarge {
            url: url.to_owned(),
            limit: BODY_LIMIT,
        };
    }
    if let Some(reason) = status.message().strip_prefix(DECODE_ERROR_PREFIX) {
        return CallError::InvalidResponse {
            beginning: shorten_to_line(reason),
        };
    }
    let name = CODE_NAMES[status.code() as usize];
    if matches!(
        status.code(),
        Code::Unauthenticated | Code::PermissionDenied
    ) {
        return auth_error(name, sent_credentials, None, status.message());
    }
    CallError::Status {
        name,
        reason: status
            .get_details_error_info()
            .map(|info| shorten_to_line(&info.reason)),
        message: shorten_to_line(match status.message() {
            "" => "no message",
            message => message,
        }),
        hint: match status.code() {
            Code::Unimplemented => {
                "; the agent does not know the method; its card may name the wrong protocol version"
            }
            _ => "",
        },
    }
}

/// Why a connection was lost, if the status means that: an error of this client, or the cause.
pub(crate) fn connection_loss_cause(status: &Status) -> Option<Result<CallError, String>> {
    if status.code() == Code::Unknown && status.message().starts_with(MISSING_STATUS_PREFIX) {
        return Some(Err("it ended without a status".to_owned()));
    }
    let source = status.source()?;
    if let Some(own) = source.downcast_ref::<CallError>() {
        return Some(Ok(own.clone()));
    }
    Some(Err(root_cause(source)))
}

/// Whether a message was longer than [`BODY_LIMIT`].
pub(crate) fn is_message_size_error(status: &Status) -> bool {
    status.code() == Code::OutOfRange && status.message().starts_with(TOO_LONG_PREFIX)
}
