//! The event stream of a registry, read while it is open.

use serde_json::Value;
use tokio::time::timeout;

use super::DEADLINE;
use super::exchange::Document;

/// An open event stream.
pub struct Feed {
    answer: reqwest::Response,
    rest: String,
}

impl Feed {
    /// The events that this response streams.
    pub(super) fn of(answer: reqwest::Response) -> Self {
        Self {
            answer,
            rest: String::new(),
        }
    }

    /// The next event.
    ///
    /// # Panics
    ///
    /// If the stream ends.
    pub async fn next(&mut self) -> Value {
        loop {
            while let Some(end) = self.rest.find("\n\n") {
                let frame: String = self.rest.drain(..end + 2).collect();
                let data = frame.lines().find_map(|line| line.strip_prefix("data: "));
                if let Some(data) = data {
                    let event = serde_json::from_str(data).unwrap();
                    Document::of_this_build().check_event(&event);
                    return event;
                }
            }
            let chunk = self.answer.chunk().await.unwrap();
            let chunk = chunk.expect("the event stream ended");
            self.rest.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Waits for an event of that kind, and returns it.
    ///
    /// # Panics
    ///
    /// If none comes before [`DEADLINE`]; the message lists the events that came.
    pub async fn until(&mut self, kind: &str) -> Value {
        self.until_one(kind, |_| true).await
    }

    /// Waits for an event of that kind for which `wanted` holds, and returns it.
    ///
    /// # Panics
    ///
    /// Like [`Feed::until`].
    pub async fn until_one(&mut self, kind: &str, wanted: impl Fn(&Value) -> bool) -> Value {
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
pub fn seq(event: &Value) -> i64 {
    event["seq"].as_i64().unwrap()
}
