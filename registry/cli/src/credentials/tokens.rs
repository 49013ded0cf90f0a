//! Access tokens from the credentials file, renewed when they end or are refused.

use std::sync::Arc;

use a2a_client::TokenSource;
use a2a_client::oauth::{Endpoints, OauthClient, OauthError, Provider, TokenSet, endpoint};
use a2a_crawler::Clock;
use a2a_registry_domain::timestamp::Timestamp;
use futures::future::BoxFuture;

use super::file::CredentialsFile;
use super::stored::StoredSignIn;
use crate::failure::Failure;

/// The tokens that are kept for one origin.
pub(crate) struct StoredTokens {
    pub file: CredentialsFile,
    /// The origin of the agent's interface.
    pub origin: String,
    pub clock: Arc<dyn Clock>,
}

impl TokenSource for StoredTokens {
    fn token<'a>(
        &'a self,
        refused: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<String>, String>> {
        Box::pin(async move {
            match self.current(refused).await {
                Ok(token) => Ok(token),
                Err(Failure::Failed(line) | Failure::No(line)) => Err(line),
                Err(_) => Err("the credentials file cannot be used".to_owned()),
            }
        })
    }
}

impl StoredTokens {
    async fn current(&self, refused: Option<&str>) -> Result<Option<String>, Failure> {
        let good = |sign_in: &StoredSignIn| {
            let token = &sign_in.access_token.0;
            sign_in.is_good(refused, self.now()).then(|| token.clone())
        };
        let stored = self.file.read()?;
        let agent = stored.agents.get(&self.origin);
        let Some(sign_in) = agent.and_then(|agent| agent.sign_in.as_ref()) else {
            return Err(self.ended("the sign-in was removed"));
        };
        if let Some(token) = good(sign_in) {
            return Ok(Some(token));
        }
        if sign_in.refresh_token.is_none() && !sign_in.unattended {
            return match refused {
                Some(_) => Ok(None),
                None => Err(self.ended("the sign-in has ended")),
            };
        }
        // Servers take a refresh token once, so one process renews at a time, and the others use what it got.
        let mut locked = self.file.lock().await?;
        let agent = locked.stored.agents.get_mut(&self.origin);
        let Some(sign_in) = agent.and_then(|agent| agent.sign_in.as_mut()) else {
            return Err(self.ended("the sign-in was removed"));
        };
        if let Some(token) = good(sign_in) {
            return Ok(Some(token));
        }
        let tokens = renew(sign_in).await.map_err(|error| self.failure(&error))?;
        sign_in.take(&tokens, self.now());
        locked.save()?;
        Ok(Some(tokens.access))
    }

    fn now(&self) -> Timestamp {
        self.clock.now().into()
    }

    fn failure(&self, error: &OauthError) -> Failure {
        match error.ends_sign_in() {
            true => self.ended(&error.to_string()),
            false => Failure::new(error.to_string()),
        }
    }

    fn ended(&self, reason: &str) -> Failure {
        Failure::new(format!(
            "{reason}; sign in to {} again with `credentials add`",
            self.origin
        ))
    }
}

/// New tokens from the server that issued the old ones: whatever the card says now, they go nowhere else.
async fn renew(sign_in: &StoredSignIn) -> Result<TokenSet, OauthError> {
    let refresh = sign_in
        .refresh_endpoint
        .as_deref()
        .map(endpoint)
        .transpose()?;
    let endpoints = Endpoints {
        refresh,
        secret_in_body: sign_in.secret_in_body,
        ..Endpoints::of_token(endpoint(&sign_in.token_endpoint)?)
    };
    let client = OauthClient {
        id: sign_in.client_id.clone(),
        secret: sign_in.client_secret.clone().map(|secret| secret.0),
    };
    let provider = Provider::new(endpoints, &client)?;
    match &sign_in.refresh_token {
        Some(token) => provider.refresh(&token.0).await,
        None => provider.client_credentials(&sign_in.scopes).await,
    }
}
