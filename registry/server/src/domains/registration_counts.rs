//! Limits of registrations over all domains: how many domains and cards a caller has registered.

use a2a_registry_domain::role::Permission;
use a2a_registry_store::{Write, coverage, domains};

use crate::caller::Caller;
use crate::context::Context;
use crate::error::{AppError, ErrorKind};

/// What a caller has registered that counts against its limits. It is read once for a write and counted on, since counting
/// all that an account has for each URL of a bulk would cost more than all else.
#[derive(Debug, Default)]
pub(crate) struct RegistrationCounts {
    domains: Option<u64>,
    cards: Option<u64>,
}

impl RegistrationCounts {
    /// Counts the caller's domains, before any is inserted.
    pub(crate) async fn count_domains(
        &mut self,
        write: &Write,
        caller: &Caller,
    ) -> Result<(), AppError> {
        if let Some(account) = &caller.account
            && !account.may(Permission::Administer)
        {
            self.domains = Some(domains::domain_count(write, account.id).await?);
        }
        Ok(())
    }

    /// Refuses one more domain if the caller has reached its limit.
    ///
    /// # Errors
    /// `LimitReached`.
    pub(crate) fn check_domains(&self, context: &Context) -> Result<(), AppError> {
        let limit = context.config.limits.domains_per_account;
        if self.domains.is_some_and(|domains| domains >= limit) {
            return Err(AppError::new(
                ErrorKind::LimitReached,
                format!("This account has reached its limit of {limit} domains."),
            ));
        }
        Ok(())
    }

    /// Counts a domain that was added.
    pub(crate) fn added_domain(&mut self) {
        self.domains = self.domains.map(|domains| domains.saturating_add(1));
    }

    /// Refuses one more card source if the caller has reached its limit.
    ///
    /// # Errors
    /// `LimitReached`.
    pub(crate) async fn check_cards(
        &mut self,
        context: &Context,
        write: &Write,
        caller: &Caller,
    ) -> Result<(), AppError> {
        if caller.may(Permission::Administer) {
            return Ok(());
        }
        let limits = &context.config.limits;
        if let Some(account) = &caller.account {
            let limit = limits.sources_per_account;
            let cards = match self.cards {
                Some(cards) => cards,
                None => coverage::sources_registered(write, account.id).await?,
            };
            self.cards = Some(cards);
            if cards >= limit {
                return Err(AppError::new(
                    ErrorKind::LimitReached,
                    format!("This account has reached its limit of {limit} card sources."),
                ));
            }
        } else if let Some(network) = caller.network {
            let limit = limits.pending_nominations;
            let network = network.to_string();
            if coverage::nominations_pending(write, &network).await? >= limit {
                return Err(AppError::new(
                    ErrorKind::LimitReached,
                    format!(
                        "{limit} cards that were named from your network wait for a curator, as many \
                         as may. Use a token, or wait for a decision."
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Counts a card source that was added. One that the caller had registered before may count already, so that all are counted
    /// again where that is possible.
    pub(crate) fn added_card(&mut self, may_count_already: bool) {
        self.cards = self
            .cards
            .filter(|_| !may_count_already)
            .map(|cards| cards.saturating_add(1));
    }
}
