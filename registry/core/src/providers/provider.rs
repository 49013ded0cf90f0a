//! One identity provider: when it is queried, and its tokens.
//!
//! Its metadata is kept in the memory of a process and refreshed in the background. While it does not respond, the
//! known metadata stays in use: its tokens are verified with the known keys.

use std::sync::Arc;
use std::time::Duration;

use a2a_card::{SignedClaims, TokenFault};
use a2a_crawler::Clock;
use a2a_crawler::fetch::{ClientPassword, Fetcher};
use a2a_registry_domain::role::Role;
use arc_swap::ArcSwapOption;
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use crate::config::ProviderConfig;
use crate::error::{AppError, Result};
use crate::providers::access_token;
use crate::providers::document::{Document, Known, fetch};
use crate::providers::holder::{Completeness, Holder, holder};
use crate::providers::id_token::{self, Expected};
use crate::providers::refused::{Refused, refused};

/// How long its metadata is current. A key that it withdraws is valid for no longer, while it responds.
const CURRENT: Duration = Duration::from_secs(10 * 60);
/// The time between two requests for an unknown key, between two in the background, and between two for people who sign
/// in while it responds.
const BETWEEN: Duration = Duration::from_secs(60);
/// The time between two requests while nothing is known at all.
const BETWEEN_FIRST: Duration = Duration::from_secs(5);

pub struct Provider {
    name: String,
    pub(super) config: ProviderConfig,
    pub(super) secret: Option<String>,
    pub(super) password: Option<ClientPassword>,
    pub(super) fetcher: Arc<Fetcher>,
    pub(super) clock: Arc<dyn Clock>,
    known: ArcSwapOption<Known>,
    /// Held while it is queried, so that there is one query at a time.
    turn: Mutex<Turn>,
}

impl std::fmt::Debug for Provider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Provider")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Turn {
    /// When the last request began, and its error if it failed.
    last: Option<(Duration, Option<String>)>,
    /// When the last successful request began.
    succeeded: Option<Duration>,
    /// Whether it has failed during a sign-in since then.
    is_doubtful: bool,
    /// When it was last queried for an unknown key.
    for_a_key: Option<Duration>,
}

impl Provider {
    pub(super) fn new(
        name: &str,
        config: &ProviderConfig,
        fetcher: Arc<Fetcher>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, String> {
        let secret = config.read_secret()?;
        let password = secret.as_deref().map(|secret| {
            let password = ClientPassword::new(&config.client_id, secret);
            password.map_err(|_| "client_secret cannot be sent".to_owned())
        });
        Ok(Self {
            name: name.to_owned(),
            config: config.clone(),
            password: password.transpose()?,
            secret,
            fetcher,
            clock,
            known: ArcSwapOption::empty(),
            turn: Mutex::default(),
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

    pub fn signs_people_in(&self) -> bool {
        !self.config.client_id.is_empty()
    }

    pub(super) fn admits(&self) -> bool {
        let takes_tokens = !self.config.audiences.is_empty();
        self.config.require.is_some() && (self.signs_people_in() || takes_tokens)
    }

    /// Whether its map of roles makes someone an admin who may enter.
    pub(super) fn can_make_admins(&self) -> bool {
        let mapped = self.config.roles.values().flatten();
        let mut roles = self.config.default_roles.iter().chain(mapped);
        self.admits() && roles.any(|role| *role == Role::Admin)
    }

    pub(super) fn away(&self, reason: String) -> AppError {
        let text = format!(
            "The identity provider {} does not respond as it should, so nobody can sign in with it. Try again later, or \
             sign in with a token.",
            self.title()
        );
        AppError {
            internal: Some(format!("identity provider {}: {reason}", self.name)),
            ..AppError::unavailable(text, 30)
        }
    }

    /// Queries it. A caller that has waited for another's request takes its result.
    pub(super) async fn ask(&self) -> Result<Arc<Known>> {
        let wanted = self.clock.monotonic();
        let mut turn = self.turn.lock().await;
        self.ask_in(&mut turn, wanted).await
    }

    async fn ask_in(&self, turn: &mut Turn, wanted: Duration) -> Result<Arc<Known>> {
        if let Some((begun, failure)) = &turn.last
            && *begun > wanted
        {
            return match (failure, self.known.load_full()) {
                (None, Some(known)) => Ok(known),
                (failure, _) => Err(self.away(failure.clone().unwrap_or_default())),
            };
        }
        let begun = self.clock.monotonic();
        match fetch(&self.fetcher, self.issuer()).await {
            Ok(known) => {
                self.known.store(Some(Arc::clone(&known)));
                turn.last = Some((begun, None));
                turn.succeeded = Some(begun);
                turn.is_doubtful = false;
                Ok(known)
            }
            Err(reason) => {
                turn.last = Some((begun, Some(reason.clone())));
                Err(self.away(reason))
            }
        }
    }

    /// What is known, if anything; else it is queried, but not again at once.
    async fn known(self: &Arc<Self>) -> Result<Arc<Known>> {
        if let Some(known) = self.known.load_full() {
            self.renew();
            return Ok(known);
        }
        let wanted = self.clock.monotonic();
        let mut turn = self.turn.lock().await;
        if let Some(known) = self.known.load_full() {
            return Ok(known);
        }
        if let Some((begun, failure)) = &turn.last
            && wanted.saturating_sub(*begun) < BETWEEN_FIRST
        {
            return Err(self.away(failure.clone().unwrap_or_default()));
        }
        self.ask_in(&mut turn, wanted).await
    }

    /// Queries it in the background, if the metadata is not current and no query is in progress.
    fn renew(self: &Arc<Self>) {
        let Ok(turn) = self.turn.try_lock() else {
            return;
        };
        let now = self.clock.monotonic();
        let is_old = |since: Option<Duration>, age: Duration| {
            since.is_none_or(|since| now.saturating_sub(since) >= age)
        };
        let last = turn.last.as_ref().map(|(begun, _)| *begun);
        if !is_old(turn.succeeded, CURRENT) || !is_old(last, BETWEEN) {
            return;
        }
        drop(turn);
        let provider = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = provider.ask().await {
                let reason = error.internal.unwrap_or_default();
                tracing::warn!(reason, "the known keys of an identity provider go on");
            }
        });
    }

    /// What is known after a key was missing, if it may be queried for one now.
    async fn with_new_keys(&self) -> Option<Arc<Known>> {
        let wanted = self.clock.monotonic();
        let mut turn = self.turn.lock().await;
        if turn.succeeded.is_some_and(|begun| begun > wanted) {
            return self.known.load_full();
        }
        if let Some(before) = turn.for_a_key
            && wanted.saturating_sub(before) < BETWEEN
        {
            return None;
        }
        turn.for_a_key = Some(wanted);
        let asked = self.ask_in(&mut turn, wanted).await;
        asked
            .inspect_err(|error| {
                let reason = error.internal.as_deref();
                tracing::warn!(reason, "an identity provider was asked for a key in vain");
            })
            .ok()
    }

    /// The claims of a token, verified with its keys.
    async fn verified(
        self: &Arc<Self>,
        token: &SignedClaims<'_>,
    ) -> Result<Result<Map<String, Value>, Refused>> {
        let known = self.known().await?;
        let mut verified = token.verified(&known.keys).cloned();
        if verified == Err(TokenFault::KeyUnknown)
            && let Some(newer) = self.with_new_keys().await
        {
            verified = token.verified(&newer.keys).cloned();
        }
        Ok(verified.map_err(Refused::from))
    }

    fn now(&self) -> i64 {
        self.clock.now().unix_timestamp()
    }

    /// The holder of an access token.
    pub async fn access_token_holder(self: &Arc<Self>, token: &str) -> Result<Holder> {
        let no = |why| refused("access token", why);
        let read = SignedClaims::read(token).map_err(|fault| no(fault.into()))?;
        let claims = self.verified(&read).await?.map_err(no)?;
        let own = &self.config;
        let now = self.now();
        let issued = access_token::check(read.typ(), &claims, self.issuer(), &own.audiences, now)
            .map_err(no)?;
        holder(&self.name, own, &claims, issued, Completeness::AccessToken)
    }

    /// The claims of the identity token of an attempt to sign in, and when it was issued.
    pub(super) async fn id_token_claims(
        self: &Arc<Self>,
        token: &str,
        nonce: &str,
    ) -> Result<(Map<String, Value>, i64)> {
        let no = |why| refused("sign-in", why);
        let read = SignedClaims::read(token).map_err(|fault| no(fault.into()))?;
        let claims = self.verified(&read).await?.map_err(no)?;
        let expected = Expected {
            issuer: self.issuer(),
            client_id: &self.config.client_id,
            nonce,
            now: self.now(),
        };
        let issued = id_token::check(read.typ(), &claims, &expected).map_err(no)?;
        Ok((claims, issued))
    }

    /// Its current document. Anyone can cause this query, so a recent document counts as well, unless the provider has
    /// failed since.
    pub(super) async fn document(&self) -> Result<Document> {
        let wanted = self.clock.monotonic();
        let mut turn = self.turn.lock().await;
        let said = match &turn.last {
            Some((begun, None)) if wanted.saturating_sub(*begun) < BETWEEN => {
                self.known.load_full().filter(|_| !turn.is_doubtful)
            }
            _ => None,
        };
        let known = match said {
            Some(known) => known,
            None => self.ask_in(&mut turn, wanted).await?,
        };
        Ok(known.document.clone())
    }

    /// Makes the next sign-in query it again, because it has not responded as it should.
    pub(super) async fn doubt(&self) {
        self.turn.lock().await.is_doubtful = true;
    }

    /// Its last known document.
    pub(super) async fn known_document(self: &Arc<Self>) -> Result<Document> {
        self.known().await.map(|known| known.document.clone())
    }
}
