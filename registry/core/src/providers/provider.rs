//! An identity provider: the queries of its metadata, and its tokens.
//!
//! Its metadata is kept in memory and refreshed in the background. While the provider does not respond, the known
//! metadata stays in use: its tokens are verified with the known keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use a2a_card::{CompactJws, TokenError};
use a2a_crawler::Clock;
use a2a_crawler::fetch::{ClientSecretBasic, Fetcher};
use a2a_registry_domain::role::Role;
use a2a_registry_domain::timestamp::Timestamp;
use arc_swap::ArcSwapOption;
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use crate::config::IdentityProviderConfig;
use crate::error::{AppError, Result};
use crate::providers::access_token;
use crate::providers::id_token::{self, ExpectedClaims};
use crate::providers::metadata::{
    ProviderMetadata, ProviderMetadataAndKeys, fetch_provider_metadata,
};
use crate::providers::token_rejection::{TokenRejection, token_rejection_error};
use crate::providers::token_subject::{ClaimCompleteness, TokenSubject, build_token_subject};

/// How long metadata is current. While the provider responds, a withdrawn key stays valid no longer than this.
const METADATA_MAX_AGE: Duration = Duration::from_secs(10 * 60);
/// The minimum time between two requests for an unknown key, between two background requests, and between two for
/// sign-ins while the provider responds.
const MIN_QUERY_INTERVAL: Duration = Duration::from_secs(60);
/// The minimum time between two requests while no metadata is known.
const FIRST_QUERY_INTERVAL: Duration = Duration::from_secs(5);

pub struct IdentityProvider {
    name: String,
    pub(super) config: IdentityProviderConfig,
    pub(super) client_secret: Option<String>,
    pub(super) client_password: Option<ClientSecretBasic>,
    pub(super) fetcher: Arc<Fetcher>,
    pub(super) clock: Arc<dyn Clock>,
    cached: ArcSwapOption<ProviderMetadataAndKeys>,
    /// How often something failed because the provider did not respond correctly.
    errors: AtomicU64,
    /// What went wrong last, and when.
    last_error: ArcSwapOption<(Timestamp, String)>,
    /// Locked while the provider is queried, so that there is only one query at a time.
    refresh_state: Mutex<MetadataRefreshState>,
}

impl std::fmt::Debug for IdentityProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct MetadataRefreshState {
    /// When the last request began, and its error if it failed.
    last_request: Option<(Duration, Option<String>)>,
    /// When the last successful request began.
    last_success: Option<Duration>,
    /// Whether the provider has failed during a sign-in since then.
    is_suspect: bool,
    /// When the provider was last queried for an unknown key.
    last_key_request: Option<Duration>,
}

impl IdentityProvider {
    pub(super) fn new(
        name: &str,
        config: &IdentityProviderConfig,
        fetcher: Arc<Fetcher>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let secret = config.read_client_secret()?;
        let password = secret.as_deref().map(|secret| {
            let password = ClientSecretBasic::new(&config.client_id, secret);
            password.map_err(|_| "client_secret cannot be sent".to_owned())
        });
        Ok(Self {
            name: name.to_owned(),
            config: config.clone(),
            client_password: password.transpose()?,
            client_secret: secret,
            fetcher,
            clock,
            cached: ArcSwapOption::empty(),
            errors: AtomicU64::new(0),
            last_error: ArcSwapOption::empty(),
            refresh_state: Mutex::default(),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn title(&self) -> &str {
        match self.config.title.as_str() {
            "" => &self.name,
            title => title,
        }
    }

    pub fn issuer(&self) -> &str {
        &self.config.issuer
    }

    pub fn supports_sign_in(&self) -> bool {
        !self.config.client_id.is_empty()
    }

    pub(super) fn can_admit_accounts(&self) -> bool {
        let takes_tokens = !self.config.audiences.is_empty();
        self.config.require.is_some() && (self.supports_sign_in() || takes_tokens)
    }

    /// Whether its role mapping can make an admitted person an admin.
    pub(super) fn can_make_admins(&self) -> bool {
        let mapped = self.config.roles.values().flatten();
        let mut roles = self.config.default_roles.iter().chain(mapped);
        self.can_admit_accounts() && roles.any(|role| *role == Role::Admin)
    }

    pub(super) fn error_count(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    pub(super) fn last_error(&self) -> Option<(Timestamp, String)> {
        self.last_error.load_full().map(|error| (*error).clone())
    }

    /// Counts that the provider did not respond correctly, and returns the error.
    pub(super) fn unavailable_error(&self, reason: String) -> AppError {
        self.errors.fetch_add(1, Ordering::Relaxed);
        let now = Timestamp::from(self.clock.now());
        self.last_error.store(Some(Arc::new((now, reason.clone()))));
        let text = format!(
            "The identity provider {} does not respond correctly, so sign-ins with it fail. Try again later, or \
             sign in with a token.",
            self.title()
        );
        AppError {
            internal: Some(format!("identity provider {}: {reason}", self.name)),
            ..AppError::unavailable(text, 30)
        }
    }

    /// Queries the provider. A caller that waited for another caller's request uses that result.
    pub(super) async fn refresh(&self) -> Result<Arc<ProviderMetadataAndKeys>> {
        let requested_at = self.clock.monotonic();
        let mut refresh_state = self.refresh_state.lock().await;
        self.refresh_locked(&mut refresh_state, requested_at).await
    }

    async fn refresh_locked(
        &self,
        refresh_state: &mut MetadataRefreshState,
        requested_at: Duration,
    ) -> Result<Arc<ProviderMetadataAndKeys>> {
        if let Some((begun, failure)) = &refresh_state.last_request
            && *begun > requested_at
        {
            return match (failure, self.cached.load_full()) {
                (None, Some(known)) => Ok(known),
                (failure, _) => Err(self.unavailable_error(failure.clone().unwrap_or_default())),
            };
        }
        let begun = self.clock.monotonic();
        match fetch_provider_metadata(&self.fetcher, self.issuer()).await {
            Ok(known) => {
                self.cached.store(Some(Arc::clone(&known)));
                refresh_state.last_request = Some((begun, None));
                refresh_state.last_success = Some(begun);
                refresh_state.is_suspect = false;
                Ok(known)
            }
            Err(reason) => {
                refresh_state.last_request = Some((begun, Some(reason.clone())));
                Err(self.unavailable_error(reason))
            }
        }
    }

    /// Returns the known metadata; without any, queries the provider, but not repeatedly at once.
    async fn cached_or_refresh(self: &Arc<Self>) -> Result<Arc<ProviderMetadataAndKeys>> {
        if let Some(known) = self.cached.load_full() {
            self.refresh_in_background();
            return Ok(known);
        }
        let requested_at = self.clock.monotonic();
        let mut refresh_state = self.refresh_state.lock().await;
        if let Some(known) = self.cached.load_full() {
            return Ok(known);
        }
        if let Some((begun, failure)) = &refresh_state.last_request
            && requested_at.saturating_sub(*begun) < FIRST_QUERY_INTERVAL
        {
            return Err(self.unavailable_error(failure.clone().unwrap_or_default()));
        }
        self.refresh_locked(&mut refresh_state, requested_at).await
    }

    /// Queries the provider in the background, if the metadata is not current and no query is in progress.
    fn refresh_in_background(self: &Arc<Self>) {
        let Ok(refresh_state) = self.refresh_state.try_lock() else {
            return;
        };
        let now = self.clock.monotonic();
        let is_old = |since: Option<Duration>, age: Duration| {
            since.is_none_or(|since| now.saturating_sub(since) >= age)
        };
        let last = refresh_state.last_request.as_ref().map(|(begun, _)| *begun);
        if !is_old(refresh_state.last_success, METADATA_MAX_AGE)
            || !is_old(last, MIN_QUERY_INTERVAL)
        {
            return;
        }
        drop(refresh_state);
        let provider = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = provider.refresh().await {
                let reason = error.internal.unwrap_or_default();
                tracing::warn!(
                    reason,
                    "an identity provider cannot be queried; its known keys stay in use"
                );
            }
        });
    }

    /// Returns refreshed metadata after a key was missing, if the provider may be queried for a key now.
    async fn refresh_for_new_key(&self) -> Option<Arc<ProviderMetadataAndKeys>> {
        let requested_at = self.clock.monotonic();
        let mut refresh_state = self.refresh_state.lock().await;
        if refresh_state
            .last_success
            .is_some_and(|begun| begun > requested_at)
        {
            return self.cached.load_full();
        }
        if let Some(before) = refresh_state.last_key_request
            && requested_at.saturating_sub(before) < MIN_QUERY_INTERVAL
        {
            return None;
        }
        refresh_state.last_key_request = Some(requested_at);
        let result = self.refresh_locked(&mut refresh_state, requested_at).await;
        result
            .inspect_err(|error| {
                let reason = error.internal.as_deref();
                tracing::warn!(
                    reason,
                    "an identity provider cannot be queried for an unknown key"
                );
            })
            .ok()
    }

    /// Verifies a token with the provider's keys and returns its claims.
    async fn verify_token_signature(
        self: &Arc<Self>,
        token: &CompactJws<'_>,
    ) -> Result<Result<Map<String, Value>, TokenRejection>> {
        let cached = self.cached_or_refresh().await?;
        let mut claims = token.verify(&cached.keys).cloned();
        if claims == Err(TokenError::KeyUnknown)
            && let Some(newer) = self.refresh_for_new_key().await
        {
            claims = token.verify(&newer.keys).cloned();
        }
        Ok(claims.map_err(TokenRejection::from))
    }

    fn unix_seconds_now(&self) -> i64 {
        self.clock.now().unix_timestamp()
    }

    /// Verifies an access token and returns its holder.
    pub async fn verify_access_token(self: &Arc<Self>, token: &str) -> Result<TokenSubject> {
        let reject = |why| token_rejection_error("access token", why);
        let parsed = CompactJws::parse(token).map_err(|fault| reject(fault.into()))?;
        let claims = self
            .verify_token_signature(&parsed)
            .await?
            .map_err(reject)?;
        let config = &self.config;
        let now = self.unix_seconds_now();
        let issued_at = access_token::check_access_token_claims(
            parsed.typ(),
            &claims,
            self.issuer(),
            &config.audiences,
            now,
        )
        .map_err(reject)?;
        build_token_subject(
            &self.name,
            config,
            &claims,
            issued_at,
            ClaimCompleteness::AccessToken,
        )
    }

    /// Verifies the identity token of a sign-in attempt; returns its claims and when it was issued.
    pub(super) async fn verify_id_token(
        self: &Arc<Self>,
        token: &str,
        nonce: &str,
    ) -> Result<(Map<String, Value>, i64)> {
        let reject = |why| token_rejection_error("sign-in", why);
        let parsed = CompactJws::parse(token).map_err(|fault| reject(fault.into()))?;
        let claims = self
            .verify_token_signature(&parsed)
            .await?
            .map_err(reject)?;
        let expected = ExpectedClaims {
            issuer: self.issuer(),
            client_id: &self.config.client_id,
            nonce,
            now: self.unix_seconds_now(),
        };
        let issued_at =
            id_token::check_id_token_claims(parsed.typ(), &claims, &expected).map_err(reject)?;
        Ok((claims, issued_at))
    }

    /// Returns the current metadata. Anyone can cause this query, so recent metadata counts as current unless the
    /// provider has failed since.
    pub(super) async fn current_metadata(&self) -> Result<ProviderMetadata> {
        let requested_at = self.clock.monotonic();
        let mut refresh_state = self.refresh_state.lock().await;
        let recent = match &refresh_state.last_request {
            Some((begun, None)) if requested_at.saturating_sub(*begun) < MIN_QUERY_INTERVAL => self
                .cached
                .load_full()
                .filter(|_| !refresh_state.is_suspect),
            _ => None,
        };
        let cached = match recent {
            Some(known) => known,
            None => {
                self.refresh_locked(&mut refresh_state, requested_at)
                    .await?
            }
        };
        Ok(cached.metadata.clone())
    }

    /// Makes the next sign-in query the provider again, because it did not respond correctly.
    pub(super) async fn mark_suspect(&self) {
        self.refresh_state.lock().await.is_suspect = true;
    }

    /// Returns the last known metadata.
    pub(super) async fn known_metadata(self: &Arc<Self>) -> Result<ProviderMetadata> {
        self.cached_or_refresh()
            .await
            .map(|known| known.metadata.clone())
    }
}
