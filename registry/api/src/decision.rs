//! Decisions on agents as callers see them, and the holds that keep an agent from being listed.

use a2a_registry_domain::lifecycle::Hold;
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::review::VersionState;
use a2a_registry_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Decision on one version of a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Decision {
    /// State of the version.
    #[schema(value_type = VersionState)]
    pub state: OpenEnum<VersionState>,
    /// Names of the rules that decided.
    pub rules: Vec<String>,
    /// Account that decided, or `policy`.
    pub by: String,
    /// Time of the decision.
    pub at: Timestamp,
    /// Reason that the person gave; null if a rule decided.
    pub reason: Option<String>,
    /// True if the approver was also the submitter.
    #[serde(default)]
    pub self_approved: bool,
    /// Time at which the approval expires unless the content is approved again; null if approvals do not expire.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
}

/// A hold, which keeps an agent from being listed, and its cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HoldView {
    /// Kind of the hold.
    #[schema(value_type = Hold)]
    pub hold: OpenEnum<Hold>,
    /// Why it was set.
    pub reason: String,
    /// Time from which it applies.
    pub since: Timestamp,
}

/// A break-glass approval: given by one account alone, although others must approve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BreakGlass {
    /// Account that gave it.
    pub by: String,
    /// Its reason.
    pub reason: String,
    /// Time at which it was given.
    pub at: Timestamp,
    /// Time at which the previous state returns unless others have confirmed the approval.
    pub until: Timestamp,
}
