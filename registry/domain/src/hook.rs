//! Hooks: what accounts are told, in which format, and the states of hooks and deliveries
//! (docs/govern/notifications.md).

use super::text_enum::text_enum;

text_enum! {
    /// The kind of a notice. The first three are about agents that the hook's filter selects and its account can see.
    NoticeKind {
        /// An agent matches that did not before.
        AgentAppeared = "agent.appeared",
        /// A matching agent has another card, or other facts by which searches filter.
        AgentChanged = "agent.changed",
        /// An agent was retired or hidden, or matches no longer; a notice does not say which.
        AgentDisappeared = "agent.disappeared",
        /// The account's agent was put on hold.
        AgentHeld = "agent.held",
        /// Policies began to hide the account's agent from some callers.
        AgentHidden = "agent.hidden",
        /// The account's agent stopped answering at its own address.
        AgentSilent = "agent.silent",
        /// The card of the account's agent cannot be read any more.
        CardUnreadable = "agent.card_unreadable",
        /// A review waits for a curator.
        ReviewWaits = "review.waits",
        /// An approval ends unless a curator renews it.
        ApprovalEnds = "review.approval_ends",
    }
}

impl NoticeKind {
    /// Whether it follows from what the account sees of an agent, as opposed to a single event.
    pub const fn is_about_sight(self) -> bool {
        matches!(
            self,
            Self::AgentAppeared | Self::AgentChanged | Self::AgentDisappeared
        )
    }

    /// Whether it is for curators.
    pub const fn is_for_curators(self) -> bool {
        matches!(self, Self::ReviewWaits | Self::ApprovalEnds)
    }
}

text_enum! {
    /// The body of a delivery.
    HookFormat {
        /// A `CloudEvents` event as JSON.
        CloudEvents = "cloudevents",
        /// A text for incoming webhooks of Slack and services that accept the same.
        Slack = "slack",
        /// A digest by mail, at most hourly.
        Mail = "mail",
    }
}

text_enum! {
    HookState {
        /// The receiver has not returned the challenge yet, so nothing else is sent.
        Unconfirmed = "unconfirmed",
        Active = "active",
        /// The receiver has answered 410, or the reader of mails wants no more; nothing is sent any more.
        Ended = "ended",
    }
}

text_enum! {
    DeliveryState {
        /// To be sent, for the first time or again.
        Waiting = "waiting",
        Delivered = "delivered",
        /// Given up after three days; it can be replayed for 30 days.
        Dead = "dead",
    }
}
