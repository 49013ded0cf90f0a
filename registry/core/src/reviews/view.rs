//! Reviews as callers see them. Visible to callers who see everything, and to the agent's owner.

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

use crate::agents::records::card_name;
use crate::agents::views::caller_owns_agent;
use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::ownership::agent_owner_at;
use crate::reviews::approvers::{excluded_deciders_by_review, may_decide_review};
use crate::reviews::reviewed_card::describe_reviewed_card;
use crate::signatures::DomainKeyBinding;
use crate::visibility::caller::Caller;
use crate::visibility::is_listed;

/// Maximum number of agents of an account whose reviews are listed.
const MAX_OWN_AGENTS: u64 = 5000;

pub(super) async fn load_review_row(context: &AppContext, id: Uuid) -> Result<review::Model> {
    let row = reviews::review_by_id(&context.store, id).await?;
    row.ok_or_else(|| AppError::no_review(id))
}

/// Finds a review that the caller may see; returns also whether the agent is the caller's own.
pub(super) async fn find_visible_review(
    context: &AppContext,
    caller: &Caller,
    id: Uuid,
) -> Result<(review::Model, bool)> {
    let row = reviews::review_by_id(&context.store, id).await?;
    // A missing review takes the same read as a hidden one.
    let agent = row.as_ref().map_or(Uuid::nil(), |row| row.agent_id);
    let mut found = agents::agents_by_ids(&context.store, &[agent]).await?;
    let is_own = match found.pop() {
        Some(agent) => caller_owns_agent(context, caller, &agent).await?,
        None => false,
    };
    let is_shown = is_own || caller.has_permission(Permission::SeeAll);
    let row = row.filter(|_| is_shown);
    row.map(|row| (row, is_own))
        .ok_or_else(|| AppError::no_review(id))
}

/// The agents for which an account is responsible, a bounded number.
pub async fn own_agent_ids(context: &AppContext, account: Uuid) -> Result<Vec<Uuid>> {
    let candidates = agents::agents_of_account(&context.store, account, MAX_OWN_AGENTS).await?;
    let ids: BTreeSet<i64> = candidates.iter().map(|agent| agent.domain_id).collect();
    let ids: Vec<i64> = ids.into_iter().collect();
    let rows = domains::domains_by_ids(&context.store, &ids).await?;
    let marks = ownership::owner_fingerprints_by_domain(&context.store, &ids).await?;
    let now = context.now();
    let owned = candidates.into_iter().filter(|agent| {
        let row = rows.iter().find(|row| row.id == agent.domain_id);
        let keeper = row.map_or(agent.owner_id, |row| {
            agent_owner_at(agent, row, &marks, now)
        });
        keeper == Some(account)
    });
    Ok(owned.map(|agent| agent.id).collect())
}

pub(super) async fn review_view(context: &AppContext, row: review::Model) -> Result<Review> {
    row.state()?;
    row.kind()?;
    row.change_class()?;
    let id = row.id;
    let mut views = review_views(context, vec![row]).await?;
    views.pop().ok_or_else(|| AppError::no_review(id))
}

/// Builds the views of reviews. A review in a state or of a kind that only a later build knows is left out and logged.
pub async fn review_views(context: &AppContext, rows: Vec<review::Model>) -> Result<Vec<Review>> {
    let db = &context.store;
    let agent_ids: Vec<Uuid> = rows.iter().map(|row| row.agent_id).collect();
    let agent_rows = agents::agents_by_ids(db, &agent_ids).await?;
    let holds = agents::holds_of_agents(db, &agent_ids).await?;
    let version_rows =
        versions::versions_by_ids(db, &review_version_ids(&rows, &agent_rows)).await?;
    let domain_ids: Vec<i64> = agent_rows.iter().map(|owner| owner.domain_id).collect();
    let domain_rows = domains::domains_by_ids(db, &domain_ids).await?;
    let bindings = DomainKeyBinding::load_for_domains(db, &domain_rows).await?;
    let people = ReviewParticipants::load(context, &rows, &agent_rows).await?;
    let version = |id: Uuid| version_rows.iter().find(|row| row.id == id);
    let view = |row: review::Model| -> Result<Review, StoreError> {
        let reviewed = version(row.version_id);
        let agent_row = agent_rows.iter().find(|owner| owner.id == row.agent_id);
        let binding = agent_row.and_then(|owner| bindings.get(&owner.domain_id));
        let previous = row.previous_version.and_then(version);
        let approvals = people.approval_views(&row);
        let (kind, class) = (row.kind()?, row.change_class()?);
        Ok(Review {
            signature_verdict: binding
                .unwrap_or(&DomainKeyBinding::default())
                .signature_verdict(reviewed),
            id: row.id,
            agent: row.agent_id,
            name: reviewed.and_then(card_name).unwrap_or_default(),
            domain: agent_row
                .map(|owner| owner.domain.clone())
                .unwrap_or_default(),
            coverage: match reviewed {
                Some(about) => about.standing()?.coverage(),
                None => Coverage::Nomination,
            }
            .into(),
            digest: reviewed
                .map(|about| about.digest.clone())
                .unwrap_or_default(),
            previous: previous.map(|row| row.digest.clone()),
            card: reviewed.map(|about| describe_reviewed_card(about, previous)),
            change_class: class.map(Into::into),
            kind: kind.into(),
            state: row.state()?.into(),
            assignee: row.assignee.and_then(|id| people.account_name(id)),
            due: row.due_at.map(Timestamp),
            deciders: review_deciders(&row, &approvals),
            approvals_needed: context.config().governance.approvals_needed(kind, class),
            approvals,
            submitter: row.submitter,
            reason: row.reason,
            served: agent_row.map(|owner| served_card(owner, &holds, &version_rows)),
            created_at: Timestamp(row.created_at),
            decided_at: row.decided_at.map(Timestamp),
        })
    };
    let log_error =
        |error: &StoreError| tracing::error!(%error, "cannot show a review; it is left out");
    let views = rows.into_iter().map(|row| view(row).inspect_err(log_error));
    Ok(views.filter_map(Result::ok).collect())
}

/// Collects the versions that reviews are about, those approved before, and those that the agents serve.
fn review_version_ids(rows: &[review::Model], agent_rows: &[agent::Model]) -> Vec<Uuid> {
    rows.iter()
        .flat_map(|row| [Some(row.version_id), row.previous_version])
        .chain(agent_rows.iter().map(|owner| owner.approved_version))
        .flatten()
        .collect()
}

/// The card that an agent currently serves, given these holds and versions.
fn served_card(
    agent_row: &agent::Model,
    holds: &[hold::Model],
    versions: &[version::Model],
) -> ServedCard {
    let holds = holds.iter().filter(|hold| hold.agent_id == agent_row.id);
    let holds: Vec<hold::Model> = holds.cloned().collect();
    let mut versions = versions.iter();
    let approved = versions.find(|row| Some(row.id) == agent_row.approved_version);
    ServedCard {
        digest: approved.map(|row| row.digest.clone()),
        listed: is_listed(agent_row, &holds),
    }
}

/// The accounts that decided: all whose approvals counted, else the one that closed it.
fn review_deciders(row: &review::Model, approvals: &[ReviewApproval]) -> Vec<String> {
    let counted = approvals.iter().filter(|one| one.counts);
    let counted: Vec<String> = counted.map(|one| one.account.clone()).collect();
    if row.state == ReviewState::Approved && !counted.is_empty() {
        return counted;
    }
    row.decider.clone().into_iter().collect()
}

/// The accounts of some reviews, and their approvals.
struct ReviewParticipants {
    accounts: Vec<account::Model>,
    approvals: Vec<review_approval::Model>,
    /// Approvals of open reviews that currently count, as review and account.
    counting_approvals: BTreeSet<(Uuid, Uuid)>,
}

impl ReviewParticipants {
    async fn load(
        context: &AppContext,
        rows: &[review::Model],
        agents: &[agent::Model],
    ) -> Result<Self> {
        let db = &context.store;
        let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
        let approvals = review_notes::approvals_by_review(db, &ids).await?;
        let approving = approvals.iter().map(|one| one.account_id);
        let assigned = rows.iter().filter_map(|row| row.assignee);
        let ids: BTreeSet<Uuid> = approving.chain(assigned).collect();
        let ids: Vec<Uuid> = ids.into_iter().collect();
        let accounts = accounts::accounts_by_ids(db, &ids).await?;
        let mut counting_approvals = BTreeSet::new();
        let open: Vec<review::Model> = rows
            .iter()
            .filter(|row| row.state == ReviewState::Open)
            .filter(|row| approvals.iter().any(|one| one.review_id == row.id))
            .cloned()
            .collect();
        let excluded = excluded_deciders_by_review(db, &context.config(), agents, &open).await?;
        for (review, excluded) in &excluded {
            let of_it = approvals.iter().filter(|one| one.review_id == *review);
            let deciders =
                of_it.filter_map(|one| accounts.iter().find(|by| by.id == one.account_id));
            let eligible = deciders.filter(|by| may_decide_review(by, excluded));
            counting_approvals.extend(eligible.map(|by| (*review, by.id)));
        }
        Ok(Self {
            accounts,
            approvals,
            counting_approvals,
        })
    }

    fn account_name(&self, id: Uuid) -> Option<String> {
        let mut accounts = self.accounts.iter();
        accounts
            .find(|one| one.id == id)
            .map(|one| one.name.clone())
    }

    fn approval_views(&self, row: &review::Model) -> Vec<ReviewApproval> {
        let review_approvals = self.approvals.iter().filter(|one| one.review_id == row.id);
        let view = |one: &review_approval::Model| ReviewApproval {
            account: self.account_name(one.account_id).unwrap_or_default(),
            at: Timestamp(one.at),
            reason: one.reason.clone(),
            counts: one
                .counted
                .unwrap_or_else(|| self.counting_approvals.contains(&(row.id, one.account_id))),
        };
        review_approvals.map(view).collect()
    }
}
