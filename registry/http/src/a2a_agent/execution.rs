//! Executes tasks: runs the request in a message with the same functions that the other interfaces use.

use a2a_registry_api::ard::{Federation, SearchRequest};
use a2a_registry_api::limits::MAX_PAGE_SIZE;
use a2a_registry_api::search_query::LookupQuery;
use a2a_registry_api::{Agent, Hit};
use a2a_registry_core::agents::catalog_entry::AgentExcerpt;
use a2a_registry_core::agents::rendering::load_cached_agent_view;
use a2a_registry_core::agents::text_description::describe_agent;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, ErrorKind};
use a2a_registry_core::policies::access_decision::decide_discover_and_invoke;
use a2a_registry_core::search::lookup_agents;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_store::a2a_tasks;
use serde_json::{Value, json};
use uuid::Uuid;

use super::card_document::{CHECK_AGENT, DESCRIBE_AGENT};
use super::conversation_ids::is_registry_context_id;
use super::error::A2aError;
use super::incoming_message::number_member;
use super::intent::Intent;
use super::task_outcome::{CandidateAgent, FoundAgentsPage, TaskOutcomeKind};
use super::tasks::task_owner_id;
use super::text_rendering;
use crate::ard::ard_base_url;
use crate::ard::result_rendering::ard_result_json;
use crate::ard::search::search_local_entries;

/// The name of this interface in page tokens.
const SURFACE: &str = "a2a";
/// The member of a search request that turns off understanding, as the parameter of `/v1/agents` does.
const UNDERSTAND: &str = "understand";

#[derive(Debug)]
pub(super) struct IntentResult {
    pub(super) outcome: TaskOutcomeKind,
    /// The request for the next page; empty if there is none, `None` if the task was not a search.
    pub(super) next_request: Option<String>,
}

impl From<TaskOutcomeKind> for IntentResult {
    fn from(outcome: TaskOutcomeKind) -> Self {
        Self {
            outcome,
            next_request: None,
        }
    }
}

pub(super) async fn execute_intent(
    context: &AppContext,
    caller: &Caller,
    context_id: &str,
    intent: &Intent,
) -> Result<IntentResult, A2aError> {
    Ok(match intent {
        Intent::FindAgents(request) => find_agents(context, caller, request).await?,
        Intent::NextPage => continue_last_search(context, caller, context_id).await?,
        Intent::DescribeAgent(asked) => run_describe_agent(context, caller, asked).await?.into(),
        Intent::CheckAgent(asked) => check_agent_access(context, caller, asked).await?.into(),
        Intent::Unclear(text) => clarification_outcome(text).into(),
    })
}

fn missing_agent_outcome(skill: &str, requested: &str) -> TaskOutcomeKind {
    TaskOutcomeKind::Missing {
        skill: skill.to_owned(),
        asked: requested.to_owned(),
    }
}

fn clarification_outcome(text: &str) -> TaskOutcomeKind {
    TaskOutcomeKind::Question {
        text: text.to_owned(),
        choices: Vec::new(),
    }
}

/// Finds agents of this registry by an Agentic Resource Discovery search request, as `/v1/agents` does.
async fn find_agents(
    context: &AppContext,
    caller: &Caller,
    request: &Value,
) -> Result<IntentResult, A2aError> {
    let (search_request, understand) = parse_search_request(request)?;
    let results =
        search_local_entries(context, caller, &search_request, SURFACE, understand).await?;
    let source = ard_base_url(context);
    let (total, fitting) = (results.response.total, results.response.total_fitting);
    let mut page = FoundAgentsPage {
        without_urn: results.response.left_out,
        total_fitting: (fitting < total).then_some(fitting),
        understood: results.understood.map_or_else(Vec::new, |all| all.parts),
        ..FoundAgentsPage::default()
    };
    for row in &results.response.hits {
        if let Some(result) = ard_result_json(row, &source) {
            page.add_result(row.id, result);
        }
    }
    if search_request.federation == Federation::Referrals {
        page.rest.insert("referrals".to_owned(), json!([]));
    }
    let mut next_request = String::new();
    if let Some(token) = results.next_page_token {
        let mut next = request.clone();
        next["pageToken"] = token.clone().into();
        next_request = next.to_string();
        page.rest.insert("pageToken".to_owned(), token.into());
    }
    Ok(IntentResult {
        outcome: TaskOutcomeKind::Found(page),
        next_request: Some(next_request),
    })
}

/// Parses a search request of ARD, which may have the member `understand` besides.
fn parse_search_request(request: &Value) -> Result<(SearchRequest, Option<bool>), A2aError> {
    let mut raw_request = request.clone();
    let mut understand = None;
    if let Some(asked) = raw_request.as_object_mut() {
        understand = match asked.remove(UNDERSTAND) {
            None | Some(Value::Null) => None,
            Some(Value::Bool(understand)) => Some(understand),
            Some(_) => {
                let detail = "`understand` must be true or false.";
                return Err(A2aError::invalid_params(detail));
            }
        };
        // ProtoJSON allows every number to be written as a fraction.
        if let Some(size) = number_member(asked, "pageSize")? {
            asked.insert("pageSize".into(), size.min(MAX_PAGE_SIZE.into()).into());
        }
    }
    let search_request = serde_json::from_value(raw_request).map_err(|error| {
        A2aError::invalid_params(format!("The search request is not valid: {error}."))
    })?;
    Ok((search_request, understand))
}

async fn continue_last_search(
    context: &AppContext,
    caller: &Caller,
    context_id: &str,
) -> Result<IntentResult, A2aError> {
    const NO_SEARCH_MESSAGE: &str =
        "This conversation has no search to continue. Say what the agent should do.";
    let account = task_owner_id(caller);
    if account.is_none() && !is_registry_context_id(context, context_id) {
        return Ok(clarification_outcome(NO_SEARCH_MESSAGE).into());
    }
    let last =
        a2a_tasks::last_search_continuation(&context.store, account, context_id, context.now().0)
            .await
            .map_err(AppError::from)?;
    let Some((request, _)) = last else {
        return Ok(clarification_outcome(NO_SEARCH_MESSAGE).into());
    };
    if request.is_empty() {
        return Ok(IntentResult {
            outcome: TaskOutcomeKind::Found(FoundAgentsPage::default()),
            next_request: Some(String::new()),
        });
    }
    let request: Value =
        serde_json::from_str(&request).map_err(|error| AppError::internal(error.to_string()))?;
    find_agents(context, caller, &request).await
}

/// Resolves an agent by identifier or URN, otherwise by name, among the agents that the caller sees. If none or
/// several match, returns the outcome that reports it.
async fn resolve_agent(
    context: &AppContext,
    caller: &Caller,
    skill: &str,
    requested: &str,
) -> Result<Result<Agent, TaskOutcomeKind>, AppError> {
    let missing = || missing_agent_outcome(skill, requested);
    let mut identifier = requested.to_owned();
    if !requested.starts_with("urn:") && requested.parse::<Uuid>().is_err() {
        let query = LookupQuery {
            name: Some(identifier),
            ..LookupQuery::default()
        };
        let found = match lookup_agents(context, caller, &query).await {
            Ok(found) => found.agents,
            // The name is longer than the lookup limit, so no agent has it.
            Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Invalid) => {
                return Ok(Err(missing()));
            }
            Err(error) => return Err(error),
        };
        identifier = match found.as_slice() {
            [] => return Ok(Err(missing())),
            [one] => one.summary.id.to_string(),
            several => {
                let text =
                    "Several agents have this name. Give the identifier of the one you mean.";
                return Ok(Err(TaskOutcomeKind::Question {
                    text: text.to_owned(),
                    choices: several.iter().map(candidate_agent).collect(),
                }));
            }
        };
    }
    match load_cached_agent_view(context, caller, &identifier).await {
        Ok(agent) => Ok(Ok(agent)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(Err(missing())),
        Err(error) => Err(error),
    }
}

fn candidate_agent(hit: &Hit) -> CandidateAgent {
    let one = &hit.summary;
    let known_by = one.urn.clone().unwrap_or_else(|| one.id.to_string());
    CandidateAgent {
        agent: one.id,
        line: text_rendering::candidate_line(&one.name, &one.domain, &known_by),
    }
}

async fn run_describe_agent(
    context: &AppContext,
    caller: &Caller,
    requested: &str,
) -> Result<TaskOutcomeKind, A2aError> {
    let agent = match resolve_agent(context, caller, DESCRIBE_AGENT, requested).await? {
        Ok(agent) => agent,
        Err(outcome) => return Ok(outcome),
    };
    let rendered =
        serde_json::to_vec(&agent).map_err(|error| AppError::internal(error.to_string()))?;
    let listed = AgentExcerpt::parse(&rendered);
    let data = listed.map(|listed| match listed.to_catalog_entry() {
        Some(entry) => json!(entry),
        None => entry_without_urn(&listed, agent.hit.summary.id),
    });
    Ok(TaskOutcomeKind::About {
        skill: DESCRIBE_AGENT.into(),
        agent: agent.hit.summary.id,
        asked: requested.to_owned(),
        text: describe_agent(&agent),
        data,
    })
}

/// Catalog entry of an agent without a URN, with the agent's id as its identifier.
fn entry_without_urn(listed: &AgentExcerpt<'_>, id: Uuid) -> Value {
    let mut entry = json!(listed.to_entry_without_identifier());
    if let Some(members) = entry.as_object_mut() {
        members.remove("identifier");
        members.insert("id".to_owned(), json!(id));
    }
    entry
}

async fn check_agent_access(
    context: &AppContext,
    caller: &Caller,
    requested: &str,
) -> Result<TaskOutcomeKind, A2aError> {
    let agent = match resolve_agent(context, caller, CHECK_AGENT, requested).await? {
        Ok(agent) => agent.hit.summary,
        Err(outcome) => return Ok(outcome),
    };
    let (discover, invoke) =
        match decide_discover_and_invoke(context, caller, &agent.id.to_string()).await {
            Ok(both) => both,
            // The agent was hidden meanwhile.
            Err(error) if error.kind == ErrorKind::NotFound => {
                return Ok(missing_agent_outcome(CHECK_AGENT, requested));
            }
            Err(error) => return Err(error.into()),
        };
    Ok(TaskOutcomeKind::About {
        skill: CHECK_AGENT.into(),
        agent: agent.id,
        asked: requested.to_owned(),
        text: text_rendering::access_text(&agent.name, &discover, &invoke),
        data: Some(json!({
            "agent": agent.id,
            "identifier": agent.urn,
            "discover": discover,
            "invoke": invoke,
        })),
    })
}
