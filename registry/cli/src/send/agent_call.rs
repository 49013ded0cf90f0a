//! Agent to call: its card, and the registry's warnings about it.

use std::sync::Arc;
use std::time::Duration;

use a2a_card::{
    AgentCard, CardFamily, Interface, ParsedCard, UNKNOWN_BINDING, assumed_address,
    has_partial_address, with_absolute_addresses,
};
use a2a_client::{AgentResponse, InterfacePreferences, SendOptions};
use a2a_crawler::fetch::{AGENT_CARD_PATH, LEGACY_AGENT_CARD_PATH, card_url_under};
use a2a_crawler::{Clock, SystemClock};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_domain::timestamp::Timestamp;
use bytes::Bytes;
use clap::Args;
use url::Url;
use uuid::Uuid;

use super::warnings;
use crate::agent_credentials::{self, CredentialArgs, ParsedCredentials};
use crate::client::Client;
use crate::command_error::CommandError;
use crate::console::Console;
use crate::fetch::fetch_card;
use crate::name_parsing::AgentReference;
use crate::program_name::{program_name, shell_quote};
use crate::signature_text::signature_lines;
use crate::terminal;

/// Default time limit, in seconds.
const DEFAULT_TIMEOUT_SECONDS: u64 = 60;

/// Options that select the agent and how it is called.
#[derive(Args, Clone)]
pub(crate) struct AgentCallArgs {
    /// Its id, URN, host or card URL, or its full name if no other agent has it
    #[arg(value_name = "AGENT", help_heading = None::<&str>)]
    pub agent: String,
    #[command(flatten)]
    pub credentials: CredentialArgs,
    /// Time limit for the whole exchange, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_TIMEOUT_SECONDS, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Longest time without an event in a stream before it is resumed, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_TIMEOUT_SECONDS, value_parser = clap::value_parser!(u64).range(1..=3600))]
    idle_timeout: u64,
    /// Use only interfaces with this binding: JSONRPC, HTTP+JSON or GRPC
    #[arg(long, value_name = "BINDING")]
    binding: Option<String>,
    /// Use only interfaces with this protocol version, such as 0.3
    #[arg(long, value_name = "VERSION")]
    protocol_version: Option<String>,
    /// Tenant to send in every request, instead of the card's
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Call this URL instead of those in the card, or if the card has none
    #[arg(id = "interface_url", long = "url", value_name = "URL")]
    url: Option<String>,
    /// Call a gRPC interface that the card names as a bare HOST:PORT without TLS
    #[arg(long)]
    plaintext: bool,
    /// Activate this protocol extension, by its URI
    #[arg(long, value_name = "URI")]
    extension: Vec<String>,
    /// Fetch the card directly from this URL or host, without a registry
    #[arg(long)]
    direct: bool,
    /// Send nothing to an agent that is on hold, not approved, or deprecated, that has an invalid signature, that
    /// changed its card since it was approved, that has no URL in its card, or that you may not call
    #[arg(long, conflicts_with = "direct")]
    strict: bool,
    /// Print the agent's text unchanged, including terminal escapes
    #[arg(long)]
    pub raw: bool,
    /// Whether a program is the caller, so that no one reads what is printed.
    #[arg(skip)]
    unattended: bool,
}

impl AgentCallArgs {
    /// Options for an agent that a program calls: as strict as possible, and without credentials of its own.
    /// `plaintext` is the user's setting.
    pub fn for_unattended_call(agent: String, plaintext: bool) -> Self {
        Self {
            agent,
            credentials: CredentialArgs::default(),
            timeout: DEFAULT_TIMEOUT_SECONDS,
            idle_timeout: DEFAULT_TIMEOUT_SECONDS,
            binding: None,
            protocol_version: None,
            tenant: None,
            url: None,
            plaintext,
            extension: Vec::new(),
            direct: false,
            strict: true,
            raw: false,
            unattended: true,
        }
    }

    /// Filter for the interfaces that may be used.
    pub fn interface_filter(&self) -> InterfacePreferences {
        InterfacePreferences {
            binding: non_empty(&self.binding),
            version: non_empty(&self.protocol_version),
            tenant: non_empty(&self.tenant),
            plaintext: self.plaintext,
            url: non_empty(&self.url),
            ..InterfacePreferences::default()
        }
    }

    /// Command line of a `task` command about a task of this agent.
    pub fn task_command(&self, action: &str, task: &str) -> String {
        let mut words = vec![program_name(), "task".to_owned(), action.to_owned()];
        let names = [shell_quote(&self.agent), shell_quote(task)];
        // Everything after two dashes is a value, even if the agent's id starts with a dash.
        if task.starts_with('-') {
            words.extend(self.interface_flags());
            words.push("--".to_owned());
            words.extend(names);
        } else {
            words.extend(names);
            words.extend(self.interface_flags());
        }
        words.join(" ")
    }

    /// Key that distinguishes this agent from all others that the user calls.
    pub fn agent_identity_key(&self, client: &Client) -> String {
        match self.direct {
            true => format!("direct {}", self.agent),
            false => format!("{} {}", client.base_url(), self.agent),
        }
    }

    /// Command line of the `send` command that continues a task.
    fn send_command_line(&self, task: Option<&str>, context: Option<&str>) -> String {
        let mut words = vec![
            program_name(),
            "send".to_owned(),
            shell_quote(&self.agent),
            "TEXT".to_owned(),
        ];
        for (flag, value) in [("--task", task), ("--context", context)] {
            words.extend(value.map(|value| match value.starts_with('-') {
                true => format!("{flag}={}", shell_quote(value)),
                false => format!("{flag} {}", shell_quote(value)),
            }));
        }
        words.extend(self.interface_flags());
        words.join(" ")
    }

    /// Flags that select the same interface, as command-line words.
    pub fn interface_flags(&self) -> impl Iterator<Item = String> {
        let values = [
            ("--binding", &self.binding),
            ("--protocol-version", &self.protocol_version),
            ("--tenant", &self.tenant),
            ("--url", &self.url),
        ];
        let value_flags = values.into_iter().filter_map(|(flag, value)| {
            let value = value.as_deref()?;
            Some(format!("{flag} {}", shell_quote(value)))
        });
        let set = [("--direct", self.direct), ("--plaintext", self.plaintext)];
        let set = set.into_iter().filter(|(_, set)| *set);
        value_flags.chain(set.map(|(flag, _)| flag.to_owned()))
    }

    /// Advice for an answer that is not final, in one line; `None` if it is final.
    pub fn next_step_hint(&self, response: &AgentResponse) -> Option<String> {
        let task = response.task_id.as_deref();
        let task_command = |action| {
            task.map(|task| self.task_command(action, task))
                .unwrap_or_default()
        };
        match (&response.unfinished_reason, response.state.as_deref()) {
            (Some(reason), _) if task.is_none() => Some(format!("not the final answer: {reason}")),
            (Some(reason), _) => Some(format!(
                "not the final answer: {reason}; see {}",
                task_command("get")
            )),
            (None, Some("input-required")) => {
                let command = self.send_command_line(task, response.context_id.as_deref());
                Some(format!(
                    "the agent asks for more input; answer with {command}"
                ))
            }
            (None, Some("auth-required")) => Some(format!(
                "the agent asks for an authorization outside of this conversation; give it, then follow the task with \
                 {}",
                task_command("subscribe")
            )),
            _ => None,
        }
    }
}

/// Opens the agent in these arguments. Nothing is sent to it yet; warnings about it were printed.
pub(crate) async fn open_agent_client(
    arguments: &AgentCallArgs,
    client: &Client,
    console: &Console,
) -> Result<a2a_client::AgentClient, CommandError> {
    // Unreadable files are reported before any prompt or request.
    let parsed_credentials = arguments.credentials.resolve()?;
    let (card, options) = prepare_call(arguments, parsed_credentials, client, console).await?;
    Ok(a2a_client::AgentClient::new(&card, &options)?)
}

/// Loads the card of the agent in these arguments, and builds the options of a call with these credentials and the
/// stored ones.
pub(crate) async fn prepare_call(
    arguments: &AgentCallArgs,
    parsed_credentials: ParsedCredentials,
    client: &Client,
    console: &Console,
) -> Result<(AgentCard, SendOptions), CommandError> {
    let CalledAgent {
        card,
        interface_filter: choice,
        is_assumed,
    } = load_called_agent(arguments, client, console).await?;
    arguments.credentials.warn_about_exposure();
    let mut options = SendOptions {
        interface_filter: choice,
        extensions: arguments.extension.clone(),
        timeout: Duration::from_secs(arguments.timeout),
        idle_timeout: Duration::from_secs(arguments.idle_timeout),
        ..SendOptions::new("")
    };
    agent_credentials::apply_credentials(&mut options, parsed_credentials, &card, !is_assumed)?;
    agent_credentials::warn_of_plain_http(&options, &card);
    Ok((card, options))
}

/// Card of an agent, and how it is called.
pub(crate) struct CalledAgent {
    pub card: AgentCard,
    /// Filter for the interfaces, and the address if the card has none.
    pub interface_filter: InterfacePreferences,
    /// Whether that address was not given by anyone, and is the usual one of such agents.
    pub is_assumed: bool,
}

/// Loads the card of the agent in these arguments, and prints warnings about it.
pub(crate) async fn load_called_agent(
    arguments: &AgentCallArgs,
    client: &Client,
    console: &Console,
) -> Result<CalledAgent, CommandError> {
    let now = Arc::new(SystemClock).now();
    let mut called_agent = match arguments.direct {
        true => load_agent_directly(arguments).await?,
        false => load_agent_from_registry(arguments, client, console, now.into()).await?,
    };
    replace_unknown_binding(&mut called_agent.card, arguments)?;
    Ok(called_agent)
}

/// Parses a card.
fn parse_card(arguments: &AgentCallArgs, bytes: &[u8]) -> Result<ParsedCard, CommandError> {
    a2a_card::parse_card(bytes).map_err(|error| {
        CommandError::new(format!(
            "the card of {} cannot be read: {error}",
            arguments.agent
        ))
    })
}

impl CalledAgent {
    /// The agent is called at the user's address or, if neither the user nor the card has one, at `assumed_url`.
    fn new(arguments: &AgentCallArgs, parsed: ParsedCard, assumed_url: Option<String>) -> Self {
        let mut interface_filter = arguments.interface_filter();
        interface_filter.protocol_skill_first =
            matches!(parsed.family, CardFamily::Snake0 | CardFamily::Snake1);
        let has_no_url = interface_filter.url.is_none() && parsed.card.interfaces.is_empty();
        let assumed = assumed_url.filter(|_| has_no_url);
        let is_assumed = assumed.is_some();
        interface_filter.url = interface_filter.url.or(assumed);
        Self {
            card: parsed.card,
            interface_filter,
            is_assumed,
        }
    }
}

/// Fetches a card from the agent's host. A warning says if its address is assumed.
async fn load_agent_directly(arguments: &AgentCallArgs) -> Result<CalledAgent, CommandError> {
    let (url, bytes) = fetch_card_directly(&arguments.agent).await?;
    let mut parsed = parse_card(arguments, &bytes)?;
    parsed.card = with_absolute_addresses(&parsed.card, &url).into_owned();
    let assumed = assumed_address(&parsed.card, &url).map(String::from);
    let called_agent = CalledAgent::new(arguments, parsed, assumed);
    if let Some(url) = called_agent
        .interface_filter
        .url
        .as_ref()
        .filter(|_| called_agent.is_assumed)
    {
        terminal::eprint_note(&format!(
            "warning: the card of {} {}; set another with --url",
            arguments.agent,
            assumed_address_text(url)
        ));
    }
    Ok(called_agent)
}

/// Phrase about an agent whose address is assumed.
fn assumed_address_text(url: &str) -> String {
    format!("names no address, so {url} is assumed")
}

/// Applies the user's binding to an address that the card lists without one.
fn replace_unknown_binding(
    card: &mut AgentCard,
    arguments: &AgentCallArgs,
) -> Result<(), CommandError> {
    let is_unnamed = |one: &Interface| one.binding == UNKNOWN_BINDING;
    if card.interfaces.is_empty() || !card.interfaces.iter().all(is_unnamed) {
        return Ok(());
    }
    let Some(binding) = non_empty(&arguments.binding) else {
        let hint = match arguments.unattended {
            true => "",
            false => "; add --binding JSONRPC if the agent speaks JSON-RPC there",
        };
        return Err(CommandError::new(format!(
            "the card of {} lists an address without a protocol binding{hint}",
            arguments.agent
        )));
    };
    for interface in &mut card.interfaces {
        interface.binding.clone_from(&binding);
    }
    Ok(())
}

/// The text, or `None` if it is empty: an empty variable counts as unset.
fn non_empty(value: &Option<String>) -> Option<String> {
    value.clone().filter(|value| !value.is_empty())
}

/// Loads an agent from the registry, and prints warnings about it. Its card is the one that these warnings are about.
async fn load_agent_from_registry(
    arguments: &AgentCallArgs,
    client: &Client,
    console: &Console,
    now: Timestamp,
) -> Result<CalledAgent, CommandError> {
    let id = resolve_agent_id(arguments, client).await?;
    let agent = client.agent(id).await?.value;
    let verdict = &agent.signature_verdict;
    if verdict.state != SignatureState::Unsigned && !arguments.unattended {
        for line in signature_lines(console, verdict) {
            terminal::eprint_note(&line);
        }
    }
    let mut warnings =
        warnings::collect_agent_warnings(&agent, client, now, !arguments.unattended).await;
    let assumed_url = agent
        .assumed_url
        .filter(|_| non_empty(&arguments.url).is_none());
    if let Some(url) = &assumed_url {
        let hint = if arguments.unattended {
            ""
        } else {
            "; set another with --url"
        };
        warnings.push(assumed_address_text(url) + hint);
    }
    let summary = &agent.hit.summary;
    print_or_reject_warnings(arguments, &summary.name, &warnings)?;
    let bytes = client.card_version(id, &summary.card_digest).await?;
    let mut parsed = parse_card(arguments, &bytes)?;
    let card = &mut parsed.card;
    // The registry knows the URL of the card, which completes relative addresses.
    if has_partial_address(card) && card.interfaces.len() == summary.interfaces.len() {
        for (own, indexed) in card.interfaces.iter_mut().zip(&summary.interfaces) {
            own.url.clone_from(&indexed.url);
        }
    }
    Ok(CalledAgent::new(arguments, parsed, assumed_url))
}

/// Resolves the id of the agent in these arguments. A note says which agent a name has matched.
async fn resolve_agent_id(
    arguments: &AgentCallArgs,
    client: &Client,
) -> Result<Uuid, CommandError> {
    let reference = &arguments.agent;
    let resolved = match arguments.unattended {
        true => client.find_agent_for_action(reference).await,
        false => client.find_agent_to_call(reference).await,
    };
    match resolved {
        Ok(hit) => {
            let (id, domain) = (hit.summary.id, &hit.summary.domain);
            if hit.summary.name.trim().to_lowercase() == reference.trim().to_lowercase() {
                terminal::eprint_note(&format!("{reference} is agent {id} of {domain}"));
            }
            Ok(id)
        }
        Err(CommandError::Negative(_)) if arguments.unattended => {
            Err(CommandError::Negative(format!(
                "the registry has no agent {reference} that you may see; find agents with search_agents"
            )))
        }
        Err(CommandError::Negative(line)) if reference.contains("://") => {
            Err(CommandError::Negative(format!(
                "{line}; --direct fetches the card from there without a registry"
            )))
        }
        Err(failure) => Err(failure),
    }
}

/// Prints warnings about an agent for people, and rejects the call if the caller is strict.
fn print_or_reject_warnings(
    arguments: &AgentCallArgs,
    name: &str,
    warnings: &[String],
) -> Result<(), CommandError> {
    for concern in warnings.iter().filter(|_| !arguments.unattended) {
        terminal::eprint_note(&format!("warning: {name} {concern}"));
    }
    if !arguments.strict || warnings.is_empty() {
        return Ok(());
    }
    let strict_note = match arguments.unattended {
        true => "",
        false => ", because --strict was given",
    };
    Err(CommandError::Negative(format!(
        "nothing was sent to {}{strict_note}: it {}",
        arguments.agent,
        warnings.join("; it ")
    )))
}

/// Fetches a card from a URL, the well-known path under it, or a host's well-known paths. Returns it with its URL.
async fn fetch_card_directly(url_or_host: &str) -> Result<(Url, Bytes), CommandError> {
    let url = match AgentReference::parse(url_or_host)? {
        AgentReference::Url(url) => url,
        AgentReference::Host(host) => Url::parse(&format!("https://{host}/"))
            .map_err(|error| CommandError::new(format!("{host} is not a host: {error}")))?,
        _ => {
            return Err(CommandError::new(
                "--direct needs a URL or a host, because it uses no registry",
            ));
        }
    };
    let (primary, fallback) = if url.path() == "/" && url.query().is_none() {
        let with_path = |path: &str| {
            let mut url = url.clone();
            url.set_path(path);
            url
        };
        (
            with_path(AGENT_CARD_PATH),
            Some(with_path(LEGACY_AGENT_CARD_PATH)),
        )
    } else {
        (url.clone(), card_url_under(&url))
    };
    Ok(fetch_card(&primary, fallback.as_ref()).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_commands_are_understood_whatever_ids_begin_with() {
        use clap::Parser as _;

        #[derive(clap::Parser)]
        struct Only {
            #[command(flatten)]
            agent: AgentCallArgs,
            task: Option<String>,
            #[arg(long = "task")]
            continued: Option<String>,
            #[arg(long)]
            context: Option<String>,
        }
        let typed = Only::parse_from([
            "x",
            "a.example",
            "--direct",
            "--tenant",
            "t",
            "--url",
            "http://h/a2a",
        ]);
        let words = |command: &str, after: &str| -> Vec<String> {
            let (_, words) = command.split_once(after).unwrap_or_default();
            let words = words.split(' ').map(|word| word.trim_matches('\''));
            std::iter::once("x")
                .chain(words)
                .map(str::to_owned)
                .collect()
        };
        for id in ["t-1", "-t", "--help"] {
            let command = typed.agent.task_command("get", id);
            let read = Only::parse_from(words(&command, "task get "));
            assert_eq!(
                (read.agent.agent.as_str(), read.task.as_deref()),
                ("a.example", Some(id))
            );
            assert_eq!(
                read.agent.interface_filter(),
                typed.agent.interface_filter(),
                "{command}"
            );
            let command = typed.agent.send_command_line(Some(id), Some(id));
            let read = Only::parse_from(words(&command, "send "));
            let continued = (read.continued.as_deref(), read.context.as_deref());
            assert_eq!(continued, (Some(id), Some(id)), "{command}");
        }
    }
}
