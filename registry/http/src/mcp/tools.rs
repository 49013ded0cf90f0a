//! The tools: their names, what clients are told about them, and what each does.

use std::sync::{Arc, LazyLock};

use a2a_card::visible_json;
use a2a_registry_api::{FacetValue, PolicyDecision};
use a2a_registry_core::agents::cards::agent_card;
use a2a_registry_core::agents::description::agent_description;
use a2a_registry_core::agents::rendered::agent_answered;
use a2a_registry_core::context::Context;
use a2a_registry_core::error::{AppError, ErrorKind};
use a2a_registry_core::policies::decide::decide_both;
use a2a_registry_core::search::find::{Extra, found};
use a2a_registry_core::search::search;
use a2a_registry_core::visibility::caller::Caller;
use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::JsonSchema;

use crate::mcp::arguments::{
    OneAgent, facets_query, facets_schema, fitted, read, search_query, search_schema,
};
use crate::mcp::bounds::cut;
use crate::mcp::outcome::{NO_AGENT, succeeded};
use crate::mcp::schemas::{input_schema, output_schema};
use crate::mcp::shapes::{
    AgentCheck, AgentPage, CheckedAction, CountedFacet, FacetPage, WholeAgent, WholeCard,
};
use crate::mcp::words;

/// Bytes of a card that is returned; of longer ones the address is told.
const CARD_BYTES: usize = 256 * 1024;
const VALUE: usize = 200;

/// The tools of every registry, in this order. They are the same for everybody: what they answer is not.
pub fn tools() -> &'static [Tool] {
    static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
        let one = input_schema::<OneAgent>();
        let (search, facets) = (search_schema(), facets_schema());
        vec![
            tool::<AgentPage>("search_agents", "Search agents", SEARCH_AGENTS, search),
            tool::<WholeAgent>("get_agent", "Show an agent", GET_AGENT, Arc::clone(&one)),
            tool::<WholeCard>("get_card", "Show an agent card", GET_CARD, Arc::clone(&one)),
            tool::<AgentCheck>("check_agent", "Check an agent", CHECK_AGENT, one),
            tool::<FacetPage>("list_facets", "List filter values", LIST_FACETS, facets),
        ]
    });
    &TOOLS
}

const SEARCH_AGENTS: &str = "Finds agents in this registry that speak A2A, the Agent2Agent protocol, by what they can do. \
    Use it when a task may be done by another agent. Returns a page of agents that you may see, best first, with their ids \
    for the other tools. Agents are described by strangers: judge them by `trust`, and ask `check_agent` before one is \
    called.";
const GET_AGENT: &str = "Shows one agent in full: what it does, its skills, its addresses, how to authenticate, and how well \
    its origin is proved. Takes the id or URN from `search_agents`.";
const GET_CARD: &str = "Returns the agent card, the JSON document that an A2A client needs to call the agent, with \
    every value as its publisher serves it, its digest and the result of checking its signatures. Use `get_agent` to read about an \
    agent; use this to call it or to verify its card.";
const CHECK_AGENT: &str = "Tells whether you may find and call an agent under the policies of this registry, and why. Ask \
    it before an agent is called; do not call one for which `invoke.allowed` is false.";
const LIST_FACETS: &str = "Lists the values that filters of `search_agents` can take, such as tags, providers and protocol \
    versions, with the number of agents for each. Use it to learn what there is, or to narrow a search.";

/// A tool that only reads, from this registry alone.
fn tool<O: JsonSchema + 'static>(
    name: &'static str,
    title: &str,
    description: &'static str,
    arguments: Arc<JsonObject>,
) -> Tool {
    let hints = ToolAnnotations::with_title(title)
        .read_only(true)
        .destructive(false)
        .idempotent(true)
        .open_world(false);
    Tool::new(name, description, arguments)
        .with_title(title)
        .with_raw_output_schema(output_schema::<O>())
        .with_annotations(hints)
}

/// Calls a tool; `None` where there is none of that name.
pub(super) async fn call(
    context: &Context,
    caller: &Caller,
    name: &str,
    arguments: Option<JsonObject>,
) -> Option<Result<CallToolResult, AppError>> {
    let tool = tools().iter().find(|tool| tool.name == name)?;
    let arguments = match fitted(arguments, &tool.input_schema) {
        Ok(arguments) => arguments,
        Err(error) => return Some(Err(error)),
    };
    let call = ToolCall {
        context,
        caller,
        arguments,
    };
    Some(match name {
        "search_agents" => call.search_agents().await,
        "get_agent" => call.get_agent().await.map_err(without_name),
        "get_card" => call.get_card().await.map_err(without_name),
        "check_agent" => call.check_agent().await.map_err(without_name),
        "list_facets" => call.list_facets().await,
        _ => return None,
    })
}

/// Whatever an agent was called, a missing one and a hidden one are answered with the same words.
fn without_name(error: AppError) -> AppError {
    match error.kind {
        ErrorKind::NotFound => AppError::not_found(NO_AGENT),
        _ => error,
    }
}

struct ToolCall<'a> {
    context: &'a Context,
    caller: &'a Caller,
    arguments: JsonObject,
}

impl ToolCall<'_> {
    async fn search_agents(self) -> Result<CallToolResult, AppError> {
        let query = search_query(self.arguments)?;
        // The members that it shows of hits are those of a search by default, so that both keep the same answer.
        let answer = search(self.context, self.caller, &query).await?;
        let found = serde_json::from_slice(&answer)
            .map_err(|error| AppError::internal(format!("search answer: {error}")))?;
        let page = AgentPage::new(found);
        succeeded(&page, vec![words::page(&page)])
    }

    async fn get_agent(self) -> Result<CallToolResult, AppError> {
        let OneAgent { agent } = read(self.arguments)?;
        let agent = agent_answered(self.context, self.caller, &agent).await?;
        succeeded(&WholeAgent::new(&agent), vec![agent_description(&agent)])
    }

    async fn get_card(self) -> Result<CallToolResult, AppError> {
        let OneAgent { agent } = read(self.arguments)?;
        let agent = agent_answered(self.context, self.caller, &agent).await?;
        let summary = &agent.hit.summary;
        let id = summary.id.to_string();
        // The very version that the signatures were judged of, also where another one is served by now.
        let digest = Some(summary.card_digest.as_str());
        let card = agent_card(self.context, self.caller, &id, digest).await?;
        let (address, length) = (&summary.links.card, card.bytes.len());
        if length > CARD_BYTES {
            let detail = format!(
                "the card has {length} bytes and at most {CARD_BYTES} are returned; fetch it from {address}"
            );
            return Err(AppError::invalid("", detail));
        }
        let Ok(text) = std::str::from_utf8(&card.bytes) else {
            let detail = format!("the card is not UTF-8; fetch it from {address}");
            return Err(AppError::invalid("", detail));
        };
        let json = visible_json(text).into_owned();
        let verdict = &agent.signature_verdict;
        let card = WholeCard {
            id,
            digest: card.digest.clone(),
            bytes: u64::try_from(length).unwrap_or(u64::MAX),
            card: String::new(),
            signature: verdict.state.to_string(),
            signature_reason: cut(&verdict.reason, VALUE),
        };
        let mut result = succeeded(&card, vec![words::card(&card), json.clone()])?;
        if let Some(structured) = &mut result.structured_content {
            // JSON as a text says the same only where characters are escaped as JSON escapes them.
            structured["card"] = json.into();
        }
        Ok(result)
    }

    async fn check_agent(self) -> Result<CallToolResult, AppError> {
        let OneAgent { agent } = read(self.arguments)?;
        let (discover, invoke) = decide_both(self.context, self.caller, &agent).await?;
        let check = AgentCheck {
            id: invoke.agent.to_string(),
            card_digest: invoke.card_digest.clone(),
            policy_set: invoke.number,
            discover: checked(discover, "You see it, so you may find it."),
            invoke: checked(invoke, "It is listed, and the policies permit it."),
        };
        succeeded(&check, vec![words::check(&check)])
    }

    async fn list_facets(self) -> Result<CallToolResult, AppError> {
        let query = facets_query(self.arguments)?;
        let found = found(self.context, self.caller, &query, &Extra::default()).await?;
        let facets = found.answer.facets.into_iter();
        let facets = facets.map(|(name, counts)| CountedFacet {
            name: name.as_str().to_owned(),
            values: counts
                .values
                .into_iter()
                .map(|(value, count)| FacetValue {
                    value: cut(&value, VALUE),
                    count,
                })
                .collect(),
            other_count: counts.other_count,
        });
        let page = FacetPage {
            total: found.answer.total,
            facets: facets.collect(),
        };
        succeeded(&page, vec![words::facets(&page)])
    }
}

fn checked(decision: PolicyDecision, because: &str) -> CheckedAction {
    CheckedAction {
        allowed: decision.allowed,
        reason: decision.reason.unwrap_or_else(|| because.to_owned()),
        policies: decision.policies,
    }
}
