//! `group`: groups of accounts, whose members an admin sets.

use a2a_registry_api::{Group, GroupMembers};
use clap::Subcommand;
use serde_json::json;

use super::client::Client;
use super::command_error::{CommandError, CommandResult};
use super::console::Console;
use super::list_format::{ListFormat, PageArgs};

/// Subcommands of `group`.
#[derive(Subcommand, Debug, Clone)]
pub enum GroupCommand {
    /// List groups, newest first
    List(PageArgs),
    /// Show a group
    Show {
        /// Name of the group
        group: String,
    },
    /// Set all members of a group, or create it
    Set {
        /// Name of the group
        group: String,
        /// Names of the accounts in it
        #[arg(value_name = "ACCOUNT")]
        members: Vec<String>,
    },
    /// Delete a group; its accounts stay
    Rm {
        /// Name of the group
        group: String,
    },
}

pub async fn run_group(
    command: &GroupCommand,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let reply = match command {
        GroupCommand::List(page) => return list_groups(page, client, console).await,
        GroupCommand::Rm { group } => {
            client.delete_group(group).await?;
            return console.print_result(&json!({ "deleted": group }), || {
                console.print_line(&format!("group {group} is deleted"))
            });
        }
        GroupCommand::Show { group } => client.group(group).await?,
        GroupCommand::Set { group, members } => {
            let members = GroupMembers {
                members: members.clone(),
            };
            client.put_group(group, &members).await?
        }
    };
    console.print_result(&reply, || print_group(&reply.value, console))
}

fn print_group(group: &Group, console: &Console) -> Result<(), CommandError> {
    console.print_line(&format!(
        "group    {} (set by {})",
        group.name, group.origin
    ))?;
    for member in &group.members {
        console.print_line(&format!("member   {member}"))?;
    }
    let further = group.member_count - group.member_count.min(group.members.len() as u64);
    if further > 0 {
        console.print_line(&format!("and {further} more members"))?;
    }
    Ok(())
}

async fn list_groups(page: &PageArgs, client: &Client, console: &Console) -> CommandResult {
    let reply = client.groups(page).await?;
    let list_format = ListFormat {
        command: "group list",
        limit: page.limit,
        header: ["GROUP", "SET BY", "MEMBERS"],
        empty_message: "there are no groups",
    };
    let list = &reply.value;
    let next = list.next_page_token.as_deref();
    list_format.print_page(console, &reply, &list.groups, next, |group| {
        [
            group.name.clone(),
            group.origin.clone(),
            group.member_count.to_string(),
        ]
    })
}
