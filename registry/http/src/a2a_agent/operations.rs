//! A2A operations, shared by both interfaces: each takes parameters and returns a result or a stream.

use std::collections::BTreeMap;

use a2a_registry_core::error::AppError;
use a2a_registry_core::visibility::caller::Caller;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::error::{A2aError, A2aErrorKind};
use super::protocol_version::ProtocolVersion;
use super::task_stream::{EventEncoding, stream_task};
use super::{incoming_message, send_message, task_list, tasks, v0_3, wire_format};
use crate::requests::server_state::ServerState;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum A2aOperation {
    SendMessage,
    SendStreamingMessage,
    GetTask,
    ListTasks,
    CancelTask,
    SubscribeToTask,
    GetExtendedAgentCard,
    ConfigurePush,
}

impl A2aOperation {
    pub(super) const fn is_streaming(self) -> bool {
        matches!(self, Self::SendStreamingMessage | Self::SubscribeToTask)
    }
}

pub(super) enum OperationOutput {
    /// A result in the format of the requested version.
    Json(Box<RawValue>),
    Stream(HttpResponse),
}

pub(super) struct OperationRequest<'a> {
    pub(super) request: &'a HttpRequest,
    pub(super) caller: &'a Caller,
    pub(super) state: &'a web::Data<ServerState>,
    pub(super) encoding: EventEncoding,
}

impl OperationRequest<'_> {
    pub(super) async fn execute(
        &self,
        operation: A2aOperation,
        params: &Map<String, Value>,
    ) -> Result<OperationOutput, A2aError> {
        let context = &self.state.context;
        let version = self.encoding.version();
        let value = match operation {
            A2aOperation::SendMessage => {
                let incoming = incoming_message::parse_send_params(params, version)?;
                let history = incoming.configuration.history_length;
                let task = send_message::execute_message(context, self.caller, incoming).await?;
                let task = wire_format::task_view(task, history, true);
                match version {
                    ProtocolVersion::V1 => {
                        return json_output(&BTreeMap::from([("task", task)]));
                    }
                    ProtocolVersion::V03 => json!(task),
                }
            }
            A2aOperation::SendStreamingMessage => {
                let incoming = incoming_message::parse_send_params(params, version)?;
                let history = incoming.configuration.history_length;
                let place = self.state.stream_limiter.acquire(self.caller)?;
                let task = send_message::start_task(context, self.caller, incoming).await?;
                return Ok(OperationOutput::Stream(stream_task(
                    self, task, history, place,
                )));
            }
            A2aOperation::GetTask => {
                let history = incoming_message::history_length_member(params)?;
                let task =
                    tasks::load_task(context, self.caller, required_task_id(params)?).await?;
                wire_format::task_json(task, history, true)
            }
            A2aOperation::ListTasks => task_list::list_tasks(context, self.caller, params).await?,
            A2aOperation::CancelTask => {
                let task =
                    tasks::cancel_task(context, self.caller, required_task_id(params)?).await?;
                wire_format::task_json(task, None, true)
            }
            A2aOperation::SubscribeToTask => {
                let task =
                    tasks::load_unfinished_task(context, self.caller, required_task_id(params)?)
                        .await?;
                let place = self.state.stream_limiter.acquire(self.caller)?;
                return Ok(OperationOutput::Stream(stream_task(
                    self, task, None, place,
                )));
            }
            A2aOperation::GetExtendedAgentCard => return Err(extended_card_error(version)),
            A2aOperation::ConfigurePush => {
                let text = "This agent does not support push notifications.";
                return Err(A2aError::new(A2aErrorKind::PushNotSupported, text));
            }
        };
        json_output(&match version {
            ProtocolVersion::V1 => value,
            // All 0.3 operations with a result return a task.
            ProtocolVersion::V03 => v0_3::task_to_v03(value),
        })
    }
}

fn json_output(result: &impl Serialize) -> Result<OperationOutput, A2aError> {
    let result = to_raw_value(result).map_err(|error| AppError::internal(error.to_string()))?;
    Ok(OperationOutput::Json(result))
}

fn required_task_id(params: &Map<String, Value>) -> Result<&str, A2aError> {
    incoming_message::text_member(params, "id")?
        .ok_or_else(|| A2aError::invalid_params("`id` is missing."))
}

fn extended_card_error(version: ProtocolVersion) -> A2aError {
    let kind = match version {
        ProtocolVersion::V1 => A2aErrorKind::UnsupportedOperation,
        ProtocolVersion::V03 => A2aErrorKind::NoExtendedCard,
    };
    A2aError::new(kind, "This agent does not have an extended card.")
}
