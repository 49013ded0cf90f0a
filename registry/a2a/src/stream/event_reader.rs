//! The events in a response, within limits: the `data` of server-sent events, or the messages of gRPC.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{Stream, StreamExt as _};
use prost::Message as _;
use prost_reflect::DynamicMessage;
use serde_json::Value;
use sse_stream::SseByteStream;
use tonic::Streaming;

use super::{EVENT_LIMIT, STREAM_LIMIT};
use crate::connection::{Connection, UnreadEvents};
use crate::foreign_text::shorten_to_line;
use crate::http_session::{display_url, root_cause};
use crate::route_selection::ProtocolBinding;
use crate::{CallError, binding_forms, grpc};

/// Bytes of framing that an event may have beside its data: field names, comments and empty lines.
const FRAMING_ALLOWANCE: usize = 1024 * 1024;

/// The bytes read so far, of all responses that belong to one stream.
#[derive(Debug, Default)]
pub(super) struct ByteMeter {
    /// Since the stream began.
    stream_bytes: AtomicUsize,
    /// Since the last event was complete.
    event_bytes: AtomicUsize,
}

pub(super) struct EventReader {
    decoder: EventDecoder,
    meter: Arc<ByteMeter>,
}

enum EventDecoder {
    Sse {
        events: SseByteStream<ByteStream>,
        protocol_binding: ProtocolBinding,
    },
    Grpc {
        messages: Box<Streaming<DynamicMessage>>,
        url: String,
        with_credentials: bool,
    },
}

type ByteStream = Pin<Box<dyn Stream<Item = Result<bytes::Bytes, EventReadError>> + Send>>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum EventReadError {
    #[error("{0}")]
    Lost(String),
    #[error("{0}")]
    TooLong(String),
    /// It contains an error of the agent, or data that is not an event.
    #[error("{0}")]
    AgentError(CallError),
    #[error("bytes that are not UTF-8")]
    NotText,
}

impl EventReader {
    /// A reader of the events of a response at `connection`; its bytes are counted with those of earlier responses.
    pub fn new(unread: UnreadEvents, connection: &Connection, meter: &Arc<ByteMeter>) -> Self {
        meter.event_bytes.store(0, Ordering::Relaxed);
        let decoder = match unread {
            UnreadEvents::Messages(messages) => EventDecoder::Grpc {
                messages,
                url: display_url(&connection.route.url),
                with_credentials: connection.session.has_credentials(),
            },
            UnreadEvents::Response(response) => {
                let counted = Arc::clone(meter);
                let chunks = response.bytes_stream().map(move |chunk| {
                    let chunk = chunk.map_err(|error| EventReadError::Lost(root_cause(&error)))?;
                    counted.add_bytes(chunk.len())?;
                    Ok(chunk)
                });
                EventDecoder::Sse {
                    events: SseByteStream::new(Box::pin(chunks)),
                    protocol_binding: connection.route.protocol_binding,
                }
            }
        };
        Self {
            decoder,
            meter: Arc::clone(meter),
        }
    }

    /// The next event; `None` at the end of the response. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Value>, EventReadError> {
        match &mut self.decoder {
            EventDecoder::Sse {
                events,
                protocol_binding: dialect,
            } => {
                let Some(data) = next_event_data(events, &self.meter).await? else {
                    return Ok(None);
                };
                let document = serde_json::from_str(&data).map_err(|_| CallError::NotAnEvent {
                    beginning: shorten_to_line(&data),
                });
                let event = document
                    .and_then(|document| binding_forms::parse_event_document(*dialect, document));
                event.map(Some).map_err(EventReadError::AgentError)
            }
            EventDecoder::Grpc {
                messages,
                url,
                with_credentials,
            } => {
                let message = match messages.message().await {
                    Ok(None) => return Ok(None),
                    Ok(Some(message)) => message,
                    Err(status) => {
                        return Err(grpc_stream_error(&status, url, *with_credentials));
                    }
                };
                self.meter.add_bytes(message.encoded_len())?;
                self.meter.event_bytes.store(0, Ordering::Relaxed);
                grpc::protobuf_to_json(&message)
                    .map(Some)
                    .map_err(EventReadError::AgentError)
            }
        }
    }
}

/// The data of the next server-sent event that has some.
async fn next_event_data(
    events: &mut SseByteStream<ByteStream>,
    meter: &ByteMeter,
) -> Result<Option<String>, EventReadError> {
    loop {
        let event = match events.next().await {
            None => return Ok(None),
            Some(Ok(event)) => event,
            Some(Err(sse_stream::Error::Body(error))) => {
                return Err(match error.downcast::<EventReadError>() {
                    Ok(error) => *error,
                    Err(error) => EventReadError::Lost(error.to_string()),
                });
            }
            Some(Err(_)) => return Err(EventReadError::NotText),
        };
        meter.event_bytes.store(0, Ordering::Relaxed);
        if let Some(data) = event.data.filter(|data| !data.is_empty()) {
            if data.len() > EVENT_LIMIT {
                return Err(event_too_long_error());
            }
            return Ok(Some(data));
        }
    }
}

/// Why a stream of gRPC ended with a status: a lost connection, a server that went away, or the agent's own error.
fn grpc_stream_error(status: &tonic::Status, url: &str, with_credentials: bool) -> EventReadError {
    if let Some(reason) = grpc::connection_loss_cause(status) {
        return EventReadError::Lost(
            reason.map_or_else(|reason| reason, |error| error.to_string()),
        );
    }
    if grpc::is_message_size_error(status) {
        return event_too_long_error();
    }
    match grpc::grpc_status_error(status, url, with_credentials) {
        error if error.is_transient() => EventReadError::Lost(error.to_string()),
        error => EventReadError::AgentError(error),
    }
}

impl ByteMeter {
    /// Counts bytes as they arrive, before they are kept.
    fn add_bytes(&self, bytes: usize) -> Result<(), EventReadError> {
        let total = self.stream_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let pending = self.event_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if total > STREAM_LIMIT {
            let what = format!("more than {STREAM_LIMIT} bytes");
            return Err(EventReadError::TooLong(what));
        }
        if pending > EVENT_LIMIT + FRAMING_ALLOWANCE {
            return Err(event_too_long_error());
        }
        Ok(())
    }
}

fn event_too_long_error() -> EventReadError {
    EventReadError::TooLong(format!("an event longer than {EVENT_LIMIT} bytes"))
}
