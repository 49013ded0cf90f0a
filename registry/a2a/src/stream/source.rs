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
use crate::choice::Dialect;
use crate::connection::{Connection, Unread};
use crate::error::shorten;
use crate::exchange::{innermost, shown};
use crate::{TalkError, grpc, operation};

/// Bytes of framing that an event may have beside its data: field names, comments and empty lines.
const FRAMING: usize = 1024 * 1024;

/// The bytes read so far, of all responses that belong to one stream.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// Since the stream began.
    total: AtomicUsize,
    /// Since the last event was complete.
    pending: AtomicUsize,
}

pub(super) struct Source {
    events: Events,
    meter: Arc<Meter>,
}

enum Events {
    Sse {
        events: SseByteStream<Chunks>,
        dialect: Dialect,
    },
    Grpc {
        messages: Box<Streaming<DynamicMessage>>,
        url: String,
        with_credentials: bool,
    },
}

type Chunks = Pin<Box<dyn Stream<Item = Result<bytes::Bytes, SourceError>> + Send>>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SourceError {
    #[error("{0}")]
    Lost(String),
    #[error("{0}")]
    TooLong(String),
    /// It contains an error of the agent, or something that is no event.
    #[error("{0}")]
    Told(TalkError),
    #[error("bytes that are not UTF-8")]
    NotText,
}

impl Source {
    /// The events of a response at `connection`; its bytes are counted with those of earlier responses.
    pub fn new(unread: Unread, connection: &Connection, meter: &Arc<Meter>) -> Self {
        meter.pending.store(0, Ordering::Relaxed);
        let events = match unread {
            Unread::Messages(messages) => Events::Grpc {
                messages,
                url: shown(&connection.route.url),
                with_credentials: connection.exchange.has_credentials(),
            },
            Unread::Response(response) => {
                let counted = Arc::clone(meter);
                let chunks = response.bytes_stream().map(move |chunk| {
                    let chunk = chunk.map_err(|error| SourceError::Lost(innermost(&error)))?;
                    counted.count(chunk.len())?;
                    Ok(chunk)
                });
                Events::Sse {
                    events: SseByteStream::new(Box::pin(chunks)),
                    dialect: connection.route.dialect,
                }
            }
        };
        Self {
            events,
            meter: Arc::clone(meter),
        }
    }

    /// The next event; `None` at the end of the response. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Value>, SourceError> {
        match &mut self.events {
            Events::Sse { events, dialect } => {
                let Some(data) = next_data(events, &self.meter).await? else {
                    return Ok(None);
                };
                let document = serde_json::from_str(&data).map_err(|_| TalkError::NotAnEvent {
                    beginning: shorten(&data),
                });
                let event = document.and_then(|document| operation::event(*dialect, document));
                event.map(Some).map_err(SourceError::Told)
            }
            Events::Grpc {
                messages,
                url,
                with_credentials,
            } => {
                let message = match messages.message().await {
                    Ok(None) => return Ok(None),
                    Ok(Some(message)) => message,
                    Err(status) => return Err(failed(&status, url, *with_credentials)),
                };
                self.meter.count(message.encoded_len())?;
                self.meter.pending.store(0, Ordering::Relaxed);
                grpc::document(&message)
                    .map(Some)
                    .map_err(SourceError::Told)
            }
        }
    }
}

/// The data of the next server-sent event that has some.
async fn next_data(
    events: &mut SseByteStream<Chunks>,
    meter: &Meter,
) -> Result<Option<String>, SourceError> {
    loop {
        let event = match events.next().await {
            None => return Ok(None),
            Some(Ok(event)) => event,
            Some(Err(sse_stream::Error::Body(error))) => {
                return Err(match error.downcast::<SourceError>() {
                    Ok(error) => *error,
                    Err(error) => SourceError::Lost(error.to_string()),
                });
            }
            Some(Err(_)) => return Err(SourceError::NotText),
        };
        meter.pending.store(0, Ordering::Relaxed);
        if let Some(data) = event.data.filter(|data| !data.is_empty()) {
            if data.len() > EVENT_LIMIT {
                return Err(too_long_event());
            }
            return Ok(Some(data));
        }
    }
}

/// Why a stream of gRPC ended with a status: a lost connection, a server that went away, or the agent's own error.
fn failed(status: &tonic::Status, url: &str, with_credentials: bool) -> SourceError {
    if let Some(reason) = grpc::lost(status) {
        return SourceError::Lost(reason.map_or_else(|reason| reason, |error| error.to_string()));
    }
    if grpc::is_too_long(status) {
        return too_long_event();
    }
    match grpc::agents_error(status, url, with_credentials) {
        error if error.may_pass() => SourceError::Lost(error.to_string()),
        error => SourceError::Told(error),
    }
}

impl Meter {
    /// Counts bytes as they arrive, before they are kept.
    fn count(&self, bytes: usize) -> Result<(), SourceError> {
        let total = self.total.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let pending = self.pending.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if total > STREAM_LIMIT {
            let what = format!("more than {STREAM_LIMIT} bytes");
            return Err(SourceError::TooLong(what));
        }
        if pending > EVENT_LIMIT + FRAMING {
            return Err(too_long_event());
        }
        Ok(())
    }
}

fn too_long_event() -> SourceError {
    SourceError::TooLong(format!("an event longer than {EVENT_LIMIT} bytes"))
}
