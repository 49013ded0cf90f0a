//! Resolution of an agent reference on the command line to exactly one agent, or a negative result. Nothing is
//! guessed, because a text with a credential or an irreversible action may follow.
//!
//! A card's own statements do not identify an agent: anyone can write another agent's address into a card. So the
//! address of its card identifies an agent; the address of an interface does so only to show it. A full name that only
//! one agent has is enough to show or call that agent, with a note about which one was found, but not to act on it.

use std::collections::HashSet;

use a2a_crawler::guard::{Domain, normalize_url};
use a2a_registry_api::{DomainView, Hit};
use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::ownership::Method;
use serde_json::json;
use url::Url;
use uuid::Uuid;

use super::client::Client;
use super::client_error::{ClientError, not_found_as_none};
use super::command_error::CommandError;
use super::name_parsing::{AgentReference, BareUrlTarget, bare_url_target, source_fetches_url};
use super::terminal;

/// Number of agents listed if several match.
const MAX_LISTED_AGENTS: usize = 20;
/// Columns of an agent's name in that list.
const NAME_COLUMNS: usize = 60;

/// Agents that a reference may mean.
#[derive(Debug, Default)]
struct AgentCandidates {
    /// Agents whose card is at the address, on the domain of that name.
    exact: Vec<Hit>,
    /// Agents whose card is at the address according to the catalog of another domain.
    in_other_catalogs: Vec<Hit>,
    /// Agents that claim an interface at the address, or were registered there by others than the owner of the domain.
    claimed: Vec<Hit>,
    /// Number of further agents, which were not fetched.
    omitted: usize,
}

impl Client {
    /// Resolves a reference to one agent, to show it.
    ///
    /// # Errors
    /// A negative result if no agent matches, with a list if several do.
    pub async fn find_agent_to_show(&self, reference: &str) -> Result<Hit, CommandError> {
        let candidates = self.find_candidates_or_by_full_name(reference).await?;
        candidates.resolve_for_display(reference, self.base_url())
    }

    /// Resolves a reference to one agent, to call it; also by its full name if no other agent has it.
    pub async fn find_agent_to_call(&self, reference: &str) -> Result<Hit, CommandError> {
        let candidates = self.find_candidates_or_by_full_name(reference).await?;
        candidates.resolve_for_action(reference, self.base_url())
    }

    /// Resolves a reference to one agent, to act on it or to send to it.
    ///
    /// # Errors
    /// A negative result if no agent matches, if several do, and if cards only claim the address.
    pub async fn find_agent_for_action(&self, reference: &str) -> Result<Hit, CommandError> {
        let candidates = self
            .find_candidates(&AgentReference::parse(reference)?)
            .await?;
        candidates.resolve_for_action(reference, self.base_url())
    }

    /// Resolves a reference to the id of one agent, to act on it.
    pub async fn find_agent_id(&self, reference: &str) -> Result<Uuid, CommandError> {
        match AgentReference::parse(reference)? {
            AgentReference::Id(id) => Ok(id),
            _ => Ok(self.find_agent_for_action(reference).await?.summary.id),
        }
    }

    /// Candidates for a reference or, if there are none, the agents that have it as their full name.
    async fn find_candidates_or_by_full_name(
        &self,
        reference: &str,
    ) -> Result<AgentCandidates, CommandError> {
        match AgentReference::parse(reference) {
            Ok(AgentReference::Host(host)) if may_be_agent_name(reference) => {
                let candidates = self.find_candidates(&AgentReference::Host(host)).await?;
                if !candidates.is_empty() {
                    return Ok(candidates);
                }
            }
            Ok(name) => return self.find_candidates(&name).await,
            Err(_) if may_be_agent_name(reference) => {}
            Err(failure) => return Err(failure),
        }
        Ok(AgentCandidates {
            exact: self.lookup_agents("name", reference).await?,
            ..AgentCandidates::default()
        })
    }

    async fn find_candidates(
        &self,
        reference: &AgentReference,
    ) -> Result<AgentCandidates, CommandError> {
        let single = |hit: Option<Hit>| AgentCandidates {
            exact: hit.into_iter().collect(),
            ..AgentCandidates::default()
        };
        match reference {
            AgentReference::Id(id) => Ok(single(self.fetch_agent_hit(&id.to_string()).await?)),
            AgentReference::Urn(urn) => Ok(single(self.fetch_agent_hit(urn).await?)),
            AgentReference::Digest(digest) => Ok(AgentCandidates {
                exact: self.lookup_agents("digest", digest).await?,
                ..AgentCandidates::default()
            }),
            AgentReference::Url(url) => match bare_url_target(url) {
                Some(BareUrlTarget::Domain(domain)) => self.agent_candidates_at_host(&domain).await,
                Some(BareUrlTarget::Card(card)) => self.agent_candidates_at_url(&card).await,
                None => {
                    self.agent_candidates_at_url(&normalize_url(url.clone()))
                        .await
                }
            },
            AgentReference::Host(host) => self.agent_candidates_at_host(host).await,
        }
    }

    async fn agent_candidates_at_url(&self, url: &Url) -> Result<AgentCandidates, CommandError> {
        let domain = Domain::from_url(url).name;
        let mut candidates = AgentCandidates::default();
        for hit in self.lookup_agents("url", url.as_str()).await? {
            if has_interface_at(&hit, url) {
                candidates.claimed.push(hit);
            } else if hit.summary.domain == domain {
                candidates.exact.push(hit);
            } else {
                candidates.in_other_catalogs.push(hit);
            }
        }
        // The domain's sources list what is where, including retired agents, which lookups omit.
        let view = self.find_domain(&domain).await?;
        let sources = view.iter().flat_map(|view| &view.sources);
        let source_agents: HashSet<Uuid> = sources
            .filter(|source| source_fetches_url(source, url))
            .filter_map(|source| source.agent)
            .collect();
        let contains_id = |hits: &[Hit], id: &Uuid| hits.iter().any(|hit| hit.summary.id == *id);
        for id in source_agents {
            if let Some(position) = candidates
                .claimed
                .iter()
                .position(|hit| hit.summary.id == id)
            {
                candidates.exact.push(candidates.claimed.remove(position));
            } else if !contains_id(&candidates.exact, &id) {
                candidates
                    .exact
                    .extend(self.fetch_agent_hit(&id.to_string()).await?);
            }
        }
        Ok(candidates)
    }

    async fn agent_candidates_at_host(&self, host: &str) -> Result<AgentCandidates, CommandError> {
        let url = Url::parse(&format!("https://{host}/"))
            .map_err(|error| CommandError::new(format!("{host} is not a host: {error}")))?;
        let domain = Domain::from_url(&url).name;
        let domain = domain.trim_end_matches('.');
        let mut candidates = AgentCandidates::default();
        for hit in self.lookup_agents("url", domain).await? {
            if hit.summary.domain == domain {
                candidates.exact.push(hit);
            } else {
                candidates.claimed.push(hit);
            }
        }
        let Some(view) = self.find_domain(domain).await? else {
            return Ok(candidates);
        };
        let fetched_ids: HashSet<Uuid> =
            candidates.exact.iter().map(|hit| hit.summary.id).collect();
        for &id in &view.agents {
            if fetched_ids.contains(&id) {
                continue;
            }
            // One more than the list shows is enough to know that there are several.
            if candidates.exact.len() > MAX_LISTED_AGENTS {
                candidates.omitted += 1;
                continue;
            }
            candidates
                .exact
                .extend(self.fetch_agent_hit(&id.to_string()).await?);
        }
        // If the owner has proved the domain, sources that others nominated are not the domain's own.
        if view
            .proofs
            .iter()
            .any(|proof| proof.method != Method::Operator)
        {
            let is_covered = |hit: &Hit| {
                let mut sources = view.sources.iter();
                sources.any(|source| {
                    source.agent == Some(hit.summary.id) && source.coverage == Coverage::Covered
                })
            };
            let (own, nominated): (Vec<Hit>, Vec<Hit>) =
                candidates.exact.into_iter().partition(is_covered);
            candidates.exact = own;
            candidates.claimed.extend(nominated);
        }
        Ok(candidates)
    }

    /// Agent by its id or URN, listed or not; `None` if the caller cannot see one.
    async fn fetch_agent_hit(&self, id: &str) -> Result<Option<Hit>, ClientError> {
        let reply = not_found_as_none(self.agent(id).await)?;
        Ok(reply.map(|reply| reply.value.hit))
    }

    /// Agents of a lookup that the caller may see.
    async fn lookup_agents(&self, key: &str, value: &str) -> Result<Vec<Hit>, ClientError> {
        let reply = not_found_as_none(self.lookup(&[(key, value)]).await)?;
        Ok(reply.map_or_else(Vec::new, |reply| reply.value.agents))
    }

    async fn find_domain(&self, domain: &str) -> Result<Option<DomainView>, ClientError> {
        let reply = not_found_as_none(self.domain(domain).await)?;
        Ok(reply.map(|reply| reply.value))
    }
}

/// Whether the card has an interface at that URL.
fn has_interface_at(hit: &Hit, url: &Url) -> bool {
    let mut interfaces = hit.summary.interfaces.iter();
    interfaces.any(|interface| {
        Url::parse(&interface.url).is_ok_and(|at| at == *url || normalize_url(at) == *url)
    })
}

/// Whether a reference can be the name of an agent. Cards can have any name, so a reference that looks like an address
/// is never a name: an unregistered host must not match an agent that uses it as its name.
fn may_be_agent_name(word: &str) -> bool {
    let is_address = !word.contains(char::is_whitespace) && word.contains(['.', ':', '/', '@']);
    !is_address && !word.trim().is_empty() && !word.contains("://") && word != "localhost"
}

impl AgentCandidates {
    fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.in_other_catalogs.is_empty() && self.claimed.is_empty()
    }

    fn resolve_for_action(self, reference: &str, base_url: &str) -> Result<Hit, CommandError> {
        for hits in [self.exact, self.in_other_catalogs] {
            match at_most_one_hit(hits) {
                Ok(Some(hit)) => return Ok(hit),
                Ok(None) => {}
                Err(several) => {
                    let count = several.len() + self.omitted;
                    let line = format!("{reference} matches {count} agents");
                    return Err(ambiguous_agent_error(&line, &several, count));
                }
            }
        }
        if self.claimed.is_empty() {
            return Err(agent_not_found_error(reference, base_url));
        }
        let count = self.claimed.len();
        let line = format!(
            "{reference} is not the address of an agent's card; agents that others registered there, or whose \
             cards name it: {count}"
        );
        Err(ambiguous_agent_error(&line, &self.claimed, count))
    }

    fn resolve_for_display(mut self, reference: &str, base_url: &str) -> Result<Hit, CommandError> {
        if self.exact.is_empty() && self.in_other_catalogs.is_empty() {
            return match at_most_one_hit(std::mem::take(&mut self.claimed)) {
                Ok(Some(hit)) => Ok(hit),
                Ok(None) => Err(agent_not_found_error(reference, base_url)),
                Err(several) => {
                    let count = several.len();
                    let line = format!("the cards of {count} agents name {reference}");
                    Err(ambiguous_agent_error(&line, &several, count))
                }
            };
        }
        self.resolve_for_action(reference, base_url)
    }
}

/// The only hit, or `None`; all hits as the error if there are several.
fn at_most_one_hit(mut hits: Vec<Hit>) -> Result<Option<Hit>, Vec<Hit>> {
    if hits.len() > 1 {
        return Err(hits);
    }
    Ok(hits.pop())
}

/// Error that lists agents, with their total number, and asks for an id.
fn ambiguous_agent_error(reason: &str, hits: &[Hit], count: usize) -> CommandError {
    let listed_agents = || hits.iter().map(|hit| &hit.summary).take(MAX_LISTED_AGENTS);
    let mut preamble: Vec<String> = listed_agents()
        .map(|agent| {
            let name = terminal::escape_and_truncate(&agent.name, NAME_COLUMNS);
            format!(
                "  {}  {name}, {} of {}",
                agent.id, agent.lifecycle, agent.domain
            )
        })
        .collect();
    if count > MAX_LISTED_AGENTS {
        preamble.push(format!("  and {} more", count - MAX_LISTED_AGENTS));
    }
    let agents: Vec<_> = listed_agents()
        .map(|agent| {
            json!({
                "id": agent.id, "urn": agent.urn, "name": agent.name, "domain": agent.domain,
                "lifecycle": agent.lifecycle,
            })
        })
        .collect();
    let members = json!({"agents": agents, "total": count});
    let line = format!("{reason}; give the id of the one you mean");
    CommandError::negative_with_problem_members(line, preamble, &members)
}

fn agent_not_found_error(reference: &str, base_url: &str) -> CommandError {
    CommandError::Negative(format!(
        "the registry at {base_url} has no agent {reference} that you may see; `a2a-registry search` lists its agents"
    ))
}
