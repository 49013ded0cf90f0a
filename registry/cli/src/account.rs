//! `account` and `whoami`: who may use the registry, with which roles.

use a2a_registry_api::{Account, AccountPatch, NewAccount};
use a2a_registry_domain::role::Role;
use clap::Subcommand;

use super::client::Client;
use super::command_error::{CommandError, CommandResult};
use super::console::Console;
use super::list_format::{ListFormat, PageArgs};
use super::token::{join_texts, token_expiry_text};

/// Subcommands of `account`.
#[derive(Subcommand, Debug, Clone)]
pub enum AccountCommand {
    /// List accounts, newest first
    List(PageArgs),
    /// Show an account
    Show {
        /// Name or id of the account
        account: String,
    },
    /// Create an account; `token create` creates its tokens
    Create {
        /// Name of the account
        name: String,
        /// A role, may be repeated: reader, publisher, curator, auditor or admin
        #[arg(long, value_name = "ROLE", required = true)]
        role: Vec<Role>,
        /// A group of the account; may be repeated
        #[arg(long, value_name = "GROUP")]
        group: Vec<String>,
    },
    /// Replace the roles of an account
    SetRoles {
        /// Name or id of the account
        account: String,
        /// reader, publisher, curator, auditor or admin
        #[arg(value_name = "ROLE", required = true)]
        roles: Vec<Role>,
    },
    /// Disable an account: its tokens and event streams end at once
    Disable {
        /// Name or id of the account
        account: String,
    },
    /// Enable a disabled account; it needs new tokens
    Enable {
        /// Name or id of the account
        account: String,
    },
}

pub async fn run_account(
    command: &AccountCommand,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let reply = match command {
        AccountCommand::List(page) => return list_accounts(page, client, console).await,
        AccountCommand::Show { account } => client.account(account).await?,
        AccountCommand::Create { name, role, group } => {
            let new = NewAccount {
                name: name.clone(),
                roles: role.clone(),
                groups: group.clone(),
            };
            client.create_account(&new).await?
        }
        AccountCommand::SetRoles { account, roles } => {
            let change = AccountPatch {
                roles: Some(roles.clone()),
                ..AccountPatch::default()
            };
            client.patch_account(account, &change).await?
        }
        AccountCommand::Disable { account } => {
            client
                .patch_account(account, &account_disabled_patch(true))
                .await?
        }
        AccountCommand::Enable { account } => {
            client
                .patch_account(account, &account_disabled_patch(false))
                .await?
        }
    };
    console.print_result(&reply, || print_account(&reply.value, console))
}

fn account_disabled_patch(disabled: bool) -> AccountPatch {
    AccountPatch {
        disabled: Some(disabled),
        ..AccountPatch::default()
    }
}

/// Shows the account and token of the caller.
pub async fn whoami(client: &Client, console: &Console) -> CommandResult {
    let reply = client.me().await?;
    let me = &reply.value;
    console.print_result(&reply, || {
        print_account(&me.account, console)?;
        console.print_line(&format!("scopes   {}", join_texts(&me.scopes)))?;
        if let Some(token) = &me.token {
            let end = token_expiry_text(token);
            console.print_line(&format!("token    {} ({}) {end}", token.id, token.name))?;
        }
        if let Some(issuer) = &me.issuer {
            console.print_line(&format!("token    an access token of {issuer}"))?;
        }
        Ok(())
    })
}

fn print_account(account: &Account, console: &Console) -> Result<(), CommandError> {
    console.print_line(&format!("account  {} ({})", account.name, account.id))?;
    console.print_line(&format!("roles    {}", join_texts(&account.roles)))?;
    for group in &account.groups {
        console.print_line(&format!(
            "group    {} (set by {})",
            group.name, group.origin
        ))?;
    }
    if let Some(at) = account.disabled_at {
        console.print_line(&format!("disabled since {}", at.to_readable()))?;
    }
    if let Some(at) = account.access_ended_at {
        console.print_line(&format!(
            "access ended by its identity provider {}",
            at.to_readable()
        ))?;
    }
    Ok(())
}

async fn list_accounts(page: &PageArgs, client: &Client, console: &Console) -> CommandResult {
    let reply = client.accounts(page).await?;
    let list_format = ListFormat {
        command: "account list",
        limit: page.limit,
        header: ["ID", "NAME", "ROLES", "GROUPS", "STATE"],
        empty_message: "there are no accounts",
    };
    let list = &reply.value;
    let next = list.next_page_token.as_deref();
    list_format.print_page(console, &reply, &list.accounts, next, |account| {
        let groups: Vec<&str> = account.groups.iter().map(|one| &*one.name).collect();
        let state = match (account.disabled_at, account.access_ended_at) {
            (Some(_), _) => "disabled",
            (None, Some(_)) => "access ended",
            (None, None) => "enabled",
        };
        [
            account.id.to_string(),
            account.name.clone(),
            join_texts(&account.roles),
            groups.join(", "),
            state.to_owned(),
        ]
    })
}
