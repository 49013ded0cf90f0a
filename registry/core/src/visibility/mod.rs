//! Visibility: the labels that may find and see an agent (docs/model.md#visibility).

pub mod audience;
pub mod caller;
pub mod policy_labels;

use std::collections::BTreeSet;

use a2a_registry_domain::lifecycle::{Hold, Visibility, listed};
use a2a_registry_domain::role::Permission;
use a2a_registry_store::entity::{agent, domain, hold};
use uuid::Uuid;

use crate::visibility::audience::groups_in;
use crate::visibility::caller::{CURATORS, Caller, INTERNAL, PUBLIC, account_label, group_label};

/// Whether an agent is listed, unlisted or on hold, which decides who sees it beside its owner and the curators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Openness {
    Listed,
    /// Neither listed nor on hold.
    Unlisted,
    /// Only its owner and the curators see it (docs/model.md#visibility).
    Held,
}

impl Openness {
    pub const fn of(listed: bool, is_held: bool) -> Self {
        match (is_held, listed) {
            (true, _) => Self::Held,
            (false, true) => Self::Listed,
            (false, false) => Self::Unlisted,
        }
    }
}

/// Whether an agent is listed under these holds; never one in a state that this build does not know.
pub fn is_listed(agent: &agent::Model, holds: &[hold::Model]) -> bool {
    let holds: Vec<Hold> = holds.iter().map(hold::Model::shown).collect();
    let lifecycle = agent.lifecycle.known();
    lifecycle.is_some_and(|lifecycle| listed(lifecycle, &holds))
}

/// Whether a domain is responsible for what its catalogs list: its owner has proved it, and has not opted out. The same
/// rule for many rows is in [`a2a_registry_store::peer_candidates`].
pub fn stands_behind_catalogs(row: &domain::Model) -> bool {
    row.is_proved() && row.opted_out_by.is_none() && row.deleted_at.is_none()
}

/// The labels of which a caller must hold one to find an agent.
///
/// An agent that is not listed is shown to the account that first registered its domain, `first`, if that is its
/// submitter or one of the registrants of its sources, unless its visibility was narrowed. Other registrants see no
/// agent before it is listed: they could tell by its absence that the URL they added belongs to a hidden one. An agent
/// on hold is shown to its owner, which is its submitter while it has none. A restricted agent that is listed is shown
/// to its owner and to the members of the groups that it names. An agent with a lifecycle or visibility that only a
/// later build knows is shown to no one.
pub fn visible_to(
    agent: &agent::Model,
    openness: Openness,
    first: Option<Uuid>,
    registrants: &[Uuid],
) -> Vec<String> {
    let (Some(_), Some(visibility)) = (agent.lifecycle.known(), agent.visibility.known()) else {
        return Vec::new();
    };
    let mut labels = match (openness, visibility) {
        (Openness::Listed, Visibility::Public) => return vec![PUBLIC.into()],
        (Openness::Listed, Visibility::Internal) => return vec![INTERNAL.into()],
        _ => vec![CURATORS.to_owned()],
    };
    if openness == Openness::Listed {
        labels.extend(shown_to(agent).into_iter().map(group_label));
    }
    labels.extend(agent.owner_id.map(account_label));
    let to_others = visibility == Visibility::Public && openness != Openness::Held;
    let is_open = to_others || agent.owner_id.is_none();
    let submitter = own_submitter(agent, openness == Openness::Listed, first).filter(|_| is_open);
    labels.extend(
        submitter
            .filter(|submitter| Some(*submitter) != agent.owner_id)
            .map(account_label),
    );
    if to_others {
        let known = labels.len();
        let further = registrants.iter().copied();
        let further: Vec<String> = further
            .filter(|account| first == Some(*account))
            .map(account_label)
            .filter(|label| !labels[..known].contains(label))
            .collect();
        labels.extend(further);
    }
    labels
}

/// The groups to whose members an agent is shown while it is restricted: those that it names, and the audiences of the
/// collections that it names.
pub fn shown_to(agent: &agent::Model) -> BTreeSet<Uuid> {
    let named = groups_in(agent.audience.as_deref());
    let collected = groups_in(agent.collection_audience.as_deref());
    named.into_iter().chain(collected).collect()
}

/// The submitter of an agent, if it sees the agent: one that is not listed is only seen by the account that first
/// registered its domain.
pub fn own_submitter(agent: &agent::Model, is_listed: bool, first: Option<Uuid>) -> Option<Uuid> {
    let submitter = agent.submitter;
    submitter.filter(|submitter| is_listed || first == Some(*submitter))
}

/// The account that owns an agent: its owner, or its submitter while its domain never had an owner, if that has
/// registered the domain first. `first` is that account, of a domain that never had an owner.
pub fn keeper(agent: &agent::Model, first: Option<Uuid>) -> Option<Uuid> {
    let submitter = agent.submitter;
    let submitter = submitter.filter(|submitter| first == Some(*submitter));
    agent.owner_id.or(submitter)
}

/// Whether a caller who registered the agent's domain first sees the agent, listed or not, with a source that the
/// caller has registered.
pub fn visible_to_registrant(caller: &Caller, agent: &agent::Model, is_held: bool) -> bool {
    let own = caller.account.iter();
    let own = own.filter(|account| account.may(Permission::Read));
    let own: Vec<Uuid> = own.map(|account| account.id).collect();
    let first = own.first().copied();
    let carried = visible_to(agent, Openness::of(false, is_held), first, &own);
    let by_sight = caller.may(Permission::SeeAll) && carried.iter().any(|one| one == CURATORS);
    by_sight || own.iter().any(|own| carried.contains(&account_label(*own)))
}
