//! The operations as HTTP requests, and their results, in the form of each protocol binding.

use reqwest::Method;
use serde_json::Value;
use url::Url;

use super::operation::{HttpRequestParts, Operation};
use super::reply::HttpReply;
use super::route_selection::{AgentRoute, ProtocolBinding};
use super::{CallError, jsonrpc, protocol_skill, rest, v0, v0_1, v1};

pub(super) fn build_request(operation: Operation<'_>, route: &AgentRoute) -> HttpRequestParts {
    let is_0_2 = || route.interface.protocol_version.as_deref() != Some("0.3");
    match route.protocol_binding {
        // 0.2 has it at an address beside the interface's (0.2 section 7.10).
        ProtocolBinding::V0JsonRpc if matches!(operation, Operation::ExtendedCard) && is_0_2() => {
            HttpRequestParts {
                method: Method::GET,
                url: v0_2_extended_card_url(&route.url),
                version: None,
                body: None,
            }
        }
        // Calls over gRPC are made elsewhere, from the same documents.
        ProtocolBinding::V1Rest
        | ProtocolBinding::V0Rest
        | ProtocolBinding::SkillRest
        | ProtocolBinding::V1Grpc
        | ProtocolBinding::V0Grpc => rest::build_rest_request(operation, route),
        ProtocolBinding::SkillJsonRpc => protocol_skill::build_skill_request(operation, route),
        ProtocolBinding::V1JsonRpc => {
            let (method, params) = v1::rpc_method_and_params(operation, route.tenant());
            jsonrpc::build_jsonrpc_request(route, Some(v1::PROTOCOL_VERSION), method, params)
        }
        ProtocolBinding::V0JsonRpc | ProtocolBinding::PromptKitJsonRpc => {
            let (method, params) = v0::rpc_method_and_params(operation, route.protocol_binding);
            jsonrpc::build_jsonrpc_request(route, None, method, params)
        }
        ProtocolBinding::V01JsonRpc => {
            let (method, params) = v0_1::rpc_method_and_params(operation);
            jsonrpc::build_jsonrpc_request(route, None, method, params)
        }
    }
}

/// The request under the method's other name, which some agents of the route's protocol binding use.
pub(super) fn build_alternate_request(
    operation: Operation<'_>,
    route: &AgentRoute,
) -> Option<HttpRequestParts> {
    let name = match route.protocol_binding {
        ProtocolBinding::V0JsonRpc => v0::alternate_method_name(operation)?,
        _ => return None,
    };
    let (_, params) = v0::rpc_method_and_params(operation, route.protocol_binding);
    Some(jsonrpc::build_jsonrpc_request(route, None, name, params))
}

fn v0_2_extended_card_url(url: &Url) -> Url {
    url.join("agent/authenticatedExtendedCard")
        .unwrap_or_else(|_| url.clone())
}

pub(super) fn parse_reply_result(
    route: &AgentRoute,
    reply: &HttpReply,
) -> Result<Value, CallError> {
    match route.protocol_binding {
        dialect if dialect.is_json_rpc() => jsonrpc::parse_jsonrpc_result(reply),
        _ => rest::parse_rest_result(reply),
    }
}

pub(super) fn parse_event_document(
    protocol_binding: ProtocolBinding,
    document: Value,
) -> Result<Value, CallError> {
    match protocol_binding {
        dialect if dialect.is_json_rpc() => jsonrpc::parse_jsonrpc_event(document),
        _ => rest::parse_rest_event(document),
    }
}
