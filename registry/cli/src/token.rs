//! `token`: API tokens.

use a2a_crawler::SystemClock;
use a2a_registry_api::{NewToken, Token};
use a2a_registry_domain::identifiers::SystemEntropy;
use a2a_registry_domain::role::{Role, Scope};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_server::maintenance;
use clap::{Args, Subcommand};
use serde_json::json;
use uuid::Uuid;

use super::client::Client;
use super::command_error::CommandResult;
use super::console::Console;
use super::list_format::{ListFormat, PageArgs};
use super::offline_args::OfflineArgs;
use super::terminal;

/// Subcommands of `token`.
#[derive(Subcommand, Debug, Clone)]
pub enum TokenCommand {
    /// Create a token; its secret is shown only once
    Create(CreateTokenArgs),
    /// List your tokens, newest first; an admin sees all tokens
    List(PageArgs),
    /// Revoke a token
    Revoke {
        /// The token's id
        id: Uuid,
    },
    /// Replace a lost admin token; stop the server first, because this command opens its data folder
    ResetAdmin(OfflineArgs),
}

/// Arguments of `token create`.
#[derive(Args, Debug, Clone)]
pub struct CreateTokenArgs {
    /// Purpose of the token [default: the account's name]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Account of the token; created if it does not exist
    #[arg(long, value_name = "ACCOUNT")]
    account: String,
    /// Role of the account: reader, publisher, curator, auditor or admin; an existing account must have it
    #[arg(long, value_name = "ROLE")]
    role: Role,
    /// A scope of the token, may be repeated: read, register, curate, audit, admin or decide [default: all that the
    /// roles allow]
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<Scope>,
    /// Days until it expires, at most 365 [default: 90]
    #[arg(long = "expires", alias = "expires-in-days", value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=365))]
    expires_in_days: Option<u32>,
}

pub async fn run_token(
    command: &TokenCommand,
    client: &Client,
    console: &Console,
) -> CommandResult {
    match command {
        TokenCommand::Create(arguments) => create_token(arguments, client, console).await,
        TokenCommand::List(page) => list_tokens(page, client, console).await,
        TokenCommand::Revoke { id } => {
            client.revoke_token(*id).await?;
            console.print_result(&json!({ "revoked": id }), || {
                console.print_line(&format!("{id} is revoked"))
            })
        }
        TokenCommand::ResetAdmin(arguments) => reset_admin_token(arguments, console).await,
    }
}

async fn create_token(
    arguments: &CreateTokenArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let new = NewToken {
        account: arguments.account.clone(),
        role: Some(arguments.role),
        name: arguments
            .name
            .clone()
            .unwrap_or_else(|| arguments.account.clone()),
        scopes: (!arguments.scope.is_empty()).then(|| arguments.scope.clone()),
        expires_in_days: arguments.expires_in_days,
    };
    let reply = client.create_token(&new).await?;
    let token = &reply.value.token;
    console.print_result(&reply, || {
        let end = token_expiry_text(token);
        terminal::eprint_note(&format!(
            "token {} of {}, {end}; store it now, it is not shown again:",
            token.id, token.account
        ));
        console.print_line(&reply.value.secret)
    })
}

async fn list_tokens(page: &PageArgs, client: &Client, console: &Console) -> CommandResult {
    let reply = client.tokens(page).await?;
    let list_format = ListFormat {
        command: "token list",
        limit: page.limit,
        header: [
            "ID",
            "ACCOUNT",
            "NAME",
            "BEGINS",
            "SCOPES",
            "LAST USED",
            "ENDS",
        ],
        empty_message: "there are no tokens",
    };
    let list = &reply.value;
    let next = list.next_page_token.as_deref();
    list_format.print_page(console, &reply, &list.tokens, next, |token| {
        [
            token.id.to_string(),
            token.account.clone(),
            token.name.clone(),
            format!("{}…", token.prefix),
            join_texts(&token.scopes),
            time_or_never(token.last_used_at),
            match token.suspended_at {
                Some(_) => format!(
                    "{}, suspended until the next sign-in",
                    time_or_never(token.expires_at)
                ),
                None => time_or_never(token.expires_at),
            },
        ]
    })
}

/// Joins texts for one cell.
pub(super) fn join_texts(texts: &[impl ToString]) -> String {
    let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

/// Expiry of a token, in words.
pub(super) fn token_expiry_text(token: &Token) -> String {
    match token.expires_at {
        None => "never expires".to_owned(),
        Some(at) => format!("expires on {}", at.to_readable()),
    }
}

fn time_or_never(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "never".to_owned(), |at| at.to_readable())
}

/// Replaces the admin token in a data folder that no server uses.
pub async fn reset_admin_token(arguments: &OfflineArgs, console: &Console) -> CommandResult {
    let (config, entropy) = (arguments.load_config()?, SystemEntropy::default());
    let secret = maintenance::reset_admin_token(&config, &SystemClock, &entropy).await?;
    console.print_result(&json!({ "secret": secret }), || {
        terminal::eprint_note(
            "the previous admin token is revoked; store the new one, it is not shown again:",
        );
        console.print_line(&secret)
    })
}
