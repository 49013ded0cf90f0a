//! What a message asks for: by a data part or the metadata, else by plain words.

use serde_json::{Map, Value};
use uuid::Uuid;

use super::card::{CHECK, DESCRIBE, FIND};
use super::fault::Fault;
use super::incoming::Incoming;

const MAX_NAME: usize = 1024;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Intent {
    /// Agents, by a search request of Agentic Resource Discovery.
    Find(Value),
    More,
    /// What is known about an agent, by its identifier, URN or name.
    Describe(String),
    /// Whether an agent is allowed, by its identifier, URN or name.
    Check(String),
    /// Nothing that could be read: a sentence about that.
    Unclear(&'static str),
}

const MORE: [&str; 7] = [
    "more",
    "next",
    "next page",
    "more agents",
    "show more",
    "go on",
    "continue",
];

/// The words before and after the name of an agent, and what they ask about it.
type Phrase = (&'static str, &'static str, fn(String) -> Intent);

/// Phrases about an agent, of which the first whose beginning fits is meant.
static PHRASES: [Phrase; 8] = [
    ("describe ", "", Intent::Describe),
    ("tell me about ", "", Intent::Describe),
    ("is the agent ", " allowed", Intent::Check),
    ("is ", " allowed", Intent::Check),
    ("may i use ", "", Intent::Check),
    ("may i call ", "", Intent::Check),
    ("am i allowed to use ", "", Intent::Check),
    ("am i allowed to call ", "", Intent::Check),
];

const EMPTY: &str =
    "Say what the agent should do, for example \"translate a contract into Japanese\".";
const UNKNOWN_DATA: &str = "This data is no request of this agent. Send text, or a data part such as \
     {\"skill\": \"find-agents\", \"query\": {\"text\": \"translate a contract\"}}.";
const NO_AGENT: &str = "Say which agent is meant, by its identifier, URN or name.";

pub(super) fn intent(incoming: &Incoming) -> Result<Intent, Fault> {
    let mut objects = incoming.data.iter().filter_map(Value::as_object);
    let request = objects.find(|data| {
        ["skill", "query", "agent"]
            .iter()
            .any(|name| data.contains_key(*name))
    });
    let stated = match request.and_then(|request| request.get("skill")) {
        Some(skill) => Some(skill),
        None => incoming.metadata.get("skill"),
    };
    let stated = match stated {
        None => None,
        Some(Value::String(skill)) => Some(skill.as_str()),
        Some(_) => return Err(Fault::params("`skill` is a string.")),
    };
    let text = incoming.text.trim();
    let skill = match (stated, request) {
        (Some(skill), _) => skill,
        (None, Some(request)) if request.contains_key("query") => FIND,
        (None, Some(request)) if request.contains_key("agent") => DESCRIBE,
        _ if text.is_empty() && !incoming.data.is_empty() => {
            return Ok(Intent::Unclear(UNKNOWN_DATA));
        }
        _ => return Ok(by_words(text)),
    };
    match skill {
        FIND => find(request, text),
        DESCRIBE => about(request, text, Intent::Describe),
        CHECK => about(request, text, Intent::Check),
        _ => Err(Fault::params(format!(
            "`skill` is one of {FIND}, {DESCRIBE} and {CHECK}."
        ))),
    }
}

/// A search: by the data part without `skill`, or by the text.
fn find(request: Option<&Map<String, Value>>, text: &str) -> Result<Intent, Fault> {
    if let Some(request) =
        request.filter(|request| request.len() > usize::from(request.contains_key("skill")))
    {
        let mut request = request.clone();
        request.remove("skill");
        return Ok(Intent::Find(Value::Object(request)));
    }
    Ok(match text {
        "" => Intent::Unclear(EMPTY),
        text => Intent::Find(searched(text)),
    })
}

fn about(
    request: Option<&Map<String, Value>>,
    text: &str,
    intent: fn(String) -> Intent,
) -> Result<Intent, Fault> {
    let agent = match request.and_then(|request| request.get("agent")) {
        Some(Value::String(agent)) => agent.trim(),
        Some(_) => return Err(Fault::params("`agent` is a string.")),
        None => text,
    };
    if agent.chars().count() > MAX_NAME {
        return Err(Fault::params(format!(
            "`agent` has at most {MAX_NAME} characters."
        )));
    }
    Ok(match agent {
        "" => Intent::Unclear(NO_AGENT),
        agent => intent(agent.to_owned()),
    })
}

fn searched(text: &str) -> Value {
    serde_json::json!({"query": {"text": text}})
}

fn by_words(text: &str) -> Intent {
    if text.is_empty() {
        return Intent::Unclear(EMPTY);
    }
    let plain = text.trim_end_matches(['.', '!', '?']).trim_end();
    let lower = plain.to_lowercase();
    if MORE.contains(&lower.as_str()) {
        return Intent::More;
    }
    if let Some(intent) = by_phrase(plain, &lower) {
        return intent;
    }
    match is_identifier(plain) {
        true => Intent::Describe(plain.to_owned()),
        false => Intent::Find(searched(text)),
    }
}

fn by_phrase(text: &str, lower: &str) -> Option<Intent> {
    let mut phrases = PHRASES.iter();
    let (begin, end, intent) = phrases.find(|(begin, ..)| lower.starts_with(*begin))?;
    // Of the same length, so that positions in one are positions in the other.
    let fits = lower.len() == text.len() && text.chars().count() <= MAX_NAME;
    if !fits || !lower[begin.len()..].ends_with(*end) {
        return None;
    }
    let name = text.get(begin.len()..text.len() - end.len())?.trim();
    let name = name.trim_matches(['"', '\'', '`', '“', '”', '„']).trim();
    (!name.is_empty()).then(|| intent(name.to_owned()))
}

fn is_identifier(text: &str) -> bool {
    let urn = text.starts_with("urn:") && !text.contains(char::is_whitespace);
    urn || (text.len() == 36 && text.parse::<Uuid>().is_ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::super::incoming;
    use super::super::version::Version;
    use super::*;

    fn asked(parts: &Value, metadata: &Value) -> Result<Intent, Fault> {
        let params = json!({"message": {
            "messageId": "m", "role": "ROLE_USER", "parts": parts, "metadata": metadata,
        }});
        intent(&incoming::read(params.as_object().unwrap(), Version::V1).unwrap())
    }

    #[test]
    fn words_choose_the_skill() {
        let found = |text: &str| Intent::Find(json!({"query": {"text": text}}));
        let described = |name: &str| Intent::Describe(name.to_owned());
        let checked = |name: &str| Intent::Check(name.to_owned());
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
            ("More", Intent::More),
            ("next page.", Intent::More),
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
            assert_eq!(unclear, Intent::Unclear(EMPTY));
        }
    }

    #[test]
    fn data_and_metadata_choose_the_skill() {
        let request = json!({"query": {"text": "fly"}, "pageSize": 3});
        for (parts, metadata, expected) in [
            (
                json!([{"data": request}]),
                json!({}),
                Intent::Find(request.clone()),
            ),
            (
                json!([{"data": {"skill": "find-agents", "query": {"text": "fly"}, "pageSize": 3}}, {"text": "please"}]),
                json!({}),
                Intent::Find(request.clone()),
            ),
            (
                json!([{"text": "describe nothing"}]),
                json!({"skill": "find-agents"}),
                Intent::Find(json!({"query": {"text": "describe nothing"}})),
            ),
            (
                json!([{"text": "Trip"}]),
                json!({"skill": "check-agent"}),
                Intent::Check("Trip".into()),
            ),
            (
                json!([{"data": {"agent": "Trip"}}]),
                json!({}),
                Intent::Describe("Trip".into()),
            ),
            (
                json!([{"data": {"skill": "describe-agent"}}]),
                json!({}),
                Intent::Unclear(NO_AGENT),
            ),
            (
                json!([{"data": [1]}]),
                json!({}),
                Intent::Unclear(UNKNOWN_DATA),
            ),
            (
                json!([{"data": {"other": 1}}]),
                json!({}),
                Intent::Unclear(UNKNOWN_DATA),
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
