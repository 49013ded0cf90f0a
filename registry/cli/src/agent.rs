//! `agent`: actions on agents, each with a reason.

use a2a_registry_api::{Act, Agent, AgentPatch, Deprecate, NewReport};
use a2a_registry_domain::lifecycle::{Hold, Visibility};
use a2a_registry_domain::timestamp::Timestamp;
use clap::{Args, Subcommand};

use super::client::{Client, RegistryResponse};
use super::command_error::{CommandError, CommandResult};
use super::confirm::confirm_irreversible_action;
use super::console::Console;

/// Subcommands of `agent`.
#[derive(Subcommand, Debug, Clone)]
pub enum AgentCommand {
    /// Put an agent on hold until it is resumed
    Suspend(AgentActionArgs),
    /// Lift a hold
    Resume {
        #[command(flatten)]
        act: AgentActionArgs,
        /// Hold to lift: `operator`, `critical_change` or `key_changed` [default: operator]
        #[arg(long, value_name = "HOLD")]
        hold: Option<Hold>,
    },
    /// Open a review of an agent's current content before its approval expires
    Recertify(AgentActionArgs),
    /// Mark an agent as deprecated; it is still served, together with the reason
    Deprecate {
        /// Its id, URN, host or card URL
        #[arg(value_name = "AGENT")]
        agent: String,
        /// Reason and advice, shown to everyone who sees the agent
        #[arg(long, visible_alias = "reason", value_name = "TEXT")]
        message: String,
        /// Agent to use instead, by its id or URN; shown to those who may see it
        #[arg(long, value_name = "AGENT")]
        replacement: Option<String>,
        /// Time after which it may stop working: a date such as 2027-01-31, or an RFC 3339 timestamp
        #[arg(long, visible_alias = "date", value_name = "TIME", value_parser = parse_day_or_time)]
        sunset: Option<Timestamp>,
    },
    /// Undo a deprecation
    Undeprecate(AgentActionArgs),
    /// Report a problem with an agent; curators decide on it
    Report {
        #[command(flatten)]
        act: AgentActionArgs,
        /// Contact details for curators
        #[arg(long, value_name = "TEXT", default_value = "")]
        contact: String,
    },
    /// Set who can find an agent: public, internal (any signed-in caller) or restricted (its groups, and the audience
    /// of its collections)
    Visibility {
        /// Its id, URN, host or card URL
        #[arg(value_name = "AGENT")]
        agent: String,
        /// public, internal or restricted
        #[arg(value_name = "VISIBILITY")]
        visibility: Visibility,
        /// A group whose members can find it while it is restricted, as NAME or ORIGIN#NAME; may be repeated
        #[arg(long, value_name = "GROUP")]
        group: Vec<String>,
        /// A collection whose audience can find it while it is restricted; may be repeated
        #[arg(long, value_name = "COLLECTION")]
        collection: Vec<String>,
    },
    /// Set the account that is responsible for an agent inside this company
    Sponsor {
        /// Its id, URN, host or card URL
        #[arg(value_name = "AGENT")]
        agent: String,
        /// Name of the account; empty for none
        #[arg(value_name = "ACCOUNT")]
        account: String,
    },
    /// Set or remove labels of an agent, by which searches can filter; its other labels stay
    Label {
        /// Its id, URN, host or card URL
        #[arg(value_name = "AGENT")]
        agent: String,
        /// A label to set, as KEY=VALUE, or to remove, as KEY=
        #[arg(value_name = "LABEL", required = true, value_parser = parse_label)]
        labels: Vec<(String, String)>,
        /// Reason, stored with the action
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Let the registry derive representative queries for an agent's ARD entry from its skills
    DeriveQueries {
        /// Its id, URN, host or card URL
        #[arg(value_name = "AGENT")]
        agent: String,
        /// Stop deriving them
        #[arg(long)]
        off: bool,
    },
    /// Retire an agent permanently
    Retire {
        #[command(flatten)]
        act: AgentActionArgs,
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
    },
}

/// Agent of an action, and the reason.
#[derive(Args, Debug, Clone)]
pub struct AgentActionArgs {
    /// Its id, URN, host or card URL
    #[arg(value_name = "AGENT")]
    agent: String,
    /// Reason, stored with the action
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl AgentActionArgs {
    fn to_request(&self, hold: Option<Hold>) -> Act {
        Act {
            reason: self.reason.clone(),
            hold,
        }
    }
}

/// Parses a date or an RFC 3339 timestamp.
pub(super) fn parse_day_or_time(text: &str) -> Result<Timestamp, String> {
    let day: Result<Timestamp, String> = format!("{text}T00:00:00Z").parse();
    day.or_else(|_| text.parse())
}

/// Parses a label; one without a value is removed.
fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write a label as KEY=VALUE, or KEY= to remove it".to_owned()),
    }
}

pub async fn run_agent(
    command: &AgentCommand,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let reply = match command {
        AgentCommand::Suspend(named) => send_agent_action(client, "suspend", named, None).await?,
        AgentCommand::Resume { act: named, hold } => {
            send_agent_action(client, "resume", named, *hold).await?
        }
        AgentCommand::Undeprecate(named) => {
            send_agent_action(client, "undeprecate", named, None).await?
        }
        AgentCommand::Deprecate {
            agent,
            message,
            replacement,
            sunset,
        } => {
            let deprecation = Deprecate {
                reason: message.clone(),
                replacement: replacement.clone(),
                sunset: *sunset,
            };
            let id = client.find_agent_id(agent).await?;
            client.deprecate(id, &deprecation).await?
        }
        AgentCommand::Sponsor { agent, .. }
        | AgentCommand::DeriveQueries { agent, .. }
        | AgentCommand::Visibility { agent, .. } => {
            patch_agent(client, agent, &requested_patch(command)).await?
        }
        AgentCommand::Label {
            agent,
            labels,
            reason,
        } => set_agent_labels(client, agent, labels, reason.clone()).await?,
        AgentCommand::Recertify(named) => return recertify_agent(named, client, console).await,
        AgentCommand::Report {
            act: named,
            contact,
        } => return report_agent(named, contact, client, console).await,
        AgentCommand::Retire { act: named, yes } => retire_agent(named, *yes, client).await?,
    };
    console.print_result(&reply, || console.print_line(&describe_agent(&reply.value)))
}

/// What a command changes with one request to change the agent.
fn requested_patch(command: &AgentCommand) -> AgentPatch {
    match command {
        AgentCommand::Sponsor { account, .. } => AgentPatch {
            sponsor: Some(account.clone()),
            ..AgentPatch::default()
        },
        AgentCommand::DeriveQueries { off, .. } => AgentPatch {
            derived_queries: Some(!off),
            ..AgentPatch::default()
        },
        AgentCommand::Visibility {
            visibility,
            group,
            collection,
            ..
        } => AgentPatch {
            visibility: Some(*visibility),
            groups: (!group.is_empty()).then(|| group.clone()),
            collections: (!collection.is_empty()).then(|| collection.clone()),
            ..AgentPatch::default()
        },
        _ => AgentPatch::default(),
    }
}

async fn patch_agent(
    client: &Client,
    agent: &str,
    patch: &AgentPatch,
) -> Result<RegistryResponse<Agent>, CommandError> {
    let id = client.find_agent_id(agent).await?;
    Ok(client.patch_agent(id, patch).await?)
}

/// Sets and removes labels of an agent. The API takes all labels at once, so the others are sent as they are.
async fn set_agent_labels(
    client: &Client,
    agent: &str,
    changes: &[(String, String)],
    reason: Option<String>,
) -> Result<RegistryResponse<Agent>, CommandError> {
    let id = client.find_agent_id(agent).await?;
    let (current, tag) = client.tagged_agent(id).await?;
    let mut labels = current.hit.summary.labels;
    for (key, value) in changes {
        match value.is_empty() {
            true => drop(labels.remove(key)),
            false => drop(labels.insert(key.clone(), value.clone())),
        }
    }
    let patch = AgentPatch {
        labels: Some(labels),
        reason,
        ..AgentPatch::default()
    };
    Ok(client.patch_tagged_agent(id, &patch, &tag).await?)
}

async fn report_agent(
    arguments: &AgentActionArgs,
    contact: &str,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let id = client.find_agent_id(&arguments.agent).await?;
    let new = NewReport {
        reason: arguments.reason.clone(),
        contact: contact.to_owned(),
    };
    let reply = client.report(id, &new).await?;
    console.print_result(&reply, || {
        console.print_line(&format!("reported {id}; curators will decide on it"))
    })
}

async fn retire_agent(
    arguments: &AgentActionArgs,
    yes: bool,
    client: &Client,
) -> Result<RegistryResponse<Agent>, CommandError> {
    let agent = client
        .find_agent_for_action(&arguments.agent)
        .await?
        .summary;
    let what = format!(
        "permanently retiring {} of {} ({})",
        agent.name, agent.domain, agent.id
    );
    confirm_irreversible_action(&what, yes)?;
    Ok(client
        .act(agent.id, "retire", &arguments.to_request(None))
        .await?)
}

async fn recertify_agent(
    arguments: &AgentActionArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let id = client.find_agent_id(&arguments.agent).await?;
    let reply = client.recertify(id, &arguments.to_request(None)).await?;
    let review = &reply.value;
    console.print_result(&reply, || {
        console.print_line(&format!("review {} of {} is open", review.id, review.name))
    })
}

async fn send_agent_action(
    client: &Client,
    verb: &str,
    arguments: &AgentActionArgs,
    hold: Option<Hold>,
) -> Result<RegistryResponse<Agent>, CommandError> {
    let id = client.find_agent_id(&arguments.agent).await?;
    Ok(client.act(id, verb, &arguments.to_request(hold)).await?)
}

/// State of an agent, in one line.
fn describe_agent(agent: &Agent) -> String {
    let summary = &agent.hit.summary;
    let holds: Vec<_> = agent.holds.iter().map(|hold| hold.hold.as_str()).collect();
    let hold_text = if holds.is_empty() {
        String::new()
    } else {
        format!(" (on hold: {})", holds.join(", "))
    };
    let advice = summary.deprecation.as_ref();
    let deprecation_text = advice.map(|deprecation| format!(": {}", deprecation.sentence()));
    let sponsor = agent.sponsor.as_ref();
    let sponsor = sponsor.map_or_else(String::new, |name| format!(", sponsored by {name}"));
    let queries = match agent.derived_queries {
        true => ", with derived queries for ARD",
        false => "",
    };
    let collections = agent.collections.iter();
    let collections = collections.map(|name| format!("the audience of {name}"));
    let shown_to: Vec<String> = agent.groups.iter().cloned().chain(collections).collect();
    let visibility = match (summary.visibility.known_value(), shown_to.as_slice()) {
        (Some(Visibility::Public), _) => String::new(),
        (_, []) => format!(", {}", summary.visibility),
        (_, shown_to) => format!(", {} to {}", summary.visibility, shown_to.join(", ")),
    };
    let labels = summary.labels.iter();
    let labels: Vec<String> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let labels = match labels.is_empty() {
        true => String::new(),
        false => format!(", labelled {}", labels.join(", ")),
    };
    format!(
        "{} ({}) is {}{visibility}{hold_text}{sponsor}{labels}{queries}{}",
        summary.name,
        summary.id,
        summary.lifecycle,
        deprecation_text.unwrap_or_default()
    )
}
