//! The event stream of a registry, read while it is open.

use serde_json::Value;
use tokio::time::timeout;

use super::DEADLINE;
use super::exchange::ApiDocument;

/// An open event stream.
pub struct EventStream {
    response: reqwest::Response,
    buffer: String,
}

impl EventStream {
    /// The events that this response streams.
    pub(super) fn from_response(response: reqwest::Response) -> Self {
        Self {
            response,
            buffer: String::new(),
        }
    }

    /// The next event.
    ///
    /// # Panics
    ///
    /// If the stream ends.
    pub async fn next(&mut self) -> Value {
        loop {
            while let Some(end) = self.buffer.find("\n\n") {
                let frame: String = self.buffer.drain(..end + 2).collect();
                let data = frame.lines().find_map(|line| line.strip_prefix("data: "));
                if let Some(data) = data {
                    let event = serde_json::from_str(data).unwrap();
                    ApiDocument::current().check_event(&event);
                    return event;
                }
            }
            let chunk = self.response.chunk().await.unwrap();
            let chunk = chunk.expect("the event stream ended");
            self.buffer.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Waits for an event of that kind, and returns it.
    ///
    /// # Panics
    ///
    /// If none comes before [`DEADLINE`]; the message lists the events that came.
    pub async fn wait_for(&mut self, kind: &str) -> Value {
        self.wait_for_match(kind, |_| true).await
    }

    /// Waits for an event of that kind for which `wanted` is true, and returns it.
    ///
    /// # Panics
    ///
    /// Like [`EventStream::wait_for`].
    pub async fn wait_for_match(&mut self, kind: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut received = Vec::new();
        let found = timeout(DEADLINE, async {
            loop {
                let event = self.next().await;
                if event["kind"] == kind && wanted(&event) {
                    return event;
                }
                received.push(event);
            }
        })
        .await;
        found.unwrap_or_else(|_| panic!("no such {kind}; these came: {received:#?}"))
    }
}

/// The sequence number of an event.
pub fn event_seq(event: &Value) -> i64 {
    event["seq"].as_i64().unwrap()
}
