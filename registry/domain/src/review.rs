//! Reviews by curators, and the classes of changes (docs/model.md#changes-and-reviews).

use super::text_enum::text_enum;

text_enum! {
    /// The class of a card's change, the least important first.
    ChangeClass {
        /// No change that a client could notice.
        None = "none",
        /// Accepted by rule and logged.
        Low = "low",
        /// Needs a review; the old version stays served meanwhile.
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
        /// Not needed any more: the agent was retired, or returned to approved content.
        Withdrawn = "withdrawn",
    }
}

text_enum! {
    /// What a review is about: a first card, or a change of some class.
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
    /// The kind of a review: its reason. A later build may know more.
    ReviewKind {
        /// A card that no rule decides.
        Admission = "admission",
        Report = "report",
        /// The approval of the served content ends.
        Recertification = "recertification",
        /// An approval under break-glass is to be confirmed.
        BreakGlass = "break_glass",
    }
}

text_enum! {
    /// The state of one version of a card.
    VersionState {
        Pending = "pending",
        Approved = "approved",
        Rejected = "rejected",
        /// A newer version came before anybody decided.
        Superseded = "superseded",
    }
}
