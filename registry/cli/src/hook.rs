//! `hook` and `watch`: what the account is told of, and where.

use a2a_registry_api::{
    CreatedHook, Hook, HookConfirmation, HookFilter, HookReplay, HookTest, NewHook,
};
use a2a_registry_domain::hook::{DeliveryState, HookFormat, NoticeKind};
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::client::Client;
use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::console::Console;
use super::list_format::{ListFormat, PageArgs};
use super::search::find_saved_search;
use super::terminal;

/// Subcommands of `hook`.
#[derive(Subcommand, Debug, Clone)]
pub enum HookCommand {
    /// Create a hook; its keys are shown only once
    Create(CreateHookArgs),
    /// List hooks, newest first
    List(ListHooksArgs),
    /// Show a hook
    Show(HookArg),
    /// Confirm a hook with the challenge that was sent to its receiver
    Confirm {
        #[command(flatten)]
        hook: HookArg,
        /// The challenge, from the first message to the receiver
        challenge: String,
    },
    /// Send a test delivery or, while a hook is unconfirmed, the challenge again
    Test(HookArg),
    /// Give a hook new keys; the previous keys also sign deliveries for one more day
    Rotate(HookArg),
    /// Send deliveries again: all that were given up, or the one of --delivery
    Replay {
        #[command(flatten)]
        hook: HookArg,
        /// Id of one delivery
        #[arg(long, value_name = "ID")]
        delivery: Option<Uuid>,
    },
    /// List the deliveries of a hook, newest first
    Deliveries {
        #[command(flatten)]
        hook: HookArg,
        #[command(flatten)]
        query: ListDeliveriesArgs,
    },
    /// Delete a hook, with its deliveries
    Delete(HookArg),
}

/// A hook.
#[derive(Args, Debug, Clone)]
pub struct HookArg {
    /// Name or id of the hook
    #[arg(value_name = "HOOK")]
    hook: String,
}

/// Arguments of `hook create`.
#[derive(Args, Debug, Clone)]
pub struct CreateHookArgs {
    /// Name of the hook
    name: String,
    /// URL of the receiver, or mailto: and an address
    url: String,
    /// Body of deliveries: cloudevents or slack; mail for an address [default: cloudevents]
    #[arg(long, value_name = "FORMAT")]
    format: Option<HookFormat>,
    /// Only notices of this kind, such as agent.changed; may be repeated [default: all kinds that you may receive]
    #[arg(long, value_name = "KIND")]
    kind: Vec<NoticeKind>,
    /// Only this agent; may be repeated
    #[arg(long, value_name = "AGENT")]
    agent: Vec<String>,
    /// Only the agents that you watch, in addition to those of --agent
    #[arg(long)]
    watched: bool,
    /// Only agents of this domain; may be repeated
    #[arg(long, value_name = "DOMAIN")]
    domain: Vec<String>,
    /// Only agents of this collection; may be repeated
    #[arg(long, value_name = "NAME")]
    collection: Vec<String>,
    /// Only agents that your saved search of this name or id finds
    #[arg(long, value_name = "SEARCH", conflicts_with_all = ["domain", "collection"])]
    search: Option<String>,
}

/// Filters of `hook list`, also as query parameters of the call.
#[derive(Args, Debug, Clone, Serialize)]
pub struct ListHooksArgs {
    /// List the hooks of all accounts, for admins
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    all: bool,
    #[command(flatten)]
    #[serde(flatten)]
    page: PageArgs,
}

/// Filters of `hook deliveries`, also as query parameters of the call.
#[derive(Args, Debug, Clone, Serialize)]
pub struct ListDeliveriesArgs {
    /// Only deliveries in this state: waiting, delivered or dead
    #[arg(long, value_name = "STATE")]
    state: Option<DeliveryState>,
    #[command(flatten)]
    #[serde(flatten)]
    page: PageArgs,
}

/// Arguments of `watch`.
#[derive(Args, Debug, Clone)]
pub struct WatchArgs {
    /// The agent to watch; without one, the watched agents are listed
    agent: Option<String>,
    /// Stop watching it
    #[arg(long, requires = "agent")]
    end: bool,
}

pub async fn run_hook(command: &HookCommand, client: &Client, console: &Console) -> CommandResult {
    match command {
        HookCommand::Create(arguments) => create_hook(arguments, client, console).await,
        HookCommand::List(arguments) => list_hooks(arguments, client, console).await,
        HookCommand::Show(hook) => {
            let reply = client.hook(hook.resolve(client).await?).await?;
            console.print_result(&reply, || print_hook(&reply.value, console))
        }
        HookCommand::Confirm { hook, challenge } => {
            let confirmation = HookConfirmation {
                challenge: challenge.clone(),
            };
            let id = hook.resolve(client).await?;
            let reply = client.confirm_hook(id, &confirmation).await?;
            console.print_result(&reply, || print_hook(&reply.value, console))
        }
        HookCommand::Test(hook) => {
            let reply = client.test_hook(hook.resolve(client).await?).await?;
            console.print_result(&reply, || console.print_line(&test_line(&reply.value)))?;
            Ok(CommandOutcome::done_if(reply.value.error.is_none()))
        }
        HookCommand::Rotate(hook) => {
            let reply = client.rotate_hook(hook.resolve(client).await?).await?;
            let created = &reply.value;
            console.print_result(&reply, || print_keys(created, console))
        }
        HookCommand::Replay { hook, delivery } => {
            let replay = HookReplay {
                delivery: *delivery,
            };
            let id = hook.resolve(client).await?;
            let reply = client.replay_hook(id, &replay).await?;
            let count = reply.value.deliveries;
            console.print_result(&reply, || {
                console.print_line(&format!("{count} deliveries are sent again"))
            })
        }
        HookCommand::Deliveries { hook, query } => {
            list_deliveries(hook.resolve(client).await?, query, client, console).await
        }
        HookCommand::Delete(hook) => {
            let id = hook.resolve(client).await?;
            client.delete_hook(id).await?;
            console.print_result(&json!({ "deleted": id }), || {
                console.print_line(&format!("{id} is deleted"))
            })
        }
    }
}

impl HookArg {
    /// The id of the hook: one's own by its name, any by its id.
    async fn resolve(&self, client: &Client) -> Result<Uuid, CommandError> {
        if let Ok(id) = self.hook.parse() {
            return Ok(id);
        }
        let own = ListHooksArgs {
            all: false,
            page: PageArgs::with_max_limit(None),
        };
        let own = client.hooks(&own).await?.value;
        let hook = own.hooks.iter().find(|hook| hook.name == self.hook);
        let hook = hook.ok_or_else(|| {
            CommandError::Negative(format!("you have no hook with the name {}", self.hook))
        })?;
        Ok(hook.id)
    }
}

async fn create_hook(
    arguments: &CreateHookArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let mut agents = Vec::new();
    for agent in &arguments.agent {
        agents.push(client.find_agent_id(agent).await?);
    }
    let search = match &arguments.search {
        None => None,
        Some(name) => Some(find_saved_search(name, client).await?.id),
    };
    let new = NewHook {
        name: arguments.name.clone(),
        url: arguments.url.clone().into(),
        format: arguments.format,
        filter: HookFilter {
            kinds: arguments.kind.iter().map(|kind| (*kind).into()).collect(),
            agents,
            watched: arguments.watched,
            domains: arguments.domain.clone(),
            collections: arguments.collection.clone(),
            search,
        },
    };
    let reply = client.create_hook(&new).await?;
    let created = &reply.value;
    console.print_result(&reply, || {
        print_hook(&created.hook, console)?;
        print_keys(created, console)
    })
}

fn print_keys(created: &CreatedHook, console: &Console) -> Result<(), CommandError> {
    let (Some(secret), Some(public_key)) = (&created.secret, &created.public_key) else {
        // Otherwise the error was printed: no mail was sent.
        if created.hook.last_error.is_none() {
            terminal::eprint_note("the mail has a link that confirms the address");
        }
        return Ok(());
    };
    terminal::eprint_note(
        "store the keys now, they are not shown again: the secret of v1 signatures, and the public key of v1a ones",
    );
    console.print_line(secret)?;
    console.print_line(public_key)
}

fn print_hook(hook: &Hook, console: &Console) -> Result<(), CommandError> {
    console.print_line(&format!(
        "{} ({}): {}, {} to {}; {} waiting, {} dead",
        hook.name,
        hook.id,
        hook.state,
        hook.format,
        hook.target.as_deref().unwrap_or("an unknown target"),
        hook.waiting,
        hook.dead
    ))?;
    match &hook.last_error {
        Some(error) => console.print_line(&format!("last error: {}", terminal::escape_line(error))),
        None => Ok(()),
    }
}

fn test_line(test: &HookTest) -> String {
    match &test.error {
        None => format!("delivered; the hook is {}", test.state),
        Some(error) => format!(
            "{}; the hook is {}",
            terminal::escape_line(error),
            test.state
        ),
    }
}

async fn list_hooks(
    arguments: &ListHooksArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let reply = client.hooks(arguments).await?;
    let list_format = ListFormat {
        command: "hook list",
        limit: arguments.page.limit,
        header: [
            "ID",
            "ACCOUNT",
            "NAME",
            "STATE",
            "TARGET",
            "WAITING",
            "DEAD",
            "FAILING SINCE",
        ],
        empty_message: "there are no hooks",
    };
    let list = &reply.value;
    let next = list.next_page_token.as_deref();
    list_format.print_page(console, &reply, &list.hooks, next, |hook| {
        let since = hook.failing_since.map(|since| since.to_readable());
        [
            hook.id.to_string(),
            hook.account.clone(),
            hook.name.clone(),
            hook.state.to_string(),
            hook.target.clone().unwrap_or_default(),
            hook.waiting.to_string(),
            hook.dead.to_string(),
            since.unwrap_or_default(),
        ]
    })
}

async fn list_deliveries(
    hook: Uuid,
    query: &ListDeliveriesArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let reply = client.hook_deliveries(hook, query).await?;
    let list_format = ListFormat {
        command: &format!("hook deliveries {hook}"),
        limit: query.page.limit,
        header: [
            "ID", "KIND", "SUBJECT", "AT", "STATE", "ATTEMPTS", "STATUS", "ERROR",
        ],
        empty_message: "there are no deliveries",
    };
    let list = &reply.value;
    let next = list.next_page_token.as_deref();
    list_format.print_page(console, &reply, &list.deliveries, next, |delivery| {
        let status = delivery.status.map(|status| status.to_string());
        [
            delivery.id.to_string(),
            delivery.kind.to_string(),
            delivery.subject.clone(),
            delivery.at.to_readable(),
            delivery.state.to_string(),
            delivery.attempts.to_string(),
            status.unwrap_or_default(),
            terminal::escape_line(delivery.error.as_deref().unwrap_or_default()),
        ]
    })
}

/// Watches an agent, stops that, or lists the watched agents.
pub async fn run_watch(arguments: &WatchArgs, client: &Client, console: &Console) -> CommandResult {
    let Some(agent) = &arguments.agent else {
        let reply = client.watches().await?;
        let list = &reply.value;
        console.print_result(&reply, || {
            let mut agents = list.agents.iter();
            agents.try_for_each(|agent| console.print_line(&agent.to_string()))
        })?;
        return Ok(CommandOutcome::done_unless_empty(&list.agents));
    };
    let id = client.find_agent_id(agent).await?;
    if arguments.end {
        client.unwatch(id).await?;
        return console.print_result(&json!({ "ended": id }), || {
            console.print_line(&format!("you no longer watch {id}"))
        });
    }
    let reply = client.watch(id).await?;
    console.print_result(&reply, || {
        if !reply.value.has_hook {
            terminal::eprint_note(
                "no hook sends notices about watched agents yet; create one with `hook create NAME URL --watched`",
            );
        }
        console.print_line(&format!("you watch {id}"))
    })
}
