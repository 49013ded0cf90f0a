//! The interface for JSON-RPC: 1.0 and 0.3 at one address, told apart by the header `A2A-Version`.

use a2a_client::{v0, v1};
use a2a_registry_core::error::AppError;
use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::Value;

use super::fault::{Fault, FaultKind};
use super::operations::{Operation, OperationRequest, OperationResult};
use super::rpc;
use super::stream::Form;
use super::version::{Version, version};
use crate::middleware::envelope::accepts;
use crate::problems::problem::Problem;
use crate::requests::auth::Anyone;
use crate::requests::body::UnreadBody;
use crate::requests::state::State;

const SHOWN: usize = 60;

pub(crate) async fn rpc_call(
    request: HttpRequest,
    caller: Anyone,
    body: UnreadBody,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    let config = state.context.config();
    if !config.a2a.enabled {
        return Err(AppError::no_address().into());
    }
    if !body.is_json() {
        let fault = Fault::new(FaultKind::ContentType, "Send JSON as `application/json`.");
        return Ok(fault.rpc(&Value::Null));
    }
    let bytes = body.read(config.limits.json_bytes).await?;
    let call = match rpc::read(&bytes) {
        Ok(call) => call,
        Err((id, fault)) => return Ok(fault.rpc(&id)),
    };
    let serves_v03 = config.a2a.serve_0_3;
    let spoken = version(&request, serves_v03);
    let streams = matches!(spoken, Ok(Version::V03))
        && operation(&call.method, Version::V03).is_some_and(Operation::streams)
        && accepts(&request, "text/event-stream");
    let performed = async {
        let version = spoken?;
        let operation = operation(&call.method, version)
            .ok_or_else(|| unknown_method(&call.method, version, serves_v03))?;
        let asked = OperationRequest {
            request: &request,
            caller: &caller,
            state: &state,
            form: Form::Rpc(call.id.clone(), version),
        };
        asked.perform(operation, &call.params).await
    };
    Ok(match performed.await {
        Ok(OperationResult::Value(result)) => rpc::result(&call.id, &result),
        Ok(OperationResult::Stream(response)) => response,
        // Clients of 0.3 that have asked for a stream read nothing else.
        Err(fault) if streams => fault.rpc_stream(&call.id),
        Err(fault) => fault.rpc(&call.id),
    })
}

fn operation(method: &str, version: Version) -> Option<Operation> {
    Some(match (version, method) {
        (Version::V1, v1::SEND) | (Version::V03, v0::SEND) => Operation::SendMessage,
        (Version::V1, v1::STREAM) | (Version::V03, v0::STREAM) => Operation::SendStreamingMessage,
        (Version::V1, v1::GET) | (Version::V03, v0::GET) => Operation::GetTask,
        (Version::V1, v1::LIST) => Operation::ListTasks,
        (Version::V1, v1::CANCEL) | (Version::V03, v0::CANCEL) => Operation::CancelTask,
        (Version::V1, v1::SUBSCRIBE) | (Version::V03, v0::SUBSCRIBE) => Operation::SubscribeToTask,
        (Version::V1, v1::EXTENDED_CARD) | (Version::V03, v0::EXTENDED_CARD) => {
            Operation::GetExtendedAgentCard
        }
        (
            Version::V1,
            "CreateTaskPushNotificationConfig"
            | "GetTaskPushNotificationConfig"
            | "ListTaskPushNotificationConfigs"
            | "DeleteTaskPushNotificationConfig",
        ) => Operation::ConfigurePush,
        (Version::V03, method) if method.starts_with("tasks/pushNotificationConfig/") => {
            Operation::ConfigurePush
        }
        _ => return None,
    })
}

/// A method that this version does not have; the other one may.
fn unknown_method(method: &str, version: Version, serves_v03: bool) -> Fault {
    let (other, number) = match version {
        Version::V1 => (Version::V03, "0.3"),
        Version::V03 => (Version::V1, "1.0"),
    };
    let is_served = other == Version::V1 || serves_v03;
    let shown: String = method.chars().take(SHOWN).collect();
    let message = match operation(method, other) {
        Some(_) if is_served => format!(
            "{shown:?} is a method of A2A {number}: send it with the header `A2A-Version: {number}`."
        ),
        _ => format!("There is no method {shown:?} in this version of A2A."),
    };
    Fault::new(FaultKind::UnknownMethod, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_of_the_other_version_is_told_from_one_of_none() {
        const PUSH: &str = "tasks/pushNotificationConfig/set";
        for (method, version, serves_v03, other) in [
            ("message/send", Version::V1, true, Some("0.3")),
            (PUSH, Version::V1, true, Some("0.3")),
            ("message/send", Version::V1, false, None),
            ("SendMessage", Version::V03, true, Some("1.0")),
            ("Cook", Version::V1, true, None),
            ("Cook", Version::V03, true, None),
        ] {
            assert_eq!(operation(method, version), None, "{method}");
            let fault = unknown_method(method, version, serves_v03);
            assert_eq!(fault.kind, FaultKind::UnknownMethod);
            let expected = match other {
                Some(number) => format!(
                    "{method:?} is a method of A2A {number}: send it with the header `A2A-Version: {number}`."
                ),
                None => format!("There is no method {method:?} in this version of A2A."),
            };
            assert_eq!(fault.message, expected);
        }
        let push = operation(PUSH, Version::V03);
        assert_eq!(push, Some(Operation::ConfigurePush));
    }
}
