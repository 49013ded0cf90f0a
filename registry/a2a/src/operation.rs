//! The operations of the protocol (1.0 section 3.1) as HTTP requests, in the form of each dialect.

use reqwest::Method;
use serde_json::Value;
use url::Url;

use super::choice::{Dialect, Route};
use super::push::PushCall;
use super::reply::HttpReply;
use super::{Message, TalkError, TaskQuery, jsonrpc, rest, skill, v0, v0_1, v1};

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
    Push(&'a str, PushCall<'a>),
    ExtendedCard,
}

#[derive(Debug)]
pub(super) struct HttpCall {
    pub method: Method,
    pub url: Url,
    /// Its `A2A-Version`, which only 1.0 has.
    pub version: Option<&'static str>,
    pub body: Option<Value>,
}

impl Operation<'_> {
    pub fn at(self, route: &Route) -> HttpCall {
        let is_0_2 = || route.interface.protocol_version.as_deref() != Some("0.3");
        match route.dialect {
            // 0.2 has it at an address beside the interface's (0.2 section 7.10).
            Dialect::V0JsonRpc if matches!(self, Self::ExtendedCard) && is_0_2() => HttpCall {
                method: Method::GET,
                url: beside(&route.url),
                version: None,
                body: None,
            },
            // Calls over gRPC are made elsewhere, from the same forms.
            Dialect::V1Rest
            | Dialect::V0Rest
            | Dialect::SkillRest
            | Dialect::V1Grpc
            | Dialect::V0Grpc => rest::call(self, route),
            Dialect::SkillJsonRpc => skill::call(self, route),
            Dialect::V1JsonRpc => {
                let (method, params) = v1::call(self, route.tenant());
                jsonrpc::call(route, Some(v1::VERSION), method, params)
            }
            Dialect::V0JsonRpc | Dialect::PromptKitJsonRpc => {
                let (method, params) = v0::call(self, route.dialect);
                jsonrpc::call(route, None, method, params)
            }
            Dialect::V01JsonRpc => {
                let (method, params) = v0_1::call(self);
                jsonrpc::call(route, None, method, params)
            }
        }
    }
}

impl Operation<'_> {
    /// The request under the method's other name at some agents of the route's dialect.
    pub fn renamed_at(self, route: &Route) -> Option<HttpCall> {
        let name = match route.dialect {
            Dialect::V0JsonRpc => v0::other_name(self)?,
            _ => return None,
        };
        let (_, params) = v0::call(self, route.dialect);
        Some(jsonrpc::call(route, None, name, params))
    }

    /// Whether it has no result but its completion.
    pub fn returns_nothing(self) -> bool {
        matches!(self, Self::Push(_, PushCall::Delete(_)))
    }
}

fn beside(url: &Url) -> Url {
    url.join("agent/authenticatedExtendedCard")
        .unwrap_or_else(|_| url.clone())
}

pub(super) fn result(route: &Route, reply: &HttpReply) -> Result<Value, TalkError> {
    match route.dialect {
        dialect if dialect.is_json_rpc() => jsonrpc::result(reply),
        _ => rest::result(reply),
    }
}

pub(super) fn event(dialect: Dialect, document: Value) -> Result<Value, TalkError> {
    match dialect {
        dialect if dialect.is_json_rpc() => jsonrpc::event(document),
        _ => rest::event(document),
    }
}
