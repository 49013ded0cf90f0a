//! Cards nominated by a catalog at a registered URL (docs/publish/prove.md#what-a-proof-covers).

use a2a_registry_domain::role::{Permission, Role};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{source, source_registrant};
use a2a_registry_store::{WriteTransaction, registrants};

use crate::context::AppContext;
use crate::crawl::ingest::batch::IngestBatch;
use crate::error::Result;

/// Maximum number of cards that a catalog may nominate if no proof of the domain covers it.
pub const MAX_NOMINATED: usize = 50;

/// The number of cards that a catalog may still nominate, if it was registered by its URL and no proof covers it. Its
/// entries count as registered by its first registrant, so that a list admits no more cards than separate
/// registrations.
pub struct NominationAllowance {
    registrant: Option<source_registrant::Model>,
    remaining: usize,
}

impl NominationAllowance {
    /// Loads the remaining nominations of a catalog and its first registrant.
    pub async fn load(
        context: &AppContext,
        write: &WriteTransaction,
        batch: &IngestBatch,
        catalog: &source::Model,
    ) -> Result<Self> {
        let mut registrants = batch.coverage_evidence.registrants(catalog.id).iter();
        // A registrant that has withdrawn leaves a row without account or network.
        let registrant = registrants.find(|row| row.account_id.is_some() || row.network.is_some());
        let registrant = registrant.cloned();
        let listed = batch.live_domain_sources(catalog.domain_id);
        let listed = listed.filter(|row| row.catalog_id == Some(catalog.id));
        let catalog_remaining = MAX_NOMINATED.saturating_sub(listed.count());
        let limits = &context.config().limits;
        let registrant_remaining = match &registrant {
            Some(row) if is_admin_registrant(row) => u64::MAX,
            Some(source_registrant::Model {
                account_id: Some(account),
                ..
            }) => {
                let registered = registrants::source_count_by_registrant(write, *account).await?;
                limits.sources_per_account.saturating_sub(registered)
            }
            Some(source_registrant::Model {
                network: Some(network),
                ..
            }) => {
                let pending = registrants::pending_nomination_count(write, network).await?;
                limits.pending_nominations.saturating_sub(pending)
            }
            _ => u64::MAX,
        };
        let registrant_remaining = usize::try_from(registrant_remaining).unwrap_or(usize::MAX);
        Ok(Self {
            registrant,
            remaining: catalog_remaining.min(registrant_remaining),
        })
    }

    pub const fn is_used_up(&self) -> bool {
        self.remaining == 0
    }

    /// Counts a new source as registered by the catalog's registrant. That registrant does not vouch for the card as
    /// one of that exact URL does, so its role is not stored.
    pub async fn consume(
        &mut self,
        write: &WriteTransaction,
        source: i64,
        now: Timestamp,
    ) -> Result<()> {
        self.remaining = self.remaining.saturating_sub(1);
        if let Some(by) = &self.registrant {
            let row = source_registrant::Model {
                id: 0,
                source_id: source,
                role: None,
                registered_at: now.0,
                ..by.clone()
            };
            write.insert_registrant(row).await?;
        }
        Ok(())
    }
}

fn is_admin_registrant(row: &source_registrant::Model) -> bool {
    let role: Option<Role> = row.role.as_ref().and_then(|role| role.known_value());
    role.is_some_and(|role| role.has_permission(Permission::Administer))
}
