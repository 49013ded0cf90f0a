//! What a single event tells, by itself and of the agents that hooks may have to compare.

use std::collections::HashSet;

use a2a_registry_api::HookFilter;
use a2a_registry_domain::endpoint::EndpointState;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::hook::NoticeKind;
use a2a_registry_domain::lifecycle::LivenessState;
use a2a_registry_domain::review::ReviewKind;
use a2a_registry_domain::role::Permission;
use a2a_registry_store::entity::event;
use serde_json::Value;
use uuid::Uuid;

use crate::hooks::sight::AgentFacts;
use crate::visibility::caller::Caller;

/// Whose agents must be compared with what receivers know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ComparedHooks {
    OfAccount(Uuid),
    All,
}

/// The hooks for which this event may change which agents match, without naming them.
pub(super) fn compared_hooks(kind: EventKind, subject: &str) -> Option<ComparedHooks> {
    match kind {
        EventKind::PolicySet
        | EventKind::CollectionChanged
        | EventKind::CollectionDeleted
        | EventKind::GroupChanged
        | EventKind::GroupDeleted => Some(ComparedHooks::All),
        EventKind::AccountChanged | EventKind::AccountEnabled => {
            let account = subject.parse().map(ComparedHooks::OfAccount);
            Some(account.unwrap_or(ComparedHooks::All))
        }
        _ => None,
    }
}

/// What an event tells curators and owners.
pub(super) fn event_notice(row: &event::Model, data: &Value) -> Option<NoticeKind> {
    match row.kind.known_value()? {
        EventKind::AgentHeld => Some(NoticeKind::AgentHeld),
        EventKind::AgentHidden => Some(NoticeKind::AgentHidden),
        EventKind::AgentEndpoint => {
            let is_silent = data["state"] == EndpointState::DoesNotAnswer.as_str();
            is_silent.then_some(NoticeKind::AgentSilent)
        }
        EventKind::AgentLiveness => {
            let is_read = data["state"] == LivenessState::Fresh.as_str();
            (data["state"].is_string() && !is_read).then_some(NoticeKind::CardUnreadable)
        }
        EventKind::ReviewOpened => {
            Some(match data["kind"] == ReviewKind::Recertification.as_str() {
                true => NoticeKind::ApprovalEnds,
                false => NoticeKind::ReviewWaits,
            })
        }
        _ => None,
    }
}

/// Whether a notice of a single event is for a caller: those about reviews for curators, the others for the account
/// that is responsible for the agent. `named` are the agents that the filter names, if it does. Filters by collection
/// and search select agents that the account finds, which agents on hold are not, so hooks with one get no such
/// notice.
pub fn is_notice_for(
    caller: &Caller,
    filter: &HookFilter,
    kind: NoticeKind,
    named: Option<&HashSet<Uuid>>,
    (agent, facts): (Uuid, &AgentFacts),
) -> bool {
    let is_addressed = match kind.is_for_curators() {
        true => caller.has_permission(Permission::Curate),
        false => caller.is_account(facts.responsible),
    };
    let has_agent = named.is_none_or(|named| named.contains(&agent));
    let mut domains = filter.domains.iter();
    let has_domain = filter.domains.is_empty()
        || domains.any(|domain| domain.eq_ignore_ascii_case(&facts.domain));
    is_addressed
        && has_agent
        && has_domain
        && filter.collections.is_empty()
        && filter.search.is_none()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(kind: EventKind, data: &Value) -> Option<NoticeKind> {
        let row = event::Model {
            seq: 1,
            at: 0,
            kind: kind.into(),
            subject: String::new(),
            agent_id: None,
            actor: String::new(),
            data: String::new(),
        };
        event_notice(&row, data)
    }

    #[test]
    fn only_events_that_somebody_acts_on_are_told() {
        let silent = json!({"state": "does_not_answer"});
        let of_endpoint = |data: &Value| told(EventKind::AgentEndpoint, data);
        assert_eq!(of_endpoint(&silent), Some(NoticeKind::AgentSilent));
        assert_eq!(of_endpoint(&json!({"state": "answers"})), None);
        let of_liveness = |data: &Value| told(EventKind::AgentLiveness, data);
        let stale = json!({"state": "stale"});
        assert_eq!(of_liveness(&stale), Some(NoticeKind::CardUnreadable));
        assert_eq!(of_liveness(&json!({"state": "fresh"})), None);
        assert_eq!(of_liveness(&json!({})), None);
        let of_review = |data: &Value| told(EventKind::ReviewOpened, data);
        assert_eq!(of_review(&json!({})), Some(NoticeKind::ReviewWaits));
        let ending = json!({"kind": "recertification"});
        assert_eq!(of_review(&ending), Some(NoticeKind::ApprovalEnds));
        assert_eq!(told(EventKind::AgentApproved, &json!({})), None);
    }
}
