//! Questions put to a curator, and how much a change matters (docs/model.md#changes-and-reviews).

use super::text_enum::text_enum;

text_enum! {
    /// How much a card's change matters, from nothing to everything.
    ChangeClass {
        /// Nothing a client could notice.
        None = "none",
        /// Accepted by rule and logged.
        Low = "low",
        /// Wants a look; the old version stays served meanwhile.
        High = "high",
        /// Nothing is served until it was looked at.
        Critical = "critical",
    }
}

impl From<a2a_card::ChangeClass> for ChangeClass {
    fn from(class: a2a_card::ChangeClass) -> Self {
        match class {
            a2a_card::ChangeClass::None => Self::None,
            a2a_card::ChangeClass::Low => Self::Low,
            a2a_card::ChangeClass::High => Self::High,
            a2a_card::ChangeClass::Critical => Self::Critical,
        }
    }
}

text_enum! {
    /// Where a review stands.
    ReviewState {
        /// Waits for a decision.
        Open = "open",
        /// The content was approved.
        Approved = "approved",
        /// The content was rejected.
        Rejected = "rejected",
        /// A newer change took its place.
        Superseded = "superseded",
        /// The question went away: the agent was retired, or returned to approved content.
        Withdrawn = "withdrawn",
    }
}

text_enum! {
    /// Where one version of a card stands.
    VersionState {
        /// Nobody has decided on it.
        Pending = "pending",
        /// It may be served.
        Approved = "approved",
        /// It may not be served.
        Rejected = "rejected",
        /// A newer version came before anybody decided.
        Superseded = "superseded",
    }
}
