//! `account` and `whoami`: who may use the registry, with which roles.

use a2a_registry_api::{Account, AccountPatch, NewAccount};
use a2a_registry_domain::role::Role;
use clap::Subcommand;

use super::client::Client;
use super::console::Console;
use super::failure::{CommandResult, Failure};
use super::list::{Listing, PageArgs};
use super::token::{end_of, list_of};

/// What `account` takes.
#[derive(Subcommand, Debug, Clone)]
pub enum AccountCommand {
    /// List accounts, newest first
    List(PageArgs),
    /// Show an account
    Show {
        /// Its name or id
        account: String,
    },
    /// Make an account; `token create` makes its tokens
    Create {
        /// Its name
        name: String,
        /// Its role, several times for more: reader, publisher, curator, auditor or admin
        #[arg(long, value_name = "ROLE", required = true)]
        role: Vec<Role>,
        /// A group that it is in, several times for more
        #[arg(long, value_name = "GROUP")]
        group: Vec<String>,
    },
    /// Set all roles of an account
    SetRoles {
        /// Its name or id
        account: String,
        /// reader, publisher, curator, auditor or admin
        #[arg(value_name = "ROLE", required = true)]
        roles: Vec<Role>,
    },
    /// Disable an account: its tokens and event streams end at once
    Disable {
        /// Its name or id
        account: String,
    },
    /// Let a disabled account be used again; it needs new tokens
    Enable {
        /// Its name or id
        account: String,
    },
}

pub async fn run(command: &AccountCommand, client: &Client, console: &Console) -> CommandResult {
    let reply = match command {
        AccountCommand::List(page) => return list(page, client, console).await,
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
            client.patch_account(account, &disabled(true)).await?
        }
        AccountCommand::Enable { account } => {
            client.patch_account(account, &disabled(false)).await?
        }
    };
    console.show(&reply, || facts(&reply.value, console))
}

fn disabled(disabled: bool) -> AccountPatch {
    AccountPatch {
        disabled: Some(disabled),
        ..AccountPatch::default()
    }
}

/// Shows who the token belongs to.
pub async fn whoami(client: &Client, console: &Console) -> CommandResult {
    let reply = client.me().await?;
    let me = &reply.value;
    console.show(&reply, || {
        facts(&me.account, console)?;
        console.line(&format!("scopes   {}", list_of(&me.scopes)))?;
        if let Some(token) = &me.token {
            let end = end_of(token);
            console.line(&format!("token    {} ({}) {end}", token.id, token.name))?;
        }
        if let Some(issuer) = &me.issuer {
            console.line(&format!("token    an access token of {issuer}"))?;
        }
        Ok(())
    })
}

fn facts(account: &Account, console: &Console) -> Result<(), Failure> {
    console.line(&format!("account  {} ({})", account.name, account.id))?;
    console.line(&format!("roles    {}", list_of(&account.roles)))?;
    for group in &account.groups {
        console.line(&format!(
            "group    {} (set by {})",
            group.name, group.origin
        ))?;
    }
    if let Some(at) = account.disabled_at {
        console.line(&format!("disabled since {}", at.to_readable()))?;
    }
    if let Some(at) = account.access_ended_at {
        console.line(&format!(
            "access ended by its identity provider {}",
            at.to_readable()
        ))?;
    }
    Ok(())
}

async fn list(page: &PageArgs, client: &Client, console: &Console) -> CommandResult {
    let reply = client.accounts(page).await?;
    let listing = Listing {
        command: "account list",
        limit: page.limit,
        header: ["ID", "NAME", "ROLES", "GROUPS", "STATE"],
        empty: "there is no account",
    };
    let list = &reply.value;
    let next = list.next_page_token.as_deref();
    listing.show(console, &reply, &list.accounts, next, |account| {
        let groups: Vec<&str> = account.groups.iter().map(|one| &*one.name).collect();
        let state = match (account.disabled_at, account.access_ended_at) {
            (Some(_), _) => "disabled",
            (None, Some(_)) => "access ended",
            (None, None) => "enabled",
        };
        [
            account.id.to_string(),
            account.name.clone(),
            list_of(&account.roles),
            groups.join(", "),
            state.to_owned(),
        ]
    })
}
