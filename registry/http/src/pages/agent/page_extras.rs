//! Additional data for the agent page: the fetch history, and who proved the domain.

use a2a_registry_api::{EndpointDetails, Proof};
use a2a_registry_core::agents::collection_memberships::containing_collections;
use a2a_registry_core::agents::owner_updates::require_agent_owner_or_curator;
use a2a_registry_core::agents::records::AgentRecord;
use a2a_registry_core::agents::views::caller_owns_agent;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::domains::domain_access::DomainAccess;
use a2a_registry_core::domains::row_views::proof_view;
use a2a_registry_core::endpoints::views::load_endpoint_details;
use a2a_registry_core::error::Result;
use a2a_registry_core::hooks::watches::is_agent_watched;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::{accounts, domains, visit_results};

/// Fetches of one day over all sources of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DailyFetches {
    /// Days since 1970-01-01 in UTC.
    pub day: i32,
    pub fetches: u64,
    /// Number of fetches that returned a card.
    pub successful: u64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct AgentPageExtras {
    pub days: Vec<DailyFetches>,
    pub proofs: Vec<Proof>,
    pub collections: Vec<String>,
    /// The last endpoint check; only for the owner, curators and auditors.
    pub endpoint: Option<EndpointDetails>,
    /// Name of the account that owns the domain; only for that account and for callers with full access.
    pub owner: Option<String>,
    /// End of the admin's vouch for that account; `None` if it has proved the domain.
    pub owner_vouched_until: Option<Timestamp>,
    /// Whether the caller is responsible for the agent.
    pub is_own: bool,
    /// Whether the caller may act as the owner. Registering an agent first gives responsibility, but not these rights.
    pub acts_as_owner: bool,
    /// Whether no account is responsible for the agent.
    pub is_unmanaged: bool,
    /// Whether the caller watches the agent; `None` for callers who cannot watch any.
    pub watched: Option<bool>,
}

impl AgentPageExtras {
    /// Loads the data. The caller must be allowed to see the agent. Proofs are shown for a listed agent, as on its
    /// domain's page (docs/publish/private-cards.md#who-sees-what-of-a-domain).
    pub(crate) async fn load(
        context: &AppContext,
        caller: &Caller,
        record: &AgentRecord,
    ) -> Result<Self> {
        let store = &context.store;
        let sources: Vec<i64> = record.sources().iter().map(|source| source.id).collect();
        let days = visit_results::daily_totals_by_source(store, &sources).await?;
        let domain = [record.agent.domain_id];
        let sees_all = caller.has_permission(Permission::SeeAll);
        let mut extras = Self {
            days: sum_fetches_by_day(days.iter().map(|row| DailyFetches {
                day: row.day,
                fetches: u64::try_from(row.looks).unwrap_or(0),
                successful: u64::try_from(row.good).unwrap_or(0),
            })),
            collections: containing_collections(context, caller, record).await?,
            endpoint: load_endpoint_details(context, caller, &record.agent).await?,
            is_own: caller_owns_agent(context, caller, &record.agent).await?,
            acts_as_owner: caller.account.is_some()
                && require_agent_owner_or_curator(context, caller, &record.agent)
                    .await
                    .is_ok(),
            is_unmanaged: record.agent.owner_id.or(record.agent.submitter).is_none()
                && record.agent.sponsor_id.is_none(),
            watched: is_agent_watched(context, caller, record.agent.id).await?,
            ..Self::default()
        };
        if !(sees_all || record.is_listed() || extras.is_own) {
            return Ok(extras);
        }
        let proofs = domains::valid_proofs_by_domain(store, &domain).await?;
        extras.proofs = proofs
            .iter()
            .map(|proof| proof_view(proof, DomainAccess::Public))
            .collect();
        let owner = domains::domains_by_ids(store, &domain).await?;
        let now = context.now();
        let vouched = owner
            .first()
            .filter(|row| row.vouched_owner_at(now).is_some());
        let vouched_until = vouched.and_then(|row| row.vouched_until).map(Timestamp);
        let owner = owner.first().and_then(|row| row.domain_owner_at(now));
        if let Some(owner) = owner.filter(|owner| sees_all || caller.is_account(Some(*owner))) {
            let account = accounts::accounts_by_ids(store, &[owner]).await?.pop();
            extras.owner = account.map(|account| account.name);
            extras.owner_vouched_until = vouched_until;
        }
        Ok(extras)
    }
}

/// Sums up several sources by day, newest day first.
fn sum_fetches_by_day(days: impl Iterator<Item = DailyFetches>) -> Vec<DailyFetches> {
    let mut totals: Vec<DailyFetches> = Vec::new();
    for one in days {
        match totals.iter_mut().find(|total| total.day == one.day) {
            Some(total) => {
                total.fetches = total.fetches.saturating_add(one.fetches);
                total.successful = total.successful.saturating_add(one.successful);
            }
            None => totals.push(one),
        }
    }
    totals.sort_unstable_by_key(|total| std::cmp::Reverse(total.day));
    totals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_days_of_several_sources_are_added_up() {
        let day = |day, fetches, good| DailyFetches {
            day,
            fetches,
            successful: good,
        };
        let found = sum_fetches_by_day(
            [day(7, 2, 1), day(9, 1, 1), day(7, 3, 3), day(8, 0, 0)].into_iter(),
        );
        assert_eq!(found, [day(9, 1, 1), day(8, 0, 0), day(7, 5, 4)]);
    }
}
