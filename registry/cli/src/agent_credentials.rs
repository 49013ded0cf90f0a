//! Credentials for agents that are called directly: given for one command, or stored for the origin of an interface.

mod cli_args;
pub(crate) mod credentials_file;
pub(crate) mod file_format;
mod plain_http;
pub(crate) mod secret;
mod stored_tokens;

use std::sync::Arc;

use a2a_card::AgentCard;
use a2a_client::oauth::{OauthError, oauth_schemes};
use a2a_client::route_selection::card_accepts_api_key;
use a2a_client::{BasicLogin, SendOptions, select_interface_url};
use a2a_crawler::SystemClock;
use url::Url;

use super::command_error::CommandError;
pub(crate) use cli_args::{CredentialArgs, ParsedCredentials};
use credentials_file::CredentialsFile;
pub(crate) use plain_http::warn_of_plain_http;
use secret::Secret;
use stored_tokens::StoredTokenSource;

/// Adds credentials to the options of a call: the given ones and, with `use_stored`, those stored for the origin of
/// the called interface.
pub(crate) fn apply_credentials(
    options: &mut SendOptions,
    mut parsed_credentials: ParsedCredentials,
    card: &AgentCard,
    use_stored: bool,
) -> Result<(), CommandError> {
    parsed_credentials.drop_unneeded_credentials(card);
    let ParsedCredentials {
        bearer,
        api_key,
        basic,
        certificate,
        headers,
        ..
    } = parsed_credentials;
    options.bearer_token = bearer;
    options.api_key = api_key;
    options.basic_login = basic;
    options.certificate = certificate;
    options.headers = headers;
    if !use_stored {
        return Ok(());
    }
    let Ok(interface) = select_interface_url(card, &options.interface_filter) else {
        // The error for a missing interface is reported where the agent is loaded.
        return Ok(());
    };
    let Ok(file) = CredentialsFile::for_user() else {
        return Ok(());
    };
    let origin = url_origin(&interface);
    let Some(stored) = file.read()?.agents.remove(&origin) else {
        return Ok(());
    };
    if let Some(files) = stored.certificate.filter(|_| options.certificate.is_none()) {
        options.certificate = Some(cli_args::read_certificate(&files.chain, &files.key)?);
    }
    let secret = |secret: Secret| secret.0;
    // The stored key may be for another agent at that origin.
    let kept_key = stored
        .api_key
        .filter(|_| card_accepts_api_key(card))
        .map(secret);
    options.api_key = options.api_key.take().or(kept_key);
    // Both use the same header, so given credentials take precedence.
    if options.bearer_token.is_some() || options.basic_login.is_some() {
        return Ok(());
    }
    options.bearer_token = stored.bearer.map(secret);
    options.basic_login = stored.basic.map(|login| BasicLogin {
        user: login.user,
        password: login.password.0,
    });
    if let Some(sign_in) = stored.sign_in.filter(|_| options.bearer_token.is_none()) {
        check_same_authorization_server(card, &sign_in.declared, &origin)?;
        options.token_source = Some(Arc::new(StoredTokenSource {
            file,
            origin,
            clock: Arc::new(SystemClock),
        }));
    }
    Ok(())
}

/// Rejects a stored sign-in if the card now names another server: the user must agree to that one.
fn check_same_authorization_server(
    card: &AgentCard,
    declared: &str,
    origin: &str,
) -> Result<(), CommandError> {
    let offered = oauth_schemes(card).map_err(map_oauth_error)?;
    let mut addresses = offered
        .iter()
        .flat_map(|offered| offered.identifying_urls());
    if offered.is_empty() || addresses.any(|address| address.as_str() == declared) {
        return Ok(());
    }
    Err(CommandError::new(format!(
        "the card of {origin} names another sign-in address than {declared}, where you signed in; nothing was sent; \
         sign in again with `credentials add` if you trust it"
    )))
}

pub(crate) fn url_origin(interface: &Url) -> String {
    interface.origin().ascii_serialization()
}

pub(crate) fn map_oauth_error(error: OauthError) -> CommandError {
    match error {
        OauthError::Refused { .. } | OauthError::SignInTimedOut { .. } => {
            CommandError::Negative(error.to_string())
        }
        other => CommandError::new(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn a_sign_in_is_good_only_where_the_card_still_names_its_server() {
        let card = |token: &str| {
            let card = json!({"name": "A", "url": "https://a.example", "securitySchemes": {"o": {"type": "oauth2",
                "flows": {"clientCredentials": {"tokenUrl": token}}}}, "security": [{"o": []}]});
            a2a_card::parse_card(card.to_string().as_bytes())
                .unwrap()
                .card
        };
        let token = "https://l.example/t";
        let checked =
            |named: &str| check_same_authorization_server(&card(named), token, "https://a.example");
        assert!(checked(token).is_ok());
        for other in [
            "https://m.example/t",
            "https://l.example/u",
            "http://m.example/t",
        ] {
            assert!(checked(other).is_err(), "{other}");
        }
    }
}
