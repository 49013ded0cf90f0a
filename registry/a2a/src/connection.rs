//! One interface of an agent during one call.

use prost_reflect::DynamicMessage;
use reqwest::Response;
use serde_json::Value;
use tonic::Streaming;

use super::CallError;
use super::binding_forms::{self, parse_reply_result};
use super::grpc;
use super::http_session::{EventsOrHttpReply, HttpSession};
use super::operation::{HttpRequestParts, Operation};
use super::route_selection::{AgentRoute, ProtocolBinding};

/// An interface with the credentials and the deadline of a call.
pub(super) struct Connection {
    pub session: HttpSession,
    pub route: AgentRoute,
}

/// A response with events, of which none was read yet.
pub(super) enum UnreadEvents {
    Response(Response),
    Messages(Box<Streaming<DynamicMessage>>),
}

/// The response to an operation that streams.
pub(super) enum EventsOrDocument {
    Events(UnreadEvents),
    /// One document with the result, as agents without a stream send it.
    Document(Value),
}

impl Connection {
    /// Builds the request of an operation. The a2a-protocol skill has the extensions among the parameters.
    fn http_request(&self, operation: Operation<'_>) -> HttpRequestParts {
        let mut call = binding_forms::build_request(operation, &self.route);
        if self.route.protocol_binding == ProtocolBinding::SkillJsonRpc
            && let Some(extensions) = self.session.activated_extensions()
            && let Some(body) = &mut call.body
        {
            body["params"]["a2a-extensions"] = extensions.into();
        }
        call
    }

    pub async fn call_operation(&self, operation: Operation<'_>) -> Result<Value, CallError> {
        if self.route.protocol_binding.is_grpc() {
            return grpc::call_unary(&self.session, &self.route, operation).await;
        }
        let mut reply = self
            .session
            .send_and_read(&self.http_request(operation))
            .await?;
        let mut outcome = parse_reply_result(&self.route, &reply);
        if let Some(call) = self.alternate_request(operation, &outcome) {
            reply = self.session.send_and_read(&call).await?;
            outcome = parse_reply_result(&self.route, &reply);
        }
        match outcome {
            // Such an operation returns an empty body, or a result of null.
            Err(CallError::NotJson { .. } | CallError::InvalidResponse { .. })
                if operation.has_empty_result() && reply.status.is_success() =>
            {
                Ok(Value::Null)
            }
            result => result,
        }
    }

    pub async fn open_stream(
        &self,
        operation: Operation<'_>,
    ) -> Result<EventsOrDocument, CallError> {
        if self.route.protocol_binding.is_grpc() {
            let messages = grpc::open_grpc_stream(&self.session, &self.route, operation).await?;
            return Ok(EventsOrDocument::Events(UnreadEvents::Messages(Box::new(
                messages,
            ))));
        }
        let reply = match self
            .session
            .open_stream(&self.http_request(operation))
            .await?
        {
            EventsOrHttpReply::Events(response) => {
                return Ok(EventsOrDocument::Events(UnreadEvents::Response(response)));
            }
            EventsOrHttpReply::Reply(reply) => reply,
        };
        let answer = parse_reply_result(&self.route, &reply);
        let Some(call) = self.alternate_request(operation, &answer) else {
            return answer.map(EventsOrDocument::Document);
        };
        match self.session.open_stream(&call).await? {
            EventsOrHttpReply::Events(response) => {
                Ok(EventsOrDocument::Events(UnreadEvents::Response(response)))
            }
            EventsOrHttpReply::Reply(reply) => {
                parse_reply_result(&self.route, &reply).map(EventsOrDocument::Document)
            }
        }
    }

    /// The request under the method's other name, if the agent does not know the first name.
    fn alternate_request(
        &self,
        operation: Operation<'_>,
        outcome: &Result<Value, CallError>,
    ) -> Option<HttpRequestParts> {
        let is_unknown = matches!(
            outcome,
            Err(CallError::Protocol { code: -32601, .. }
                | CallError::Http {
                    status: 404 | 405 | 501,
                    ..
                })
        );
        is_unknown
            .then(|| binding_forms::build_alternate_request(operation, &self.route))
            .flatten()
    }
}
