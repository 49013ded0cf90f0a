//! Lists of an agent's tasks (1.0 section 3.1.4).

use serde_json::Value;

use super::CallError;
use super::agent_response::{AgentResponse, invalid_response_error, parse_task_response};
use super::member_spelling::string_member;
use super::route_selection::{AgentRoute, ProtocolBinding};

/// Maximum number of tasks read from a page.
pub const TASK_PAGE_LIMIT: usize = 100;

/// Which tasks are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskQuery {
    /// Only those of this conversation.
    pub context_id: Option<String>,
    /// Only those in this state, as 0.3 spells it.
    pub state: Option<String>,
    /// Maximum number of tasks on the page; 1 to [`TASK_PAGE_LIMIT`].
    pub page_size: Option<u32>,
    /// The page after the one that returned this token.
    pub page_token: Option<String>,
}

/// A page of a list of tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskPage {
    /// The tasks, in the agent's order; the first [`TASK_PAGE_LIMIT`].
    pub tasks: Vec<AgentResponse>,
    /// Token of the next page, if there is one.
    pub next_page_token: Option<String>,
    /// The page as received.
    pub raw: Value,
}

impl TaskQuery {
    /// The members of the request that are set, with the state as the protocol binding spells it.
    pub(super) fn request_members(
        &self,
        protocol_binding: ProtocolBinding,
    ) -> impl Iterator<Item = (&'static str, Value)> {
        let state = self.state.as_deref().map(|state| {
            Value::from(match protocol_binding {
                ProtocolBinding::PromptKitJsonRpc => state.replace('-', "_"),
                ProtocolBinding::V0JsonRpc | ProtocolBinding::V01JsonRpc => state.to_owned(),
                dialect if dialect.is_protocol_skill() => state.to_owned(),
                _ => format!(
                    "TASK_STATE_{}",
                    state.to_ascii_uppercase().replace('-', "_")
                ),
            })
        });
        let text = |text: &Option<String>| text.as_deref().map(Value::from);
        [
            ("contextId", text(&self.context_id)),
            ("status", state),
            ("pageSize", self.page_size.map(Value::from)),
            ("pageToken", text(&self.page_token)),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }
}

pub(super) fn parse_task_page(raw: Value, route: &AgentRoute) -> Result<TaskPage, CallError> {
    let Some(list) = raw.get("tasks").and_then(Value::as_array) else {
        // The protobuf form leaves out an empty list.
        if raw
            .as_object()
            .is_some_and(|page| !page.contains_key("tasks"))
        {
            let tasks = Vec::new();
            return Ok(TaskPage {
                tasks,
                next_page_token: None,
                raw,
            });
        }
        return Err(invalid_response_error(&raw));
    };
    let list = list.iter().take(TASK_PAGE_LIMIT).cloned();
    let tasks: Result<_, _> = list.map(|task| parse_task_response(task, route)).collect();
    Ok(TaskPage {
        tasks: tasks?,
        next_page_token: string_member(&raw, "nextPageToken"),
        raw,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn pages_are_read_as_agents_write_them() {
        let route = AgentRoute {
            interface: a2a_card::Interface::default(),
            url: "http://h/".parse().unwrap(),
            protocol_binding: ProtocolBinding::V1Rest,
        };
        let task = json!({"id": "t", "status": {"state": "TASK_STATE_WORKING"}});
        let page = json!({"tasks": vec![&task; TASK_PAGE_LIMIT + 1], "nextPageToken": "n", "totalSize": 200});
        let page = parse_task_page(page, &route).unwrap();
        assert_eq!(
            (page.tasks.len(), page.next_page_token.as_deref()),
            (TASK_PAGE_LIMIT, Some("n"))
        );
        assert_eq!(page.tasks[0].state.as_deref(), Some("working"));
        let last = parse_task_page(json!({"tasks": [task], "nextPageToken": ""}), &route).unwrap();
        assert_eq!((last.tasks.len(), last.next_page_token), (1, None));
        assert!(
            parse_task_page(json!({"pageSize": 50}), &route)
                .unwrap()
                .tasks
                .is_empty()
        );
        for other in [
            json!([]),
            json!("tasks"),
            json!({"tasks": 7}),
            json!({"tasks": [7]}),
        ] {
            assert!(parse_task_page(other.clone(), &route).is_err(), "{other}");
        }
    }
}
