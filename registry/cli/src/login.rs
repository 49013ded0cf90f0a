//! `login` and `logout`: a token for one registry, obtained in the browser and kept apart from the credentials of
//! agents.

mod stored_logins;

use a2a_client::is_loopback;
use a2a_client::oauth::LoopbackRedirect;
use a2a_registry_api::{CreatedToken, LoginExchange};
use a2a_registry_domain::role::Scope;
use clap::Args;
use data_encoding::BASE64URL_NOPAD;
use ring::digest::{SHA256, digest};
use serde_json::json;
use url::Url;

use super::agent_credentials::map_oauth_error;
use super::agent_credentials::secret::Secret;
use super::client::{Client, encode_query};
use super::command_error::{CommandError, CommandResult};
use super::console::Console;
use super::credentials::{open_browser, random_token};
use super::terminal;
use super::token::join_texts;
pub(crate) use stored_logins::find_stored_token;
use stored_logins::{StoredLogin, StoredLogins};

/// Arguments of `login`.
#[derive(Args, Debug, Clone)]
pub struct LoginArgs {
    /// A scope of the token, may be repeated: read, register, curate, audit, admin or decide; those that your account
    /// does not have are left out
    #[arg(long, value_name = "SCOPE", default_values = ["read", "register"])]
    scope: Vec<Scope>,
    /// Days until the token expires, at most 365
    #[arg(
        long = "expires",
        value_name = "DAYS",
        default_value_t = 30,
        value_parser = clap::value_parser!(u32).range(1..=365)
    )]
    expires_in_days: u32,
    /// Open the browser, instead of only printing the address
    #[arg(long)]
    browser: bool,
}

/// Asks for a token in the browser, and stores it for this registry.
pub async fn run_login(arguments: &LoginArgs, client: &Client, console: &Console) -> CommandResult {
    let registry = parse_registry_url(client)?;
    // A file that cannot be read is reported before anybody allows a token.
    StoredLogins::load()?;
    // A login that has ended must not stand in the way of the next one.
    let client = client.for_address(client.base_url(), false)?;
    let loopback = LoopbackRedirect::open().await.map_err(map_oauth_error)?;
    let (state, verifier) = (random_token(), random_token());
    let url = login_url(&registry, arguments, &loopback, &state, &verifier)?;
    terminal::eprint_note(&format!("allow the login at {url}"));
    if arguments.browser
        && let Err(reason) = open_browser(&url)
    {
        terminal::eprint_note(&format!(
            "the browser cannot be opened ({reason}); open the address yourself"
        ));
    }
    let code = loopback
        .wait_for_code(&state, None, client.base_url())
        .await
        .map_err(map_oauth_error)?;
    let exchange = LoginExchange { code, verifier };
    let CreatedToken { token, secret } = client.exchange_login(&exchange).await?.value;
    let login = StoredLogin {
        token: Secret(secret),
        id: token.id,
        account: token.account.clone(),
        expires_at: token.expires_at,
    };
    match StoredLogins::replace_login(&registry, Some(login.clone())) {
        Ok(earlier) => {
            if let Some(earlier) = earlier {
                revoke_login(&client, &earlier).await?;
            }
        }
        Err(error) => {
            // Nothing else would know of this token until it expires.
            revoke_login(&client, &login).await?;
            return Err(error);
        }
    }
    console.print_result(&json!({"registry": registry, "token": token}), || {
        let until = token
            .expires_at
            .map(|end| format!(", until {}", end.to_rfc3339()));
        console.print_line(&format!(
            "logged in at {registry} as {} with {}{}; `a2a-registry logout` ends it",
            terminal::escape_line(&token.account),
            join_texts(&token.scopes),
            until.unwrap_or_default()
        ))
    })
}

/// Revokes the stored token of this registry, and forgets it.
pub async fn run_logout(client: &Client, console: &Console) -> CommandResult {
    let registry = parse_registry_url(client)?;
    let login = StoredLogins::replace_login(&registry, None)?
        .ok_or_else(|| CommandError::Negative(format!("there is no login at {registry}")))?;
    revoke_login(client, &login).await?;
    console.print_result(&json!({"registry": registry, "token": login.id}), || {
        console.print_line(&format!("logged out at {registry}"))
    })
}

/// Revokes the token of a login that is no longer stored. One that has ended already, or whose registry is gone, is no
/// reason to fail.
async fn revoke_login(client: &Client, login: &StoredLogin) -> Result<(), CommandError> {
    let own = Client::new(client.base_url(), Some(&login.token.0), None)?;
    match own.revoke_token(login.id).await {
        Err(error) if !matches!(error.status(), Some(401 | 404)) => {
            terminal::eprint_note(&format!(
                "the token {} is forgotten here, but could not be revoked; revoke it on the account's page: {error}",
                login.id
            ));
        }
        _ => {}
    }
    Ok(())
}

/// The registry, which must be one that nobody can listen to on the way.
fn parse_registry_url(client: &Client) -> Result<Url, CommandError> {
    let url = Url::parse(client.base_url())
        .map_err(|error| CommandError::new(format!("--registry is not a URL: {error}")))?;
    match url.scheme() == "https" || is_loopback(&url) {
        true => Ok(url),
        false => Err(CommandError::new(format!(
            "{url} is not https, so a token could be read on the way; log in at its https address"
        ))),
    }
}

fn login_url(
    registry: &Url,
    arguments: &LoginArgs,
    loopback: &LoopbackRedirect,
    state: &str,
    verifier: &str,
) -> Result<Url, CommandError> {
    let challenge = BASE64URL_NOPAD.encode(digest(&SHA256, verifier.as_bytes()).as_ref());
    let mut query = vec![
        (
            "port",
            loopback.url().port().unwrap_or_default().to_string(),
        ),
        ("state", state.to_owned()),
        ("challenge", challenge),
        ("days", arguments.expires_in_days.to_string()),
    ];
    let scopes = arguments.scope.iter().map(|scope| scope.as_str());
    query.extend(scopes.map(|scope| ("scope", scope.to_owned())));
    let mut url = registry.clone();
    url.set_path("/login");
    url.set_query(Some(&encode_query(&query)?));
    Ok(url)
}
