//! The agent to talk to: its card, and what the registry holds against it.

use std::sync::Arc;
use std::time::Duration;

use a2a_card::{
    AgentCard, Family, Interface, Parsed, UNKNOWN_BINDING, assumed_address, has_relative_address,
    with_absolute_addresses,
};
use a2a_client::{AgentAnswer, InterfaceFilter, SendOptions};
use a2a_crawler::fetch::{AGENT_CARD_PATH, AGENT_PATH, card_under};
use a2a_crawler::{Clock, SystemClock};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_domain::timestamp::Timestamp;
use bytes::Bytes;
use clap::Args;
use url::Url;
use uuid::Uuid;

use super::concerns;
use crate::client::Client;
use crate::console::Console;
use crate::credentials::{self, CredentialArgs, GivenCredentials};
use crate::failure::Failure;
use crate::fetch::fetch_card;
use crate::invocation::{program, quote};
use crate::signature::signature_lines;
use crate::target::AgentName;
use crate::terminal;

/// Time limits where none are given, in seconds.
const DEFAULT_SECONDS: u64 = 60;

/// Which agent is talked to, and how.
#[derive(Args, Clone)]
pub(crate) struct AgentArgs {
    /// Its id, URN, host or card URL, or its whole name where no other agent has it
    #[arg(value_name = "AGENT", help_heading = None::<&str>)]
    pub agent: String,
    #[command(flatten)]
    pub credentials: CredentialArgs,
    /// Time limit for the whole exchange, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_SECONDS, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Longest time without an event in a stream before it is resumed, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_SECONDS, value_parser = clap::value_parser!(u64).range(1..=3600))]
    idle_timeout: u64,
    /// Use only interfaces with this binding: JSONRPC, HTTP+JSON or GRPC
    #[arg(long, value_name = "BINDING")]
    binding: Option<String>,
    /// Use only interfaces with this protocol version, such as 0.3
    #[arg(long, value_name = "VERSION")]
    protocol_version: Option<String>,
    /// The tenant to name in every request, instead of the card's
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// Call this address instead of those that the card names, or where it names none
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
    /// Send nothing to an agent that is on hold, not approved or deprecated, whose signature is invalid, whose card changed
    /// since it was approved or names no address, or that you may not call
    #[arg(long, conflicts_with = "direct")]
    strict: bool,
    /// Print the agent's text as it came, terminal escapes included
    #[arg(long)]
    pub raw: bool,
    /// Whether a program asks, and nobody reads what is printed.
    #[arg(skip)]
    unattended: bool,
}

impl AgentArgs {
    /// As a program names an agent: as strictly as can be, and without credentials of its own. `plaintext` is what its user
    /// allowed.
    pub fn unattended(agent: String, plaintext: bool) -> Self {
        Self {
            agent,
            credentials: CredentialArgs::default(),
            timeout: DEFAULT_SECONDS,
            idle_timeout: DEFAULT_SECONDS,
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

    /// Which interfaces may be used.
    pub fn choice(&self) -> InterfaceFilter {
        InterfaceFilter {
            binding: given(&self.binding),
            version: given(&self.protocol_version),
            tenant: given(&self.tenant),
            plaintext: self.plaintext,
            url: given(&self.url),
            ..InterfaceFilter::default()
        }
    }

    /// A `task` command about a task of this agent, as it is typed.
    pub fn task_command(&self, action: &str, task: &str) -> String {
        let mut words = vec![program(), "task".to_owned(), action.to_owned()];
        let names = [quote(&self.agent), quote(task)];
        // What follows two dashes is no option, however the agent's id begins.
        if task.starts_with('-') {
            words.extend(self.flags());
            words.push("--".to_owned());
            words.extend(names);
        } else {
            words.extend(names);
            words.extend(self.flags());
        }
        words.join(" ")
    }

    /// What tells this agent from all others that the user talks to, by name.
    pub fn identity(&self, client: &Client) -> String {
        match self.direct {
            true => format!("direct {}", self.agent),
            false => format!("{} {}", client.base(), self.agent),
        }
    }

    /// The `send` command that continues a task, as it is typed.
    fn send_command(&self, task: Option<&str>, context: Option<&str>) -> String {
        let mut words = vec![
            program(),
            "send".to_owned(),
            quote(&self.agent),
            "TEXT".to_owned(),
        ];
        for (flag, value) in [("--task", task), ("--context", context)] {
            words.extend(value.map(|value| match value.starts_with('-') {
                true => format!("{flag}={}", quote(value)),
                false => format!("{flag} {}", quote(value)),
            }));
        }
        words.extend(self.flags());
        words.join(" ")
    }

    /// The flags that lead to the same interface, as they are typed.
    pub fn flags(&self) -> impl Iterator<Item = String> {
        let chosen = [
            ("--binding", &self.binding),
            ("--protocol-version", &self.protocol_version),
            ("--tenant", &self.tenant),
            ("--url", &self.url),
        ];
        let chosen = chosen.into_iter().filter_map(|(flag, value)| {
            let value = value.as_deref()?;
            Some(format!("{flag} {}", quote(value)))
        });
        let set = [("--direct", self.direct), ("--plaintext", self.plaintext)];
        let set = set.into_iter().filter(|(_, set)| *set);
        chosen.chain(set.map(|(flag, _)| flag.to_owned()))
    }

    /// What can be done about an answer that is not the end, in one line; `None` if it is the end.
    pub fn next_step(&self, answer: &AgentAnswer) -> Option<String> {
        let task = answer.task_id.as_deref();
        let of_task = |action| {
            task.map(|task| self.task_command(action, task))
                .unwrap_or_default()
        };
        match (&answer.unfinished, answer.state.as_deref()) {
            (Some(reason), _) if task.is_none() => Some(format!("not the last word: {reason}")),
            (Some(reason), _) => Some(format!(
                "not the last word: {reason}; see {}",
                of_task("get")
            )),
            (None, Some("input-required")) => {
                let command = self.send_command(task, answer.context_id.as_deref());
                Some(format!(
                    "the agent asks for more input; answer with {command}"
                ))
            }
            (None, Some("auth-required")) => Some(format!(
                "the agent asks for an authorization that is given outside of this conversation; then follow the task with {}",
                of_task("subscribe")
            )),
            _ => None,
        }
    }
}

/// The agent of these arguments. Nothing is sent to it yet; what speaks against it was printed.
pub(crate) async fn open(
    arguments: &AgentArgs,
    client: &Client,
    console: &Console,
) -> Result<a2a_client::Agent, Failure> {
    // Files that cannot be read are told of before anything is asked for or sent.
    let given = arguments.credentials.read()?;
    let (card, options) = prepare(arguments, given, client, console).await?;
    Ok(a2a_client::Agent::new(&card, &options)?)
}

/// The card of the agent of these arguments and the options of a call, with these credentials beside those that are kept.
pub(crate) async fn prepare(
    arguments: &AgentArgs,
    given: GivenCredentials,
    client: &Client,
    console: &Console,
) -> Result<(AgentCard, SendOptions), Failure> {
    let CalledAgent {
        card,
        choice,
        is_assumed,
    } = card(arguments, client, console).await?;
    arguments.credentials.warn();
    let mut options = SendOptions {
        choice,
        extensions: arguments.extension.clone(),
        timeout: Duration::from_secs(arguments.timeout),
        idle_timeout: Duration::from_secs(arguments.idle_timeout),
        ..SendOptions::new("")
    };
    credentials::equip(&mut options, given, &card, !is_assumed)?;
    credentials::warn_of_plain_http(&options, &card);
    Ok((card, options))
}

/// An agent's card, and how it is called.
pub(crate) struct CalledAgent {
    pub card: AgentCard,
    /// Which interfaces may be used, and the address where the card names none.
    pub choice: InterfaceFilter,
    /// Whether nobody named that address, and it is where such agents usually are.
    pub is_assumed: bool,
}

/// The card of the agent of these arguments; what speaks against it was printed.
pub(crate) async fn card(
    arguments: &AgentArgs,
    client: &Client,
    console: &Console,
) -> Result<CalledAgent, Failure> {
    let now = Arc::new(SystemClock).now();
    let mut called = match arguments.direct {
        true => load_card_directly(arguments).await?,
        false => load_card(arguments, client, console, now.into()).await?,
    };
    name_binding(&mut called.card, arguments)?;
    Ok(called)
}

/// The card in these bytes.
fn read(arguments: &AgentArgs, bytes: &[u8]) -> Result<Parsed, Failure> {
    a2a_card::parse(bytes).map_err(|error| {
        Failure::new(format!(
            "the card of {} cannot be read: {error}",
            arguments.agent
        ))
    })
}

impl CalledAgent {
    /// The agent is called at the user's address or, where neither the user nor the card names one, at `assumed`.
    fn new(arguments: &AgentArgs, parsed: Parsed, assumed: Option<String>) -> Self {
        let mut choice = arguments.choice();
        choice.skill_first = matches!(parsed.family, Family::Snake0 | Family::Snake1);
        let names_none = choice.url.is_none() && parsed.card.interfaces.is_empty();
        let assumed = assumed.filter(|_| names_none);
        let is_assumed = assumed.is_some();
        choice.url = choice.url.or(assumed);
        Self {
            card: parsed.card,
            choice,
            is_assumed,
        }
    }
}

/// The agent of a card that is fetched from the agent's host; a warning says where its address is assumed.
async fn load_card_directly(arguments: &AgentArgs) -> Result<CalledAgent, Failure> {
    let (url, bytes) = fetch_direct(&arguments.agent).await?;
    let mut parsed = read(arguments, &bytes)?;
    parsed.card = with_absolute_addresses(&parsed.card, &url).into_owned();
    let assumed = assumed_address(&parsed.card, &url).map(String::from);
    let called = CalledAgent::new(arguments, parsed, assumed);
    if let Some(url) = called.choice.url.as_ref().filter(|_| called.is_assumed) {
        terminal::note(&format!(
            "warning: the card of {} {}; --url names another",
            arguments.agent,
            assumption(url)
        ));
    }
    Ok(called)
}

/// That an address is assumed, as a phrase about the agent.
fn assumption(url: &str) -> String {
    format!("names no address, so {url} is assumed")
}

/// Takes the user's word for the binding of an address that the card names without one.
fn name_binding(card: &mut AgentCard, arguments: &AgentArgs) -> Result<(), Failure> {
    let is_unnamed = |one: &Interface| one.binding == UNKNOWN_BINDING;
    if card.interfaces.is_empty() || !card.interfaces.iter().all(is_unnamed) {
        return Ok(());
    }
    let Some(binding) = given(&arguments.binding) else {
        let hint = match arguments.unattended {
            true => "",
            false => "; add --binding JSONRPC if the agent speaks JSON-RPC there",
        };
        return Err(Failure::new(format!(
            "the card of {} names an address, but not how it is called{hint}",
            arguments.agent
        )));
    };
    for interface in &mut card.interfaces {
        interface.binding.clone_from(&binding);
    }
    Ok(())
}

/// An empty variable is a variable that is not set.
fn given(value: &Option<String>) -> Option<String> {
    value.clone().filter(|value| !value.is_empty())
}

/// An agent that the registry knows, after warnings about what speaks against it. Its card is the very one that these
/// warnings are about.
async fn load_card(
    arguments: &AgentArgs,
    client: &Client,
    console: &Console,
    now: Timestamp,
) -> Result<CalledAgent, Failure> {
    let id = find_agent(arguments, client).await?;
    let agent = client.agent(id).await?.value;
    let verdict = &agent.signature_verdict;
    if verdict.state != SignatureState::Unsigned && !arguments.unattended {
        for line in signature_lines(console, verdict) {
            terminal::note(&line);
        }
    }
    let mut concerns = concerns::of(&agent, client, now, !arguments.unattended).await;
    let assumed = agent
        .assumed_url
        .filter(|_| given(&arguments.url).is_none());
    if let Some(url) = &assumed {
        let hint = if arguments.unattended {
            ""
        } else {
            "; --url names another"
        };
        concerns.push(assumption(url) + hint);
    }
    let summary = &agent.hit.summary;
    report_concerns(arguments, &summary.name, &concerns)?;
    let bytes = client.card_version(id, &summary.card_digest).await?;
    let mut parsed = read(arguments, &bytes)?;
    let card = &mut parsed.card;
    // The registry knows the URL of the card, which completes them.
    if has_relative_address(card) && card.interfaces.len() == summary.interfaces.len() {
        for (own, known) in card.interfaces.iter_mut().zip(&summary.interfaces) {
            own.url.clone_from(&known.url);
        }
    }
    Ok(CalledAgent::new(arguments, parsed, assumed))
}

/// The id of the agent that these arguments name; a note says whom a name has found.
async fn find_agent(arguments: &AgentArgs, client: &Client) -> Result<Uuid, Failure> {
    let word = &arguments.agent;
    let named = match arguments.unattended {
        true => client.agent_to_act_on(word).await,
        false => client.agent_to_talk_to(word).await,
    };
    match named {
        Ok(hit) => {
            let (id, domain) = (hit.summary.id, &hit.summary.domain);
            if hit.summary.name.trim().to_lowercase() == word.trim().to_lowercase() {
                terminal::note(&format!("{word} is agent {id} of {domain}"));
            }
            Ok(id)
        }
        Err(Failure::No(_)) if arguments.unattended => Err(Failure::No(format!(
            "the registry has no agent {word} that you may see; find agents with search_agents"
        ))),
        Err(Failure::No(line)) if word.contains("://") => Err(Failure::No(format!(
            "{line}; --direct fetches the card from there without a registry"
        ))),
        Err(failure) => Err(failure),
    }
}

/// Prints what speaks against an agent for whoever reads it, and refuses to send anything where the caller is strict.
fn report_concerns(arguments: &AgentArgs, name: &str, concerns: &[String]) -> Result<(), Failure> {
    for concern in concerns.iter().filter(|_| !arguments.unattended) {
        terminal::note(&format!("warning: {name} {concern}"));
    }
    if !arguments.strict || concerns.is_empty() {
        return Ok(());
    }
    let because = match arguments.unattended {
        true => "",
        false => ", because --strict was given",
    };
    Err(Failure::No(format!(
        "nothing was sent to {}{because}: it {}",
        arguments.agent,
        concerns.join("; it ")
    )))
}

/// The card at a URL, at the well-known path under it, or at a host's well-known paths, with its URL.
async fn fetch_direct(word: &str) -> Result<(Url, Bytes), Failure> {
    let url = match AgentName::parse(word)? {
        AgentName::Url(url) => url,
        AgentName::Host(host) => Url::parse(&format!("https://{host}/"))
            .map_err(|error| Failure::new(format!("{host} is no host: {error}")))?,
        _ => {
            return Err(Failure::new(
                "--direct needs a URL or a host, because it uses no registry",
            ));
        }
    };
    let (first, other) = if url.path() == "/" && url.query().is_none() {
        let at = |path: &str| {
            let mut url = url.clone();
            url.set_path(path);
            url
        };
        (at(AGENT_CARD_PATH), Some(at(AGENT_PATH)))
    } else {
        (url.clone(), card_under(&url))
    };
    Ok(fetch_card(&first, other.as_ref()).await?)
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
            agent: AgentArgs,
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
            assert_eq!(read.agent.choice(), typed.agent.choice(), "{command}");
            let command = typed.agent.send_command(Some(id), Some(id));
            let read = Only::parse_from(words(&command, "send "));
            let continued = (read.continued.as_deref(), read.context.as_deref());
            assert_eq!(continued, (Some(id), Some(id)), "{command}");
        }
    }
}
