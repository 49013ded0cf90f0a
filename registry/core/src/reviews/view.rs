//! Reviews as callers see them, and who sees them: callers who see everything, and the agent's owner.

use std::collections::BTreeSet;

use a2a_registry_api::{Review, ReviewApproval, ServedCard};
use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::review::ReviewState;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{account, agent, hold, review, review_approval, version};
use a2a_registry_store::{
    StoreError, accounts, agents, domains, ownership, review_notes, reviews, versions,
};
use uuid::Uuid;

use crate::agents::records::name_in;
use crate::agents::views::owns;
use crate::context::Context;
use crate::error::{AppError, Result};
use crate::ownership::keeper_at;
use crate::reviews::approvers::{excluded_of, may_decide};
use crate::signatures::KeyBinding;
use crate::visibility::caller::Caller;
use crate::visibility::is_listed;

/// Maximum number of agents of an account whose reviews are listed.
const MAX_OWN: u64 = 5000;

pub(super) async fn review_row(context: &Context, id: Uuid) -> Result<review::Model> {
    let row = reviews::review_by_id(&context.store, id).await?;
    row.ok_or_else(|| AppError::no_review(id))
}

/// The row of a review that the caller may see, and whether the agent is the caller's own.
pub(super) async fn review_visible(
    context: &Context,
    caller: &Caller,
    id: Uuid,
) -> Result<(review::Model, bool)> {
    let row = reviews::review_by_id(&context.store, id).await?;
    // The same is read for a missing review and for a hidden one.
    let agent = row.as_ref().map_or(Uuid::nil(), |row| row.agent_id);
    let mut found = agents::agents_by_ids(&context.store, &[agent]).await?;
    let is_own = match found.pop() {
        Some(agent) => owns(context, caller, &agent).await?,
        None => false,
    };
    let is_shown = is_own || caller.may(Permission::SeeAll);
    let row = row.filter(|_| is_shown);
    row.map(|row| (row, is_own))
        .ok_or_else(|| AppError::no_review(id))
}

pub(super) async fn own_agents(context: &Context, account: Uuid) -> Result<Vec<Uuid>> {
    let found = agents::agents_of_account(&context.store, account, MAX_OWN).await?;
    let ids: BTreeSet<i64> = found.iter().map(|agent| agent.domain_id).collect();
    let ids: Vec<i64> = ids.into_iter().collect();
    let rows = domains::domains_by_ids(&context.store, &ids).await?;
    let marks = ownership::owner_marks_of(&context.store, &ids).await?;
    let now = context.now();
    let own = found.into_iter().filter(|agent| {
        let row = rows.iter().find(|row| row.id == agent.domain_id);
        let keeper = row.map_or(agent.owner_id, |row| keeper_at(agent, row, &marks, now));
        keeper == Some(account)
    });
    Ok(own.map(|agent| agent.id).collect())
}

pub(super) async fn review_view(context: &Context, row: review::Model) -> Result<Review> {
    row.state()?;
    row.kind()?;
    row.change_class()?;
    let id = row.id;
    let mut views = views(context, vec![row]).await?;
    views.pop().ok_or_else(|| AppError::no_review(id))
}

/// The views of reviews; one in a state or of a kind that only a later build knows is left out and logged.
pub async fn views(context: &Context, rows: Vec<review::Model>) -> Result<Vec<Review>> {
    let on = &context.store;
    let agent_ids: Vec<Uuid> = rows.iter().map(|row| row.agent_id).collect();
    let owners = agents::agents_by_ids(on, &agent_ids).await?;
    let holds = agents::holds_of(on, &agent_ids).await?;
    let found = versions::versions_by_ids(on, &version_ids(&rows, &owners)).await?;
    let domain_ids: Vec<i64> = owners.iter().map(|owner| owner.domain_id).collect();
    let domain_rows = domains::domains_by_ids(on, &domain_ids).await?;
    let bindings = KeyBinding::of_domains(on, &domain_rows).await?;
    let people = People::load(context, &rows, &owners).await?;
    let version = |id: Uuid| found.iter().find(|row| row.id == id);
    let view = |row: review::Model| -> Result<Review, StoreError> {
        let about = version(row.version_id);
        let owner = owners.iter().find(|owner| owner.id == row.agent_id);
        let binding = owner.and_then(|owner| bindings.get(&owner.domain_id));
        let approvals = people.approvals(&row);
        let (kind, class) = (row.kind()?, row.change_class()?);
        Ok(Review {
            signature_verdict: binding.unwrap_or(&KeyBinding::default()).verdict(about),
            id: row.id,
            agent: row.agent_id,
            name: about.and_then(name_in).unwrap_or_default(),
            domain: owner.map(|owner| owner.domain.clone()).unwrap_or_default(),
            coverage: match about {
                Some(about) => about.standing()?.coverage(),
                None => Coverage::Nomination,
            }
            .into(),
            digest: about.map(|about| about.digest.clone()).unwrap_or_default(),
            previous: row
                .previous_version
                .and_then(version)
                .map(|row| row.digest.clone()),
            change_class: class.map(Into::into),
            kind: kind.into(),
            state: row.state()?.into(),
            assignee: row.assignee.and_then(|id| people.name(id)),
            due: row.due_at.map(Timestamp),
            deciders: deciders(&row, &approvals),
            approvals_needed: context.config.governance.approvals_needed(kind, class),
            approvals,
            submitter: row.submitter,
            reason: row.reason,
            served: owner.map(|owner| served_card(owner, &holds, &found)),
            created_at: Timestamp(row.created_at),
            decided_at: row.decided_at.map(Timestamp),
        })
    };
    let told =
        |error: &StoreError| tracing::error!(%error, "a review cannot be shown and is left out");
    let views = rows.into_iter().map(|row| view(row).inspect_err(told));
    Ok(views.filter_map(Result::ok).collect())
}

/// The versions that reviews are about, those approved before, and those that their agents serve.
fn version_ids(rows: &[review::Model], owners: &[agent::Model]) -> Vec<Uuid> {
    rows.iter()
        .flat_map(|row| [Some(row.version_id), row.previous_version])
        .chain(owners.iter().map(|owner| owner.approved_version))
        .flatten()
        .collect()
}

/// The card that an agent serves now, given these holds and versions.
fn served_card(
    owner: &agent::Model,
    holds: &[hold::Model],
    versions: &[version::Model],
) -> ServedCard {
    let holds = holds.iter().filter(|hold| hold.agent_id == owner.id);
    let holds: Vec<hold::Model> = holds.cloned().collect();
    let mut versions = versions.iter();
    let approved = versions.find(|row| Some(row.id) == owner.approved_version);
    ServedCard {
        digest: approved.map(|row| row.digest.clone()),
        listed: is_listed(owner, &holds),
    }
}

/// The accounts that decided: all whose approvals counted, else the one that closed it.
fn deciders(row: &review::Model, approvals: &[ReviewApproval]) -> Vec<String> {
    let counted = approvals.iter().filter(|one| one.counts);
    let counted: Vec<String> = counted.map(|one| one.account.clone()).collect();
    if row.state == ReviewState::Approved && !counted.is_empty() {
        return counted;
    }
    row.decider.clone().into_iter().collect()
}

/// The accounts of some reviews, and their approvals.
struct People {
    accounts: Vec<account::Model>,
    approvals: Vec<review_approval::Model>,
    /// Approvals of open reviews that would count now, as review and account.
    counting: BTreeSet<(Uuid, Uuid)>,
}

impl People {
    async fn load(
        context: &Context,
        rows: &[review::Model],
        agents: &[agent::Model],
    ) -> Result<Self> {
        let on = &context.store;
        let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
        let approvals = review_notes::approvals_of(on, &ids).await?;
        let approving = approvals.iter().map(|one| one.account_id);
        let assigned = rows.iter().filter_map(|row| row.assignee);
        let ids: BTreeSet<Uuid> = approving.chain(assigned).collect();
        let ids: Vec<Uuid> = ids.into_iter().collect();
        let accounts = accounts::accounts_by_ids(on, &ids).await?;
        let mut counting_now = BTreeSet::new();
        let open: Vec<review::Model> = rows
            .iter()
            .filter(|row| row.state == ReviewState::Open)
            .filter(|row| approvals.iter().any(|one| one.review_id == row.id))
            .cloned()
            .collect();
        let excluded = excluded_of(on, &context.config, agents, &open).await?;
        for (review, excluded) in &excluded {
            let of_it = approvals.iter().filter(|one| one.review_id == *review);
            let deciders =
                of_it.filter_map(|one| accounts.iter().find(|by| by.id == one.account_id));
            let counting = deciders.filter(|by| may_decide(by, excluded));
            counting_now.extend(counting.map(|by| (*review, by.id)));
        }
        Ok(Self {
            accounts,
            approvals,
            counting: counting_now,
        })
    }

    fn name(&self, id: Uuid) -> Option<String> {
        let mut accounts = self.accounts.iter();
        accounts
            .find(|one| one.id == id)
            .map(|one| one.name.clone())
    }

    fn approvals(&self, row: &review::Model) -> Vec<ReviewApproval> {
        let of_it = self.approvals.iter().filter(|one| one.review_id == row.id);
        let view = |one: &review_approval::Model| ReviewApproval {
            account: self.name(one.account_id).unwrap_or_default(),
            at: Timestamp(one.at),
            reason: one.reason.clone(),
            counts: one
                .counted
                .unwrap_or_else(|| self.counting.contains(&(row.id, one.account_id))),
        };
        of_it.map(view).collect()
    }
}
