//! Whether an agent answers at its own address (docs/publish/endpoint-check.md).

use super::text_enum::text_enum;

text_enum! {
    /// The result of the last check of an agent's endpoint.
    EndpointState {
        /// A recognisable A2A answer or error.
        Answers = "answers",
        /// The server wants credentials before it answers.
        NeedsCredentials = "needs_credentials",
        /// Another protocol, or a website.
        NotA2a = "not_a2a",
        /// A response that both an agent and another server could give, such as a bare 404.
        Unclear = "unclear",
        /// No connection, no response in time, or a proxy without its server.
        DoesNotAnswer = "does_not_answer",
        /// No check is permitted, or none was made yet.
        NotChecked = "not_checked",
    }
}

impl EndpointState {
    /// The order of agents that are equally relevant, the first ones lowest: those that respond, those of which
    /// nothing is known, then the others.
    pub const fn tie_rank(self) -> u8 {
        match self {
            Self::Answers | Self::NeedsCredentials => 0,
            Self::Unclear | Self::NotChecked => 1,
            Self::NotA2a | Self::DoesNotAnswer => 2,
        }
    }

    /// The state in words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Answers => "answers",
            Self::NeedsCredentials => "needs credentials",
            Self::NotA2a => "not A2A",
            Self::Unclear => "unclear",
            Self::DoesNotAnswer => "does not answer",
            Self::NotChecked => "not checked",
        }
    }
}
