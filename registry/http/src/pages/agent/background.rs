//! What the page of an agent shows beside the agent itself: the history of its fetches, and who proved its domain.

use a2a_registry_api::Proof;
use a2a_registry_core::agents::memberships::collections_holding;
use a2a_registry_core::agents::records::AgentRecord;
use a2a_registry_core::agents::views::owns;
use a2a_registry_core::context::Context;
use a2a_registry_core::domains::domain_access::DomainAccess;
use a2a_registry_core::domains::row_views::proof_view;
use a2a_registry_core::error::Result;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::{accounts, crawl, domains};

/// The fetches of one day, of all sources of an agent together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DayTotal {
    /// Days since 1970-01-01, in UTC.
    pub day: i32,
    pub fetches: u64,
    /// Fetches that returned a card.
    pub good: u64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Background {
    pub days: Vec<DayTotal>,
    pub proofs: Vec<Proof>,
    pub collections: Vec<String>,
    /// The name of the account that owns its domain; only for that account and for callers who see everything.
    pub owner: Option<String>,
    /// Until when an admin vouches for that account; `None` if it has proved the domain.
    pub owner_vouched_until: Option<Timestamp>,
}

impl Background {
    /// The caller must be allowed to see the agent. Proofs are shown with a listed agent, as on its domain's page
    /// (docs/model.md#visibility).
    pub(crate) async fn load(
        context: &Context,
        caller: &Caller,
        record: &AgentRecord,
    ) -> Result<Self> {
        let store = &context.store;
        let sources: Vec<i64> = record.sources().iter().map(|source| source.id).collect();
        let days = crawl::source_days_of(store, &sources).await?;
        let domain = [record.agent.domain_id];
        let sees_all = caller.may(Permission::SeeAll);
        let mut known = Self {
            days: totals(days.iter().map(|row| DayTotal {
                day: row.day,
                fetches: u64::try_from(row.looks).unwrap_or(0),
                good: u64::try_from(row.good).unwrap_or(0),
            })),
            collections: collections_holding(context, caller, record).await?,
            ..Self::default()
        };
        if !(sees_all || record.listed() || owns(context, caller, &record.agent).await?) {
            return Ok(known);
        }
        let proofs = domains::proofs_of(store, &domain).await?;
        known.proofs = proofs
            .iter()
            .map(|proof| proof_view(proof, DomainAccess::Outside))
            .collect();
        let owner = domains::domains_by_ids(store, &domain).await?;
        let now = context.now();
        let vouched = owner
            .first()
            .filter(|row| row.vouched_owner_at(now).is_some());
        let vouched_until = vouched.and_then(|row| row.vouched_until).map(Timestamp);
        let owner = owner.first().and_then(|row| row.owner_at(now));
        if let Some(owner) = owner.filter(|owner| sees_all || caller.is(Some(*owner))) {
            let account = accounts::accounts_by_ids(store, &[owner]).await?.pop();
            known.owner = account.map(|account| account.name);
            known.owner_vouched_until = vouched_until;
        }
        Ok(known)
    }
}

/// Totals per day over several sources, the newest day first.
fn totals(days: impl Iterator<Item = DayTotal>) -> Vec<DayTotal> {
    let mut totals: Vec<DayTotal> = Vec::new();
    for one in days {
        match totals.iter_mut().find(|total| total.day == one.day) {
            Some(total) => {
                total.fetches = total.fetches.saturating_add(one.fetches);
                total.good = total.good.saturating_add(one.good);
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
        let day = |day, fetches, good| DayTotal { day, fetches, good };
        let found = totals([day(7, 2, 1), day(9, 1, 1), day(7, 3, 3), day(8, 0, 0)].into_iter());
        assert_eq!(found, [day(9, 1, 1), day(8, 0, 0), day(7, 5, 4)]);
    }
}
