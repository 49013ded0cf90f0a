//! Visibility: the labels that may find and see an agent (docs/publish/private-cards.md#decide-who-finds-an-agent).

pub mod audience;
pub mod caller;
pub mod policy_labels;

use std::collections::BTreeSet;

use a2a_registry_domain::lifecycle::{self, Hold, Visibility};
use a2a_registry_domain::role::Permission;
use a2a_registry_store::entity::{agent, domain, hold};
use uuid::Uuid;

use crate::visibility::audience::decode_audience;
use crate::visibility::caller::{
    CURATORS_LABEL, Caller, INTERNAL_LABEL, PUBLIC_LABEL, account_audience_label,
    group_audience_label,
};

/// The listing state of an agent, which decides who sees it besides its owner and the curators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListingState {
    Listed,
    /// Neither listed nor on hold.
    Unlisted,
    /// Only its owner and the curators see it (docs/publish/private-cards.md#decide-who-finds-an-agent).
    Held,
}

impl ListingState {
    pub const fn new(listed: bool, is_held: bool) -> Self {
        match (is_held, listed) {
            (true, _) => Self::Held,
            (false, true) => Self::Listed,
            (false, false) => Self::Unlisted,
        }
    }
}

/// Whether an agent is listed under these holds. An agent in a state that this build does not know never is.
pub fn is_listed(agent: &agent::Model, holds: &[hold::Model]) -> bool {
    let holds: Vec<Hold> = holds.iter().map(hold::Model::hold_kind).collect();
    let lifecycle = agent.lifecycle.known_value();
    lifecycle.is_some_and(|lifecycle| lifecycle::is_listed(lifecycle, &holds))
}

/// Whether a domain is responsible for the entries of its catalogs: its owner has proved it, and has not opted out.
/// The same rule for many rows is in [`a2a_registry_store::peer_candidates`].
pub fn is_catalog_authority(row: &domain::Model) -> bool {
    row.is_domain_proved() && row.opted_out_by.is_none() && row.deleted_at.is_none()
}

/// The labels of which a caller must hold one to find an agent.
///
/// An unlisted agent is shown to the account that first registered its domain (`first_registrant`), if that account is
/// its submitter or a registrant of one of its sources, unless its visibility was restricted. Other registrants see no
/// agent before it is listed: otherwise the absence of an agent would tell them that the URL they added belongs to a
/// hidden one. An agent on hold is shown to its owner, or to its submitter while it has no owner. A listed restricted
/// agent is shown to its owner and to the members of the groups that it names. An agent with a lifecycle or visibility
/// that only a later build knows is shown to no one.
pub fn visibility_labels(
    agent: &agent::Model,
    listing_state: ListingState,
    first_registrant: Option<Uuid>,
    registrants: &[Uuid],
) -> Vec<String> {
    let (Some(_), Some(visibility)) = (
        agent.lifecycle.known_value(),
        agent.visibility.known_value(),
    ) else {
        return Vec::new();
    };
    let mut labels = match (listing_state, visibility) {
        (ListingState::Listed, Visibility::Public) => return vec![PUBLIC_LABEL.into()],
        (ListingState::Listed, Visibility::Internal) => return vec![INTERNAL_LABEL.into()],
        _ => vec![CURATORS_LABEL.to_owned()],
    };
    if listing_state == ListingState::Listed {
        labels.extend(audience_groups(agent).into_iter().map(group_audience_label));
    }
    labels.extend(agent.owner_id.map(account_audience_label));
    let is_visible_to_registrants =
        visibility == Visibility::Public && listing_state != ListingState::Held;
    let includes_submitter = is_visible_to_registrants || agent.owner_id.is_none();
    let submitter = visible_submitter(
        agent,
        listing_state == ListingState::Listed,
        first_registrant,
    )
    .filter(|_| includes_submitter);
    labels.extend(
        submitter
            .filter(|submitter| Some(*submitter) != agent.owner_id)
            .map(account_audience_label),
    );
    if is_visible_to_registrants {
        let existing = labels.len();
        let further = registrants.iter().copied();
        let registrant_labels: Vec<String> = further
            .filter(|account| first_registrant == Some(*account))
            .map(account_audience_label)
            .filter(|label| !labels[..existing].contains(label))
            .collect();
        labels.extend(registrant_labels);
    }
    labels
}

/// The groups to whose members an agent is shown while it is restricted: those that it names, and the audiences of the
/// collections that it names.
pub fn audience_groups(agent: &agent::Model) -> BTreeSet<Uuid> {
    let named = decode_audience(agent.audience.as_deref());
    let collected = decode_audience(agent.collection_audience.as_deref());
    named.into_iter().chain(collected).collect()
}

/// The submitter of an agent, if it can see the agent: an agent that is not listed is visible only to the account that
/// first registered its domain.
pub fn visible_submitter(
    agent: &agent::Model,
    is_listed: bool,
    first_registrant: Option<Uuid>,
) -> Option<Uuid> {
    let submitter = agent.submitter;
    submitter.filter(|submitter| is_listed || first_registrant == Some(*submitter))
}

/// The account responsible for an agent: its owner, or, if its domain never had an owner, its submitter if that
/// account registered the domain first. `first_registrant` is the first account of a domain that never had an owner.
pub fn responsible_account(agent: &agent::Model, first_registrant: Option<Uuid>) -> Option<Uuid> {
    let submitter = agent.submitter;
    let submitter = submitter.filter(|submitter| first_registrant == Some(*submitter));
    agent.owner_id.or(submitter)
}

/// Whether a caller who registered the agent's domain first sees the agent, listed or not, because it registered one
/// of its sources.
pub fn is_visible_to_registrant(caller: &Caller, agent: &agent::Model, is_held: bool) -> bool {
    let own = caller.account.iter();
    let own = own.filter(|account| account.has_permission(Permission::Read));
    let own_ids: Vec<Uuid> = own.map(|account| account.id).collect();
    let first_registrant = own_ids.first().copied();
    let labels = visibility_labels(
        agent,
        ListingState::new(false, is_held),
        first_registrant,
        &own_ids,
    );
    let sees_all =
        caller.has_permission(Permission::SeeAll) && labels.iter().any(|one| one == CURATORS_LABEL);
    sees_all
        || own_ids
            .iter()
            .any(|own| labels.contains(&account_audience_label(*own)))
}
