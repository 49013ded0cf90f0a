//! The work on a task: what its message asks for is done, by the same functions as behind every other door.

use a2a_registry_api::{Agent, AgentList, DecisionRequest, Hit};
use a2a_registry_store::a2a_tasks;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::card::{CHECK, DESCRIBE};
use super::contexts::is_ours;
use super::fault::Fault;
use super::incoming::{member, number, text};
use super::intent::Intent;
use super::outcome::{Choice, FoundPage, Outcome};
use super::tasks::owner;
use super::words;
use crate::agents::rendered::agent_answered;
use crate::caller::Caller;
use crate::context::Context;
use crate::error::{AppError, ErrorKind};
use crate::policies::decide::decide;
use crate::search::query::SearchQuery;
use crate::search::search;

/// Agents on a page by default, as in Agentic Resource Discovery.
const PAGE: u64 = 10;
/// The most agents on a page; more are not given, as there.
const MAX_PAGE: u64 = 100;
/// Agents that are looked at for one of a name.
const NAMED: u32 = 20;
/// Bytes of an outcome that is kept.
const MAX_OUTCOME: usize = 1 << 20;

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
    let done = match intent {
        Intent::Find(request) => find(context, caller, request).await?,
        Intent::More => more(context, caller, conversation).await?,
        Intent::Describe(asked) => describe(context, caller, asked).await?.into(),
        Intent::Check(asked) => check(context, caller, asked).await?.into(),
        Intent::Unclear(text) => question(text).into(),
    };
    let bytes = serde_json::to_string(&done.outcome).map_or(0, |text| text.len());
    if bytes > MAX_OUTCOME {
        let text = "The answer is too large; ask for fewer agents with `pageSize`.".to_owned();
        return Ok(Outcome::Failed { text }.into());
    }
    Ok(done)
}

fn question(text: &str) -> Outcome {
    Outcome::Question {
        text: text.to_owned(),
        choices: Vec::new(),
    }
}

/// Finds agents by a search request.
async fn find(context: &Context, caller: &Caller, request: &Value) -> Result<Work, Fault> {
    let request = request
        .as_object()
        .ok_or_else(|| Fault::params("A search request is an object."))?;
    let query = search_query(request)?;
    let body = search(context, caller, &query).await?;
    let list: AgentList =
        serde_json::from_slice(&body).map_err(|error| AppError::internal(error.to_string()))?;
    let source = format!("{}/ard", context.config.public_url());
    let results = list.agents.iter().filter_map(|hit| {
        let entry = entry(hit, &source)?;
        Some((hit.summary.id, entry))
    });
    let mut page = FoundPage {
        results: results.collect(),
        rest: json!({}),
    };
    let mut more = String::new();
    if let Some(token) = list.next_page_token {
        let mut next = request.clone();
        next.insert("pageToken".into(), token.clone().into());
        more = Value::Object(next).to_string();
        page.rest["pageToken"] = token.into();
    }
    Ok(Work {
        outcome: Outcome::Found(page),
        more: Some(more),
    })
}

/// The members of a search request, as the registry's own search takes them.
fn search_query(request: &Map<String, Value>) -> Result<SearchQuery, Fault> {
    const MEMBERS: [&str; 4] = ["query", "federation", "pageSize", "pageToken"];
    if let Some(unknown) = request
        .keys()
        .find(|name| !MEMBERS.contains(&name.as_str()))
    {
        let unknown: String = unknown.chars().take(40).collect();
        return Err(Fault::params(format!(
            "A search request has no member `{unknown}`."
        )));
    }
    let Some(Value::Object(query)) = member(request, "query") else {
        return Err(Fault::params("`query` is an object."));
    };
    let words = text(query, "text")?
        .map(str::trim)
        .filter(|words| !words.is_empty());
    let words = words.ok_or_else(|| Fault::params("`query.text` is missing."))?;
    if let Some(unknown) = query.keys().find(|name| *name != "text") {
        let unknown: String = unknown.chars().take(40).collect();
        return Err(Fault::params(format!(
            "`query.{unknown}` is not read here."
        )));
    }
    let size = number(request, "pageSize")?.unwrap_or(PAGE);
    if size == 0 {
        return Err(Fault::params("`pageSize` is at least 1."));
    }
    Ok(SearchQuery {
        q: Some(words.to_owned()),
        page_size: u32::try_from(size.min(MAX_PAGE)).ok(),
        page_token: text(request, "pageToken")?.map(str::to_owned),
        ..SearchQuery::default()
    })
}

/// The entry of a hit as a search result; `None` for an agent without URN, which no entry can name.
fn entry(hit: &Hit, source: &str) -> Option<Value> {
    let one = &hit.summary;
    let mut entry = json!({
        "identifier": one.urn.as_ref()?,
        "displayName": one.name,
        "type": "application/a2a-agent-card+json",
        "url": one.links.card,
        "tags": one.tags,
        "score": percent(hit),
        "source": source,
    });
    for (name, value) in [("description", &one.description), ("version", &one.version)] {
        if let Some(value) = value {
            entry[name] = json!(value);
        }
    }
    Some(entry)
}

/// A score as a whole number from 0 to 100.
fn percent(hit: &Hit) -> u8 {
    let score = hit.matched.score.unwrap_or(0.0).clamp(0.0, 100.0).round();
    // Within its bounds, so that nothing is lost.
    score as u8
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
    let Some(request) = last.and_then(|row| row.more) else {
        return Ok(question(NONE).into());
    };
    if request.is_empty() {
        let page = FoundPage {
            results: Vec::new(),
            rest: json!({}),
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
    let query = SearchQuery {
        q: Some(format!("\"{}\"", asked.replace('"', " "))),
        page_size: Some(NAMED),
        ..SearchQuery::default()
    };
    let body = match search(context, caller, &query).await {
        Ok(body) => body,
        // A name longer than any query is nobody's.
        Err(error) if error.kind == ErrorKind::Invalid => return Ok(Named::None),
        Err(error) => return Err(error),
    };
    let list: AgentList =
        serde_json::from_slice(&body).map_err(|error| AppError::internal(error.to_string()))?;
    let wanted = asked.to_lowercase();
    let mut fitting: Vec<Hit> = list.agents;
    fitting.retain(|hit| hit.summary.name.trim().to_lowercase() == wanted);
    match fitting.as_slice() {
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
            text: "Several agents have this name. Say which one is meant, by its identifier:"
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
    let source = format!("{}/ard", context.config.public_url());
    let data = entry(&agent.hit, &source).map(|mut entry| {
        // An entry on its own is no search result.
        if let Some(entry) = entry.as_object_mut() {
            entry.remove("score");
            entry.remove("source");
        }
        entry
    });
    Ok(Outcome::About {
        skill: DESCRIBE.into(),
        agent: agent.hit.summary.id,
        asked: asked.to_owned(),
        text: words::described(&agent),
        data,
    })
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
