//! The outcome of a task, as stored and as rendered.
//!
//! An outcome is stored in parts, each with the agent that it is about, and assembled when the task is read: a caller
//! who reads a task again does not see an agent that it may no longer see, nor that one was removed. For a result page
//! only the identifiers and scores are stored; the entries are read from the current index.

use std::collections::{HashMap, HashSet};

use a2a_registry_api::UnderstoodPart;
use a2a_registry_core::agents::policy_attributes::visibility_labels_by_agent;
use a2a_registry_core::context::AppContext;
use a2a_registry_core::error::AppError;
use a2a_registry_core::text::{show_hidden_in_json, show_hidden_in_json_text};
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_search::is_visible_to;
use a2a_registry_store::agents;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::card_document::FIND_AGENTS;
use super::text_rendering;
use crate::ard::result_rendering::entry_with_score;

const ARTIFACT_ID: &str = "answer";
/// Maximum number of bytes of the entries of a response, as JSON.
pub(super) const MAX_ENTRY_BYTES: usize = 1 << 20;

/// The outcome of a task, and the part types that its client accepts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TaskOutcome {
    pub(super) text: bool,
    pub(super) data: bool,
    pub(super) outcome: TaskOutcomeKind,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum TaskOutcomeKind {
    Found(FoundAgentsPage),
    About {
        skill: String,
        agent: Uuid,
        /// The agent name or identifier that the client sent.
        asked: String,
        text: String,
        data: Option<Value>,
    },
    Missing {
        skill: String,
        asked: String,
    },
    Question {
        text: String,
        choices: Vec<CandidateAgent>,
    },
    Failed {
        text: String,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct FoundAgentsPage {
    pub(super) results: Vec<(Uuid, StoredSearchResult)>,
    /// The other members of the Agentic Resource Discovery search response.
    pub(super) rest: Map<String, Value>,
    /// Number of matching agents without a URN; counted for the first page only.
    #[serde(default)]
    pub(super) without_urn: u64,
    /// Number of the matching agents that fit the request, if others match it too.
    #[serde(default)]
    pub(super) total_fitting: Option<u64>,
    /// The phrases of the text that were applied as filters.
    #[serde(default)]
    pub(super) understood: Vec<UnderstoodPart>,
    /// The agents as results of that response, as JSON texts, read from the index whenever the page is rendered.
    #[serde(skip)]
    pub(super) entries: Vec<String>,
    /// Number of agents left out because the entries exceed the size limit.
    #[serde(skip)]
    pub(super) left_out: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredSearchResult {
    identifier: String,
    score: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CandidateAgent {
    pub(super) agent: Uuid,
    pub(super) line: String,
}

/// The artifact of a task with an answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Artifact {
    artifact_id: &'static str,
    name: String,
    parts: Vec<ArtifactPart>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    metadata: Map<String, Value>,
}

/// A part with either text or data.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactPart {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<ArtifactData>,
    media_type: &'static str,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ArtifactData {
    Agent(Value),
    /// A page, whose entries are JSON texts.
    Found {
        #[serde(serialize_with = "serialize_json_texts")]
        results: Vec<String>,
        #[serde(flatten)]
        rest: Map<String, Value>,
    },
}

/// Serializes JSON texts as what they describe, without parsing them into values.
fn serialize_json_texts<S: Serializer>(texts: &[String], serializer: S) -> Result<S::Ok, S::Error> {
    let texts = texts.iter().map(String::as_str);
    serializer.collect_seq(texts.filter_map(|text| serde_json::from_str::<&RawValue>(text).ok()))
}

impl TaskOutcome {
    pub(super) fn to_stored_json(&self) -> Result<String, AppError> {
        serde_json::to_string(self).map_err(|error| AppError::internal(error.to_string()))
    }

    /// Identifiers of the agents on the page. A stored outcome has no entries for them.
    pub(super) fn entry_identifiers(&self) -> impl Iterator<Item = &str> {
        let results = match &self.outcome {
            TaskOutcomeKind::Found(page) => page.results.as_slice(),
            _ => &[],
        };
        results.iter().map(|(_, kept)| kept.identifier.as_str())
    }

    /// Fills in the entries of the agents on the page, and leaves out agents without an entry here.
    pub(super) fn fill_entries(&mut self, entries: &HashMap<String, Vec<u8>>, source: &str) {
        if let TaskOutcomeKind::Found(page) = &mut self.outcome {
            let results = page.results.iter().filter_map(|(_, kept)| {
                entry_with_score(entries.get(&kept.identifier)?, kept.score, source)
            });
            page.entries = results.collect();
        }
    }

    pub(super) fn into_artifact(self) -> Option<Artifact> {
        let mut metadata = Map::new();
        let (name, text, data) = match self.outcome {
            TaskOutcomeKind::Found(mut page) => {
                page.sanitize_and_limit_entries();
                let text = text_rendering::found_agents_text(&page);
                metadata = page.metadata();
                let data = ArtifactData::Found {
                    results: page.entries,
                    rest: page.rest,
                };
                (FIND_AGENTS.to_owned(), text, Some(data))
            }
            TaskOutcomeKind::About {
                skill,
                text,
                mut data,
                ..
            } => {
                data.iter_mut().for_each(show_hidden_in_json);
                (skill, text, data.map(ArtifactData::Agent))
            }
            TaskOutcomeKind::Missing { skill, asked } => {
                (skill, text_rendering::agent_not_found_text(&asked), None)
            }
            TaskOutcomeKind::Question { .. } | TaskOutcomeKind::Failed { .. } => return None,
        };
        let mut parts = Vec::new();
        // A client that accepts data only gets text if there is no data.
        if self.text || data.is_none() {
            parts.push(ArtifactPart {
                text: Some(text),
                data: None,
                media_type: "text/plain",
            });
        }
        let data = data.filter(|_| self.data);
        parts.extend(data.map(|data| ArtifactPart {
            text: None,
            data: Some(data),
            media_type: "application/json",
        }));
        Some(Artifact {
            artifact_id: ARTIFACT_ID,
            name,
            parts,
            metadata,
        })
    }

    pub(super) fn status_text(&self) -> Option<String> {
        match &self.outcome {
            TaskOutcomeKind::Question { text, choices } => {
                Some(text_rendering::clarification_text(text, choices))
            }
            TaskOutcomeKind::Failed { text } => Some(text.clone()),
            TaskOutcomeKind::Found(_)
            | TaskOutcomeKind::About { .. }
            | TaskOutcomeKind::Missing { .. } => None,
        }
    }

    /// The clarification question for the history, without the candidate agents: the history is not checked again.
    pub(super) fn clarification(&self) -> Option<&str> {
        match &self.outcome {
            TaskOutcomeKind::Question { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Removes the data of a response about one agent, so that its text can be stored.
    pub(super) fn remove_data(&mut self) {
        if let TaskOutcomeKind::About { data, .. } = &mut self.outcome {
            *data = None;
        }
    }

    /// The agents in this outcome, except those on a page, whose visibility depends on their entries.
    pub(super) fn agent_ids_outside_page(&self) -> Vec<Uuid> {
        match &self.outcome {
            TaskOutcomeKind::About { agent, .. } => vec![*agent],
            TaskOutcomeKind::Question { choices, .. } => {
                choices.iter().map(|one| one.agent).collect()
            }
            TaskOutcomeKind::Found(_)
            | TaskOutcomeKind::Missing { .. }
            | TaskOutcomeKind::Failed { .. } => Vec::new(),
        }
    }

    /// Removes the agents in [`agent_ids`](Self::agent_ids) that are not visible.
    pub(super) fn retain_visible_agents(&mut self, visible: &HashSet<Uuid>) {
        match &mut self.outcome {
            TaskOutcomeKind::Question { choices, .. } => {
                choices.retain(|choice| visible.contains(&choice.agent));
            }
            TaskOutcomeKind::About {
                skill,
                agent,
                asked,
                ..
            } if !visible.contains(agent) => {
                let (skill, asked) = (std::mem::take(skill), std::mem::take(asked));
                self.outcome = TaskOutcomeKind::Missing { skill, asked };
            }
            TaskOutcomeKind::Found(_)
            | TaskOutcomeKind::About { .. }
            | TaskOutcomeKind::Missing { .. }
            | TaskOutcomeKind::Failed { .. } => {}
        }
    }
}

impl FoundAgentsPage {
    /// Adds an agent with its result, which must have an identifier and a score.
    pub(super) fn add_result(&mut self, agent: Uuid, result: String) {
        if let Ok(kept) = serde_json::from_str(&result) {
            self.results.push((agent, kept));
            self.entries.push(result);
        }
    }

    /// What the artifact says about the page besides its agents.
    fn metadata(&self) -> Map<String, Value> {
        let mut metadata = Map::new();
        for (name, number) in [
            ("leftOut", self.left_out as u64),
            ("withoutUrn", self.without_urn),
        ] {
            if number > 0 {
                metadata.insert(name.to_owned(), number.into());
            }
        }
        if let Some(fitting) = self.total_fitting {
            metadata.insert("totalFitting".to_owned(), fitting.into());
        }
        if !self.understood.is_empty() {
            let mut understood = serde_json::json!(self.understood);
            show_hidden_in_json(&mut understood);
            metadata.insert("understood".to_owned(), understood);
        }
        metadata
    }

    /// Makes hidden characters visible, and drops the largest entries until the rest fit into the size limit.
    fn sanitize_and_limit_entries(&mut self) {
        // Before measuring, because visible characters are longer.
        self.entries.iter_mut().for_each(show_hidden_in_json_text);
        self.rest.values_mut().for_each(show_hidden_in_json);
        let sizes = self.entries.iter().map(String::len);
        let mut by_size: Vec<(usize, usize)> = sizes.zip(0..).collect();
        by_size.sort_unstable();
        let mut bytes: usize = 0;
        let fitting = by_size.into_iter().take_while(|(size, _)| {
            bytes += size;
            bytes <= MAX_ENTRY_BYTES
        });
        let fitting: HashSet<usize> = fitting.map(|(_, index)| index).collect();
        self.left_out = self.entries.len() - fitting.len();
        let mut place = 0..;
        self.entries
            .retain(|_| place.next().is_some_and(|place| fitting.contains(&place)));
    }
}

pub(super) async fn visible_agent_ids(
    context: &AppContext,
    caller: &Caller,
    mut ids: Vec<Uuid>,
) -> Result<HashSet<Uuid>, AppError> {
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let labels = caller.labels(&context.policy_sets.enforced_set());
    let rows = agents::agents_by_ids(&context.store, &ids).await?;
    let labelled = visibility_labels_by_agent(context, &context.store, rows).await?;
    let seen = labelled
        .into_iter()
        .filter(|(_, of)| is_visible_to(&labels, of));
    Ok(seen.map(|(agent, _)| agent).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    /// Models read data as well as text.
    #[test]
    fn hidden_characters_are_visible_in_data() {
        let evil = "a\u{202e}b\u{200b}c\u{e0041}";
        let entry = json!({"identifier": "urn:air:a.example:x", "displayName": evil, "metadata": {evil: [evil]}});
        let found = TaskOutcomeKind::Found(FoundAgentsPage {
            entries: vec![entry.to_string()],
            rest: Map::from_iter([("referrals".to_owned(), json!([evil]))]),
            ..FoundAgentsPage::default()
        });
        let about = TaskOutcomeKind::About {
            skill: "describe-agent".into(),
            agent: Uuid::nil(),
            asked: "x".into(),
            text: "x".into(),
            data: Some(entry),
        };
        for outcome in [found, about] {
            let answered = TaskOutcome {
                text: true,
                data: true,
                outcome,
            };
            let written = json!(answered.into_artifact()).to_string();
            for hidden in ['\u{202e}', '\u{200b}', '\u{e0041}'] {
                assert!(!written.contains(hidden), "{written}");
            }
            assert!(
                written.contains("a⟦U+202E⟧b⟦U+200B⟧c⟦U+E0041⟧"),
                "{written}"
            );
        }
    }

    const SOURCE: &str = "https://registry.agents-test.com/ard";

    fn page(agents: &[Uuid]) -> TaskOutcome {
        let mut page = FoundAgentsPage {
            rest: Map::from_iter([("pageToken".to_owned(), json!("next"))]),
            ..FoundAgentsPage::default()
        };
        for agent in agents {
            let entry = json!({"identifier": agent.to_string(), "displayName": "x", "score": 7, "source": SOURCE});
            page.add_result(*agent, entry.to_string());
        }
        TaskOutcome {
            text: true,
            data: true,
            outcome: TaskOutcomeKind::Found(page),
        }
    }

    #[test]
    fn an_agent_that_is_hidden_is_as_one_that_never_was() {
        let (seen, hidden) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let visible = HashSet::from([seen]);
        let written = page(&[hidden, seen]).to_stored_json().unwrap();
        assert!(!written.contains("displayName"), "{written}");
        let mut both: TaskOutcome = serde_json::from_str(&written).unwrap();
        let identifiers: Vec<String> = both.entry_identifiers().map(str::to_owned).collect();
        assert_eq!(identifiers, [hidden.to_string(), seen.to_string()]);
        let entry = json!({"identifier": seen.to_string(), "displayName": "x"});
        let entries = HashMap::from([(seen.to_string(), entry.to_string().into_bytes())]);
        both.fill_entries(&entries, SOURCE);
        let alone = page(&[seen]).into_artifact();
        assert_eq!(json!(both.into_artifact()), json!(alone));

        let mut about = TaskOutcome {
            outcome: TaskOutcomeKind::About {
                skill: "describe-agent".into(),
                agent: hidden,
                asked: "x".into(),
                text: "secret".into(),
                data: Some(json!("secret")),
            },
            ..page(&[])
        };
        about.retain_visible_agents(&visible);
        let missing = TaskOutcomeKind::Missing {
            skill: "describe-agent".into(),
            asked: "x".into(),
        };
        assert_eq!(about.outcome, missing);

        let choice = |agent| CandidateAgent {
            agent,
            line: agent.to_string(),
        };
        let question = |choices| TaskOutcome {
            outcome: TaskOutcomeKind::Question {
                text: "Which?".into(),
                choices,
            },
            ..page(&[])
        };
        let mut asked = question(vec![choice(seen), choice(hidden)]);
        asked.retain_visible_agents(&visible);
        assert_eq!(asked, question(vec![choice(seen)]));
    }

    #[test]
    fn the_largest_entries_are_left_out_where_an_answer_is_too_large() {
        let third = MAX_ENTRY_BYTES / 3;
        // Two bytes of each are quotes.
        for (sizes, kept) in [
            (vec![10, 20, 30], vec![0, 1, 2]),
            (vec![third - 2, third - 2, third - 2], vec![0, 1, 2]),
            (vec![third + 2, third - 2, third - 2], vec![1, 2]),
            (vec![MAX_ENTRY_BYTES, 10, MAX_ENTRY_BYTES + 1], vec![1]),
            (vec![MAX_ENTRY_BYTES - 1], vec![]),
            (vec![MAX_ENTRY_BYTES - 2], vec![0]),
        ] {
            let mut answered = page(&[]);
            let TaskOutcomeKind::Found(found) = &mut answered.outcome else {
                unreachable!()
            };
            let entry = |size: &usize| json!("x".repeat(*size));
            let all: Vec<Value> = sizes.iter().map(entry).collect();
            found.entries = all.iter().map(ToString::to_string).collect();
            let artifact = json!(answered.into_artifact());
            let response = &artifact["parts"][1]["data"];
            let expected: Vec<&Value> = kept.iter().map(|place: &usize| &all[*place]).collect();
            assert_eq!(response["results"], json!(expected), "{sizes:?}");
            assert_eq!(response["pageToken"], "next");
            let left_out = sizes.len() - kept.len();
            let text = artifact["parts"][0]["text"].as_str().unwrap();
            assert_eq!(text.contains("omitted"), left_out > 0, "{text}");
            let noted = artifact["metadata"]["leftOut"].as_u64().unwrap_or(0);
            assert_eq!(noted, left_out as u64);
        }
    }

    #[test]
    fn parts_are_those_that_are_taken() {
        for (text, data, kinds) in [
            (true, true, vec!["text", "data"]),
            (true, false, vec!["text"]),
            (false, true, vec!["data"]),
        ] {
            let answered = TaskOutcome {
                text,
                data,
                ..page(&[])
            };
            let artifact = json!(answered.into_artifact());
            let parts = artifact["parts"].as_array().unwrap();
            let seen: Vec<&str> = parts
                .iter()
                .map(|part| {
                    if part.get("text").is_some() {
                        "text"
                    } else {
                        "data"
                    }
                })
                .collect();
            assert_eq!(seen, kinds);
        }
    }
}
