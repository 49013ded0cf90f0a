//! A message to an agent, before it has the form of a protocol version.

/// A message from the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its identifier. The caller chooses it, so that it can be random in use and fixed in a test; agents may treat two
    /// messages with the same identifier as one.
    pub id: String,
    /// Its text.
    pub text: String,
    /// The conversation that it continues: the context identifier of an earlier answer.
    pub context_id: Option<String>,
    /// The task that it continues, such as one that requires input.
    pub task_id: Option<String>,
}

impl Message {
    /// A text that begins a conversation.
    pub fn text(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            text: text.into(),
            context_id: None,
            task_id: None,
        }
    }
}
