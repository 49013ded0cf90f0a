//! Cards that are nominated by a catalog at a registered URL (docs/ownership.md#coverage).

use a2a_registry_domain::role::{Permission, Role};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{source, source_registrant};
use a2a_registry_store::{Write, coverage};

use crate::context::Context;
use crate::crawl::ingest::group::Group;
use crate::error::Result;

/// Maximum number of cards that a catalog nominates if no proof of the domain covers it.
pub const MAX_NOMINATED: usize = 50;

/// How many more cards a catalog may nominate that was registered by its URL and that no proof covers. Its entries
/// count as registered by its first registrant, so that a list gets no more cards in than separate registrations.
pub struct Nominations {
    by: Option<source_registrant::Model>,
    left: usize,
}

impl Nominations {
    /// The remaining nominations of a catalog and its first registrant.
    pub async fn load(
        context: &Context,
        write: &Write,
        group: &Group,
        catalog: &source::Model,
    ) -> Result<Self> {
        let mut registrants = group.standings.registrants(catalog.id).iter();
        // A registrant that has withdrawn leaves a row without account or network.
        let by = registrants.find(|row| row.account_id.is_some() || row.network.is_some());
        let by = by.cloned();
        let listed = group.of_domain(catalog.domain_id);
        let listed = listed.filter(|row| row.catalog_id == Some(catalog.id));
        let of_catalog = MAX_NOMINATED.saturating_sub(listed.count());
        let limits = &context.config.limits;
        let of_registrant = match &by {
            Some(row) if is_admin(row) => u64::MAX,
            Some(source_registrant::Model {
                account_id: Some(account),
                ..
            }) => {
                let registered = coverage::sources_registered(write, *account).await?;
                limits.sources_per_account.saturating_sub(registered)
            }
            Some(source_registrant::Model {
                network: Some(network),
                ..
            }) => {
                let pending = coverage::nominations_pending(write, network).await?;
                limits.pending_nominations.saturating_sub(pending)
            }
            _ => u64::MAX,
        };
        let of_registrant = usize::try_from(of_registrant).unwrap_or(usize::MAX);
        Ok(Self {
            by,
            left: of_catalog.min(of_registrant),
        })
    }

    pub const fn is_used_up(&self) -> bool {
        self.left == 0
    }

    /// Counts a new source as one that the catalog's registrant has registered. It does not vouch for the card as a
    /// registrant of that very URL does, so its role is not stored.
    pub async fn take(&mut self, write: &Write, source: i64, now: Timestamp) -> Result<()> {
        self.left = self.left.saturating_sub(1);
        if let Some(by) = &self.by {
            let row = source_registrant::Model {
                id: 0,
                source_id: source,
                role: None,
                registered_at: now.0,
                ..by.clone()
            };
            write.registrant_add(row).await?;
        }
        Ok(())
    }
}

fn is_admin(row: &source_registrant::Model) -> bool {
    let role: Option<Role> = row.role.as_ref().and_then(|role| role.known());
    role.is_some_and(|role| role.may(Permission::Administer))
}
