//! The operations of the protocol (1.0 section 3.1) as HTTP requests, for each protocol binding.

use reqwest::Method;
use serde_json::Value;
use url::Url;

use super::push::PushOperation;
use super::reply::HttpReply;
use super::route_selection::{ProtocolBinding, Route};
use super::{CallError, Message, TaskQuery, jsonrpc, protocol_skill, rest, v0, v0_1, v1};

#[derive(Debug, Clone, Copy)]
pub(super) enum Operation<'a> {
    Send(&'a Message),
    Stream(&'a Message),
    Get(&'a str),
    Cancel(&'a str),
    /// Streams the further events of the task with this id.
    Subscribe(&'a str),
    /// Lists tasks, which JSON-RPC before 1.0 cannot.
    List(&'a TaskQuery),
    Push(&'a str, PushOperation<'a>),
    ExtendedCard,
}

#[derive(Debug)]
pub(super) struct HttpRequestParts {
    pub method: Method,
    pub url: Url,
    /// Its `A2A-Version`, which only 1.0 has.
    pub version: Option<&'static str>,
    pub body: Option<Value>,
}

impl Operation<'_> {
    pub fn http_request(self, route: &Route) -> HttpRequestParts {
        let is_0_2 = || route.interface.protocol_version.as_deref() != Some("0.3");
        match route.protocol_binding {
            // 0.2 has it at an address beside the interface's (0.2 section 7.10).
            ProtocolBinding::V0JsonRpc if matches!(self, Self::ExtendedCard) && is_0_2() => {
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
            | ProtocolBinding::V0Grpc => rest::build_request(self, route),
            ProtocolBinding::SkillJsonRpc => protocol_skill::build_request(self, route),
            ProtocolBinding::V1JsonRpc => {
                let (method, params) = v1::method_and_params(self, route.tenant());
                jsonrpc::build_request(route, Some(v1::PROTOCOL_VERSION), method, params)
            }
            ProtocolBinding::V0JsonRpc | ProtocolBinding::PromptKitJsonRpc => {
                let (method, params) = v0::method_and_params(self, route.protocol_binding);
                jsonrpc::build_request(route, None, method, params)
            }
            ProtocolBinding::V01JsonRpc => {
                let (method, params) = v0_1::method_and_params(self);
                jsonrpc::build_request(route, None, method, params)
            }
        }
    }
}

impl Operation<'_> {
    /// The request under the method's other name, which some agents of the route's protocol binding use.
    pub fn alternate_http_request(self, route: &Route) -> Option<HttpRequestParts> {
        let name = match route.protocol_binding {
            ProtocolBinding::V0JsonRpc => v0::alternate_method_name(self)?,
            _ => return None,
        };
        let (_, params) = v0::method_and_params(self, route.protocol_binding);
        Some(jsonrpc::build_request(route, None, name, params))
    }

    /// Whether the operation returns no result.
    pub fn has_empty_result(self) -> bool {
        matches!(self, Self::Push(_, PushOperation::Delete(_)))
    }
}

fn v0_2_extended_card_url(url: &Url) -> Url {
    url.join("agent/authenticatedExtendedCard")
        .unwrap_or_else(|_| url.clone())
}

pub(super) fn parse_result(route: &Route, reply: &HttpReply) -> Result<Value, CallError> {
    match route.protocol_binding {
        dialect if dialect.is_json_rpc() => jsonrpc::parse_result(reply),
        _ => rest::parse_result(reply),
    }
}

pub(super) fn parse_event(
    protocol_binding: ProtocolBinding,
    document: Value,
) -> Result<Value, CallError> {
    match protocol_binding {
        dialect if dialect.is_json_rpc() => jsonrpc::parse_event(document),
        _ => rest::parse_event(document),
    }
}
