//! A message to an agent, independent of the protocol version.

use serde_json::Value;

/// A message from the user to an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its identifier, chosen by the caller. Agents may treat two messages with the same identifier as one.
    pub id: String,
    /// Its parts, in order.
    pub parts: Vec<Part>,
    /// The conversation that it continues: the context identifier of an earlier answer.
    pub context_id: Option<String>,
    /// The task that it continues, such as one that requires input.
    pub task_id: Option<String>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// A text for people.
    Text(String),
    /// A value of JSON.
    Data(Value),
    /// A file with its bytes.
    File {
        /// Its name, without a folder.
        name: String,
        /// Its media type (MIME).
        media_type: String,
        /// Its content, not encoded.
        bytes: Vec<u8>,
    },
}

impl Message {
    /// A text that begins a conversation.
    pub fn from_text(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            parts: vec![Part::Text(text.into())],
            context_id: None,
            task_id: None,
        }
    }

    /// The members that name the conversation and the task that the message continues, the same in every version.
    pub(super) fn continuation_ids(&self) -> impl Iterator<Item = (&'static str, Value)> {
        [("contextId", &self.context_id), ("taskId", &self.task_id)]
            .into_iter()
            .filter_map(|(name, value)| Some((name, Value::from(value.as_deref()?))))
    }
}
