//! Decisions by policies as callers see them: whether somebody may find or call an agent, and why not.

use a2a_registry_domain::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// A request to decide whether the caller, or another subject, may do something with an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionRequest {
    /// `discover` or `invoke`.
    #[schema(pattern = "^(discover|invoke)$")]
    pub action: String,
    /// Id or URN of the agent; left out with `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1024)]
    pub agent: Option<String>,
    /// Exact URL of an interface of an approved card, in place of `agent`: on a host that the domain of the agent has
    /// proved or an admin vouches for. Only for callers who may ask about others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1024)]
    pub url: Option<String>,
    /// Whom it is about; the holder of the token in `Subject-Authorization` if left out, and without that the caller.
    /// Only for callers who may ask about others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<DecisionSubject>,
}

/// Whom a decision is about: an account, or a member of some groups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionSubject {
    /// Name of an account, with the groups that it is in; `anonymous` for clients without a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 200)]
    pub account: Option<String>,
    /// Groups as policies name them, in place of `account`: of an account with the role `reader` that no policy names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 100)]
    pub groups: Vec<String>,
}

/// Several questions at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionBatch {
    /// The questions.
    #[schema(min_items = 1, max_items = 100)]
    pub questions: Vec<DecisionRequest>,
}

/// Decisions in the order of the questions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DecisionBatchResult {
    /// One decision for each question.
    pub decisions: Vec<PolicyDecision>,
}

/// A policy's message to callers to whom it denies something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyNotice {
    /// The policy; `null` if it is marked `@quiet`.
    pub policy: Option<String>,
    /// Its `@message`.
    pub message: Option<String>,
    /// Its `@contact`.
    pub contact: Option<String>,
}

/// A decision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyDecision {
    /// Id of the decision, by which its asker and auditors can look it up for 7 days.
    pub id: Uuid,
    /// Whether the action is allowed.
    pub allowed: bool,
    /// Why it is denied, in words; `null` if it is allowed.
    pub reason: Option<String>,
    /// The determining policies, for callers who see everything; empty for all others.
    pub policies: Vec<String>,
    /// Messages of the policies that forbid it, at most 5.
    #[serde(default)]
    pub notices: Vec<PolicyNotice>,
    /// The number of the policy set that decided.
    pub number: u64,
    /// The agent; of several at one URL the one that decides; `null` if there is none.
    pub agent: Option<Uuid>,
    /// Digest of the card that it is about; `null` if there is none.
    pub card_digest: Option<String>,
    /// When it was decided.
    pub decided_at: Timestamp,
}

/// A decision that was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordedDecision {
    /// The decision.
    #[serde(flatten)]
    pub decision: PolicyDecision,
    /// `discover`, `invoke`, `admit` or `register`.
    pub action: String,
    /// Whom it is about: an account, `anonymous`, or groups.
    pub subject: String,
    /// The agent or URL as it was asked, or the domain to register.
    pub resource: String,
    /// The account that asked; `anonymous` for a client without one.
    pub asked_by: String,
}

/// From whom policies hide an agent that they could see otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HiddenFrom {
    /// Number of accounts that do not find it because of policies.
    pub callers: u64,
    /// Number of accounts that would find it without policies; its owner and those who see everything are not counted.
    pub of_callers: u64,
    /// Whether there are more accounts than were counted.
    #[serde(default)]
    pub truncated: bool,
    /// Whether clients without a token do not find it because of policies.
    pub anonymous: bool,
    /// Groups of its owner whose members do not find it.
    pub groups: Vec<String>,
    /// The policies that hide it, for callers who see everything; empty for all others, and if no policy permits it.
    pub policies: Vec<String>,
}

impl HiddenFrom {
    /// From whom policies hide the agent, in a sentence.
    pub fn sentence(&self) -> String {
        let at_least = if self.truncated { "at least " } else { "" };
        let accounts = match self.of_callers {
            1 => "account",
            _ => "accounts",
        };
        let mut sentence = format!(
            "Policies hide it from {at_least}{} of {} {accounts}",
            self.callers, self.of_callers
        );
        if self.anonymous {
            sentence.push_str(" and from clients without a token");
        }
        if !self.groups.is_empty() {
            let groups = self.groups.join(", ");
            sentence.push_str(&format!("; of its owner's groups, from {groups}"));
        }
        if !self.policies.is_empty() {
            sentence.push_str(&format!("; by {}", self.policies.join(", ")));
        }
        sentence.push('.');
        sentence
    }
}

/// An agent of the caller that policies hide from some callers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HiddenAgent {
    /// Id of the agent.
    pub agent: Uuid,
    /// Time at which the registry noticed it.
    pub since: Timestamp,
    /// From whom it is hidden.
    pub hidden_from: HiddenFrom,
}
