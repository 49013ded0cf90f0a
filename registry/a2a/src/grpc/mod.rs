//! Calls over gRPC (1.0 section 10; 0.3 section 3.2.2).
//!
//! A call goes through the same HTTP client, credentials and deadline as all others; `tonic` does frames and status.

mod forms;
mod status;
mod transport;

use prost_reflect::{DynamicMessage, MethodDescriptor};
use serde_json::{Value, json};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::MetadataValue;
use tonic::{Request, Streaming};

use super::choice::Route;
use super::exchange::{BODY_LIMIT, Exchange, shown};
use super::operation::Operation;
use super::{TalkError, push, v0, v1};
use forms::Messages;
pub(super) use forms::document;
pub(super) use status::{agents_error, is_too_long, lost};
use transport::Transport;

pub(super) async fn call(
    exchange: &Exchange,
    route: &Route,
    operation: Operation<'_>,
) -> Result<Value, TalkError> {
    let shown = shown(&route.url);
    let answered = exchange.with_token(async |token| {
        let call = Call::new(exchange, route, operation, token, &shown)?;
        let (mut client, path, codec) = (call.client, call.path, call.codec);
        let answered = client.unary(call.request, path, codec).await;
        answered.map_err(|status| agents_error(&status, &shown, exchange.has_credentials()))
    });
    let response = exchange.in_time(answered, &shown).await?;
    document(response.get_ref())
}

/// The stream of an operation, of which no message was read yet.
pub(super) async fn open(
    exchange: &Exchange,
    route: &Route,
    operation: Operation<'_>,
) -> Result<Streaming<DynamicMessage>, TalkError> {
    let shown = shown(&route.url);
    let opened = exchange.with_token(async |token| {
        let call = Call::new(exchange, route, operation, token, &shown)?;
        let (mut client, path, codec) = (call.client, call.path, call.codec);
        let opened = client.server_streaming(call.request, path, codec).await;
        opened.map_err(|status| agents_error(&status, &shown, exchange.has_credentials()))
    });
    Ok(exchange.in_time(opened, &shown).await?.into_inner())
}

struct Call {
    client: Grpc<Transport>,
    request: Request<DynamicMessage>,
    path: PathAndQuery,
    codec: Messages,
}

impl Call {
    fn new(
        exchange: &Exchange,
        route: &Route,
        operation: Operation<'_>,
        token: Option<String>,
        shown: &str,
    ) -> Result<Self, TalkError> {
        if exchange.has_query() {
            return Err(TalkError::NoQuery);
        }
        let (method, document) = arguments(operation, route)?;
        let mut request = Request::new(forms::message(method.input(), document)?);
        if route.dialect.is_v1() {
            let version = MetadataValue::from_static(v1::VERSION);
            request.metadata_mut().insert("a2a-version", version);
        }
        let service = method.parent_service().full_name().to_owned();
        let path = format!("/{service}/{}", method.name());
        let path = PathAndQuery::try_from(path).map_err(|error| TalkError::NoForm {
            reason: error.to_string(),
        })?;
        let server = route.url.clone();
        let transport = Transport::new(exchange.clone(), server, token, shown.to_owned());
        Ok(Self {
            client: Grpc::new(transport).max_decoding_message_size(BODY_LIMIT),
            request,
            path,
            codec: Messages {
                output: method.output(),
            },
        })
    }
}

/// The method of an operation, and its message in the JSON form of protobuf. 0.3 names a task by its path.
fn arguments(
    operation: Operation<'_>,
    route: &Route,
) -> Result<(&'static MethodDescriptor, Value), TalkError> {
    let by_name = |id: &str| json!({"name": format!("tasks/{id}")});
    let (name, document) = match (route.dialect.is_v1(), operation) {
        (true, operation) => v1::call(operation, route.tenant()),
        (false, Operation::Send(message)) => ("SendMessage", v0::rest_body(message)),
        (false, Operation::Stream(message)) => ("SendStreamingMessage", v0::rest_body(message)),
        (false, Operation::Get(id)) => ("GetTask", by_name(id)),
        (false, Operation::Cancel(id)) => ("CancelTask", by_name(id)),
        (false, Operation::Subscribe(id)) => ("TaskSubscription", by_name(id)),
        (false, Operation::List(_)) => ("ListTasks", json!({})),
        (false, Operation::Push(task, call)) => push::call(call, task, route.dialect),
        (false, Operation::ExtendedCard) => ("GetAgentCard", json!({})),
    };
    let method = forms::method(route.dialect, name);
    let method = method.ok_or(TalkError::NoMethod { name })?;
    Ok((method, document))
}
