//! The maker of a decision, a rule or a person, with the reason that a person must give.

use a2a_registry_api::limits::MAX_REASON;
use a2a_registry_domain::admission_rules::Rule;

use crate::commit::agent_state::AgentChangeState;
use crate::error::AppError;
use crate::visibility::caller::CallerAccount;

/// The actor of decisions by a rule.
pub const POLICY_ACTOR: &str = "policy";
/// The actor of the crawler's results.
pub const CRAWLER_ACTOR: &str = "crawler";
/// The actor of consequences without a decision, such as those of elapsed time or a failed check.
pub const SYSTEM_ACTOR: &str = "system";

#[derive(Debug, Clone)]
pub struct DecisionMaker {
    /// The account's name, or [`POLICY_ACTOR`].
    pub actor: String,
    /// [`Rule::Person`] for a person.
    pub rule: Rule,
    /// The reason that the approver gave.
    pub reason: Option<String>,
    /// Whether the approver is the submitter.
    pub self_approved: bool,
}

impl DecisionMaker {
    pub fn by_rule(rule: Rule) -> Self {
        Self {
            actor: POLICY_ACTOR.into(),
            rule,
            reason: None,
            self_approved: false,
        }
    }

    /// Whether a person decides now; an earlier decision of a person that takes effect again has no reason of its own.
    pub fn is_new_person_decision(&self) -> bool {
        self.rule == Rule::Person && self.reason.is_some()
    }

    /// The decision of a person, marked as self-approved if that person submitted the agent.
    pub fn by_person(account: &CallerAccount, state: &AgentChangeState, reason: &str) -> Self {
        Self {
            actor: account.name.clone(),
            rule: Rule::Person,
            reason: Some(reason.to_owned()),
            self_approved: state.agent.submitter == Some(account.id),
        }
    }
}

/// Whether a character is white space as the patterns of the API document define it (ECMA-262), which differs from
/// Unicode in two characters.
fn is_ecma_whitespace(character: char) -> bool {
    character == '\u{feff}' || (character.is_whitespace() && character != '\u{85}')
}

pub fn check_reason(reason: &str) -> Result<(), AppError> {
    let length = reason.trim_matches(is_ecma_whitespace).chars().count();
    if (1..=MAX_REASON).contains(&length) && !reason.contains('\0') {
        return Ok(());
    }
    Err(AppError::invalid(
        "/reason",
        format!("A reason must have 1 to {MAX_REASON} characters, without U+0000."),
    ))
}
