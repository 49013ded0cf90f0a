//! Calls over gRPC (1.0 section 10; 0.3 section 3.2.2).
//!
//! A call uses the same HTTP client, credentials and deadline as all others; `tonic` handles frames and status.

mod dynamic_messages;
mod status;
mod transport;

use prost_reflect::{DynamicMessage, MethodDescriptor};
use serde_json::{Value, json};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::MetadataValue;
use tonic::{Request, Streaming};

use super::http_session::{BODY_LIMIT, HttpSession, display_url};
use super::operation::Operation;
use super::route_selection::AgentRoute;
use super::{CallError, push, v0, v1};
use dynamic_messages::GrpcCodec;
pub(super) use dynamic_messages::protobuf_to_json;
pub(super) use status::{connection_loss_cause, grpc_status_error, is_message_size_error};
use transport::GrpcTransport;

pub(super) async fn call_unary(
    session: &HttpSession,
    route: &AgentRoute,
    operation: Operation<'_>,
) -> Result<Value, CallError> {
    let display_url = display_url(&route.url);
    let attempt = session.attempt_renewing_token(async |token| {
        let call = GrpcCall::new(session, route, operation, token, &display_url)?;
        let (mut client, path, codec) = (call.client, call.path, call.codec);
        let answered = client.unary(call.request, path, codec).await;
        answered
            .map_err(|status| grpc_status_error(&status, &display_url, session.has_credentials()))
    });
    let response = session.run_before_deadline(attempt, &display_url).await?;
    protobuf_to_json(response.get_ref())
}

/// Opens the stream of an operation, without reading a message yet.
pub(super) async fn open_grpc_stream(
    session: &HttpSession,
    route: &AgentRoute,
    operation: Operation<'_>,
) -> Result<Streaming<DynamicMessage>, CallError> {
    let display_url = display_url(&route.url);
    let attempt = session.attempt_renewing_token(async |token| {
        let call = GrpcCall::new(session, route, operation, token, &display_url)?;
        let (mut client, path, codec) = (call.client, call.path, call.codec);
        let opened = client.server_streaming(call.request, path, codec).await;
        opened.map_err(|status| grpc_status_error(&status, &display_url, session.has_credentials()))
    });
    Ok(session
        .run_before_deadline(attempt, &display_url)
        .await?
        .into_inner())
}

struct GrpcCall {
    client: Grpc<GrpcTransport>,
    request: Request<DynamicMessage>,
    path: PathAndQuery,
    codec: GrpcCodec,
}

impl GrpcCall {
    fn new(
        session: &HttpSession,
        route: &AgentRoute,
        operation: Operation<'_>,
        token: Option<String>,
        display_url: &str,
    ) -> Result<Self, CallError> {
        if session.has_query_credentials() {
            return Err(CallError::QueryKeyOverGrpc);
        }
        let (method, document) = grpc_method_and_document(operation, route)?;
        let mut request = Request::new(dynamic_messages::protobuf_from_json(
            method.input(),
            document,
        )?);
        if route.protocol_binding.is_v1() {
            let version = MetadataValue::from_static(v1::PROTOCOL_VERSION);
            request.metadata_mut().insert("a2a-version", version);
        }
        let service = method.parent_service().full_name().to_owned();
        let path = format!("/{service}/{}", method.name());
        let path = PathAndQuery::try_from(path).map_err(|error| CallError::NotGrpcEncodable {
            reason: error.to_string(),
        })?;
        let server = route.url.clone();
        let transport = GrpcTransport::new(session.clone(), server, token, display_url.to_owned());
        Ok(Self {
            client: Grpc::new(transport).max_decoding_message_size(BODY_LIMIT),
            request,
            path,
            codec: GrpcCodec {
                output: method.output(),
            },
        })
    }
}

/// The method of an operation, and its message in the JSON form of protobuf. 0.3 names a task by its path.
fn grpc_method_and_document(
    operation: Operation<'_>,
    route: &AgentRoute,
) -> Result<(&'static MethodDescriptor, Value), CallError> {
    let task_name = |id: &str| json!({"name": format!("tasks/{id}")});
    let (name, document) = match (route.protocol_binding.is_v1(), operation) {
        (true, operation) => v1::rpc_method_and_params(operation, route.tenant()),
        (false, Operation::Send(message)) => ("SendMessage", v0::rest_send_body(message)),
        (false, Operation::Stream(message)) => {
            ("SendStreamingMessage", v0::rest_send_body(message))
        }
        (false, Operation::Get(id)) => ("GetTask", task_name(id)),
        (false, Operation::Cancel(id)) => ("CancelTask", task_name(id)),
        (false, Operation::Subscribe(id)) => ("TaskSubscription", task_name(id)),
        (false, Operation::List(_)) => ("ListTasks", json!({})),
        (false, Operation::Push(task, call)) => {
            push::push_config_request(call, task, route.protocol_binding)
        }
        (false, Operation::ExtendedCard) => ("GetAgentCard", json!({})),
    };
    let method = dynamic_messages::find_grpc_method(route.protocol_binding, name);
    let method = method.ok_or(CallError::GrpcMethodMissing { name })?;
    Ok((method, document))
}
