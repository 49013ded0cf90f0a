//! Resolves the agent that a word of the command line names: exactly one, or the answer is no. Nothing is guessed, because what
//! follows may be a text with a credential, or an act that nobody can take back.
//!
//! What a card says of itself names nobody: anybody can write another's address into a card of their own. So an agent
//! is meant by an address that its card lies at; by one that it says it answers at, only to be shown. A whole name that only
//! one agent has is enough to show it and to talk to it, which says whom it has found, and not to act on it.

use std::collections::HashSet;

use a2a_crawler::guard::{Domain, normalised};
use a2a_registry_api::{DomainView, Hit};
use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::ownership::Method;
use serde_json::json;
use url::Url;
use uuid::Uuid;

use super::client::Client;
use super::failure::Failure;
use super::refusal::{ClientError, if_found};
use super::target::{AgentName, Target, asks, without_a_path};
use super::terminal;

/// Agents of one name that are listed, if there are several.
const LISTED: usize = 20;
/// Columns of an agent's name in this list.
const NAME_COLUMNS: usize = 60;

/// Agents that a word may name.
#[derive(Debug, Default)]
struct Candidates {
    /// Whose card lies there, on a domain of that name.
    own: Vec<Hit>,
    /// Whose card lies there as the catalog of another domain says.
    named_elsewhere: Vec<Hit>,
    /// That say of themselves that they answer there, or were put there by others than the owner of the domain.
    answering: Vec<Hit>,
    /// Number of further agents, which were not fetched.
    more: usize,
}

impl Client {
    /// The one agent that a word names, to show it.
    ///
    /// # Errors
    /// [`Failure::No`] where there is none, and with the list of them where there are several.
    pub async fn find_agent(&self, word: &str) -> Result<Hit, Failure> {
        let found = self.candidates_or_namesakes(word).await?;
        found.meant_by_a_reader(word, self.base())
    }

    /// The one agent that a word names, to talk to it: also by its whole name, where no other agent has that.
    pub async fn agent_to_talk_to(&self, word: &str) -> Result<Hit, Failure> {
        let found = self.candidates_or_namesakes(word).await?;
        found.meant_by_an_act(word, self.base())
    }

    /// The one agent that a word names, to act on it or to send to it.
    ///
    /// # Errors
    /// [`Failure::No`] where there is none, where there are several, and where cards only name the address.
    pub async fn agent_to_act_on(&self, word: &str) -> Result<Hit, Failure> {
        let found = self.candidates(&AgentName::parse(word)?).await?;
        found.meant_by_an_act(word, self.base())
    }

    /// Id of the one agent that a word names, to act on it.
    pub async fn agent_id(&self, word: &str) -> Result<Uuid, Failure> {
        match AgentName::parse(word)? {
            AgentName::Id(id) => Ok(id),
            _ => Ok(self.agent_to_act_on(word).await?.summary.id),
        }
    }

    /// The agents that a word may name, or where there are none, those that have it as their whole name.
    async fn candidates_or_namesakes(&self, word: &str) -> Result<Candidates, Failure> {
        match AgentName::parse(word) {
            Ok(AgentName::Host(host)) if may_be_name(word) => {
                let found = self.candidates(&AgentName::Host(host)).await?;
                if !found.is_empty() {
                    return Ok(found);
                }
            }
            Ok(name) => return self.candidates(&name).await,
            Err(_) if may_be_name(word) => {}
            Err(failure) => return Err(failure),
        }
        Ok(Candidates {
            own: self.looked_up("name", word).await?,
            ..Candidates::default()
        })
    }

    async fn candidates(&self, name: &AgentName) -> Result<Candidates, Failure> {
        let only = |hit: Option<Hit>| Candidates {
            own: hit.into_iter().collect(),
            ..Candidates::default()
        };
        match name {
            AgentName::Id(id) => Ok(only(self.shown(&id.to_string()).await?)),
            AgentName::Urn(urn) => Ok(only(self.shown(urn).await?)),
            AgentName::Digest(digest) => Ok(Candidates {
                own: self.looked_up("digest", digest).await?,
                ..Candidates::default()
            }),
            AgentName::Url(url) => match without_a_path(url) {
                Some(Target::Domain(domain)) => self.behind_host(&domain).await,
                Some(Target::Card(card)) => self.behind_url(&card).await,
                None => self.behind_url(&normalised(url.clone())).await,
            },
            AgentName::Host(host) => self.behind_host(host).await,
        }
    }

    async fn behind_url(&self, url: &Url) -> Result<Candidates, Failure> {
        let domain = Domain::of(url).name;
        let mut found = Candidates::default();
        for hit in self.looked_up("url", url.as_str()).await? {
            if answers_at(&hit, url) {
                found.answering.push(hit);
            } else if hit.summary.domain == domain {
                found.own.push(hit);
            } else {
                found.named_elsewhere.push(hit);
            }
        }
        // The domain's sources tell what lies where, also of retired agents, which look-ups leave out.
        let view = self.domain_if_any(&domain).await?;
        let sources = view.iter().flat_map(|view| &view.sources);
        let fed: HashSet<Uuid> = sources
            .filter(|source| asks(source, url))
            .filter_map(|source| source.agent)
            .collect();
        let known = |hits: &[Hit], id: &Uuid| hits.iter().any(|hit| hit.summary.id == *id);
        for id in fed {
            if let Some(place) = found.answering.iter().position(|hit| hit.summary.id == id) {
                found.own.push(found.answering.remove(place));
            } else if !known(&found.own, &id) {
                found.own.extend(self.shown(&id.to_string()).await?);
            }
        }
        Ok(found)
    }

    async fn behind_host(&self, host: &str) -> Result<Candidates, Failure> {
        let url = Url::parse(&format!("https://{host}/"))
            .map_err(|error| Failure::new(format!("{host} is no host: {error}")))?;
        let domain = Domain::of(&url).name;
        let domain = domain.trim_end_matches('.');
        let mut found = Candidates::default();
        for hit in self.looked_up("url", domain).await? {
            if hit.summary.domain == domain {
                found.own.push(hit);
            } else {
                found.answering.push(hit);
            }
        }
        let Some(view) = self.domain_if_any(domain).await? else {
            return Ok(found);
        };
        let known: HashSet<Uuid> = found.own.iter().map(|hit| hit.summary.id).collect();
        for &id in &view.agents {
            if known.contains(&id) {
                continue;
            }
            // One more than is listed decides that there are several.
            if found.own.len() > LISTED {
                found.more += 1;
                continue;
            }
            found.own.extend(self.shown(&id.to_string()).await?);
        }
        // Where its owner has proved the domain, what a stranger has nominated there is not the domain's own.
        if view
            .proofs
            .iter()
            .any(|proof| proof.method != Method::Operator)
        {
            let covered = |hit: &Hit| {
                let mut sources = view.sources.iter();
                sources.any(|source| {
                    source.agent == Some(hit.summary.id) && source.coverage == Coverage::Covered
                })
            };
            let (own, nominated): (Vec<Hit>, Vec<Hit>) = found.own.into_iter().partition(covered);
            found.own = own;
            found.answering.extend(nominated);
        }
        Ok(found)
    }

    /// An agent by its id or URN, listed or not; `None` where there is none that the caller may see.
    async fn shown(&self, id: &str) -> Result<Option<Hit>, ClientError> {
        let reply = if_found(self.agent(id).await)?;
        Ok(reply.map(|reply| reply.value.hit))
    }

    /// The agents of a look-up that the caller may see.
    async fn looked_up(&self, key: &str, value: &str) -> Result<Vec<Hit>, ClientError> {
        let reply = if_found(self.lookup(&[(key, value)]).await)?;
        Ok(reply.map_or_else(Vec::new, |reply| reply.value.agents))
    }

    async fn domain_if_any(&self, domain: &str) -> Result<Option<DomainView>, ClientError> {
        let reply = if_found(self.domain(domain).await)?;
        Ok(reply.map(|reply| reply.value))
    }
}

/// Whether the card says that its agent answers at that URL.
fn answers_at(hit: &Hit, url: &Url) -> bool {
    let mut interfaces = hit.summary.interfaces.iter();
    interfaces.any(|interface| {
        Url::parse(&interface.url).is_ok_and(|at| at == *url || normalised(at) == *url)
    })
}

/// Whether a word can be the name of an agent. Every card can have any name, so what reads like an address is none: a host
/// that is not registered must not mean an agent that calls itself so.
fn may_be_name(word: &str) -> bool {
    let is_address = !word.contains(char::is_whitespace) && word.contains(['.', ':', '/', '@']);
    !is_address && !word.trim().is_empty() && !word.contains("://") && word != "localhost"
}

impl Candidates {
    fn is_empty(&self) -> bool {
        self.own.is_empty() && self.named_elsewhere.is_empty() && self.answering.is_empty()
    }

    fn meant_by_an_act(self, word: &str, base: &str) -> Result<Hit, Failure> {
        for exact in [self.own, self.named_elsewhere] {
            match one(exact) {
                Ok(Some(hit)) => return Ok(hit),
                Ok(None) => {}
                Err(several) => {
                    let count = several.len() + self.more;
                    let line = format!("{word} names {count} agents");
                    return Err(ask(&line, &several, count));
                }
            }
        }
        if self.answering.is_empty() {
            return Err(unknown(word, base));
        }
        let count = self.answering.len();
        let line = format!(
            "{word} is not the address of an agent's card; agents that others registered there, or whose cards name it: {count}"
        );
        Err(ask(&line, &self.answering, count))
    }

    fn meant_by_a_reader(mut self, word: &str, base: &str) -> Result<Hit, Failure> {
        if self.own.is_empty() && self.named_elsewhere.is_empty() {
            return match one(std::mem::take(&mut self.answering)) {
                Ok(Some(hit)) => Ok(hit),
                Ok(None) => Err(unknown(word, base)),
                Err(several) => {
                    let count = several.len();
                    let line = format!("the cards of {count} agents name {word}");
                    Err(ask(&line, &several, count))
                }
            };
        }
        self.meant_by_an_act(word, base)
    }
}

/// The only one, none, or all of them.
fn one(mut hits: Vec<Hit>) -> Result<Option<Hit>, Vec<Hit>> {
    if hits.len() > 1 {
        return Err(hits);
    }
    Ok(hits.pop())
}

/// Lists agents, of which there are so many, and asks which one is meant.
fn ask(why: &str, hits: &[Hit], count: usize) -> Failure {
    let listed = || hits.iter().map(|hit| &hit.summary).take(LISTED);
    let mut above: Vec<String> = listed()
        .map(|agent| {
            let name = terminal::short(&agent.name, NAME_COLUMNS);
            format!(
                "  {}  {name}, {} of {}",
                agent.id, agent.lifecycle, agent.domain
            )
        })
        .collect();
    if count > LISTED {
        above.push(format!("  and {} more", count - LISTED));
    }
    let agents: Vec<_> = listed()
        .map(|agent| {
            json!({
                "id": agent.id, "urn": agent.urn, "name": agent.name, "domain": agent.domain,
                "lifecycle": agent.lifecycle,
            })
        })
        .collect();
    let members = json!({"agents": agents, "total": count});
    let line = format!("{why}; give the id of the one you mean");
    Failure::no_with(line, above, &members)
}

fn unknown(word: &str, base: &str) -> Failure {
    Failure::No(format!(
        "the registry at {base} has no agent {word} that you may see; `a2a-registry search` lists its agents"
    ))
}
