//! Limits of registrations over all domains: how many domains and cards a caller has registered.

use a2a_registry_domain::role::Permission;
use a2a_registry_store::{WriteTransaction, domains, registrants};

use crate::context::AppContext;
use crate::error::{AppError, Result};
use crate::visibility::caller::Caller;

/// The registrations of a caller that count against its limits. They are read once per write and then updated:
/// counting all registrations of an account for each URL of a bulk would cost more than the rest of the write.
#[derive(Debug, Default)]
pub struct RegistrationCounts {
    domains: Option<u64>,
    cards: Option<u64>,
}

impl RegistrationCounts {
    /// Counts the domains; must be called before any domain is inserted.
    pub async fn count_domains(&mut self, write: &WriteTransaction, caller: &Caller) -> Result<()> {
        if let Some(account) = &caller.account
            && !account.has_permission(Permission::Administer)
        {
            self.domains = Some(domains::domain_count_by_registrant(write, account.id).await?);
        }
        Ok(())
    }

    pub fn check_domain_limit(&self, context: &AppContext) -> Result<()> {
        let limit = context.config().limits.domains_per_account;
        if self.domains.is_some_and(|domains| domains >= limit) {
            return Err(AppError::limit_reached(format!(
                "This account has reached its limit of {limit} domains."
            )));
        }
        Ok(())
    }

    pub fn count_added_domain(&mut self) {
        self.domains = self.domains.map(|domains| domains.saturating_add(1));
    }

    pub async fn check_card_limit(
        &mut self,
        context: &AppContext,
        write: &WriteTransaction,
        caller: &Caller,
    ) -> Result<()> {
        if caller.has_permission(Permission::Administer) {
            return Ok(());
        }
        let limits = &context.config().limits;
        if let Some(account) = &caller.account {
            let limit = limits.sources_per_account;
            let cards = match self.cards {
                Some(cards) => cards,
                None => registrants::source_count_by_registrant(write, account.id).await?,
            };
            self.cards = Some(cards);
            if cards >= limit {
                return Err(AppError::limit_reached(format!(
                    "This account has reached its limit of {limit} card sources."
                )));
            }
        } else if let Some(network) = caller.network {
            let limit = limits.pending_nominations;
            let network = network.to_string();
            if registrants::pending_nomination_count(write, &network).await? >= limit {
                return Err(AppError::limit_reached(format!(
                    "{limit} cards nominated from your network await a curator's decision, the maximum. Use a token, \
                     or wait for a decision."
                )));
            }
        }
        Ok(())
    }

    /// Counts a card source that was added. If the caller may have registered it before, it may already count, so all
    /// are counted again.
    pub fn count_added_card(&mut self, may_count_already: bool) {
        self.cards = self
            .cards
            .filter(|_| !may_count_already)
            .map(|cards| cards.saturating_add(1));
    }
}
