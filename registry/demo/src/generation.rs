//! Differences between the protocol generations: names of methods and roles, and the forms of messages and tasks.

use a2a_client::{v0, v1};
use serde_json::{Value, json};

use super::operation::Operation;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProtocolGeneration {
    /// 0.2 and 0.3, over JSON-RPC.
    V0,
    /// 1.0, over JSON-RPC and HTTP+JSON.
    V1,
}

impl ProtocolGeneration {
    /// Operation for a JSON-RPC method.
    pub fn operation_for_method(self, method: &str) -> Option<Operation> {
        let operation = match (self, method) {
            (Self::V0, v0::SEND_MESSAGE) | (Self::V1, v1::SEND_MESSAGE) => Operation::Send,
            (Self::V0, v0::STREAM_MESSAGE) | (Self::V1, v1::STREAM_MESSAGE) => Operation::Stream,
            (Self::V0, v0::GET_TASK) | (Self::V1, v1::GET_TASK) => Operation::Get,
            (Self::V0, v0::CANCEL_TASK) | (Self::V1, v1::CANCEL_TASK) => Operation::Cancel,
            (Self::V0, v0::SUBSCRIBE_TASK) | (Self::V1, v1::SUBSCRIBE_TASK) => Operation::Subscribe,
            (Self::V1, v1::LIST_TASKS) => Operation::List,
            (Self::V1, v1::GET_EXTENDED_CARD) => Operation::ExtendedCard,
            (Self::V0, method) if method.starts_with("tasks/pushNotificationConfig/") => {
                Operation::Push
            }
            (Self::V1, method) if method.contains("TaskPushNotificationConfig") => Operation::Push,
            _ => return None,
        };
        Some(operation)
    }

    /// Role of the sender of a message to an agent.
    pub fn user_role(self) -> &'static str {
        match self {
            Self::V0 => "user",
            Self::V1 => "ROLE_USER",
        }
    }

    pub fn agent_message(self, message_id: &str, context_id: &str, text: &str) -> Value {
        let mut message = match self {
            Self::V0 => v0::text_message("agent", message_id, text),
            Self::V1 => v1::text_message("ROLE_AGENT", message_id, text),
        };
        message["contextId"] = context_id.into();
        message
    }

    /// A completed task. `now` is RFC 3339.
    pub fn completed_task(
        self,
        id: &str,
        context_id: &str,
        now: &str,
        artifacts: Vec<Value>,
    ) -> Value {
        let mut task = json!({
            "id": id,
            "contextId": context_id,
            "status": {"state": "completed", "timestamp": now},
            "artifacts": artifacts,
        });
        match self {
            Self::V0 => task["kind"] = "task".into(),
            Self::V1 => task["status"]["state"] = "TASK_STATE_COMPLETED".into(),
        }
        task
    }
}
