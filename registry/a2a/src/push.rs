//! Push-notification configurations of a task (1.0 sections 3.1.7 to 3.1.10; 0.3 section 7.5): where an agent reports its changes.

use reqwest::Method;
use serde_json::{Value, json};

use super::TalkError;
use super::answer::{field, member, no_answer};
use super::choice::Dialect;

/// Most configurations of a task that are read.
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
pub(super) enum PushCall<'a> {
    Set(&'a PushConfig),
    Get(&'a str),
    List,
    Delete(&'a str),
}

impl PushConfig {
    /// The members that are set, except the identifier.
    fn document(&self) -> Value {
        let mut config = json!({"url": self.url});
        for (name, value) in [("id", &self.id), ("token", &self.token)] {
            if let Some(value) = value {
                config[name] = value.as_str().into();
            }
        }
        config
    }
}

/// The method of a call over JSON-RPC or gRPC, and its parameters, which are missing if the dialect has no such method.
pub(super) fn call(call: PushCall<'_>, task: &str, dialect: Dialect) -> (&'static str, Value) {
    match dialect {
        Dialect::V01JsonRpc => v0_1(call, task),
        Dialect::V0Grpc | Dialect::V0Rest => v0_grpc(call, task),
        Dialect::V0JsonRpc | Dialect::PromptKitJsonRpc => v0(call, task),
        Dialect::V1JsonRpc | Dialect::V1Rest | Dialect::V1Grpc => v1(call, task),
        Dialect::SkillJsonRpc | Dialect::SkillRest => skill(call, task),
    }
}

fn v1(call: PushCall<'_>, task: &str) -> (&'static str, Value) {
    let one = |id: &str| json!({"taskId": task, "id": id});
    match call {
        PushCall::Set(config) => {
            let mut params = config.document();
            params["taskId"] = task.into();
            ("CreateTaskPushNotificationConfig", params)
        }
        PushCall::Get(id) => ("GetTaskPushNotificationConfig", one(id)),
        PushCall::List => ("ListTaskPushNotificationConfigs", json!({ "taskId": task })),
        PushCall::Delete(id) => ("DeleteTaskPushNotificationConfig", one(id)),
    }
}

/// The a2a-protocol skill has a configuration in a member of its own.
fn skill(call: PushCall<'_>, task: &str) -> (&'static str, Value) {
    let (method, params) = v1(call, task);
    match call {
        PushCall::Set(config) => (
            method,
            json!({"taskId": task, "pushNotificationConfig": config.document()}),
        ),
        _ => (method, params),
    }
}

fn v0(call: PushCall<'_>, task: &str) -> (&'static str, Value) {
    let one = |id: &str| json!({"id": task, "pushNotificationConfigId": id});
    match call {
        PushCall::Set(config) => (
            "tasks/pushNotificationConfig/set",
            json!({"taskId": task, "pushNotificationConfig": config.document()}),
        ),
        PushCall::Get(id) => ("tasks/pushNotificationConfig/get", one(id)),
        PushCall::List => ("tasks/pushNotificationConfig/list", json!({ "id": task })),
        PushCall::Delete(id) => ("tasks/pushNotificationConfig/delete", one(id)),
    }
}

/// 0.1 has one configuration for each task, and no list.
fn v0_1(call: PushCall<'_>, task: &str) -> (&'static str, Value) {
    match call {
        PushCall::Set(config) => (
            "tasks/pushNotification/set",
            json!({"id": task, "pushNotificationConfig": config.document()}),
        ),
        PushCall::Get(_) => ("tasks/pushNotification/get", json!({ "id": task })),
        PushCall::List => ("tasks/pushNotification/list", json!({ "id": task })),
        PushCall::Delete(_) => ("tasks/pushNotification/delete", json!({ "id": task })),
    }
}

/// 0.3's protobuf definition names a configuration by its path.
fn v0_grpc(call: PushCall<'_>, task: &str) -> (&'static str, Value) {
    let parent = format!("tasks/{task}");
    let path = |id: &str| format!("{parent}/pushNotificationConfigs/{id}");
    match call {
        PushCall::Set(config) => {
            let id = config.id.as_deref().unwrap_or(task);
            let inner = json!({"name": path(id), "pushNotificationConfig": config.document()});
            (
                "CreateTaskPushNotificationConfig",
                json!({"parent": parent, "configId": id, "config": inner}),
            )
        }
        PushCall::Get(id) => ("GetTaskPushNotificationConfig", json!({"name": path(id)})),
        PushCall::List => (
            "ListTaskPushNotificationConfig",
            json!({ "parent": parent }),
        ),
        PushCall::Delete(id) => (
            "DeleteTaskPushNotificationConfig",
            json!({"name": path(id)}),
        ),
    }
}

/// The method of a call over HTTP+JSON, the path below the task, and the body.
pub(super) fn rest(
    call: PushCall<'_>,
    task: &str,
    dialect: Dialect,
) -> (Method, Vec<String>, Option<Value>) {
    let mut path = vec![
        "tasks".to_owned(),
        task.to_owned(),
        "pushNotificationConfigs".to_owned(),
    ];
    match call {
        PushCall::Set(_) => (Method::POST, path, Some(self::call(call, task, dialect).1)),
        PushCall::List => (Method::GET, path, None),
        PushCall::Get(id) | PushCall::Delete(id) => {
            path.push(id.to_owned());
            let method = match call {
                PushCall::Get(_) => Method::GET,
                _ => Method::DELETE,
            };
            (method, path, None)
        }
    }
}

/// Reads a configuration in the form of any version: bare, or beside the name of its task.
pub(super) fn read(raw: &Value) -> Result<PushConfig, TalkError> {
    let inner = field(raw, "pushNotificationConfig").unwrap_or(raw);
    let last = |name: String| name.rsplit('/').next().map(str::to_owned);
    Ok(PushConfig {
        id: member(inner, "id").or_else(|| member(raw, "name").and_then(last)),
        url: member(inner, "url").ok_or_else(|| no_answer(raw))?,
        token: member(inner, "token"),
    })
}

/// Reads a list of configurations, the first [`PUSH_CONFIG_LIMIT`]. The protobuf form leaves out an empty one.
pub(super) fn read_list(raw: &Value) -> Result<Vec<PushConfig>, TalkError> {
    let list = match raw {
        Value::Array(list) => list.as_slice(),
        Value::Object(members) => match members.get("configs") {
            None => &[][..],
            Some(list) => list.as_array().ok_or_else(|| no_answer(raw))?,
        },
        _ => return Err(no_answer(raw)),
    };
    list.iter().take(PUSH_CONFIG_LIMIT).map(read).collect()
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
            assert_eq!(read(&raw).unwrap(), expected, "{raw}");
            let many = vec![raw; PUSH_CONFIG_LIMIT + 1];
            assert_eq!(read_list(&json!(many)).unwrap().len(), PUSH_CONFIG_LIMIT);
            let many = read_list(&json!({ "configs": many })).unwrap();
            assert_eq!((many.len(), &many[0]), (PUSH_CONFIG_LIMIT, &expected));
        }
        assert!(read_list(&json!({})).unwrap().is_empty());
        for wrong in [json!("x"), json!({"configs": 1}), json!([{"id": "c"}])] {
            assert!(read_list(&wrong).is_err(), "{wrong}");
        }
    }
}
