//! The work on a task: what its message asks for is done, by the same functions as behind every other door.

use a2a_registry_api::ard::{Federation, SearchRequest};
use a2a_registry_api::{Agent, DecisionRequest, Hit};
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
use crate::agents::rendered::agent_answered;
use crate::ard::base;
use crate::ard::left_out::agents_without_urn;
use crate::ard::result::result_value;
use crate::ard::terms::conditions;
use crate::caller::Caller;
use crate::catalog_entry::{ListedAgent, any_entry};
use crate::context::Context;
use crate::error::{AppError, ErrorKind};
use crate::policies::decide::decide;
use crate::search::find::{Extra, found};
use crate::search::lookup;
use crate::search::query::{LookupQuery, SearchQuery};

/// The name of this door in page tokens.
const DOOR: &str = "a2a";
/// Agents on a page by default, as in Agentic Resource Discovery.
const PAGE: u32 = 10;
/// The most agents on a page; more are not given, as there.
const MAX_PAGE: u32 = 100;
/// What came of the work, and how its search goes on.
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

/// Does what a message asks for.
///
/// # Errors
/// Parameters that are wrong, and failures of the registry.
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

fn question(text: &str) -> Outcome {
    Outcome::Question {
        text: text.to_owned(),
        choices: Vec::new(),
    }
}

/// Finds agents by a search request of Agentic Resource Discovery: those of this registry, as `/v1/agents` finds them.
async fn find(context: &Context, caller: &Caller, request: &Value) -> Result<Work, Fault> {
    let asked = read_request(request)?;
    let text = asked.query.text.as_deref().map(str::trim);
    let text = text.filter(|text| !text.is_empty());
    let text = text.ok_or_else(|| Fault::params("`query.text` is missing."))?;
    let size = asked.page_size.and_then(|size| u32::try_from(size).ok());
    let size = size.unwrap_or(PAGE).min(MAX_PAGE);
    let query = SearchQuery {
        q: Some(text.to_owned()),
        page_size: Some(size),
        page_token: asked.page_token.clone(),
        ..SearchQuery::default()
    };
    let mut exact = vec![any_entry()];
    exact.extend(conditions(&asked.query)?);
    let extra = Extra {
        door: DOOR,
        exact,
        entries: true,
    };
    let found = found(context, caller, &query, &extra).await?;
    let source = base(context);
    let mut page = FoundPage {
        results: Vec::with_capacity(found.answer.hits.len()),
        rest: json!({}),
        left_out: 0,
        without_urn: 0,
    };
    for row in &found.answer.hits {
        if let Some(result) = result_value(row, &source) {
            page.results.push((row.id, result));
        }
    }
    if query.page_token.is_none() {
        page.without_urn = agents_without_urn(context, caller, &query, &extra).await?;
    }
    if asked.federation == Federation::Referrals {
        page.rest["referrals"] = json!([]);
    }
    let mut more = String::new();
    if let Some(token) = found.next {
        let mut next = request.clone();
        next["pageToken"] = token.clone().into();
        more = next.to_string();
        page.rest["pageToken"] = token.into();
    }
    Ok(Work {
        outcome: Outcome::Found(page),
        more: Some(more),
    })
}

/// Reads a search request.
fn read_request(request: &Value) -> Result<SearchRequest, Fault> {
    let mut asked = request.clone();
    if let Some(asked) = asked.as_object_mut() {
        // In proto's JSON every number may be written as a fraction.
        if let Some(size) = number(asked, "pageSize")? {
            if size == 0 {
                return Err(Fault::params("`pageSize` is at least 1."));
            }
            asked.insert("pageSize".into(), size.min(MAX_PAGE.into()).into());
        }
    }
    serde_json::from_value(asked)
        .map_err(|error| Fault::params(format!("This is no search request: {error}.")))
}

/// The next page of the conversation's last search.
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
        let page = FoundPage {
            results: Vec::new(),
            rest: json!({}),
            left_out: 0,
            without_urn: 0,
        };
        return Ok(Work {
            outcome: Outcome::Found(page),
            more: Some(String::new()),
        });
    }
    let request: Value =
        serde_json::from_str(&request).map_err(|error| AppError::internal(error.to_string()))?;
    find(context, caller, &request).await
}

/// What a name means.
enum Named {
    One(Box<Agent>),
    None,
    Several(Vec<Choice>),
}

/// The agent with an identifier or URN, or else with a name, of those that the caller sees.
async fn named(context: &Context, caller: &Caller, asked: &str) -> Result<Named, AppError> {
    if asked.starts_with("urn:") || asked.parse::<Uuid>().is_ok() {
        return match agent_answered(context, caller, asked).await {
            Ok(agent) => Ok(Named::One(Box::new(agent))),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(Named::None),
            Err(error) => Err(error),
        };
    }
    let query = LookupQuery {
        name: Some(asked.to_owned()),
        ..LookupQuery::default()
    };
    let found = match lookup(context, caller, &query).await {
        Ok(found) => found.agents,
        // A name longer than any that is looked up is nobody's.
        Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Invalid) => {
            return Ok(Named::None);
        }
        Err(error) => return Err(error),
    };
    match found.as_slice() {
        [] => Ok(Named::None),
        [one] => {
            let id = one.summary.id.to_string();
            let agent = agent_answered(context, caller, &id).await;
            match agent {
                Ok(agent) => Ok(Named::One(Box::new(agent))),
                Err(error) if error.kind == ErrorKind::NotFound => Ok(Named::None),
                Err(error) => Err(error),
            }
        }
        several => Ok(Named::Several(several.iter().map(choice).collect())),
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

/// The answer where a name means no agent, or several.
fn unresolved(named: &Named, skill: &str, asked: &str) -> Option<Outcome> {
    match named {
        Named::One(_) => None,
        Named::None => Some(Outcome::Missing {
            skill: skill.to_owned(),
            asked: asked.to_owned(),
        }),
        Named::Several(choices) => Some(Outcome::Question {
            text: "Several agents have this name. Say which one is meant, by its identifier."
                .into(),
            choices: choices.clone(),
        }),
    }
}

async fn describe(context: &Context, caller: &Caller, asked: &str) -> Result<Outcome, Fault> {
    let found = named(context, caller, asked).await?;
    if let Some(outcome) = unresolved(&found, DESCRIBE, asked) {
        return Ok(outcome);
    }
    let Named::One(agent) = found else {
        return Err(AppError::internal("a name means nothing").into());
    };
    let rendered =
        serde_json::to_vec(&*agent).map_err(|error| AppError::internal(error.to_string()))?;
    let listed = ListedAgent::read(&rendered);
    let data = listed.map(|listed| match listed.entry() {
        Some(entry) => json!(entry),
        None => without_identifier(&listed, agent.hit.summary.id),
    });
    Ok(Outcome::About {
        skill: DESCRIBE.into(),
        agent: agent.hit.summary.id,
        asked: asked.to_owned(),
        text: words::described(&agent),
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
    let found = named(context, caller, asked).await?;
    if let Some(outcome) = unresolved(&found, CHECK, asked) {
        return Ok(outcome);
    }
    let Named::One(agent) = found else {
        return Err(AppError::internal("a name means nothing").into());
    };
    let one = &agent.hit.summary;
    let request = |action: &str| DecisionRequest {
        agent: one.id.to_string(),
        action: action.to_owned(),
    };
    let decided = async {
        let discover = decide(context, caller, &request("discover")).await?;
        let invoke = decide(context, caller, &request("invoke")).await?;
        Ok::<_, AppError>((discover, invoke))
    };
    let (discover, invoke) = match decided.await {
        Ok(both) => both,
        // It was hidden meanwhile.
        Err(error) if error.kind == ErrorKind::NotFound => {
            return Ok(Outcome::Missing {
                skill: CHECK.into(),
                asked: asked.to_owned(),
            });
        }
        Err(error) => return Err(error.into()),
    };
    let text = words::checked(&one.name, &discover, &invoke);
    Ok(Outcome::About {
        skill: CHECK.into(),
        agent: one.id,
        asked: asked.to_owned(),
        text,
        data: Some(json!({
            "agent": one.id,
            "identifier": one.urn,
            "discover": discover,
            "invoke": invoke,
        })),
    })
}
