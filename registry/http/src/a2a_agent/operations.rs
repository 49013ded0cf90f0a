//! The operations of A2A, which both interfaces offer: parameters in, a result or a stream out.

use a2a_registry_core::visibility::caller::Caller;
use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::{Map, Value};

use super::fault::{Fault, FaultKind};
use super::stream::{Form, follow};
use super::version::Version;
use super::{incoming, listing, sending, tasks, v0_3, wire};
use crate::requests::state::State;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    SendMessage,
    SendStreamingMessage,
    GetTask,
    ListTasks,
    CancelTask,
    SubscribeToTask,
    GetExtendedAgentCard,
    ConfigurePush,
}

impl Operation {
    pub(super) const fn streams(self) -> bool {
        matches!(self, Self::SendStreamingMessage | Self::SubscribeToTask)
    }
}

pub(super) enum OperationResult {
    /// In the form of the version that was asked in.
    Value(Value),
    Stream(HttpResponse),
}

pub(super) struct OperationRequest<'a> {
    pub(super) request: &'a HttpRequest,
    pub(super) caller: &'a Caller,
    pub(super) state: &'a web::Data<State>,
    pub(super) form: Form,
}

impl OperationRequest<'_> {
    pub(super) async fn perform(
        &self,
        operation: Operation,
        params: &Map<String, Value>,
    ) -> Result<OperationResult, Fault> {
        let context = &self.state.context;
        let version = self.form.version();
        let value = match operation {
            Operation::SendMessage => {
                let incoming = incoming::read(params, version)?;
                let history = incoming.wants.history;
                let task = sending::send(context, self.caller, incoming).await?;
                let task = wire::task(task, history, true);
                match version {
                    Version::V1 => wire::object([("task", task)]),
                    Version::V03 => task,
                }
            }
            Operation::SendStreamingMessage => {
                let incoming = incoming::read(params, version)?;
                let history = incoming.wants.history;
                let place = self.state.streams.take(self.caller)?;
                let task = sending::begin(context, self.caller, incoming).await?;
                return Ok(OperationResult::Stream(follow(self, task, history, place)));
            }
            Operation::GetTask => {
                let history = incoming::history_length(params)?;
                let task = tasks::load(context, self.caller, task_id(params)?).await?;
                wire::task(task, history, true)
            }
            Operation::ListTasks => listing::list(context, self.caller, params).await?,
            Operation::CancelTask => {
                let task = tasks::cancel(context, self.caller, task_id(params)?).await?;
                wire::task(task, None, true)
            }
            Operation::SubscribeToTask => {
                let task = tasks::open(context, self.caller, task_id(params)?).await?;
                let place = self.state.streams.take(self.caller)?;
                return Ok(OperationResult::Stream(follow(self, task, None, place)));
            }
            Operation::GetExtendedAgentCard => return Err(no_extended_card(version)),
            Operation::ConfigurePush => {
                let text = "This agent sends no push notifications.";
                return Err(Fault::new(FaultKind::PushNotSupported, text));
            }
        };
        Ok(OperationResult::Value(match version {
            Version::V1 => value,
            // Its operations with a result all answer with a task.
            Version::V03 => v0_3::task(value),
        }))
    }
}

fn task_id(params: &Map<String, Value>) -> Result<&str, Fault> {
    incoming::text(params, "id")?.ok_or_else(|| Fault::params("`id` is missing."))
}

fn no_extended_card(version: Version) -> Fault {
    let kind = match version {
        Version::V1 => FaultKind::Unsupported,
        Version::V03 => FaultKind::NoExtendedCard,
    };
    Fault::new(kind, "This agent has no extended card.")
}
