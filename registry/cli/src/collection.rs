//! `collection`: named collections of the agents that match a filter.

use a2a_registry_api::{Collection, CollectionContent};
use clap::{Args, Subcommand};
use serde_json::json;

use super::client::Client;
use super::command_error::{CommandError, CommandResult};
use super::console::Console;
use super::list_format::ListFormat;

/// Subcommands of `collection`.
#[derive(Subcommand, Debug, Clone)]
pub enum CollectionCommand {
    /// List the collections that you may see
    List,
    /// Show a collection; `search --collection NAME` finds its agents
    Show {
        /// Name of the collection
        #[arg(value_name = "NAME")]
        collection: String,
    },
    /// Set the content of a collection, or create it; what is not given stays as it is
    Set(SetCollectionArgs),
    /// Delete a collection; its agents stay
    Rm {
        /// Name of the collection
        #[arg(value_name = "NAME")]
        collection: String,
    },
}

/// Content of a collection.
#[derive(Args, Debug, Clone)]
pub struct SetCollectionArgs {
    /// Name of the collection
    #[arg(value_name = "NAME")]
    collection: String,
    /// Filter that its agents match, such as 'label:env=prod tag:finance'
    #[arg(long, value_name = "TERMS")]
    filter: Option<String>,
    /// Purpose of the collection
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// A group whose members can see it, as NAME or ORIGIN#NAME; may be repeated
    #[arg(long, value_name = "GROUP", conflicts_with_all = ["everybody", "nobody"])]
    group: Vec<String>,
    /// Everyone can see it (default)
    #[arg(long, conflicts_with = "nobody")]
    everybody: bool,
    /// Only its owners and curators can see it
    #[arg(long)]
    nobody: bool,
    /// An account that owns it; may be repeated
    #[arg(long, value_name = "ACCOUNT")]
    owner: Vec<String>,
}

impl SetCollectionArgs {
    /// Complete content, with current values for what is not given.
    fn merged_content(
        &self,
        current: Option<Collection>,
    ) -> Result<CollectionContent, CommandError> {
        let (filter, description, audience, owners) = match current {
            Some(before) => (
                Some(before.filter),
                before.description,
                before.audience,
                before.owners,
            ),
            None => (None, String::new(), None, Vec::new()),
        };
        let filter = self.filter.clone().or(filter);
        let filter = filter.ok_or_else(|| {
            CommandError::Failed(
                "a new collection needs --filter, such as --filter tag:finance".into(),
            )
        })?;
        Ok(CollectionContent {
            filter,
            description: self.description.clone().unwrap_or(description),
            audience: match (self.everybody, self.nobody, self.group.is_empty()) {
                (true, ..) => None,
                (_, true, _) => Some(Vec::new()),
                (.., false) => Some(self.group.clone()),
                _ => audience,
            },
            owners: match self.owner.is_empty() {
                true => owners,
                false => self.owner.clone(),
            },
        })
    }
}

pub async fn run_collection(
    command: &CollectionCommand,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let reply = match command {
        CollectionCommand::List => return list_collections(client, console).await,
        CollectionCommand::Rm { collection } => {
            client.delete_collection(collection).await?;
            return console.print_result(&json!({ "deleted": collection }), || {
                console.print_line(&format!("collection {collection} is deleted"))
            });
        }
        CollectionCommand::Show { collection } => client.collection(collection).await?,
        CollectionCommand::Set(set) => {
            let (before, tag) = client.find_collection(&set.collection).await?.unzip();
            let content = set.merged_content(before)?;
            client
                .put_collection(&set.collection, &content, tag.as_deref())
                .await?
        }
    };
    console.print_result(&reply, || print_collection(&reply.value, console))
}

fn print_collection(collection: &Collection, console: &Console) -> Result<(), CommandError> {
    console.print_line(&format!("collection   {}", collection.name))?;
    if !collection.description.is_empty() {
        console.print_line(&format!("description  {}", collection.description))?;
    }
    console.print_line(&format!("filter       {}", collection.filter))?;
    console.print_line(&format!("shown to     {}", collection_audience(collection)))?;
    for owner in &collection.owners {
        console.print_line(&format!("owner        {owner}"))?;
    }
    Ok(())
}

fn collection_audience(collection: &Collection) -> String {
    match &collection.audience {
        None => "everybody".to_owned(),
        Some(groups) if groups.is_empty() => "owners and curators".to_owned(),
        Some(groups) => groups.join(", "),
    }
}

async fn list_collections(client: &Client, console: &Console) -> CommandResult {
    let reply = client.collections().await?;
    let list_format = ListFormat {
        command: "collection list",
        limit: None,
        header: ["NAME", "FILTER", "SHOWN TO"],
        empty_message: "there are no collections that you may see",
    };
    let list = &reply.value.collections;
    list_format.print_page(console, &reply, list, None, |one| {
        [
            one.name.clone(),
            one.filter.clone(),
            collection_audience(one),
        ]
    })
}
