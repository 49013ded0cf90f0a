//! The work on a task: what its message asks for is done, by the same functions as behind every other door.

use a2a_registry_api::ard::{Federation, SearchRequest};
use a2a_registry_api::limits::MAX_PAGE;
use a2a_registry_api::{Agent, Hit};
use a2a_registry_core::agents::catalog_entry::ListedAgent;
use a2a_registry_core::agents::description::agent_description;
use a2a_registry_core::agents::rendered::agent_answered;
use a2a_registry_core::context::Context;
use a2a_registry_core::error::{AppError, ErrorKind};
use a2a_registry_core::policies::decide::decide_both;
use a2a_registry_core::search::lookup;
use a2a_registry_core::search::query::LookupQuery;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_store::a2a_tasks;
use serde_json::{Value, json};
use uuid::Uuid;

use super::card::{CHECK, DESCRIBE};
use super::contexts::is_ours;
use super::fault::Fault;
use super::incoming::number;
use super::intent::Intent;
use super::outcome::{Choice, FoundPage, Outcome};
use super::tasks::owner;
use super::words;
use crate::ard::base;
use crate::ard::result::result_value;
use crate::ard::search::own_results;

/// The name of this door in page tokens.
const DOOR: &str = "a2a";

#[derive(Debug)]
pub(super) struct Work {
    pub(super) outcome: Outcome,
    /// The request for the next page; empty if there is none, `None` if it was no search.
    pub(super) more: Option<String>,
}

impl From<Outcome> for Work {
    fn from(outcome: Outcome) -> Self {
        Self {
            outcome,
            more: None,
        }
    }
}

pub(super) async fn work(
    context: &Context,
    caller: &Caller,
    conversation: &str,
    intent: &Intent,
) -> Result<Work, Fault> {
    Ok(match intent {
        Intent::Find(request) => find(context, caller, request).await?,
        Intent::More => more(context, caller, conversation).await?,
        Intent::Describe(asked) => describe(context, caller, asked).await?.into(),
        Intent::Check(asked) => check(context, caller, asked).await?.into(),
        Intent::Unclear(text) => question(text).into(),
    })
}

fn missing(skill: &str, asked: &str) -> Outcome {
    Outcome::Missing {
        skill: skill.to_owned(),
        asked: asked.to_owned(),
    }
}

fn question(text: &str) -> Outcome {
    Outcome::Question {
        text: text.to_owned(),
        choices: Vec::new(),
    }
}

/// Finds agents by a search request of Agentic Resource Discovery: those of this registry, as `/v1/agents` finds them.
async fn find(context: &Context, caller: &Caller, request: &Value) -> Result<Work, Fault> {
    let asked = read_request(request)?;
    let (found, without_urn) = own_results(context, caller, &asked, DOOR).await?;
    let source = base(context);
    let mut page = FoundPage {
        without_urn,
        ..FoundPage::default()
    };
    for row in &found.answer.hits {
        if let Some(result) = result_value(row, &source) {
            page.add(row.id, result);
        }
    }
    if asked.federation == Federation::Referrals {
        page.rest.insert("referrals".to_owned(), json!([]));
    }
    let mut more = String::new();
    if let Some(token) = found.next {
        let mut next = request.clone();
        next["pageToken"] = token.clone().into();
        more = next.to_string();
        page.rest.insert("pageToken".to_owned(), token.into());
    }
    Ok(Work {
        outcome: Outcome::Found(page),
        more: Some(more),
    })
}

fn read_request(request: &Value) -> Result<SearchRequest, Fault> {
    let mut asked = request.clone();
    if let Some(asked) = asked.as_object_mut() {
        // In proto's JSON every number may be written as a fraction.
        if let Some(size) = number(asked, "pageSize")? {
            asked.insert("pageSize".into(), size.min(MAX_PAGE.into()).into());
        }
    }
    serde_json::from_value(asked)
        .map_err(|error| Fault::params(format!("This is no search request: {error}.")))
}

async fn more(context: &Context, caller: &Caller, conversation: &str) -> Result<Work, Fault> {
    const NONE: &str =
        "There is no search in this conversation to go on with. Say what the agent should do.";
    let account = owner(caller);
    if account.is_none() && !is_ours(context, conversation) {
        return Ok(question(NONE).into());
    }
    let last = a2a_tasks::last_search_of(&context.store, account, conversation, context.now().0)
        .await
        .map_err(AppError::from)?;
    let Some((request, _)) = last else {
        return Ok(question(NONE).into());
    };
    if request.is_empty() {
        return Ok(Work {
            outcome: Outcome::Found(FoundPage::default()),
            more: Some(String::new()),
        });
    }
    let request: Value =
        serde_json::from_str(&request).map_err(|error| AppError::internal(error.to_string()))?;
    find(context, caller, &request).await
}

/// The agent with an identifier or URN, or else with a name, of those that the caller sees; where it is none, or where several
/// have the name, the outcome that says so.
async fn resolve(
    context: &Context,
    caller: &Caller,
    skill: &str,
    asked: &str,
) -> Result<Result<Agent, Outcome>, AppError> {
    let missing = || missing(skill, asked);
    let mut known_by = asked.to_owned();
    if !asked.starts_with("urn:") && asked.parse::<Uuid>().is_err() {
        let query = LookupQuery {
            name: Some(known_by),
            ..LookupQuery::default()
        };
        let found = match lookup(context, caller, &query).await {
            Ok(found) => found.agents,
            // A name longer than any that is looked up is nobody's.
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Invalid) => {
                return Ok(Err(missing()));
            }
            Err(error) => return Err(error),
        };
        known_by = match found.as_slice() {
            [] => return Ok(Err(missing())),
            [one] => one.summary.id.to_string(),
            several => {
                let text =
                    "Several agents have this name. Say which one is meant, by its identifier.";
                return Ok(Err(Outcome::Question {
                    text: text.to_owned(),
                    choices: several.iter().map(choice).collect(),
                }));
            }
        };
    }
    match agent_answered(context, caller, &known_by).await {
        Ok(agent) => Ok(Ok(agent)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(Err(missing())),
        Err(error) => Err(error),
    }
}

fn choice(hit: &Hit) -> Choice {
    let one = &hit.summary;
    let known_by = one.urn.clone().unwrap_or_else(|| one.id.to_string());
    Choice {
        agent: one.id,
        line: words::choice(&one.name, &one.domain, &known_by),
    }
}

async fn describe(context: &Context, caller: &Caller, asked: &str) -> Result<Outcome, Fault> {
    let agent = match resolve(context, caller, DESCRIBE, asked).await? {
        Ok(agent) => agent,
        Err(outcome) => return Ok(outcome),
    };
    let rendered =
        serde_json::to_vec(&agent).map_err(|error| AppError::internal(error.to_string()))?;
    let listed = ListedAgent::read(&rendered);
    let data = listed.map(|listed| match listed.entry() {
        Some(entry) => json!(entry),
        None => without_identifier(&listed, agent.hit.summary.id),
    });
    Ok(Outcome::About {
        skill: DESCRIBE.into(),
        agent: agent.hit.summary.id,
        asked: asked.to_owned(),
        text: agent_description(&agent),
        data,
    })
}

/// An agent without a URN, as an entry that has its id in place of an identifier of catalogs.
fn without_identifier(listed: &ListedAgent<'_>, id: Uuid) -> Value {
    let mut entry = json!(listed.entry_without_identifier());
    if let Some(members) = entry.as_object_mut() {
        members.remove("identifier");
        members.insert("id".to_owned(), json!(id));
    }
    entry
}

async fn check(context: &Context, caller: &Caller, asked: &str) -> Result<Outcome, Fault> {
    let agent = match resolve(context, caller, CHECK, asked).await? {
        Ok(agent) => agent.hit.summary,
        Err(outcome) => return Ok(outcome),
    };
    let (discover, invoke) = match decide_both(context, caller, &agent.id.to_string()).await {
        Ok(both) => both,
        // It was hidden meanwhile.
        Err(error) if error.kind == ErrorKind::NotFound => {
            return Ok(missing(CHECK, asked));
        }
        Err(error) => return Err(error.into()),
    };
    Ok(Outcome::About {
        skill: CHECK.into(),
        agent: agent.id,
        asked: asked.to_owned(),
        text: words::checked(&agent.name, &discover, &invoke),
        data: Some(json!({
            "agent": agent.id,
            "identifier": agent.urn,
            "discover": discover,
            "invoke": invoke,
        })),
    })
}
