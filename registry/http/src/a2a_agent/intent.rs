//! The intent of a message: from a data part or the metadata, otherwise from plain words.

use serde_json::{Map, Value};
use uuid::Uuid;

use super::card_document::{CHECK_AGENT, DESCRIBE_AGENT, FIND_AGENTS};
use super::error::A2aError;
use super::incoming_message::IncomingMessage;

const MAX_NAME_CHARS: usize = 1024;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Intent {
    /// Find agents by an Agentic Resource Discovery search request.
    FindAgents(Value),
    NextPage,
    /// Describe an agent, named by its identifier, URN or name.
    DescribeAgent(String),
    /// Check whether an agent is allowed, named by its identifier, URN or name.
    CheckAgent(String),
    /// The intent is unclear: a message to the client.
    Unclear(&'static str),
}

const NEXT_PAGE_PHRASES: [&str; 7] = [
    "more",
    "next",
    "next page",
    "more agents",
    "show more",
    "go on",
    "continue",
];

/// The words before and after an agent name, and the intent that they express.
type IntentPhrase = (&'static str, &'static str, fn(String) -> Intent);

/// Phrases about an agent; the first phrase whose beginning matches applies.
static PHRASES: [IntentPhrase; 8] = [
    ("describe ", "", Intent::DescribeAgent),
    ("tell me about ", "", Intent::DescribeAgent),
    ("is the agent ", " allowed", Intent::CheckAgent),
    ("is ", " allowed", Intent::CheckAgent),
    ("may i use ", "", Intent::CheckAgent),
    ("may i call ", "", Intent::CheckAgent),
    ("am i allowed to use ", "", Intent::CheckAgent),
    ("am i allowed to call ", "", Intent::CheckAgent),
];

const EMPTY_MESSAGE: &str =
    "Say what the agent should do, for example \"translate a contract into Japanese\".";
const UNKNOWN_DATA_MESSAGE: &str = "This agent does not support this data part. Send text, or a data part such as \
     {\"skill\": \"find-agents\", \"query\": {\"text\": \"translate a contract\"}}.";
const NO_AGENT_MESSAGE: &str = "Name the agent by its identifier, URN or name.";

pub(super) fn parse_intent(incoming: &IncomingMessage) -> Result<Intent, A2aError> {
    let mut objects = incoming.data.iter().filter_map(Value::as_object);
    let request = objects.find(|data| {
        ["skill", "query", "agent"]
            .iter()
            .any(|name| data.contains_key(*name))
    });
    let skill_value = match request.and_then(|request| request.get("skill")) {
        Some(skill) => Some(skill),
        None => incoming.metadata.get("skill"),
    };
    let requested_skill = match skill_value {
        None => None,
        Some(Value::String(skill)) => Some(skill.as_str()),
        Some(_) => return Err(A2aError::invalid_params("`skill` must be a string.")),
    };
    let text = incoming.text.trim();
    let skill = match (requested_skill, request) {
        (Some(skill), _) => skill,
        (None, Some(request)) if request.contains_key("query") => FIND_AGENTS,
        (None, Some(request)) if request.contains_key("agent") => DESCRIBE_AGENT,
        _ if text.is_empty() && !incoming.data.is_empty() => {
            return Ok(Intent::Unclear(UNKNOWN_DATA_MESSAGE));
        }
        _ => return Ok(intent_from_text(text)),
    };
    match skill {
        FIND_AGENTS => find_agents_intent(request, text),
        DESCRIBE_AGENT => agent_intent(request, text, Intent::DescribeAgent),
        CHECK_AGENT => agent_intent(request, text, Intent::CheckAgent),
        _ => Err(A2aError::invalid_params(format!(
            "`skill` must be {FIND_AGENTS}, {DESCRIBE_AGENT} or {CHECK_AGENT}."
        ))),
    }
}

/// The intent to search, from the data part without `skill` or from the text.
fn find_agents_intent(
    request: Option<&Map<String, Value>>,
    text: &str,
) -> Result<Intent, A2aError> {
    if let Some(request) =
        request.filter(|request| request.len() > usize::from(request.contains_key("skill")))
    {
        let mut request = request.clone();
        request.remove("skill");
        return Ok(Intent::FindAgents(Value::Object(request)));
    }
    Ok(match text {
        "" => Intent::Unclear(EMPTY_MESSAGE),
        text => Intent::FindAgents(text_search_request(text)),
    })
}

fn agent_intent(
    request: Option<&Map<String, Value>>,
    text: &str,
    to_intent: fn(String) -> Intent,
) -> Result<Intent, A2aError> {
    let agent = match request.and_then(|request| request.get("agent")) {
        Some(Value::String(agent)) => agent.trim(),
        Some(_) => return Err(A2aError::invalid_params("`agent` must be a string.")),
        None => text,
    };
    if agent.chars().count() > MAX_NAME_CHARS {
        return Err(A2aError::invalid_params(format!(
            "`agent` must have at most {MAX_NAME_CHARS} characters."
        )));
    }
    Ok(match agent {
        "" => Intent::Unclear(NO_AGENT_MESSAGE),
        agent => to_intent(agent.to_owned()),
    })
}

fn text_search_request(text: &str) -> Value {
    serde_json::json!({"query": {"text": text}})
}

fn intent_from_text(text: &str) -> Intent {
    if text.is_empty() {
        return Intent::Unclear(EMPTY_MESSAGE);
    }
    let unpunctuated = text.trim_end_matches(['.', '!', '?']).trim_end();
    let lower = unpunctuated.to_lowercase();
    if NEXT_PAGE_PHRASES.contains(&lower.as_str()) {
        return Intent::NextPage;
    }
    if let Some(intent) = intent_from_phrase(unpunctuated, &lower) {
        return intent;
    }
    match is_agent_identifier(unpunctuated) {
        true => Intent::DescribeAgent(unpunctuated.to_owned()),
        false => Intent::FindAgents(text_search_request(text)),
    }
}

fn intent_from_phrase(text: &str, lower: &str) -> Option<Intent> {
    let mut phrases = PHRASES.iter();
    let (begin, end, intent) = phrases.find(|(begin, ..)| lower.starts_with(*begin))?;
    // Equal lengths ensure that byte positions in one text are valid in the other.
    let fits = lower.len() == text.len() && text.chars().count() <= MAX_NAME_CHARS;
    if !fits || !lower[begin.len()..].ends_with(*end) {
        return None;
    }
    let name = text.get(begin.len()..text.len() - end.len())?.trim();
    let name = name.trim_matches(['"', '\'', '`', '“', '”', '„']).trim();
    (!name.is_empty()).then(|| intent(name.to_owned()))
}

fn is_agent_identifier(text: &str) -> bool {
    let urn = text.starts_with("urn:") && !text.contains(char::is_whitespace);
    urn || (text.len() == 36 && text.parse::<Uuid>().is_ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::super::incoming_message;
    use super::super::protocol_version::ProtocolVersion;
    use super::*;

    fn asked(parts: &Value, metadata: &Value) -> Result<Intent, A2aError> {
        let params = json!({"message": {
            "messageId": "m", "role": "ROLE_USER", "parts": parts, "metadata": metadata,
        }});
        parse_intent(
            &incoming_message::parse_send_params(params.as_object().unwrap(), ProtocolVersion::V1)
                .unwrap(),
        )
    }

    #[test]
    fn words_choose_the_skill() {
        let found = |text: &str| Intent::FindAgents(json!({"query": {"text": text}}));
        let described = |name: &str| Intent::DescribeAgent(name.to_owned());
        let checked = |name: &str| Intent::CheckAgent(name.to_owned());
        for (text, expected) in [
            ("book a flight", found("book a flight")),
            (
                "Which agents are allowed to fly?",
                found("Which agents are allowed to fly?"),
            ),
            (
                "is there an agent that flies",
                found("is there an agent that flies"),
            ),
            ("describe", found("describe")),
            ("More", Intent::NextPage),
            ("next page.", Intent::NextPage),
            ("more flights", found("more flights")),
            (
                "describe urn:air:a.example:x",
                described("urn:air:a.example:x"),
            ),
            ("Describe \"Trip Planner\".", described("Trip Planner")),
            ("tell me about Trip Planner", described("Trip Planner")),
            ("urn:air:a.example:x", described("urn:air:a.example:x")),
            (
                "0197a2a0-0000-7000-8000-000000000001",
                described("0197a2a0-0000-7000-8000-000000000001"),
            ),
            (
                "is urn:air:a.example:x allowed?",
                checked("urn:air:a.example:x"),
            ),
            ("Is the agent Trip Planner allowed", checked("Trip Planner")),
            ("may I use Trip Planner?", checked("Trip Planner")),
            ("İs x allowed", found("İs x allowed")),
        ] {
            assert_eq!(
                asked(&json!([{"text": text}]), &json!({})).unwrap(),
                expected,
                "{text}"
            );
        }
        for text in ["", "  \n"] {
            let unclear = asked(&json!([{"text": text}]), &json!({})).unwrap();
            assert_eq!(unclear, Intent::Unclear(EMPTY_MESSAGE));
        }
    }

    #[test]
    fn data_and_metadata_choose_the_skill() {
        let request = json!({"query": {"text": "fly"}, "pageSize": 3});
        for (parts, metadata, expected) in [
            (
                json!([{"data": request}]),
                json!({}),
                Intent::FindAgents(request.clone()),
            ),
            (
                json!([{"data": {"skill": "find-agents", "query": {"text": "fly"}, "pageSize": 3}}, {"text": "please"}]),
                json!({}),
                Intent::FindAgents(request.clone()),
            ),
            (
                json!([{"text": "describe nothing"}]),
                json!({"skill": "find-agents"}),
                Intent::FindAgents(json!({"query": {"text": "describe nothing"}})),
            ),
            (
                json!([{"text": "Trip"}]),
                json!({"skill": "check-agent"}),
                Intent::CheckAgent("Trip".into()),
            ),
            (
                json!([{"data": {"agent": "Trip"}}]),
                json!({}),
                Intent::DescribeAgent("Trip".into()),
            ),
            (
                json!([{"data": {"skill": "describe-agent"}}]),
                json!({}),
                Intent::Unclear(NO_AGENT_MESSAGE),
            ),
            (
                json!([{"data": [1]}]),
                json!({}),
                Intent::Unclear(UNKNOWN_DATA_MESSAGE),
            ),
            (
                json!([{"data": {"other": 1}}]),
                json!({}),
                Intent::Unclear(UNKNOWN_DATA_MESSAGE),
            ),
        ] {
            assert_eq!(
                asked(&parts, &metadata).unwrap(),
                expected,
                "{parts} {metadata}"
            );
        }
        for (parts, metadata) in [
            (json!([{"text": "x"}]), json!({"skill": "cook"})),
            (json!([{"text": "x"}]), json!({"skill": 1})),
            (json!([{"data": {"agent": 1}}]), json!({})),
        ] {
            assert!(asked(&parts, &metadata).is_err(), "{parts} {metadata}");
        }
    }
}
