//! `group`: groups of accounts, whose members an admin sets.

use a2a_registry_api::GroupMembers;
use clap::Subcommand;

use super::client::Client;
use super::console::Console;
use super::failure::{CommandOutcome, Failure};
use super::list::{Listing, PageArgs, ReceivedPage};

/// What `group` takes.
#[derive(Subcommand, Debug, Clone)]
pub enum GroupCommand {
    /// List groups, newest first
    List(PageArgs),
    /// Show a group
    Show {
        /// Its name
        group: String,
    },
    /// Set all members of a group, which is made where it does not exist
    Set {
        /// Its name
        group: String,
        /// Names of the accounts in it
        #[arg(value_name = "ACCOUNT")]
        members: Vec<String>,
    },
    /// Delete a group; its accounts stay
    Rm {
        /// Its name
        group: String,
    },
}

/// Does it.
///
/// # Errors
/// Where the registry is away or refuses.
pub async fn run(
    command: &GroupCommand,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    let reply = match command {
        GroupCommand::List(page) => return list(page, client, console).await,
        GroupCommand::Rm { group } => {
            client.delete_group(group).await?;
            if console.json {
                console.json(&serde_json::json!({ "deleted": group }))?;
            } else {
                console.line(&format!("group {group} is deleted"))?;
            }
            return Ok(CommandOutcome::Done);
        }
        GroupCommand::Show { group } => client.group(group).await?,
        GroupCommand::Set { group, members } => {
            let members = GroupMembers {
                members: members.clone(),
            };
            client.put_group(group, &members).await?
        }
    };
    if console.json {
        console.raw_json(&reply.raw)?;
        return Ok(CommandOutcome::Done);
    }
    let group = &reply.value;
    console.line(&format!(
        "group    {} (set by {})",
        group.name, group.origin
    ))?;
    for member in &group.members {
        console.line(&format!("member   {member}"))?;
    }
    let further = group.member_count - group.member_count.min(group.members.len() as u64);
    if further > 0 {
        console.line(&format!("and {further} further members"))?;
    }
    Ok(CommandOutcome::Done)
}

async fn list(
    page: &PageArgs,
    client: &Client,
    console: &Console,
) -> Result<CommandOutcome, Failure> {
    let reply = client
        .groups(page.limit, page.page_token.as_deref())
        .await?;
    let listing = Listing {
        command: "group list",
        header: &["GROUP", "SET BY", "MEMBERS"],
        empty: "there is no group",
    };
    let received = ReceivedPage {
        raw: &reply.raw,
        entries: &reply.value.groups,
        next: reply.value.next_page_token.as_deref(),
    };
    listing.show(console, page, &received, |group| {
        vec![
            group.name.clone(),
            group.origin.clone(),
            group.member_count.to_string(),
        ]
    })
}
