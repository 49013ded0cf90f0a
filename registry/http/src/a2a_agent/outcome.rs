//! What came of a task, as it is kept, and as it is shown.
//!
//! It is kept in parts, each with the agent that it is about, and put together when it is read: whoever reads a task
//! again is not shown an agent that it may not see any more, and cannot tell that one was there. Of a page only the
//! identifiers and scores are kept; what their entries say is read from the index, as it is then.

use std::collections::{HashMap, HashSet};

use a2a_registry_core::agents::policy_facts::labels_of_all;
use a2a_registry_core::context::Context;
use a2a_registry_core::error::AppError;
use a2a_registry_core::text::show_hidden;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_search::sees;
use a2a_registry_store::agents;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::card::FIND;
use super::wire::object;
use super::words;
use crate::ard::result::completed;

const ARTIFACT: &str = "answer";
/// Bytes of the entries of an answer, as JSON.
pub(super) const MAX_ANSWER: usize = 1 << 20;

/// What came of a task, and which parts its client takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Answered {
    pub(super) text: bool,
    pub(super) data: bool,
    pub(super) outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Outcome {
    Found(FoundPage),
    About {
        skill: String,
        agent: Uuid,
        /// The agent as the client named it.
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
        choices: Vec<Choice>,
    },
    Failed {
        text: String,
    },
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct FoundPage {
    pub(super) results: Vec<(Uuid, KeptResult)>,
    /// The other members of the search response of Agentic Resource Discovery.
    pub(super) rest: Map<String, Value>,
    /// Agents that matched and have no URN; counted with the first page.
    #[serde(default)]
    pub(super) without_urn: u64,
    /// The agents as results of that response, read from the index whenever the page is shown.
    #[serde(skip)]
    pub(super) entries: Vec<Value>,
    /// Agents whose entries are too large to be shown with the others.
    #[serde(skip)]
    pub(super) left_out: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptResult {
    identifier: String,
    score: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Choice {
    pub(super) agent: Uuid,
    pub(super) line: String,
}

impl Answered {
    pub(super) fn written(&self) -> Result<String, AppError> {
        serde_json::to_string(self).map_err(|error| AppError::internal(error.to_string()))
    }

    /// The identifiers of the agents on its page, whose entries it lacks as long as it is only read.
    pub(super) fn identifiers(&self) -> impl Iterator<Item = &str> {
        let results = match &self.outcome {
            Outcome::Found(page) => page.results.as_slice(),
            _ => &[],
        };
        results.iter().map(|(_, kept)| kept.identifier.as_str())
    }

    /// Gives the agents on its page their entries, and leaves out those that have none here.
    pub(super) fn complete(&mut self, entries: &HashMap<String, Vec<u8>>, source: &str) {
        if let Outcome::Found(page) = &mut self.outcome {
            let results = page.results.iter().filter_map(|(_, kept)| {
                completed(entries.get(&kept.identifier)?, kept.score.into(), source)
            });
            page.entries = results.collect();
        }
    }

    pub(super) fn artifact(self) -> Option<Value> {
        let mut metadata = Map::new();
        let (name, text, data) = match self.outcome {
            Outcome::Found(mut page) => {
                page.bound();
                let text = words::found(&page);
                for (name, number) in [
                    ("leftOut", page.left_out as u64),
                    ("withoutUrn", page.without_urn),
                ] {
                    if number > 0 {
                        metadata.insert(name.to_owned(), number.into());
                    }
                }
                (FIND.to_owned(), text, Some(page.into_response()))
            }
            Outcome::About {
                skill, text, data, ..
            } => (skill, text, data),
            Outcome::Missing { skill, asked } => (skill, words::missing(&asked), None),
            Outcome::Question { .. } | Outcome::Failed { .. } => return None,
        };
        let part = |name: &str, content: Value, kind: &str| {
            object([(name, content), ("mediaType", kind.into())])
        };
        let mut parts = Vec::new();
        // A client that takes data alone gets words where there is no data.
        if self.text || data.is_none() {
            parts.push(part("text", text.into(), "text/plain"));
        }
        let mut data = data.filter(|_| self.data);
        data.iter_mut().for_each(show_hidden);
        parts.extend(data.map(|data| part("data", data, "application/json")));
        let mut artifact = object([
            ("artifactId", ARTIFACT.into()),
            ("name", name.into()),
            ("parts", Value::Array(parts)),
        ]);
        if !metadata.is_empty() {
            artifact["metadata"] = Value::Object(metadata);
        }
        Some(artifact)
    }

    pub(super) fn said(&self) -> Option<String> {
        match &self.outcome {
            Outcome::Question { text, choices } => Some(words::question(text, choices)),
            Outcome::Failed { text } => Some(text.clone()),
            Outcome::Found(_) | Outcome::About { .. } | Outcome::Missing { .. } => None,
        }
    }

    /// What it has asked, for the history: without the agents that it may have meant, which nobody checks again there.
    pub(super) fn asked(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Question { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Leaves the data out of an answer about one agent, so that its text can be kept.
    pub(super) fn without_data(&mut self) {
        if let Outcome::About { data, .. } = &mut self.outcome {
            *data = None;
        }
    }

    /// The agents in it, but for those on a page, whose entries say whether they are shown.
    pub(super) fn agents(&self) -> Vec<Uuid> {
        match &self.outcome {
            Outcome::About { agent, .. } => vec![*agent],
            Outcome::Question { choices, .. } => choices.iter().map(|one| one.agent).collect(),
            Outcome::Found(_) | Outcome::Missing { .. } | Outcome::Failed { .. } => Vec::new(),
        }
    }

    /// Leaves out the [`agents`](Self::agents) that are not among these.
    pub(super) fn keep_only(&mut self, visible: &HashSet<Uuid>) {
        match &mut self.outcome {
            Outcome::Question { choices, .. } => {
                choices.retain(|choice| visible.contains(&choice.agent));
            }
            Outcome::About {
                skill,
                agent,
                asked,
                ..
            } if !visible.contains(agent) => {
                let (skill, asked) = (std::mem::take(skill), std::mem::take(asked));
                self.outcome = Outcome::Missing { skill, asked };
            }
            Outcome::Found(_)
            | Outcome::About { .. }
            | Outcome::Missing { .. }
            | Outcome::Failed { .. } => {}
        }
    }
}

impl FoundPage {
    /// Adds an agent with its result, which has an identifier and a score.
    pub(super) fn add(&mut self, agent: Uuid, result: Value) {
        if let Ok(kept) = KeptResult::deserialize(&result) {
            self.results.push((agent, kept));
            self.entries.push(result);
        }
    }

    /// Makes hidden characters visible, and leaves out the largest entries until the others can be shown together.
    fn bound(&mut self) {
        // Before they are measured: what is visible is longer.
        let members = self.entries.iter_mut().chain(self.rest.values_mut());
        members.for_each(show_hidden);
        let sizes = self.entries.iter().map(|entry| entry.to_string().len());
        let mut by_size: Vec<(usize, usize)> = sizes.zip(0..).collect();
        by_size.sort_unstable();
        let mut bytes: usize = 0;
        let fitting = by_size.into_iter().take_while(|(size, _)| {
            bytes += size;
            bytes <= MAX_ANSWER
        });
        let fitting: HashSet<usize> = fitting.map(|(_, place)| place).collect();
        self.left_out = self.entries.len() - fitting.len();
        let mut place = 0..;
        self.entries
            .retain(|_| place.next().is_some_and(|place| fitting.contains(&place)));
    }

    fn into_response(self) -> Value {
        let mut response = Map::from_iter([("results".to_owned(), Value::Array(self.entries))]);
        response.extend(self.rest);
        Value::Object(response)
    }
}

pub(super) async fn visible(
    context: &Context,
    caller: &Caller,
    mut ids: Vec<Uuid>,
) -> Result<HashSet<Uuid>, AppError> {
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        return Ok(HashSet::new());
    }
    let labels = caller.labels(&context.policies.in_force());
    let rows = agents::agents_by_ids(&context.store, &ids).await?;
    let labelled = labels_of_all(context, &context.store, rows).await?;
    let seen = labelled.into_iter().filter(|(_, of)| sees(&labels, of));
    Ok(seen.map(|(agent, _)| agent).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    /// A model reads data as well as text.
    #[test]
    fn hidden_characters_are_visible_in_data() {
        let evil = "a\u{202e}b\u{200b}c\u{e0041}";
        let entry = json!({"identifier": "urn:air:a.example:x", "displayName": evil, "metadata": {evil: [evil]}});
        let found = Outcome::Found(FoundPage {
            entries: vec![entry.clone()],
            rest: Map::from_iter([("referrals".to_owned(), json!([evil]))]),
            ..FoundPage::default()
        });
        let about = Outcome::About {
            skill: "describe-agent".into(),
            agent: Uuid::nil(),
            asked: "x".into(),
            text: "x".into(),
            data: Some(entry),
        };
        for outcome in [found, about] {
            let answered = Answered {
                text: true,
                data: true,
                outcome,
            };
            let written = answered.artifact().unwrap().to_string();
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

    fn page(agents: &[Uuid]) -> Answered {
        let mut page = FoundPage {
            rest: Map::from_iter([("pageToken".to_owned(), json!("next"))]),
            ..FoundPage::default()
        };
        for agent in agents {
            let entry = json!({"identifier": agent.to_string(), "displayName": "x", "score": 7, "source": SOURCE});
            page.add(*agent, entry);
        }
        Answered {
            text: true,
            data: true,
            outcome: Outcome::Found(page),
        }
    }

    #[test]
    fn an_agent_that_is_hidden_is_as_one_that_never_was() {
        let (seen, hidden) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let visible = HashSet::from([seen]);
        let written = page(&[hidden, seen]).written().unwrap();
        assert!(!written.contains("displayName"), "{written}");
        let mut both: Answered = serde_json::from_str(&written).unwrap();
        let identifiers: Vec<String> = both.identifiers().map(str::to_owned).collect();
        assert_eq!(identifiers, [hidden.to_string(), seen.to_string()]);
        let entry = json!({"identifier": seen.to_string(), "displayName": "x"});
        let entries = HashMap::from([(seen.to_string(), entry.to_string().into_bytes())]);
        both.complete(&entries, SOURCE);
        assert_eq!(both.artifact(), page(&[seen]).artifact());

        let mut about = Answered {
            outcome: Outcome::About {
                skill: "describe-agent".into(),
                agent: hidden,
                asked: "x".into(),
                text: "secret".into(),
                data: Some(json!("secret")),
            },
            ..page(&[])
        };
        about.keep_only(&visible);
        let missing = Outcome::Missing {
            skill: "describe-agent".into(),
            asked: "x".into(),
        };
        assert_eq!(about.outcome, missing);

        let choice = |agent| Choice {
            agent,
            line: agent.to_string(),
        };
        let question = |choices| Answered {
            outcome: Outcome::Question {
                text: "Which?".into(),
                choices,
            },
            ..page(&[])
        };
        let mut asked = question(vec![choice(seen), choice(hidden)]);
        asked.keep_only(&visible);
        assert_eq!(asked, question(vec![choice(seen)]));
    }

    #[test]
    fn the_largest_entries_are_left_out_where_an_answer_is_too_large() {
        let third = MAX_ANSWER / 3;
        // Two bytes of each are quotes.
        for (sizes, kept) in [
            (vec![10, 20, 30], vec![0, 1, 2]),
            (vec![third - 2, third - 2, third - 2], vec![0, 1, 2]),
            (vec![third + 2, third - 2, third - 2], vec![1, 2]),
            (vec![MAX_ANSWER, 10, MAX_ANSWER + 1], vec![1]),
            (vec![MAX_ANSWER - 1], vec![]),
            (vec![MAX_ANSWER - 2], vec![0]),
        ] {
            let mut answered = page(&[]);
            let Outcome::Found(found) = &mut answered.outcome else {
                unreachable!()
            };
            let entry = |size: &usize| json!("x".repeat(*size));
            let all: Vec<Value> = sizes.iter().map(entry).collect();
            found.entries = all.clone();
            let artifact = answered.artifact().unwrap();
            let response = &artifact["parts"][1]["data"];
            let expected: Vec<&Value> = kept.iter().map(|place: &usize| &all[*place]).collect();
            assert_eq!(response["results"], json!(expected), "{sizes:?}");
            assert_eq!(response["pageToken"], "next");
            let left_out = sizes.len() - kept.len();
            let text = artifact["parts"][0]["text"].as_str().unwrap();
            assert_eq!(text.contains("left out"), left_out > 0, "{text}");
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
            let answered = Answered {
                text,
                data,
                ..page(&[])
            };
            let artifact = answered.artifact().unwrap();
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
