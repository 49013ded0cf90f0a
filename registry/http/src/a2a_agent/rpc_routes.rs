//! JSON-RPC interface: 1.0 and 0.3 at one URL, distinguished by the header `A2A-Version`.

use a2a_client::{v0, v1};
use a2a_registry_core::error::AppError;
use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::Value;

use super::error::{A2aError, A2aErrorKind};
use super::operations::{A2aOperation, OperationOutput, OperationRequest};
use super::protocol_version::{ProtocolVersion, requested_protocol_version};
use super::rpc;
use super::task_stream::EventEncoding;
use crate::middleware::envelope::accepts_media_type;
use crate::problems::problem::Problem;
use crate::requests::auth::Anyone;
use crate::requests::body::PendingBody;
use crate::requests::server_state::ServerState;

const MAX_METHOD_CHARS: usize = 60;

pub(crate) async fn rpc_call(
    request: HttpRequest,
    caller: Anyone,
    body: PendingBody,
    state: web::Data<ServerState>,
) -> Result<HttpResponse, Problem> {
    let config = state.context.config();
    if !config.a2a.enabled {
        return Err(AppError::no_resource().into());
    }
    if !body.is_json() {
        let fault = A2aError::new(
            A2aErrorKind::ContentTypeNotSupported,
            "Send JSON as `application/json`.",
        );
        return Ok(fault.rpc_response(&Value::Null));
    }
    let bytes = body
        .read_and_reauthenticate(config.limits.json_bytes)
        .await?;
    let rpc_request = match rpc::parse_rpc_request(&bytes) {
        Ok(call) => call,
        Err((id, fault)) => return Ok(fault.rpc_response(&id)),
    };
    let serves_v03 = config.a2a.serve_0_3;
    let spoken = requested_protocol_version(&request, serves_v03);
    let responds_with_stream = matches!(spoken, Ok(ProtocolVersion::V03))
        && operation_for_rpc_method(&rpc_request.method, ProtocolVersion::V03)
            .is_some_and(A2aOperation::is_streaming)
        && accepts_media_type(&request, "text/event-stream");
    let execution = async {
        let version = spoken?;
        let operation = operation_for_rpc_method(&rpc_request.method, version)
            .ok_or_else(|| unknown_method_error(&rpc_request.method, version, serves_v03))?;
        let operation_request = OperationRequest {
            request: &request,
            caller: &caller,
            state: &state,
            encoding: EventEncoding::Rpc(rpc_request.id.clone(), version),
        };
        operation_request
            .execute(operation, &rpc_request.params)
            .await
    };
    Ok(match execution.await {
        Ok(OperationOutput::Json(result)) => rpc::rpc_result_response(&rpc_request.id, &result),
        Ok(OperationOutput::Stream(response)) => response,
        // 0.3 clients that requested a stream cannot read any other response.
        Err(fault) if responds_with_stream => fault.rpc_stream_response(&rpc_request.id),
        Err(fault) => fault.rpc_response(&rpc_request.id),
    })
}

fn operation_for_rpc_method(method: &str, version: ProtocolVersion) -> Option<A2aOperation> {
    Some(match (version, method) {
        (ProtocolVersion::V1, v1::SEND_MESSAGE) | (ProtocolVersion::V03, v0::SEND_MESSAGE) => {
            A2aOperation::SendMessage
        }
        (ProtocolVersion::V1, v1::STREAM_MESSAGE) | (ProtocolVersion::V03, v0::STREAM_MESSAGE) => {
            A2aOperation::SendStreamingMessage
        }
        (ProtocolVersion::V1, v1::GET_TASK) | (ProtocolVersion::V03, v0::GET_TASK) => {
            A2aOperation::GetTask
        }
        (ProtocolVersion::V1, v1::LIST_TASKS) => A2aOperation::ListTasks,
        (ProtocolVersion::V1, v1::CANCEL_TASK) | (ProtocolVersion::V03, v0::CANCEL_TASK) => {
            A2aOperation::CancelTask
        }
        (ProtocolVersion::V1, v1::SUBSCRIBE_TASK) | (ProtocolVersion::V03, v0::SUBSCRIBE_TASK) => {
            A2aOperation::SubscribeToTask
        }
        (ProtocolVersion::V1, v1::GET_EXTENDED_CARD)
        | (ProtocolVersion::V03, v0::GET_EXTENDED_CARD) => A2aOperation::GetExtendedAgentCard,
        (
            ProtocolVersion::V1,
            "CreateTaskPushNotificationConfig"
            | "GetTaskPushNotificationConfig"
            | "ListTaskPushNotificationConfigs"
            | "DeleteTaskPushNotificationConfig",
        ) => A2aOperation::ConfigurePush,
        (ProtocolVersion::V03, method) if method.starts_with("tasks/pushNotificationConfig/") => {
            A2aOperation::ConfigurePush
        }
        _ => return None,
    })
}

/// Error for a method that this version does not have; names the other version if that one has it.
fn unknown_method_error(method: &str, version: ProtocolVersion, serves_v03: bool) -> A2aError {
    let (other_version, number) = match version {
        ProtocolVersion::V1 => (ProtocolVersion::V03, "0.3"),
        ProtocolVersion::V03 => (ProtocolVersion::V1, "1.0"),
    };
    let is_served = other_version == ProtocolVersion::V1 || serves_v03;
    let quoted_method: String = method.chars().take(MAX_METHOD_CHARS).collect();
    let message = match operation_for_rpc_method(method, other_version) {
        Some(_) if is_served => format!(
            "{quoted_method:?} is a method of A2A {number}: send it with the header `A2A-Version: {number}`."
        ),
        _ => format!("This version of A2A has no method {quoted_method:?}."),
    };
    A2aError::new(A2aErrorKind::UnknownMethod, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_of_the_other_version_is_told_from_one_of_none() {
        const PUSH: &str = "tasks/pushNotificationConfig/set";
        for (method, version, serves_v03, other) in [
            ("message/send", ProtocolVersion::V1, true, Some("0.3")),
            (PUSH, ProtocolVersion::V1, true, Some("0.3")),
            ("message/send", ProtocolVersion::V1, false, None),
            ("SendMessage", ProtocolVersion::V03, true, Some("1.0")),
            ("Cook", ProtocolVersion::V1, true, None),
            ("Cook", ProtocolVersion::V03, true, None),
        ] {
            assert_eq!(operation_for_rpc_method(method, version), None, "{method}");
            let fault = unknown_method_error(method, version, serves_v03);
            assert_eq!(fault.kind, A2aErrorKind::UnknownMethod);
            let expected = match other {
                Some(number) => format!(
                    "{method:?} is a method of A2A {number}: send it with the header `A2A-Version: {number}`."
                ),
                None => format!("This version of A2A has no method {method:?}."),
            };
            assert_eq!(fault.message, expected);
        }
        let push = operation_for_rpc_method(PUSH, ProtocolVersion::V03);
        assert_eq!(push, Some(A2aOperation::ConfigurePush));
    }
}
