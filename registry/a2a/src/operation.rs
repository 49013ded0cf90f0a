//! The operations of the protocol (1.0 section 3.1) as HTTP requests, in the form of each dialect.

use reqwest::Method;
use serde_json::Value;
use url::Url;

use super::choice::{Dialect, Route};
use super::exchange::HttpReply;
use super::{Message, TalkError, TaskQuery, jsonrpc, rest, v0, v0_1, v1};

/// An operation with its arguments.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operation<'a> {
    /// Sends a message and waits for the answer.
    Send(&'a Message),
    /// Sends a message and streams the answer.
    Stream(&'a Message),
    /// Gets the task with this id.
    Get(&'a str),
    /// Cancels the task with this id.
    Cancel(&'a str),
    /// Streams the further events of the task with this id.
    Subscribe(&'a str),
    /// Lists tasks, which JSON-RPC before 1.0 cannot.
    List(&'a TaskQuery),
}

/// An HTTP request, without the credentials.
#[derive(Debug)]
pub(super) struct HttpCall {
    /// Its method.
    pub method: Method,
    /// Its address.
    pub url: Url,
    /// Its `A2A-Version`, which only 1.0 has.
    pub version: Option<&'static str>,
    /// Its body.
    pub body: Option<Value>,
}

impl Operation<'_> {
    /// The request at `route`.
    pub fn at(self, route: &Route) -> HttpCall {
        match route.dialect {
            // Calls over gRPC are made elsewhere, from the same forms.
            Dialect::V1Rest | Dialect::V0Rest | Dialect::V1Grpc | Dialect::V0Grpc => {
                rest::call(self, route)
            }
            Dialect::V1JsonRpc => {
                let (method, params) = v1::call(self, route.tenant());
                jsonrpc::call(route, Some(v1::VERSION), method, params)
            }
            Dialect::V0JsonRpc => {
                let (method, params) = v0::call(self);
                jsonrpc::call(route, None, method, params)
            }
            Dialect::V01JsonRpc => {
                let (method, params) = v0_1::call(self);
                jsonrpc::call(route, None, method, params)
            }
        }
    }
}

/// The result of an operation in a response over HTTP, or the agent's error.
pub(super) fn result(route: &Route, reply: &HttpReply) -> Result<Value, TalkError> {
    match route.dialect {
        dialect if dialect.is_json_rpc() => jsonrpc::result(reply),
        _ => rest::result(reply),
    }
}

/// The event in one `data` of a stream, or the agent's error.
pub(super) fn event(dialect: Dialect, document: Value) -> Result<Value, TalkError> {
    match dialect {
        dialect if dialect.is_json_rpc() => jsonrpc::event(document),
        _ => rest::event(document),
    }
}
