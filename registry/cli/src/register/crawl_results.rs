//! Results of the first crawls, name by name.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use a2a_crawler::guard::normalize_url;
use a2a_registry_api::{DomainView, Registration, SourceView};
use a2a_registry_domain::source::{SourceKind, SourceState};
use futures::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressDrawTarget};
use tokio::time::Instant;
use url::Url;
use uuid::Uuid;

use super::super::client::{Client, RegistryResponse};
use super::super::client_error::ClientError;
use super::super::command_error::{CommandOutcome, CommandResult};
use super::super::console::Console;
use super::super::name_parsing::source_fetches_url;
use super::super::program_name;
use super::RegisteredName;
use super::registered_agents::RegisteredAgentDescriber;

/// Time to wait for the next result of the first crawls.
const RESULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Pauses between two polls; the last one repeats.
const POLL_DELAYS: [Duration; 3] = [
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
];
/// Domains polled at the same time.
const MAX_CONCURRENT_POLLS: usize = 8;

/// Waits for the first crawls and prints the result of each name as soon as it is known: [`CommandOutcome::Negative`]
/// if one has no card. With `--json` it prints each name's domain instead, at the end.
pub async fn print_crawl_results(
    client: &Client,
    console: &Console,
    registered: &mut [RegisteredName],
) -> CommandResult {
    let progress = new_spinner();
    let mut pending: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, name) in registered.iter().enumerate() {
        let indexes = pending.entry(name.domain.clone()).or_default();
        indexes.push(index);
    }
    let mut agents = RegisteredAgentDescriber::new(client, console);
    let mut outcome = CommandOutcome::Done;
    let mut delays = POLL_DELAYS.into_iter();
    let mut delay = POLL_DELAYS[0];
    let mut deadline = Instant::now() + RESULT_TIMEOUT;
    while !pending.is_empty() {
        let timed_out = Instant::now() >= deadline;
        let domains: Vec<String> = pending.keys().cloned().collect();
        let mut lookups = stream::iter(domains)
            .map(|domain| async move { (client.domain(&domain).await, domain) })
            .buffer_unordered(MAX_CONCURRENT_POLLS);
        while let Some((result, domain)) = lookups.next().await {
            let lookup = DomainLookupResult::from_result(result);
            let indexes = pending.remove(&domain).unwrap_or_default();
            let (settled, waiting): (Vec<usize>, Vec<usize>) = indexes
                .into_iter()
                .partition(|&place| timed_out || lookup.is_settled_for_name(&registered[place]));
            if !waiting.is_empty() {
                pending.insert(domain, waiting);
            }
            for index in settled {
                deadline = Instant::now() + RESULT_TIMEOUT;
                let registered_name = &mut registered[index];
                if let DomainLookupResult::Domain(reply) = &lookup {
                    registered_name.raw = reply.raw.clone();
                    registered_name.view = Some(reply.value.clone());
                }
                let agents = &mut agents;
                let (lines, has_card) =
                    describe_registration_result(registered_name, &lookup, agents, console.json)
                        .await;
                if !has_card {
                    outcome = CommandOutcome::Negative;
                }
                progress.suspend(|| lines.iter().try_for_each(|line| console.print_line(line)))?;
            }
        }
        if !pending.is_empty() {
            delay = delays.next().unwrap_or(delay);
            tokio::time::sleep(delay).await;
        }
    }
    progress.finish_and_clear();
    if console.json {
        for one in registered.iter() {
            console.print_raw_json(&one.raw)?;
        }
    }
    Ok(outcome)
}

fn new_spinner() -> ProgressBar {
    let progress = ProgressBar::new_spinner();
    // Hidden if standard error is not a terminal.
    progress.set_draw_target(ProgressDrawTarget::stderr());
    progress.enable_steady_tick(Duration::from_millis(100));
    progress.set_message("waiting for the first crawl");
    progress
}

/// Result of looking a domain up.
enum DomainLookupResult {
    Domain(Box<RegistryResponse<DomainView>>),
    /// Hidden until it is approved, because the caller has no account for it.
    Hidden,
    /// The registry did not return it.
    Unknown,
}

impl DomainLookupResult {
    fn from_result(result: Result<RegistryResponse<DomainView>, ClientError>) -> Self {
        match result {
            Ok(reply) => Self::Domain(Box::new(reply)),
            Err(error) if error.status() == Some(404) => Self::Hidden,
            Err(_) => Self::Unknown,
        }
    }

    /// Whether there is nothing more to wait for.
    fn is_settled_for_name(&self, registered_name: &RegisteredName) -> bool {
        match self {
            Self::Domain(_) if registered_name.is_recorded => true,
            Self::Domain(reply) => {
                let sources = sources_for_registration(&registered_name.registration, &reply.value);
                let has_crawl_result = |source: &&SourceView| has_first_crawl_result(source);
                // Entries of a catalog are fetched by later crawls, and are waited for only if there is no other
                // result.
                let (entries, named_sources): (Vec<_>, Vec<_>) = sources
                    .into_iter()
                    .partition(|source| source.kind == SourceKind::Entry);
                let has_agent = |source: &&SourceView| source.agent.is_some();
                !named_sources.is_empty()
                    && named_sources.iter().all(has_crawl_result)
                    && (entries.iter().all(has_crawl_result)
                        || named_sources.iter().chain(&entries).any(has_agent))
            }
            Self::Hidden => true,
            Self::Unknown => false,
        }
    }
}

/// Whether the sources in the response to a registration say only that it is recorded.
pub(super) fn sources_are_only_recorded(sources: &[&SourceView]) -> bool {
    !sources.is_empty() && sources.iter().all(|source| source_is_only_recorded(source))
}

/// Whether the first crawl has a result for a source. A fetched card becomes an agent a moment later.
pub fn has_first_crawl_result(source: &SourceView) -> bool {
    source.agent.is_some()
        || source_is_only_recorded(source)
        || source.state == SourceState::Absent
        || source.limit_met.is_some()
        || source
            .last_attempt
            .as_ref()
            .is_some_and(|last| last.outcome != "card")
}

/// Whether the registry shows nothing of a source except its registration, whatever it contains.
fn source_is_only_recorded(source: &SourceView) -> bool {
    source.state == SourceState::Recorded
}

/// Whether the last fetch of a source returned a catalog.
fn last_fetch_returned_catalog(source: &SourceView) -> bool {
    let last = source.last_attempt.as_ref();
    last.is_some_and(|last| last.outcome == "catalog")
}

fn last_fetch_returned_card(source: &SourceView) -> bool {
    let outcome = source.last_attempt.as_ref();
    outcome.is_some_and(|last| matches!(last.outcome.as_str(), "card" | "not_modified"))
}

/// Sources of a domain that belong to a registration.
pub(super) fn sources_for_registration<'a>(
    registration: &Registration,
    domain: &'a DomainView,
) -> Vec<&'a SourceView> {
    let url = registration.card_url.as_deref().map(Url::parse);
    let matches_name = |source: &&SourceView| match &url {
        Some(Ok(url)) => source_fetches_url(source, &normalize_url(url.clone())),
        Some(Err(_)) => false,
        // A bare name is fetched over https: other card URLs of the domain were registered by themselves, and so was
        // everything on plain http. The entries of a catalog can be anywhere.
        None => match source.kind.known_value() {
            Some(SourceKind::Url) | None => false,
            Some(SourceKind::Entry) => true,
            Some(SourceKind::WellKnown | SourceKind::Ard | SourceKind::AiCatalog) => {
                source.url.starts_with("https://")
            }
        },
    };
    // A catalog that was registered by its URL includes the cards that it lists.
    let mut all = domain.sources.iter();
    let lists = url.is_some()
        && all.any(|source| matches_name(&source) && last_fetch_returned_catalog(source));
    let listed = |source: &&SourceView| lists && source.kind == SourceKind::Entry;
    let sources = domain.sources.iter();
    sources
        .filter(|source| matches_name(source) || listed(source))
        .collect()
}

/// Result for a name, and whether it has a card as far as is known.
async fn describe_registration_result(
    registered_name: &RegisteredName,
    lookup: &DomainLookupResult,
    agents: &mut RegisteredAgentDescriber<'_>,
    json: bool,
) -> (Vec<String>, bool) {
    let name = &registered_name.name;
    let domain = match lookup {
        DomainLookupResult::Domain(reply) => &reply.value,
        DomainLookupResult::Hidden => {
            let line = format!("{name}: a curator reviews it before it is listed");
            return (if json { Vec::new() } else { vec![line] }, true);
        }
        DomainLookupResult::Unknown => {
            let line = format!("{name}: the registry does not report the result");
            return (if json { Vec::new() } else { vec![line] }, false);
        }
    };
    let sources = sources_for_registration(&registered_name.registration, domain);
    let mut visited_ids = HashSet::new();
    let ids: Vec<Uuid> = sources
        .iter()
        .filter_map(|source| source.agent)
        .filter(|id| visited_ids.insert(*id))
        .collect();
    let returned_usable_card =
        |source: &&SourceView| last_fetch_returned_card(source) && source.limit_met.is_none();
    let is_recorded_only = ids.is_empty()
        && (registered_name.is_recorded || sources.iter().any(|one| source_is_only_recorded(one)));
    let by_url = registered_name.registration.card_url.is_some();
    let is_named_catalog = |source: &&SourceView| by_url && last_fetch_returned_catalog(source);
    let has_card = is_recorded_only
        || !ids.is_empty()
        || sources.iter().any(returned_usable_card)
        || sources.iter().any(is_named_catalog);
    if json {
        return (Vec::new(), has_card);
    }
    let mut lines = Vec::new();
    for id in &ids {
        lines.extend(agents.describe_agent(name, *id, domain).await);
    }
    if is_recorded_only {
        lines.push(format!(
            "{name}: recorded; its content is shown once it has a listed agent that you may see"
        ));
    }
    // If an agent was found, other URLs that were tried need no line. Entries of a catalog, including skipped ones,
    // are always reported.
    let sources_without_agent = sources.iter().filter(|source| {
        source.agent.is_none()
            && (by_url || source.state != SourceState::Absent)
            && !source_is_only_recorded(source)
            && (ids.is_empty() || source.limit_met.is_some() || last_fetch_returned_catalog(source))
    });
    lines.extend(sources_without_agent.map(|source| describe_source_without_agent(name, source)));
    if lines.is_empty() {
        lines.push(format!("{name}: none of its URLs was fetched yet"));
    }
    (lines, has_card)
}

/// Source without an agent, in one line.
fn describe_source_without_agent(name: &str, source: &SourceView) -> String {
    let label = if name == source.url {
        name.to_owned()
    } else {
        format!("{name}: {}", source.url)
    };
    if let Some(limit) = &source.limit_met {
        return format!("{label}: no agent: {}", limit.trim_end_matches('.'));
    }
    let Some(attempt) = &source.last_attempt else {
        return format!(
            "{label}: not fetched yet; run `{} domain show` later",
            program_name::program_name()
        );
    };
    let next_fetch = source
        .next_due
        .map(|due| format!("; next fetch at {}", due.to_readable()));
    let detail = attempt.detail.trim_end_matches('.');
    if last_fetch_returned_card(source) {
        return format!("{label}: fetched {detail}; it has no agent that you may see");
    }
    if attempt.outcome == "catalog" {
        return format!("{label}: {detail}");
    }
    format!(
        "{label}: no card yet ({}): {detail}{}",
        attempt.outcome,
        next_fetch.unwrap_or_default()
    )
}
