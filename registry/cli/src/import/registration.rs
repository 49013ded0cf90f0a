//! Registration of imported sources, and the wait for their first crawl.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use a2a_registry_api::{BulkRegistration, DomainView, Registration};
use tokio::time::Instant;

use super::super::client::Client;
use super::super::client_error::{ClientError, not_found_as_none};
use super::super::command_error::CommandError;
use super::super::export_format::source_url;
use super::super::register::has_first_crawl_result;
use super::Import;
use super::content::ImportedDomain;
use super::report::ImportResult;

/// Registrations in one request, which fit even if every URL has the maximum length and each byte of it is escaped.
const REGISTRATION_BATCH: usize = 40;
/// Time to wait for the next result of the first crawls.
const RESULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Time left to wait for crawls: it begins again with every result, so a crawler that makes progress is waited for.
pub struct CrawlPatience {
    waits: bool,
    deadline: Instant,
}

impl CrawlPatience {
    pub fn new(waits: bool) -> Self {
        Self {
            waits,
            deadline: Instant::now() + RESULT_TIMEOUT,
        }
    }

    pub(super) fn restart(&mut self) {
        self.deadline = Instant::now() + RESULT_TIMEOUT;
    }

    fn is_exhausted(&self) -> bool {
        !self.waits || Instant::now() >= self.deadline
    }
}

impl Import<'_> {
    /// Registers the sources that are missing. Returns the names of the domains that existed before.
    pub(super) async fn register_sources(
        &mut self,
        domains: &BTreeMap<String, ImportedDomain>,
    ) -> Result<BTreeSet<String>, CommandError> {
        let mut existing = BTreeSet::new();
        let mut missing: Vec<&str> = Vec::new();
        for (name, domain) in domains {
            let view = find_domain(self.client, name).await?;
            let known: HashSet<String> = view.iter().flat_map(source_urls).collect();
            for url in &domain.sources {
                match known.contains(url) {
                    true => self.report.add("source", url, ImportResult::Same, "")?,
                    false => missing.push(url),
                }
            }
            if view.is_some() {
                existing.insert(name.clone());
            }
        }
        for batch in missing.chunks(REGISTRATION_BATCH) {
            self.register_batch(batch).await?;
        }
        self.patience.restart();
        Ok(existing)
    }

    async fn register_batch(&mut self, urls: &[&str]) -> Result<(), CommandError> {
        if self.dry_run {
            for url in urls {
                self.report.add("source", url, ImportResult::Created, "")?;
            }
            return Ok(());
        }
        let registration = |url: &&str| Registration {
            card_url: Some((*url).to_owned()),
            ..Registration::default()
        };
        let request = BulkRegistration {
            registrations: urls.iter().map(registration).collect(),
        };
        let outcomes = self.client.register_all(&request).await?.value.outcomes;
        if outcomes.len() != urls.len() {
            return Err(CommandError::new(
                "the registry's response does not cover each registration; check that the registry has the same \
                 version as this program",
            ));
        }
        for (url, outcome) in urls.iter().zip(outcomes) {
            match outcome.problem {
                None => self.report.add("source", url, ImportResult::Created, "")?,
                Some(problem) if problem.status >= 500 => {
                    return Err(CommandError::new(format!(
                        "{url}: {}; import again to continue",
                        problem.detail
                    )));
                }
                Some(problem) => {
                    let result = ImportResult::Failed;
                    self.report.add("source", url, result, &problem.detail)?;
                }
            }
        }
        Ok(())
    }

    /// Domain as it is once the first crawl of every imported agent's source has a result, or the patience is
    /// exhausted; `None` if it is not registered.
    pub(super) async fn wait_for_crawl(
        &mut self,
        name: &str,
        domain: &ImportedDomain,
    ) -> Result<Option<DomainView>, CommandError> {
        loop {
            let view = find_domain(self.client, name).await?;
            let is_settled = view.as_ref().is_none_or(|view| is_crawled(view, domain));
            if is_settled {
                self.patience.restart();
            }
            if is_settled || self.patience.is_exhausted() {
                return Ok(view);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

async fn find_domain(client: &Client, name: &str) -> Result<Option<DomainView>, ClientError> {
    let found = not_found_as_none(client.domain(name).await)?;
    Ok(found.map(|reply| reply.value))
}

fn source_urls(view: &DomainView) -> impl Iterator<Item = String> {
    view.sources.iter().map(source_url)
}

/// Whether the first crawl of every agent's source has a result.
fn is_crawled(view: &DomainView, domain: &ImportedDomain) -> bool {
    let crawled: HashSet<String> = view
        .sources
        .iter()
        .filter(|source| has_first_crawl_result(source))
        .map(source_url)
        .collect();
    domain.agents.keys().all(|url| crawled.contains(url))
}
