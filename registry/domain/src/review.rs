//! Reviews by curators, and change classes (docs/develop/model.md#changes-and-reviews).

use super::text_enum::text_enum;

text_enum! {
    /// The class of a card's change, in ascending order of importance.
    ChangeClass {
        /// No change that a client could notice.
        None = "none",
        /// Accepted by a rule and logged.
        Low = "low",
        /// Needs a review; until then the old version is served.
        High = "high",
        /// Needs a review; nothing is served until then.
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
    /// The state of a review.
    ReviewState {
        Open = "open",
        Approved = "approved",
        Rejected = "rejected",
        /// A newer change replaced it.
        Superseded = "superseded",
        /// No longer needed: the agent was retired, or returned to approved content.
        Withdrawn = "withdrawn",
    }
}

text_enum! {
    /// The subject of a review: a first card, or a change of some class.
    ReviewedChange {
        First = "first",
        None = "none",
        Low = "low",
        High = "high",
        Critical = "critical",
    }
}

impl ReviewedChange {
    /// The class of the change; `None` for a first card.
    pub const fn change_class(self) -> Option<ChangeClass> {
        match self {
            Self::First => None,
            Self::None => Some(ChangeClass::None),
            Self::Low => Some(ChangeClass::Low),
            Self::High => Some(ChangeClass::High),
            Self::Critical => Some(ChangeClass::Critical),
        }
    }
}

text_enum! {
    /// The reason for a review. Later versions may add more.
    ReviewKind {
        /// No rule decides about the card.
        Admission = "admission",
        Report = "report",
        /// The approval of the served content expires.
        Recertification = "recertification",
        /// A break-glass approval must be confirmed.
        BreakGlass = "break_glass",
    }
}

text_enum! {
    /// The state of one version of a card.
    VersionState {
        Pending = "pending",
        Approved = "approved",
        Rejected = "rejected",
        /// A newer version arrived before a decision.
        Superseded = "superseded",
    }
}
