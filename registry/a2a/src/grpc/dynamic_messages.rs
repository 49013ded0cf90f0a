//! Messages of the protocol's gRPC services, converted to and from the JSON of the HTTP+JSON binding.

use std::sync::LazyLock;

use prost::Message as _;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor};
use serde_json::Value;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use crate::foreign_text::shorten_to_line;
use crate::{CallError, ProtocolBinding};

const V1_SERVICE: (&str, &[u8]) = (
    "lf.a2a.v1.A2AService",
    include_bytes!("../../proto/lf.a2a.v1.binpb"),
);
const V0_SERVICE: (&str, &[u8]) = (
    "a2a.v1.A2AService",
    include_bytes!("../../proto/a2a.v1.binpb"),
);

static V1_METHODS: LazyLock<Vec<MethodDescriptor>> = LazyLock::new(|| service_methods(V1_SERVICE));
static V0_METHODS: LazyLock<Vec<MethodDescriptor>> = LazyLock::new(|| service_methods(V0_SERVICE));

/// The methods of a service; none if its descriptor is invalid, which a test rules out.
fn service_methods((service, descriptor): (&str, &[u8])) -> Vec<MethodDescriptor> {
    let pool = DescriptorPool::decode(descriptor).unwrap_or_default();
    let service = pool.get_service_by_name(service);
    service.map_or_else(Vec::new, |service| service.methods().collect())
}

/// The method with this name in the service of a protocol binding; `None` if there is none.
pub(super) fn find_grpc_method(
    protocol_binding: ProtocolBinding,
    name: &str,
) -> Option<&'static MethodDescriptor> {
    let methods: &'static [MethodDescriptor] = match protocol_binding.is_v1() {
        true => &V1_METHODS,
        false => &V0_METHODS,
    };
    methods.iter().find(|method| method.name() == name)
}

/// Converts a `ProtoJSON` document to a message.
pub(super) fn protobuf_from_json(
    descriptor: MessageDescriptor,
    document: Value,
) -> Result<DynamicMessage, CallError> {
    DynamicMessage::deserialize(descriptor, document).map_err(|error| CallError::NotGrpcEncodable {
        reason: shorten_to_line(&error.to_string()),
    })
}

/// Converts a message to a `ProtoJSON` document.
pub(crate) fn protobuf_to_json(message: &DynamicMessage) -> Result<Value, CallError> {
    serde_json::to_value(message).map_err(|error| CallError::InvalidResponse {
        beginning: shorten_to_line(&error.to_string()),
    })
}

pub(super) struct GrpcCodec {
    pub output: MessageDescriptor,
}

impl Codec for GrpcCodec {
    type Encode = DynamicMessage;
    type Decode = DynamicMessage;
    type Encoder = GrpcEncoder;
    type Decoder = GrpcDecoder;

    fn encoder(&mut self) -> GrpcEncoder {
        GrpcEncoder
    }

    fn decoder(&mut self) -> GrpcDecoder {
        GrpcDecoder(self.output.clone())
    }
}

pub(super) struct GrpcEncoder;

impl Encoder for GrpcEncoder {
    type Item = DynamicMessage;
    type Error = Status;

    fn encode(
        &mut self,
        message: DynamicMessage,
        buffer: &mut EncodeBuf<'_>,
    ) -> Result<(), Status> {
        message
            .encode(buffer)
            .map_err(|error| Status::internal(error.to_string()))
    }
}

pub(super) struct GrpcDecoder(MessageDescriptor);

impl Decoder for GrpcDecoder {
    type Item = DynamicMessage;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<DynamicMessage>, Status> {
        DynamicMessage::decode(self.0.clone(), buffer)
            .map(Some)
            .map_err(|error| Status::internal(format!("{DECODE_ERROR_PREFIX}{error}")))
    }
}

/// The prefix of the status text that this client sets when bytes cannot be decoded as a protocol message.
pub(super) const DECODE_ERROR_PREFIX: &str = "not a message of the protocol: ";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn both_services_have_the_methods_that_are_called() {
        for (dialect, names) in [
            (
                ProtocolBinding::V1Grpc,
                &[
                    "SendMessage",
                    "SendStreamingMessage",
                    "GetTask",
                    "CancelTask",
                    "SubscribeToTask",
                    "ListTasks",
                ][..],
            ),
            (
                ProtocolBinding::V0Grpc,
                &[
                    "SendMessage",
                    "SendStreamingMessage",
                    "GetTask",
                    "CancelTask",
                    "TaskSubscription",
                ],
            ),
        ] {
            for name in names {
                let method = find_grpc_method(dialect, name).unwrap();
                let streams = matches!(
                    *name,
                    "SendStreamingMessage" | "SubscribeToTask" | "TaskSubscription"
                );
                assert_eq!(method.is_server_streaming(), streams, "{dialect:?} {name}");
            }
        }
        assert!(find_grpc_method(ProtocolBinding::V0Grpc, "ListTasks").is_none());
    }

    #[test]
    fn messages_keep_what_the_json_form_says() {
        let input = |dialect| find_grpc_method(dialect, "SendMessage").unwrap().input();
        let new = json!({"message": {"messageId": "m", "role": "ROLE_USER", "parts": [
            {"text": "hi"},
            {"raw": "+/8=", "filename": "a.bin", "mediaType": "image/png"},
            {"data": {"days": 1.5, "list": [null, true]}, "mediaType": "application/json"},
        ]}, "tenant": "acme"});
        let old = json!({"message": {"messageId": "m", "role": "ROLE_USER", "content": [
            {"text": "hi"},
            {"file": {"fileWithBytes": "+/8=", "name": "a.bin", "mimeType": "image/png"}},
            {"data": {"data": {"days": 1.5}}},
        ]}, "configuration": {"blocking": true}});
        for (dialect, sent) in [
            (ProtocolBinding::V1Grpc, new),
            (ProtocolBinding::V0Grpc, old),
        ] {
            let built = protobuf_from_json(input(dialect), sent.clone()).unwrap();
            let bytes = built.encode_to_vec();
            let read = DynamicMessage::decode(input(dialect), bytes.as_slice()).unwrap();
            assert_eq!(protobuf_to_json(&read).unwrap(), sent, "{dialect:?}");
        }
        let unknown = protobuf_from_json(
            input(ProtocolBinding::V1Grpc),
            json!({"message": {"kind": "message"}}),
        );
        assert!(unknown.is_err());
    }
}
