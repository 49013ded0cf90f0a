//! `events`: the event log, which is also the audit log.

use a2a_registry_api::Event;
use a2a_registry_domain::event::EventKind;
use a2a_registry_domain::timestamp::Timestamp;
use clap::Args;
use uuid::Uuid;

use super::agent::parse_day_or_time;
use super::client::Client;
use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::console::Console;
use super::list_format::{ListFormat, PageArgs};
use super::search::find_saved_search;
use super::{program_name, terminal};

/// Arguments of `events`.
#[derive(Args, Debug, Clone)]
pub struct EventsArgs {
    /// Only of this kind, such as agent.approved; may be repeated
    #[arg(long, value_name = "KIND")]
    kind: Vec<EventKind>,
    /// Only about this agent and its reviews: its id, URN, host or card URL; may be repeated
    #[arg(long, value_name = "AGENT")]
    agent: Vec<String>,
    /// Only about this domain and its agents; may be repeated
    #[arg(long, value_name = "DOMAIN")]
    domain: Vec<String>,
    /// Only about agents in this collection that you find now; may be repeated
    #[arg(long, value_name = "NAME")]
    collection: Vec<String>,
    /// Only about agents that your saved search of this name or id finds now
    #[arg(long, value_name = "SEARCH")]
    search: Option<String>,
    /// Only caused by this account, or about it
    #[arg(long, value_name = "ACCOUNT")]
    account: Option<String>,
    /// Only from this time on: a date such as 2027-01-31, or an RFC 3339 timestamp
    #[arg(long, value_name = "TIME", value_parser = parse_day_or_time)]
    since: Option<Timestamp>,
    /// Only before this time: a date such as 2027-01-31, or an RFC 3339 timestamp
    #[arg(long, value_name = "TIME", value_parser = parse_day_or_time)]
    until: Option<Timestamp>,
    /// Only after the event with this number
    #[arg(long, value_name = "SEQ")]
    after: Option<i64>,
    /// Newest first
    #[arg(long)]
    newest_first: bool,
    /// Every page; with --json each event is a line, to be kept as a file
    #[arg(long, conflicts_with_all = ["limit", "page_token"])]
    all: bool,
    #[command(flatten)]
    page: PageArgs,
}

/// Lists events, or exports all that match.
pub async fn run_events(
    arguments: &EventsArgs,
    client: &Client,
    console: &Console,
) -> CommandResult {
    let filter = build_filter_parameters(arguments, client).await?;
    if arguments.all {
        return print_all_events(&filter, client, console).await;
    }
    let reply = client
        .events(&add_page_parameters(&filter, &arguments.page))
        .await?;
    let options: String = filter
        .iter()
        .map(|(name, value)| match *name {
            "newest_first" => " --newest-first".to_owned(),
            name => format!(" --{name} {}", program_name::shell_quote(value)),
        })
        .collect();
    let list_format = ListFormat {
        command: &format!("events{options}"),
        limit: arguments.page.limit,
        header: ["SEQ", "TIME", "KIND", "SUBJECT", "ACTOR", "DETAILS"],
        empty_message: "no event matches",
    };
    let list = &reply.value;
    let next = list.next_page_token.as_deref();
    list_format.print_page(console, &reply, &list.events, next, |event| {
        [
            event.seq.to_string(),
            event.at.to_readable(),
            event.kind.to_string(),
            event.subject.clone(),
            event.actor.clone(),
            console.shorten(&event.detail_line(), 60),
        ]
    })
}

async fn build_filter_parameters(
    arguments: &EventsArgs,
    client: &Client,
) -> Result<Vec<(&'static str, String)>, CommandError> {
    let mut query = Vec::new();
    query.extend(arguments.kind.iter().map(|kind| ("kind", kind.to_string())));
    for agent in &arguments.agent {
        // The events of an agent outlive it, so an id needs no agent.
        let id = match Uuid::try_parse(agent) {
            Ok(id) => id,
            Err(_) => client.find_agent_id(agent).await?,
        };
        query.push(("agent", id.to_string()));
    }
    let domains = arguments.domain.iter().cloned();
    query.extend(domains.map(|name| ("domain", name)));
    let collections = arguments.collection.iter().cloned();
    query.extend(collections.map(|name| ("collection", name)));
    if let Some(search) = &arguments.search {
        let search = find_saved_search(search, client).await?;
        query.push(("search", search.id.to_string()));
    }
    query.extend(arguments.account.clone().map(|name| ("account", name)));
    query.extend(arguments.since.map(|time| ("since", time.to_rfc3339())));
    query.extend(arguments.until.map(|time| ("until", time.to_rfc3339())));
    query.extend(arguments.after.map(|seq| ("after", seq.to_string())));
    query.extend(
        arguments
            .newest_first
            .then(|| ("newest_first", "true".to_owned())),
    );
    Ok(query)
}

fn add_page_parameters(
    filter: &[(&'static str, String)],
    page: &PageArgs,
) -> Vec<(&'static str, String)> {
    let mut query = filter.to_vec();
    query.extend(page.limit.map(|size| ("page_size", size.to_string())));
    query.extend(page.page_token.clone().map(|token| ("page_token", token)));
    query
}

/// Prints every page as it arrives, so that memory does not grow with the number of events. If a page cannot be read,
/// the error says where the output ends: a file of events has no end of its own.
async fn print_all_events(
    filter: &[(&'static str, String)],
    client: &Client,
    console: &Console,
) -> CommandResult {
    let mut page = PageArgs::with_max_limit(None);
    let mut last_seq = None;
    loop {
        let reply = client.events(&add_page_parameters(filter, &page)).await;
        let list = reply.map_err(|error| cut_output_error(error.into(), last_seq))?;
        let list = list.value;
        for event in &list.events {
            match console.json {
                true => console.print_json(event)?,
                false => console.print_line(&format_event_line(event))?,
            }
            last_seq = Some(event.seq);
        }
        if list.next_page_token.is_none() {
            break;
        }
        page.page_token = list.next_page_token;
    }
    if last_seq.is_none() {
        terminal::eprint_note("no event matches");
        return Ok(CommandOutcome::Negative);
    }
    Ok(CommandOutcome::Done)
}

fn cut_output_error(error: CommandError, last_seq: Option<i64>) -> CommandError {
    match last_seq {
        None => error,
        Some(seq) => error.with_context(&format!(
            "the output is incomplete, its last event is {seq}"
        )),
    }
}

fn format_event_line(event: &Event) -> String {
    format!(
        "{} {} {} {} by {}: {}",
        event.seq,
        event.at.to_readable(),
        event.kind,
        event.subject,
        event.actor,
        event.detail_line()
    )
}
