//! `account` and `whoami`: who may use the registry, with which roles.

use a2a_registry_api::{Account, AccountPatch, NewAccount};
use a2a_registry_domain::role::Role;
use clap::Subcommand;

use super::client::Client;
use super::console::Console;
use super::failure::{CommandOutcome, Failure};
use super::list::{Listing, PageArgs, ReceivedPage};
use super::token::{end_of, list_of, role};

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
        #[arg(long, value_name = "ROLE", value_parser = role, required = true)]
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
        #[arg(value_name = "ROLE", value_parser = role, required = true)]
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

/// Does it.
///
/// # Errors
/// Where the registry is away or refuses.
pub async fn run(
    command: &AccountCommand,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    let (account, change) = match command {
        AccountCommand::List(page) => return list(page, client, console).await,
        AccountCommand::Show { account } => {
            let reply = client.account(account).await?;
            return shown(&reply.value, &reply.raw, console);
        }
        AccountCommand::Create { name, role, group } => {
            let new = NewAccount {
                name: name.clone(),
                roles: role.clone(),
                groups: group.clone(),
            };
            let reply = client.create_account(&new).await?;
            return shown(&reply.value, &reply.raw, console);
        }
        AccountCommand::SetRoles { account, roles } => {
            let roles = Some(roles.clone());
            let change = AccountPatch {
                roles,
                ..AccountPatch::default()
            };
            (account, change)
        }
        AccountCommand::Disable { account } => (account, disabled(true)),
        AccountCommand::Enable { account } => (account, disabled(false)),
    };
    let reply = client.patch_account(account, &change).await?;
    shown(&reply.value, &reply.raw, console)
}

fn disabled(disabled: bool) -> AccountPatch {
    AccountPatch {
        disabled: Some(disabled),
        ..AccountPatch::default()
    }
}

/// Who the token belongs to.
///
/// # Errors
/// Where the registry is away or refuses.
pub async fn whoami(client: &Client, console: &Console) -> Result<CommandOutcome, Failure> {
    let reply = client.me().await?;
    if console.json {
        console.raw_json(&reply.raw)?;
        return Ok(CommandOutcome::Done);
    }
    facts(&reply.value.account, console)?;
    console.line(&format!("scopes   {}", list_of(&reply.value.scopes)))?;
    if let Some(token) = &reply.value.token {
        let end = end_of(token);
        console.line(&format!("token    {} ({}) {end}", token.id, token.name))?;
    }
    if let Some(issuer) = &reply.value.issuer {
        console.line(&format!("token    an access token of {issuer}"))?;
    }
    Ok(CommandOutcome::Done)
}

fn shown(account: &Account, raw: &[u8], console: &Console) -> Result<CommandOutcome, Failure> {
    if console.json {
        console.raw_json(raw)?;
    } else {
        facts(account, console)?;
    }
    Ok(CommandOutcome::Done)
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

async fn list(
    page: &PageArgs,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    let reply = client
        .accounts(page.limit, page.page_token.as_deref())
        .await?;
    let listing = Listing {
        command: "account list",
        header: &["ID", "NAME", "ROLES", "GROUPS", "STATE"],
        empty: "there is no account",
    };
    let received = ReceivedPage {
        raw: &reply.raw,
        entries: &reply.value.accounts,
        next: reply.value.next_page_token.as_deref(),
    };
    listing.show(console, page, &received, |account| {
        let groups: Vec<&str> = account.groups.iter().map(|one| &*one.name).collect();
        let state = match (account.disabled_at, account.access_ended_at) {
            (Some(_), _) => "disabled",
            (None, Some(_)) => "access ended",
            (None, None) => "enabled",
        };
        vec![
            account.id.to_string(),
            account.name.clone(),
            list_of(&account.roles),
            groups.join(", "),
            state.to_owned(),
        ]
    })
}
