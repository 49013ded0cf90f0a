//! Access tokens from the credentials file, renewed when they expire or are rejected.

use std::sync::Arc;

use a2a_client::TokenSource;
use a2a_client::oauth::{
    AuthorizationServer, OauthClientConfig, OauthEndpoints, OauthError, TokenSet, parse_oauth_url,
};
use a2a_crawler::Clock;
use a2a_registry_domain::timestamp::Timestamp;
use futures::future::BoxFuture;

use super::credentials_file::CredentialsFile;
use super::file_format::StoredSignIn;
use crate::command_error::CommandError;

/// Tokens stored for one origin.
pub(crate) struct StoredTokenSource {
    pub file: CredentialsFile,
    /// The origin of the agent's interface.
    pub origin: String,
    pub clock: Arc<dyn Clock>,
}

impl TokenSource for StoredTokenSource {
    fn access_token<'a>(
        &'a self,
        rejected: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<String>, String>> {
        Box::pin(async move {
            match self.current_token(rejected).await {
                Ok(token) => Ok(token),
                Err(CommandError::Failed(line) | CommandError::Negative(line)) => Err(line),
                Err(_) => Err("the credentials file cannot be used".to_owned()),
            }
        })
    }
}

impl StoredTokenSource {
    async fn current_token(&self, rejected: Option<&str>) -> Result<Option<String>, CommandError> {
        let usable_token = |sign_in: &StoredSignIn| {
            let token = &sign_in.access_token.0;
            sign_in
                .has_usable_access_token(rejected, self.now())
                .then(|| token.clone())
        };
        let stored = self.file.read()?;
        let agent = stored.agents.get(&self.origin);
        let Some(sign_in) = agent.and_then(|agent| agent.sign_in.as_ref()) else {
            return Err(self.sign_in_ended_error("the sign-in was removed"));
        };
        if let Some(token) = usable_token(sign_in) {
            return Ok(Some(token));
        }
        if sign_in.refresh_token.is_none() && !sign_in.unattended {
            return match rejected {
                Some(_) => Ok(None),
                None => Err(self.sign_in_ended_error("the sign-in has expired")),
            };
        }
        // Servers accept a refresh token once, so one process renews at a time, and the others use the result.
        let mut locked = self.file.lock().await?;
        let agent = locked.stored.agents.get_mut(&self.origin);
        let Some(sign_in) = agent.and_then(|agent| agent.sign_in.as_mut()) else {
            return Err(self.sign_in_ended_error("the sign-in was removed"));
        };
        if let Some(token) = usable_token(sign_in) {
            return Ok(Some(token));
        }
        let tokens = renew_tokens(sign_in)
            .await
            .map_err(|error| self.renewal_error(&error))?;
        sign_in.set_tokens(&tokens, self.now());
        locked.save()?;
        Ok(Some(tokens.access_token))
    }

    fn now(&self) -> Timestamp {
        self.clock.now().into()
    }

    fn renewal_error(&self, error: &OauthError) -> CommandError {
        match error.is_invalid_grant() {
            true => self.sign_in_ended_error(&error.to_string()),
            false => CommandError::new(error.to_string()),
        }
    }

    fn sign_in_ended_error(&self, reason: &str) -> CommandError {
        CommandError::new(format!(
            "{reason}; sign in to {} again with `credentials add`",
            self.origin
        ))
    }
}

/// Requests new tokens from the server that issued the old ones. They go nowhere else, whatever the card says now.
async fn renew_tokens(sign_in: &StoredSignIn) -> Result<TokenSet, OauthError> {
    let refresh = sign_in
        .refresh_endpoint
        .as_deref()
        .map(parse_oauth_url)
        .transpose()?;
    let endpoints = OauthEndpoints {
        refresh,
        sends_secret_in_body: sign_in.secret_in_body,
        ..OauthEndpoints::from_token_url(parse_oauth_url(&sign_in.token_endpoint)?)
    };
    let client = OauthClientConfig {
        id: sign_in.client_id.clone(),
        secret: sign_in.client_secret.clone().map(|secret| secret.0),
    };
    let provider = AuthorizationServer::new(endpoints, &client)?;
    match &sign_in.refresh_token {
        Some(token) => provider.refresh_tokens(&token.0).await,
        None => provider.exchange_client_credentials(&sign_in.scopes).await,
    }
}
