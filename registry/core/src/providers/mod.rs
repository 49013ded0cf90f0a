//! Identity providers: their metadata and keys, and the verification of their tokens. This module does not know
//! accounts.

pub mod access_token;
pub mod authorization;
pub mod id_token;
pub mod metadata;
pub mod provider;
pub mod provider_check;
pub mod token_rejection;
pub mod token_subject;
pub mod token_times;
pub mod userinfo;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use a2a_card::CompactJws;
use a2a_crawler::Clock;
use a2a_crawler::fetch::Fetcher;
use a2a_registry_domain::timestamp::Timestamp;

pub use authorization::{AuthorizationResponse, SignInAttemptSecrets, redirect_uri};
pub use provider::IdentityProvider;
pub use token_rejection::{TokenRejection, token_rejection_error};
pub use token_subject::{AccountGrant, GrantRejection, TokenSubject};

use crate::config::Config;
use crate::error::StartError;

/// What this process has seen of an identity provider since its start.
#[derive(Debug, Clone)]
pub struct ProviderStatus {
    pub name: String,
    pub issuer: String,
    /// Number of times that it did not respond correctly.
    pub errors: u64,
    pub last_error: Option<(Timestamp, String)>,
}

#[derive(Debug)]
pub struct IdentityProviders(Vec<Arc<IdentityProvider>>);

impl IdentityProviders {
    /// Creates the providers of a configuration, to be queried through this fetcher. Sends no request yet.
    pub fn new(
        config: &Config,
        fetcher: Option<&Arc<Fetcher>>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, StartError> {
        let Some(fetcher) = fetcher else {
            return Ok(Self(Vec::new()));
        };
        let all = config.identity.providers.iter().map(|(name, own)| {
            if own.require.is_none() {
                tracing::warn!(
                    provider = name.as_str(),
                    "no user of this identity provider can sign in: `require` is not set"
                );
            }
            let made = IdentityProvider::new(name, own, Arc::clone(fetcher), Arc::clone(clock));
            made.map(Arc::new)
                .map_err(|error| StartError(format!("identity.providers.{name}.{error}")))
        });
        all.collect::<Result<_, _>>().map(Self)
    }

    /// The providers that people can sign in with, in the order of their names.
    pub fn sign_in_providers(&self) -> impl Iterator<Item = &Arc<IdentityProvider>> {
        self.0.iter().filter(|provider| provider.supports_sign_in())
    }

    /// The provider with this name, if people can sign in with it.
    pub fn sign_in_provider_named(&self, name: &str) -> Option<&Arc<IdentityProvider>> {
        self.sign_in_providers()
            .find(|provider| provider.name() == name)
    }

    /// How often each provider did not respond correctly, by its name.
    pub fn error_counts(&self) -> Vec<(String, u64)> {
        let counts = self.0.iter();
        counts
            .map(|provider| (provider.name().to_owned(), provider.error_count()))
            .collect()
    }

    pub fn statuses(&self) -> Vec<ProviderStatus> {
        let status = |provider: &Arc<IdentityProvider>| ProviderStatus {
            name: provider.name().to_owned(),
            issuer: provider.issuer().to_owned(),
            errors: provider.error_count(),
            last_error: provider.last_error(),
        };
        self.0.iter().map(status).collect()
    }

    pub fn by_issuer(&self, issuer: &str) -> Option<&Arc<IdentityProvider>> {
        self.0.iter().find(|provider| provider.issuer() == issuer)
    }

    /// Whether a provider's map of roles may make someone an admin.
    pub fn can_make_admins(&self) -> bool {
        self.0.iter().any(|provider| provider.can_make_admins())
    }

    /// Whether this issuer admits anyone.
    pub fn issuer_can_admit_accounts(&self, issuer: &str) -> bool {
        self.by_issuer(issuer)
            .is_some_and(|provider| provider.can_admit_accounts())
    }

    /// The provider that a token names as its issuer, whether or not it issued the token. `None` if the token is not a
    /// JWT.
    pub fn by_claimed_issuer(&self, token: &str) -> Option<&Arc<IdentityProvider>> {
        if self.0.is_empty() {
            return None;
        }
        self.by_issuer(&CompactJws::claimed_issuer(token)?)
    }
}
