//! Push-notification configurations of a task (1.0 sections 3.1.7 to 3.1.10; 0.3 section 7.5), which say where an
//! agent reports its changes.

use reqwest::Method;
use serde_json::{Value, json};

use super::CallError;
use super::agent_response::invalid_response_error;
use super::member_spelling::{camel_or_snake_member, string_member};
use super::route_selection::ProtocolBinding;

/// Maximum number of push-notification configurations read for a task.
pub const PUSH_CONFIG_LIMIT: usize = 100;

/// Where an agent reports the changes of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PushConfig {
    /// Its identifier within the task; the agent chooses one where there is none.
    pub id: Option<String>,
    /// The address that the agent calls.
    pub url: String,
    /// A token that the agent sends along, by which the receiver recognises the call.
    pub token: Option<String>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum PushOperation<'a> {
    Set(&'a PushConfig),
    Get(&'a str),
    List,
    Delete(&'a str),
}

impl PushConfig {
    /// The members that are set, except the identifier.
    fn to_json(&self) -> Value {
        let mut config = json!({"url": self.url});
        for (name, value) in [("id", &self.id), ("token", &self.token)] {
            if let Some(value) = value {
                config[name] = value.as_str().into();
            }
        }
        config
    }
}

/// The method of a call over JSON-RPC or gRPC, and its parameters, which are missing if the protocol binding has no
/// such method.
pub(super) fn push_config_request(
    call: PushOperation<'_>,
    task: &str,
    dialect: ProtocolBinding,
) -> (&'static str, Value) {
    match dialect {
        ProtocolBinding::V01JsonRpc => v0_1_push_config_request(call, task),
        ProtocolBinding::V0Grpc | ProtocolBinding::V0Rest => {
            v0_grpc_push_config_request(call, task)
        }
        ProtocolBinding::V0JsonRpc | ProtocolBinding::PromptKitJsonRpc => {
            v0_push_config_request(call, task)
        }
        ProtocolBinding::V1JsonRpc | ProtocolBinding::V1Rest | ProtocolBinding::V1Grpc => {
            v1_push_config_request(call, task)
        }
        ProtocolBinding::SkillJsonRpc | ProtocolBinding::SkillRest => {
            skill_push_config_request(call, task)
        }
    }
}

fn v1_push_config_request(operation: PushOperation<'_>, task_id: &str) -> (&'static str, Value) {
    let config_params = |id: &str| json!({"taskId": task_id, "id": id});
    match operation {
        PushOperation::Set(config) => {
            let mut params = config.to_json();
            params["taskId"] = task_id.into();
            ("CreateTaskPushNotificationConfig", params)
        }
        PushOperation::Get(id) => ("GetTaskPushNotificationConfig", config_params(id)),
        PushOperation::List => (
            "ListTaskPushNotificationConfigs",
            json!({ "taskId": task_id }),
        ),
        PushOperation::Delete(id) => ("DeleteTaskPushNotificationConfig", config_params(id)),
    }
}

/// The a2a-protocol skill puts a configuration in its own member.
fn skill_push_config_request(operation: PushOperation<'_>, task_id: &str) -> (&'static str, Value) {
    let (method, params) = v1_push_config_request(operation, task_id);
    match operation {
        PushOperation::Set(config) => (
            method,
            json!({"taskId": task_id, "pushNotificationConfig": config.to_json()}),
        ),
        _ => (method, params),
    }
}

fn v0_push_config_request(operation: PushOperation<'_>, task_id: &str) -> (&'static str, Value) {
    let config_params = |id: &str| json!({"id": task_id, "pushNotificationConfigId": id});
    match operation {
        PushOperation::Set(config) => (
            "tasks/pushNotificationConfig/set",
            json!({"taskId": task_id, "pushNotificationConfig": config.to_json()}),
        ),
        PushOperation::Get(id) => ("tasks/pushNotificationConfig/get", config_params(id)),
        PushOperation::List => (
            "tasks/pushNotificationConfig/list",
            json!({ "id": task_id }),
        ),
        PushOperation::Delete(id) => ("tasks/pushNotificationConfig/delete", config_params(id)),
    }
}

/// 0.1 has one configuration for each task, and no list.
fn v0_1_push_config_request(operation: PushOperation<'_>, task_id: &str) -> (&'static str, Value) {
    match operation {
        PushOperation::Set(config) => (
            "tasks/pushNotification/set",
            json!({"id": task_id, "pushNotificationConfig": config.to_json()}),
        ),
        PushOperation::Get(_) => ("tasks/pushNotification/get", json!({ "id": task_id })),
        PushOperation::List => ("tasks/pushNotification/list", json!({ "id": task_id })),
        PushOperation::Delete(_) => ("tasks/pushNotification/delete", json!({ "id": task_id })),
    }
}

/// 0.3's protobuf definition names a configuration by its path.
fn v0_grpc_push_config_request(
    operation: PushOperation<'_>,
    task_id: &str,
) -> (&'static str, Value) {
    let parent = format!("tasks/{task_id}");
    let config_name = |id: &str| format!("{parent}/pushNotificationConfigs/{id}");
    match operation {
        PushOperation::Set(config) => {
            let id = config.id.as_deref().unwrap_or(task_id);
            let inner =
                json!({"name": config_name(id), "pushNotificationConfig": config.to_json()});
            (
                "CreateTaskPushNotificationConfig",
                json!({"parent": parent, "configId": id, "config": inner}),
            )
        }
        PushOperation::Get(id) => (
            "GetTaskPushNotificationConfig",
            json!({"name": config_name(id)}),
        ),
        PushOperation::List => (
            "ListTaskPushNotificationConfig",
            json!({ "parent": parent }),
        ),
        PushOperation::Delete(id) => (
            "DeleteTaskPushNotificationConfig",
            json!({"name": config_name(id)}),
        ),
    }
}

/// The method of a call over HTTP+JSON, the path below the task, and the body.
pub(super) fn rest_push_config_request(
    operation: PushOperation<'_>,
    task_id: &str,
    protocol_binding: ProtocolBinding,
) -> (Method, Vec<String>, Option<Value>) {
    let mut path = vec![
        "tasks".to_owned(),
        task_id.to_owned(),
        "pushNotificationConfigs".to_owned(),
    ];
    match operation {
        PushOperation::Set(_) => (
            Method::POST,
            path,
            Some(self::push_config_request(operation, task_id, protocol_binding).1),
        ),
        PushOperation::List => (Method::GET, path, None),
        PushOperation::Get(id) | PushOperation::Delete(id) => {
            path.push(id.to_owned());
            let method = match operation {
                PushOperation::Get(_) => Method::GET,
                _ => Method::DELETE,
            };
            (method, path, None)
        }
    }
}

/// Parses a configuration in the form of any version: bare, or beside the name of its task.
pub(super) fn parse_push_config(raw: &Value) -> Result<PushConfig, CallError> {
    let inner = camel_or_snake_member(raw, "pushNotificationConfig").unwrap_or(raw);
    let last = |name: String| name.rsplit('/').next().map(str::to_owned);
    Ok(PushConfig {
        id: string_member(inner, "id").or_else(|| string_member(raw, "name").and_then(last)),
        url: string_member(inner, "url").ok_or_else(|| invalid_response_error(raw))?,
        token: string_member(inner, "token"),
    })
}

/// Parses a list of configurations, the first [`PUSH_CONFIG_LIMIT`]. The protobuf form leaves out an empty one.
pub(super) fn parse_push_configs(raw: &Value) -> Result<Vec<PushConfig>, CallError> {
    let list = match raw {
        Value::Array(list) => list.as_slice(),
        Value::Object(members) => match members.get("configs") {
            None => &[][..],
            Some(list) => list.as_array().ok_or_else(|| invalid_response_error(raw))?,
        },
        _ => return Err(invalid_response_error(raw)),
    };
    list.iter()
        .take(PUSH_CONFIG_LIMIT)
        .map(parse_push_config)
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn configurations_are_read_as_agents_write_them() {
        let expected = PushConfig {
            id: Some("c".to_owned()),
            url: "https://h/".to_owned(),
            token: None,
        };
        for raw in [
            json!({"taskId": "t", "id": "c", "url": "https://h/"}),
            json!({"taskId": "t", "pushNotificationConfig": {"id": "c", "url": "https://h/", "token": ""}}),
            json!({"task_id": "t", "push_notification_config": {"id": "c", "url": "https://h/"}}),
            json!({"name": "tasks/t/pushNotificationConfigs/c", "pushNotificationConfig": {"url": "https://h/"}}),
        ] {
            assert_eq!(parse_push_config(&raw).unwrap(), expected, "{raw}");
            let many = vec![raw; PUSH_CONFIG_LIMIT + 1];
            assert_eq!(
                parse_push_configs(&json!(many)).unwrap().len(),
                PUSH_CONFIG_LIMIT
            );
            let many = parse_push_configs(&json!({ "configs": many })).unwrap();
            assert_eq!((many.len(), &many[0]), (PUSH_CONFIG_LIMIT, &expected));
        }
        assert!(parse_push_configs(&json!({})).unwrap().is_empty());
        for wrong in [json!("x"), json!({"configs": 1}), json!([{"id": "c"}])] {
            assert!(parse_push_configs(&wrong).is_err(), "{wrong}");
        }
    }
}
