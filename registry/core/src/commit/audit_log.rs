//! Log lines about actions: one for each, written right after its commit, with whom, what and why. The span of the
//! request adds its id, the address of its client and the credential.

use std::collections::HashMap;

use a2a_registry_domain::event::EventKind;
use a2a_registry_store::current_cards::current_cards;
use a2a_registry_store::entity::version;
use a2a_registry_store::events::{NewEvent, event_agent};
use a2a_registry_store::{StoreError, WriteTransaction};
use serde::Deserialize;
use tracing::Level;
use uuid::Uuid;

use crate::commit::decision_maker::{CRAWLER_ACTOR, POLICY_ACTOR, SYSTEM_ACTOR};

/// The target of log lines about actions and refused actions.
pub const AUDIT_LOG: &str = "audit";

/// Maximum number of cards read at once for their names: a card can have a megabyte.
const CARDS_PER_READ: usize = 50;

/// What the log says about one action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditLogLine {
    kind: EventKind,
    /// What the event is about: an agent, a domain, a review, an account, a token.
    subject: String,
    actor: String,
    agent: Option<Uuid>,
    /// The name of the agent in its current card.
    name: Option<String>,
    /// The card that the action names, otherwise the agent's current one.
    digest: Option<String>,
    reason: Option<String>,
    rule: Option<String>,
    hold: Option<String>,
    /// The account that the action changes.
    account: Option<String>,
}

impl AuditLogLine {
    /// `None` for an event that no person and no rule has caused.
    fn from_event(event: &NewEvent) -> Option<Self> {
        // Agents are also updated by the system; only updates by an account are logged.
        let is_account_update = event.kind == EventKind::AgentUpdated
            && ![POLICY_ACTOR, CRAWLER_ACTOR, SYSTEM_ACTOR].contains(&event.actor.as_str());
        if !event.kind.is_action() && !is_account_update {
            return None;
        }
        let text = |member: &str| event.data.get(member)?.as_str().map(str::to_owned);
        Some(Self {
            kind: event.kind,
            subject: event.subject.clone(),
            actor: event.actor.clone(),
            agent: event_agent(event.agent_id, &event.data),
            name: None,
            digest: text("digest"),
            reason: text("reason"),
            rule: text("rule"),
            hold: text("hold"),
            account: text("account"),
        })
    }

    pub fn log(&self) {
        tracing::info!(
            target: AUDIT_LOG,
            event = self.kind.as_str(),
            actor = self.actor,
            agent = self.agent.map(display),
            name = self.name.as_deref(),
            digest = self.digest.as_deref(),
            reason = self.reason.as_deref(),
            rule = self.rule.as_deref(),
            hold = self.hold.as_deref(),
            account = self.account.as_deref(),
            subject = self.subject,
            "done"
        );
    }

    fn set_current_card(&mut self, digest: &str, model: &str) {
        self.name = card_model_name(model);
        self.digest.get_or_insert_with(|| digest.to_owned());
    }
}

/// The lines for these events, none if they are not logged. Names and digests are taken from versions that are about
/// to be written, so that nothing is read for cards that were just fetched.
pub fn build_audit_lines(
    events: &[NewEvent],
    new_versions: &[version::Model],
) -> Vec<AuditLogLine> {
    if !tracing::enabled!(target: AUDIT_LOG, Level::INFO) {
        return Vec::new();
    }
    let lines = events.iter().filter_map(AuditLogLine::from_event);
    let mut lines: Vec<AuditLogLine> = lines.collect();
    if lines.is_empty() {
        return lines;
    }
    let new_versions = new_versions.iter().map(|row| (row.agent_id, row));
    let new_versions: HashMap<Uuid, &version::Model> = new_versions.collect();
    for line in &mut lines {
        if let Some(row) = line.agent.and_then(|agent| new_versions.get(&agent)) {
            line.set_current_card(&row.digest, &row.model);
        }
    }
    lines
}

/// Adds the missing names and digests of agents. This reads within the write, because a line that waited for a read
/// after the commit would be lost with a caller who disconnects.
pub async fn add_current_cards(
    write: &WriteTransaction,
    lines: &mut [AuditLogLine],
) -> Result<(), StoreError> {
    let unnamed = lines.iter().filter(|line| line.name.is_none());
    let mut agents: Vec<Uuid> = unnamed.filter_map(|line| line.agent).collect();
    agents.sort_unstable();
    agents.dedup();
    for some in agents.chunks(CARDS_PER_READ) {
        let cards = current_cards(write, some).await?;
        let cards = cards.iter().map(|card| (card.agent_id, card));
        let cards: HashMap<Uuid, _> = cards.collect();
        for line in lines.iter_mut().filter(|line| line.name.is_none()) {
            if let Some(card) = line.agent.and_then(|agent| cards.get(&agent)) {
                line.set_current_card(&card.digest, &card.model);
            }
        }
    }
    Ok(())
}

/// The name of the agent in a stored card model.
pub fn card_model_name(model: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct NamedCard {
        name: String,
    }
    let card: Result<NamedCard, _> = serde_json::from_str(model);
    card.ok().map(|card| card.name)
}

#[cfg(test)]
mod tests {
    use a2a_registry_domain::timestamp::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    const AGENT: Uuid = Uuid::from_u128(7);

    fn new_event(kind: EventKind, subject: &str, actor: &str, data: Value) -> NewEvent {
        NewEvent {
            at: Timestamp(0),
            kind,
            subject: subject.into(),
            agent_id: None,
            actor: actor.into(),
            data,
        }
    }

    #[test]
    fn a_line_has_what_the_event_says() {
        let data = json!({"digest": "sha256:1", "rule": "person", "reason": "it is good"});
        let mut event = new_event(EventKind::AgentApproved, &AGENT.to_string(), "ann", data);
        event.agent_id = Some(AGENT);
        let mut line = AuditLogLine::from_event(&event).unwrap();
        assert_eq!(line.agent, Some(AGENT));
        assert_eq!(line.digest.as_deref(), Some("sha256:1"));
        assert_eq!(line.reason.as_deref(), Some("it is good"));
        assert_eq!(line.rule.as_deref(), Some("person"));
        // The digest that the action names stays, whatever the current card is.
        line.set_current_card(
            "sha256:2",
            r#"{"name": "Fernweh", "skills": [{"name": "other"}]}"#,
        );
        assert_eq!(line.digest.as_deref(), Some("sha256:1"));
        assert_eq!(line.name.as_deref(), Some("Fernweh"));
    }

    #[test]
    fn events_about_reviews_and_reports_name_their_agent() {
        let comment = new_event(
            EventKind::ReviewCommented,
            "a review",
            "ann",
            json!({"agent": AGENT, "comment": AGENT}),
        );
        let report = new_event(
            EventKind::AgentReported,
            &AGENT.to_string(),
            "anonymous",
            json!({"agent": AGENT, "review": Uuid::from_u128(9)}),
        );
        for event in [comment, report] {
            let line = AuditLogLine::from_event(&event).unwrap();
            assert_eq!(line.agent, Some(AGENT), "{line:?}");
        }
    }

    #[test]
    fn observations_are_not_logged() {
        let is_logged = |kind, actor| {
            let event = new_event(kind, "an agent", actor, json!({}));
            AuditLogLine::from_event(&event).is_some()
        };
        assert!(is_logged(EventKind::AgentHeld, SYSTEM_ACTOR));
        assert!(is_logged(EventKind::AgentUpdated, "ann"));
        assert!(!is_logged(EventKind::AgentUpdated, SYSTEM_ACTOR));
        assert!(!is_logged(EventKind::AgentLiveness, CRAWLER_ACTOR));
        assert!(!is_logged(EventKind::SignInRefused, SYSTEM_ACTOR));
    }

    #[test]
    fn a_model_without_a_name_has_none() {
        assert_eq!(card_model_name("{}"), None);
        assert_eq!(card_model_name("not JSON"), None);
    }
}
