//! The operations of the protocol (1.0 section 3.1), whatever the protocol binding.

use reqwest::Method;
use serde_json::Value;
use url::Url;

use super::push::PushOperation;
use super::{Message, TaskQuery};

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

/// An operation as an HTTP request.
#[derive(Debug)]
pub(super) struct HttpRequestParts {
    pub method: Method,
    pub url: Url,
    /// Its `A2A-Version`, which only 1.0 has.
    pub version: Option<&'static str>,
    pub body: Option<Value>,
}

impl Operation<'_> {
    /// Whether the operation returns no result.
    pub fn has_empty_result(self) -> bool {
        matches!(self, Self::Push(_, PushOperation::Delete(_)))
    }
}
