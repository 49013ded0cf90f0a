//! Results of the first crawls, name by name.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use a2a_crawler::guard::normalised;
use a2a_registry_api::{DomainView, Registration, SourceView};
use a2a_registry_domain::source::{SourceKind, SourceState};
use futures::{StreamExt, stream};
use indicatif::{ProgressBar, ProgressDrawTarget};
use tokio::time::Instant;
use url::Url;
use uuid::Uuid;

use super::super::client::{Client, RegistryResponse};
use super::super::console::Console;
use super::super::failure::{CommandOutcome, CommandResult};
use super::super::invocation;
use super::super::refusal::ClientError;
use super::super::target::asks;
use super::RegisteredName;
use super::agent::Agents;

/// How long to wait for the next result of the first crawls.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pauses between two polls; the last one repeats.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
];
/// Domains polled at the same time.
const AT_ONCE: usize = 8;

/// Waits for the first crawls and prints the result of each name as soon as it is known: [`CommandOutcome::No`] if one has
/// no card. With `--json` it prints each name's domain instead, at the end.
pub async fn tell(
    client: &Client,
    console: &Console,
    registered: &mut [RegisteredName],
) -> CommandResult {
    let progress = spinner();
    let mut open: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, one) in registered.iter().enumerate() {
        open.entry(one.domain.clone()).or_default().push(place);
    }
    let mut agents = Agents::new(client, console);
    let mut outcome = CommandOutcome::Done;
    let mut pauses = PAUSES.into_iter();
    let mut pause = PAUSES[0];
    let mut deadline = Instant::now() + PATIENCE;
    while !open.is_empty() {
        let over = Instant::now() >= deadline;
        let domains: Vec<String> = open.keys().cloned().collect();
        let mut looks = stream::iter(domains)
            .map(|domain| async move { (client.domain(&domain).await, domain) })
            .buffer_unordered(AT_ONCE);
        while let Some((looked, domain)) = looks.next().await {
            let seen = DomainLookup::of(looked);
            let places = open.remove(&domain).unwrap_or_default();
            let (settled, waiting): (Vec<usize>, Vec<usize>) = places
                .into_iter()
                .partition(|&place| over || seen.has_settled(&registered[place]));
            if !waiting.is_empty() {
                open.insert(domain, waiting);
            }
            for place in settled {
                deadline = Instant::now() + PATIENCE;
                let one = &mut registered[place];
                if let DomainLookup::Domain(reply) = &seen {
                    one.raw = reply.raw.clone();
                    one.view = Some(reply.value.clone());
                }
                let (lines, brought) = lines(one, &seen, &mut agents, console.json).await;
                if !brought {
                    outcome = CommandOutcome::No;
                }
                progress.suspend(|| lines.iter().try_for_each(|line| console.line(line)))?;
            }
        }
        if !open.is_empty() {
            pause = pauses.next().unwrap_or(pause);
            tokio::time::sleep(pause).await;
        }
    }
    progress.finish_and_clear();
    if console.json {
        for one in registered.iter() {
            console.raw_json(&one.raw)?;
        }
    }
    Ok(outcome)
}

fn spinner() -> ProgressBar {
    let progress = ProgressBar::new_spinner();
    // Draws nothing where standard error is no terminal.
    progress.set_draw_target(ProgressDrawTarget::stderr());
    progress.enable_steady_tick(Duration::from_millis(100));
    progress.set_message("waiting for the first crawl");
    progress
}

/// A domain as the registry shows it, if it does.
enum DomainLookup {
    Domain(Box<RegistryResponse<DomainView>>),
    /// Hidden until it is approved, because the caller has no account for it.
    Hidden,
    /// The registry did not say.
    Unknown,
}

impl DomainLookup {
    fn of(looked: Result<RegistryResponse<DomainView>, ClientError>) -> Self {
        match looked {
            Ok(reply) => Self::Domain(Box::new(reply)),
            Err(error) if error.status() == Some(404) => Self::Hidden,
            Err(_) => Self::Unknown,
        }
    }

    /// Whether nothing more is to be waited for.
    fn has_settled(&self, one: &RegisteredName) -> bool {
        match self {
            Self::Domain(_) if one.is_recorded => true,
            Self::Domain(reply) => {
                let sources = sources_of(&one.what, &reply.value);
                let asked = |source: &&SourceView| is_asked(source);
                // What a catalog names is for the visits after the first, and waited for where nothing else came.
                let (entries, named): (Vec<_>, Vec<_>) = sources
                    .into_iter()
                    .partition(|source| source.kind == SourceKind::Entry);
                let found = |source: &&SourceView| source.agent.is_some();
                !named.is_empty()
                    && named.iter().all(asked)
                    && (entries.iter().all(asked) || named.iter().chain(&entries).any(found))
            }
            Self::Hidden => true,
            Self::Unknown => false,
        }
    }
}

/// Whether the sources of a name in the answer to its registration tell that it is recorded, and nothing else.
pub(super) fn are_recorded(sources: &[&SourceView]) -> bool {
    !sources.is_empty() && sources.iter().all(|source| is_recorded(source))
}

/// Whether the first crawl has a result for a source. A fetched card becomes an agent a moment later.
fn is_asked(source: &SourceView) -> bool {
    source.agent.is_some()
        || is_recorded(source)
        || source.state == SourceState::Absent
        || source.limit_met.is_some()
        || source
            .last_attempt
            .as_ref()
            .is_some_and(|last| last.outcome != "card")
}

/// Whether the registry tells nothing of a source but that it was registered, whatever it gives.
fn is_recorded(source: &SourceView) -> bool {
    source.state == SourceState::Recorded
}

/// Whether the last fetch of a source brought a catalog.
fn gave_a_catalog(source: &SourceView) -> bool {
    let last = source.last_attempt.as_ref();
    last.is_some_and(|last| last.outcome == "catalog")
}

fn gave_a_card(source: &SourceView) -> bool {
    let outcome = source.last_attempt.as_ref();
    outcome.is_some_and(|last| matches!(last.outcome.as_str(), "card" | "not_modified"))
}

/// The sources of a domain that a name stands for.
pub(super) fn sources_of<'a>(what: &Registration, domain: &'a DomainView) -> Vec<&'a SourceView> {
    let url = what.card_url.as_deref().map(Url::parse);
    let stands = |source: &&SourceView| match &url {
        Some(Ok(url)) => asks(source, &normalised(url.clone())),
        Some(Err(_)) => false,
        // A bare name is asked over https: other card URLs of the domain were named by themselves, and so was what is
        // asked over plain http. What a catalog names may lie anywhere.
        None => match source.kind.known() {
            Some(SourceKind::Url) | None => false,
            Some(SourceKind::Entry) => true,
            Some(SourceKind::WellKnown | SourceKind::Ard | SourceKind::AiCatalog) => {
                source.url.starts_with("https://")
            }
        },
    };
    // A catalog that was named by its URL leads to the cards that it lists.
    let mut all = domain.sources.iter();
    let lists = url.is_some() && all.any(|source| stands(&source) && gave_a_catalog(source));
    let listed = |source: &&SourceView| lists && source.kind == SourceKind::Entry;
    let sources = domain.sources.iter();
    sources
        .filter(|source| stands(source) || listed(source))
        .collect()
}

/// What came of a name, and whether it has brought a card as far as anybody can tell.
async fn lines(
    one: &RegisteredName,
    seen: &DomainLookup,
    agents: &mut Agents<'_>,
    json: bool,
) -> (Vec<String>, bool) {
    let name = &one.name;
    let domain = match seen {
        DomainLookup::Domain(reply) => &reply.value,
        DomainLookup::Hidden => {
            let line = format!("{name}: a curator reviews it before it is listed");
            return (if json { Vec::new() } else { vec![line] }, true);
        }
        DomainLookup::Unknown => {
            let line = format!("{name}: the registry does not report the result");
            return (if json { Vec::new() } else { vec![line] }, false);
        }
    };
    let sources = sources_of(&one.what, domain);
    let mut found = HashSet::new();
    let ids: Vec<Uuid> = sources
        .iter()
        .filter_map(|source| source.agent)
        .filter(|id| found.insert(*id))
        .collect();
    let gave = |source: &&SourceView| gave_a_card(source) && source.limit_met.is_none();
    let recorded =
        ids.is_empty() && (one.is_recorded || sources.iter().any(|one| is_recorded(one)));
    let by_url = one.what.card_url.is_some();
    let listed = |source: &&SourceView| by_url && gave_a_catalog(source);
    let brought =
        recorded || !ids.is_empty() || sources.iter().any(gave) || sources.iter().any(listed);
    if json {
        return (Vec::new(), brought);
    }
    let mut lines = Vec::new();
    for id in &ids {
        lines.extend(agents.lines(name, *id, domain).await);
    }
    if recorded {
        lines.push(format!(
            "{name}: recorded; what it gives shows once an agent there is listed that you may see"
        ));
    }
    // If an agent was found, the other URLs that were tried need no line; what a catalog lists and what of it was skipped is
    // told in any case.
    let failed = sources.iter().filter(|source| {
        source.agent.is_none()
            && (by_url || source.state != SourceState::Absent)
            && !is_recorded(source)
            && (ids.is_empty() || source.limit_met.is_some() || gave_a_catalog(source))
    });
    lines.extend(failed.map(|source| without_agent(name, source)));
    if lines.is_empty() {
        lines.push(format!("{name}: no URL of it is fetched yet"));
    }
    (lines, brought)
}

/// A source from which no agent was created, in one line.
fn without_agent(name: &str, source: &SourceView) -> String {
    let which = if name == source.url {
        name.to_owned()
    } else {
        format!("{name}: {}", source.url)
    };
    if let Some(limit) = &source.limit_met {
        return format!("{which}: no agent: {}", limit.trim_end_matches('.'));
    }
    let Some(attempt) = &source.last_attempt else {
        return format!(
            "{which}: not fetched yet; run `{} domain show` later",
            invocation::program()
        );
    };
    let next = source
        .next_due
        .map(|due| format!("; next fetch at {}", due.to_readable()));
    let detail = attempt.detail.trim_end_matches('.');
    if gave_a_card(source) {
        return format!("{which}: fetched {detail}; it has no agent that you may see");
    }
    if attempt.outcome == "catalog" {
        return format!("{which}: {detail}");
    }
    format!(
        "{which}: no card yet ({}): {detail}{}",
        attempt.outcome,
        next.unwrap_or_default()
    )
}
