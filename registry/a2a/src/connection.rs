//! One interface of an agent during one call.

use prost_reflect::DynamicMessage;
use reqwest::Response;
use serde_json::Value;
use tonic::Streaming;

use super::TalkError;
use super::choice::{Dialect, Route};
use super::exchange::{Exchange, Incoming};
use super::grpc;
use super::operation::{HttpCall, Operation, result};

/// An interface with the credentials and the deadline of a call.
pub(super) struct Connection {
    pub exchange: Exchange,
    pub route: Route,
}

/// A response with events of which none was read yet.
pub(super) enum Unread {
    Response(Response),
    Messages(Box<Streaming<DynamicMessage>>),
}

/// The response to an operation that streams.
pub(super) enum Opened {
    Events(Unread),
    /// One document with the result, as agents without a stream send it.
    Whole(Value),
}

impl Connection {
    /// The request of an operation. The a2a-protocol skill has the extensions among the parameters.
    fn request(&self, operation: Operation<'_>) -> HttpCall {
        let mut call = operation.at(&self.route);
        if self.route.dialect == Dialect::SkillJsonRpc
            && let Some(extensions) = self.exchange.extensions()
            && let Some(body) = &mut call.body
        {
            body["params"]["a2a-extensions"] = extensions.into();
        }
        call
    }

    pub async fn call(&self, operation: Operation<'_>) -> Result<Value, TalkError> {
        if self.route.dialect.is_grpc() {
            return grpc::call(&self.exchange, &self.route, operation).await;
        }
        let mut reply = self.exchange.request(&self.request(operation)).await?;
        let mut answer = result(&self.route, &reply);
        if let Some(call) = self.renamed(operation, &answer) {
            reply = self.exchange.request(&call).await?;
            answer = result(&self.route, &reply);
        }
        match answer {
            // There it is an empty body, or a result of null.
            Err(TalkError::NotJson { .. } | TalkError::NotAnAnswer { .. })
                if operation.returns_nothing() && reply.status.is_success() =>
            {
                Ok(Value::Null)
            }
            result => result,
        }
    }

    pub async fn open(&self, operation: Operation<'_>) -> Result<Opened, TalkError> {
        if self.route.dialect.is_grpc() {
            let messages = grpc::open(&self.exchange, &self.route, operation).await?;
            return Ok(Opened::Events(Unread::Messages(Box::new(messages))));
        }
        let reply = match self.exchange.open(&self.request(operation)).await? {
            Incoming::Events(response) => {
                return Ok(Opened::Events(Unread::Response(response)));
            }
            Incoming::Reply(reply) => reply,
        };
        let answer = result(&self.route, &reply);
        let Some(call) = self.renamed(operation, &answer) else {
            return answer.map(Opened::Whole);
        };
        match self.exchange.open(&call).await? {
            Incoming::Events(response) => Ok(Opened::Events(Unread::Response(response))),
            Incoming::Reply(reply) => result(&self.route, &reply).map(Opened::Whole),
        }
    }

    /// The request under the method's other name, where the agent knows no method of the first one.
    fn renamed(
        &self,
        operation: Operation<'_>,
        answer: &Result<Value, TalkError>,
    ) -> Option<HttpCall> {
        let is_unknown = matches!(
            answer,
            Err(TalkError::Protocol { code: -32601, .. }
                | TalkError::Http {
                    status: 404 | 405 | 501,
                    ..
                })
        );
        is_unknown
            .then(|| operation.renamed_at(&self.route))
            .flatten()
    }
}
