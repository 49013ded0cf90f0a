//! The `data` of server-sent events in a response, within limits.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{Stream, StreamExt as _};
use reqwest::Response;
use sse_stream::SseByteStream;

use super::{EVENT_LIMIT, STREAM_LIMIT};
use crate::exchange::innermost;

/// Bytes of framing that an event may have beside its data: field names, comments and empty lines.
const FRAMING: usize = 1024 * 1024;

/// The bytes read so far, of all responses that belong to one stream.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// In all.
    total: AtomicUsize,
    /// Since the last event was complete.
    pending: AtomicUsize,
}

/// A response that is read event by event.
pub(super) struct Source {
    events: SseByteStream<Chunks>,
    meter: Arc<Meter>,
}

type Chunks = Pin<Box<dyn Stream<Item = Result<bytes::Bytes, SourceError>> + Send>>;

/// Why a response cannot be read any further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SourceError {
    /// The connection was lost, for this reason.
    #[error("{0}")]
    Lost(String),
    /// It contains more than is read.
    #[error("{0}")]
    TooLong(String),
    /// It is not UTF-8.
    #[error("bytes that are not UTF-8")]
    NotText,
}

impl Source {
    /// The events of a response; its bytes are counted with those of earlier responses.
    pub fn new(response: Response, meter: &Arc<Meter>) -> Self {
        meter.pending.store(0, Ordering::Relaxed);
        let counted = Arc::clone(meter);
        let chunks = response.bytes_stream().map(move |chunk| {
            let chunk = chunk.map_err(|error| SourceError::Lost(innermost(&error)))?;
            counted.count(chunk.len())?;
            Ok(chunk)
        });
        Self {
            events: SseByteStream::new(Box::pin(chunks)),
            meter: Arc::clone(meter),
        }
    }

    /// The data of the next event that has some; `None` at the end of the response. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<String>, SourceError> {
        loop {
            let event = match self.events.next().await {
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
            self.meter.pending.store(0, Ordering::Relaxed);
            if let Some(data) = event.data.filter(|data| !data.is_empty()) {
                if data.len() > EVENT_LIMIT {
                    return Err(too_long_event());
                }
                return Ok(Some(data));
            }
        }
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
