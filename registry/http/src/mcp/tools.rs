//! MCP tools: their names, descriptions and implementations.

use std::sync::{Arc, LazyLock};

use a2a_card::terminal_safe_json;
use a2a_registry_api::{FacetValue, PolicyDecision};
use a2a_registry_core::agents::cards::load_agent_card;
use a2a_registry_core::agents::rendering::load_cached_agent_view;
use a2a_registry_core::agents::text_description::describe_agent;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::{AppError, ErrorKind};
use a2a_registry_core::policies::access_decision::decide_discover_and_invoke;
use a2a_registry_core::search::engine::{SurfaceQuery, prepare_and_run_search};
use a2a_registry_core::search::search_agents;
use a2a_registry_core::visibility::caller::Caller;
use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::JsonSchema;

use crate::mcp::arguments::{
    AgentArgument, facets_input_schema, facets_query_from_arguments, normalize_tool_arguments,
    parse_tool_arguments, search_input_schema, search_query_from_arguments,
};
use crate::mcp::result_types::{
    AgentCheck, AgentPage, CheckedAction, CountedFacet, FacetPage, WholeAgent, WholeCard,
};
use crate::mcp::schemas::{tool_input_schema, tool_output_schema};
use crate::mcp::text_limits::cut;
use crate::mcp::text_rendering;
use crate::mcp::tool_result::{NO_AGENT_MESSAGE, tool_success_result};

/// Maximum number of bytes of a returned card. For longer cards the error names the URL.
const MAX_CARD_BYTES: usize = 256 * 1024;
const MAX_VALUE_CHARS: usize = 200;
/// Maximum number of characters of the reason of a decision, which repeats what policies say.
const MAX_REASON_CHARS: usize = 1_000;

/// Tools of every registry, in this order. The list is the same for all callers; the results are not.
pub fn registry_tools() -> &'static [Tool] {
    static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
        let agent_schema = tool_input_schema::<AgentArgument>();
        let (search, facets) = (search_input_schema(), facets_input_schema());
        vec![
            read_only_tool::<AgentPage>(
                "search_agents",
                "Search agents",
                SEARCH_AGENTS_DESCRIPTION,
                search,
            ),
            read_only_tool::<WholeAgent>(
                "get_agent",
                "Show an agent",
                GET_AGENT_DESCRIPTION,
                Arc::clone(&agent_schema),
            ),
            read_only_tool::<WholeCard>(
                "get_card",
                "Show an agent card",
                GET_CARD_DESCRIPTION,
                Arc::clone(&agent_schema),
            ),
            read_only_tool::<AgentCheck>(
                "check_agent",
                "Check an agent",
                CHECK_AGENT_DESCRIPTION,
                agent_schema,
            ),
            read_only_tool::<FacetPage>(
                "list_facets",
                "List filter values",
                LIST_FACETS_DESCRIPTION,
                facets,
            ),
        ]
    });
    &TOOLS
}

const SEARCH_AGENTS_DESCRIPTION: &str = "Finds agents in this registry that support A2A, the Agent2Agent protocol, by \
what they can do. Use it when another agent may do a task. Returns a page of agents that you may see, best first, \
with \
their ids for the other tools. Descriptions are written by third parties: rely on `trust`, and use `check_agent` \
before you call an agent.";
const GET_AGENT_DESCRIPTION: &str = "Returns the details of one agent: its description, skills, interface URLs, \
authentication, and the trust in its origin. Takes the id or URN from `search_agents`.";
const GET_CARD_DESCRIPTION: &str = "Returns the agent card, the JSON document that an A2A client needs to call the \
agent, with every value as its publisher serves it, its digest and the result of checking its signatures. Use \
`get_agent` to read about an agent; use this tool to call it or to verify its card.";
const CHECK_AGENT_DESCRIPTION: &str = "Returns whether the policies of this registry allow you to find and call an \
agent, and why. Use it before you call an agent. Do not call the agent if `invoke.allowed` is false.";
const LIST_FACETS_DESCRIPTION: &str = "Lists the values of the filters of `search_agents`, such as tags, providers \
and protocol versions, with the number of agents for each. Use it to explore the registry or to narrow a search.";

/// A tool that only reads, and only from this registry.
fn read_only_tool<O: JsonSchema + 'static>(
    name: &'static str,
    title: &str,
    description: &'static str,
    arguments: Arc<JsonObject>,
) -> Tool {
    let annotations = ToolAnnotations::with_title(title)
        .read_only(true)
        .destructive(false)
        .idempotent(true)
        .open_world(false);
    Tool::new(name, description, arguments)
        .with_title(title)
        .with_raw_output_schema(tool_output_schema::<O>())
        .with_annotations(annotations)
}

/// Calls a tool; `None` if no tool has this name.
pub(super) async fn call_registry_tool(
    context: &AppContext,
    caller: &Caller,
    name: &str,
    arguments: Option<JsonObject>,
) -> Option<Result<CallToolResult, AppError>> {
    let tool = registry_tools().iter().find(|tool| tool.name == name)?;
    let arguments = match normalize_tool_arguments(arguments, &tool.input_schema) {
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
        "get_agent" => call.get_agent().await.map_err(redact_not_found_error),
        "get_card" => call.get_card().await.map_err(redact_not_found_error),
        "check_agent" => call
            .check_agent_access()
            .await
            .map_err(redact_not_found_error),
        "list_facets" => call.list_facets().await,
        _ => return None,
    })
}

/// Removes the requested name from an error, so that missing and hidden agents get the same message.
fn redact_not_found_error(error: AppError) -> AppError {
    match error.kind {
        ErrorKind::NotFound => AppError::not_found(NO_AGENT_MESSAGE),
        _ => error,
    }
}

struct ToolCall<'a> {
    context: &'a AppContext,
    caller: &'a Caller,
    arguments: JsonObject,
}

impl ToolCall<'_> {
    async fn search_agents(self) -> Result<CallToolResult, AppError> {
        let query = search_query_from_arguments(self.arguments)?;
        // The query uses the default fields of a search, so that both share the cached response.
        let answer = search_agents(self.context, self.caller, &query).await?;
        let found = serde_json::from_slice(&answer)
            .map_err(|error| AppError::internal(format!("search answer: {error}")))?;
        let page = AgentPage::new(found);
        tool_success_result(&page, vec![text_rendering::listed_agents_text(&page)])
    }

    async fn get_agent(self) -> Result<CallToolResult, AppError> {
        let AgentArgument { agent } = parse_tool_arguments(self.arguments)?;
        let agent = load_cached_agent_view(self.context, self.caller, &agent).await?;
        tool_success_result(&WholeAgent::new(&agent), vec![describe_agent(&agent)])
    }

    async fn get_card(self) -> Result<CallToolResult, AppError> {
        let AgentArgument { agent } = parse_tool_arguments(self.arguments)?;
        let agent = load_cached_agent_view(self.context, self.caller, &agent).await?;
        let summary = &agent.hit.summary;
        let id = summary.id.to_string();
        // The version whose signatures were checked, even if another one is served meanwhile.
        let digest = Some(summary.card_digest.as_str());
        let card = load_agent_card(self.context, self.caller, &id, digest).await?;
        let (address, length) = (&summary.links.card, card.bytes.len());
        if length > MAX_CARD_BYTES {
            let detail = format!(
                "the card has {length} bytes, and at most {MAX_CARD_BYTES} can be returned; fetch it from {address}"
            );
            return Err(AppError::invalid("", detail));
        }
        let Ok(text) = std::str::from_utf8(&card.bytes) else {
            let detail = format!("the card is not UTF-8; fetch it from {address}");
            return Err(AppError::invalid("", detail));
        };
        let json = terminal_safe_json(text).into_owned();
        let signature_result = &agent.signature_verdict;
        let card = WholeCard {
            id,
            digest: card.digest.clone(),
            bytes: u64::try_from(length).unwrap_or(u64::MAX),
            card: String::new(),
            signature: signature_result.state.to_string(),
            signature_reason: cut(&signature_result.reason, MAX_VALUE_CHARS),
        };
        let mut result =
            tool_success_result(&card, vec![text_rendering::card_text(&card), json.clone()])?;
        if let Some(structured) = &mut result.structured_content {
            // A JSON string keeps its meaning only with JSON escapes.
            structured["card"] = json.into();
        }
        Ok(result)
    }

    async fn check_agent_access(self) -> Result<CallToolResult, AppError> {
        let AgentArgument { agent } = parse_tool_arguments(self.arguments)?;
        let (discover, invoke) =
            decide_discover_and_invoke(self.context, self.caller, &agent).await?;
        let check = AgentCheck {
            id: invoke.agent.map_or_else(String::new, |id| id.to_string()),
            card_digest: invoke.card_digest.clone().unwrap_or_default(),
            policy_set: invoke.number,
            discover: to_checked_action(discover, "You see it, so you may find it."),
            invoke: to_checked_action(invoke, "It is listed, and the policies permit it."),
        };
        tool_success_result(&check, vec![text_rendering::access_check_text(&check)])
    }

    async fn list_facets(self) -> Result<CallToolResult, AppError> {
        let query = facets_query_from_arguments(self.arguments)?;
        let search_page =
            prepare_and_run_search(self.context, self.caller, &query, &SurfaceQuery::default())
                .await?;
        let facets = search_page.response.facets.into_iter();
        let facets = facets.map(|(name, counts)| CountedFacet {
            name: name.as_str().to_owned(),
            values: counts
                .values
                .into_iter()
                .map(|(value, count)| FacetValue {
                    value: cut(&value, MAX_VALUE_CHARS),
                    count,
                })
                .collect(),
            other_count: counts.other_count,
        });
        let page = FacetPage {
            total: search_page.response.total,
            total_fitting: search_page.response.total_fitting,
            facets: facets.collect(),
            understood: search_page
                .understood
                .map_or_else(Vec::new, |all| all.parts),
        };
        tool_success_result(&page, vec![text_rendering::facets_text(&page)])
    }
}

fn to_checked_action(decision: PolicyDecision, default_reason: &str) -> CheckedAction {
    let reason = decision.reason.as_deref().unwrap_or(default_reason);
    CheckedAction {
        allowed: decision.allowed,
        decision: decision.id.to_string(),
        reason: cut(reason, MAX_REASON_CHARS),
        policies: decision.policies,
    }
}
