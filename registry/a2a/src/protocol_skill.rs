//! The forms of 1.0 as the a2a-protocol skill describes them, which code assistants follow when they write agents:
//! methods begin with `a2a.`, and members are in `snake_case`.

use a2a_card::to_snake_case;
use serde_json::Value;

use super::operation::{HttpRequestParts, Operation};
use super::route_selection::AgentRoute;
use super::{jsonrpc, push, v1};

/// Members whose values belong to the sender and stay as they are.
const OPAQUE_MEMBERS: [&str; 2] = ["data", "metadata"];

/// The request of an operation over JSON-RPC. Such an agent requires the version among the parameters; the header is
/// for agents that follow the specification and refuse a call without it before they look at the method.
pub(super) fn build_skill_request(
    operation: Operation<'_>,
    route: &AgentRoute,
) -> HttpRequestParts {
    let (method, params) = match operation {
        Operation::Push(task, call) => {
            let (method, params) = push::push_config_request(call, task, route.protocol_binding);
            (method, v1::params_with_tenant(params, route.tenant()))
        }
        _ => v1::rpc_method_and_params(operation, route.tenant()),
    };
    let mut params = to_protocol_skill_format(operation, params);
    params["a2a-version"] = v1::PROTOCOL_VERSION.into();
    let (first, rest) = method.split_at(1);
    let method = format!("a2a.{}{rest}", first.to_ascii_lowercase());
    jsonrpc::build_jsonrpc_request(route, Some(v1::PROTOCOL_VERSION), &method, params)
}

/// Converts the document that 1.0 has for an operation to the skill's form.
pub(super) fn to_protocol_skill_format(operation: Operation<'_>, standard: Value) -> Value {
    let mut document = keys_to_snake_case(standard);
    match operation {
        Operation::Send(_) | Operation::Stream(_) => document["message"]["role"] = "user".into(),
        Operation::List(query) => {
            if let Some(state) = &query.state {
                document["status"] = state.as_str().into();
            }
        }
        _ => {}
    }
    document
}

fn keys_to_snake_case(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .map(
                |(name, value)| match OPAQUE_MEMBERS.contains(&name.as_str()) {
                    true => (name, value),
                    false => (to_snake_case(&name), keys_to_snake_case(value)),
                },
            )
            .collect(),
        Value::Array(list) => list.into_iter().map(keys_to_snake_case).collect(),
        other => other,
    }
}
