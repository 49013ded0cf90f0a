//! What came of a task, as it is kept, and as it is shown.
//!
//! It is kept in parts, each with the agent that it is about, and put together when it is read: whoever reads a task
//! again is not shown an agent that it may not see any more, and cannot tell that one was there.

use std::collections::HashSet;

use a2a_registry_search::sees;
use a2a_registry_store::agents;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::wire::object;
use super::words;
use crate::agents::policy_facts::labels_of_all;
use crate::caller::Caller;
use crate::context::Context;
use crate::error::AppError;

/// Identifier of the artifact of a task, which has one.
const ARTIFACT: &str = "answer";

/// What came of a task, and which parts its client takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Answered {
    /// Whether text is taken.
    pub(super) text: bool,
    /// Whether data is taken.
    pub(super) data: bool,
    /// What came of it.
    pub(super) outcome: Outcome,
}

/// What came of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Outcome {
    /// A page of agents.
    Found(FoundPage),
    /// An answer about one agent.
    About {
        /// The skill.
        skill: String,
        /// The agent.
        agent: Uuid,
        /// The agent as the client named it.
        asked: String,
        /// The answer to read.
        text: String,
        /// The answer as data.
        data: Option<Value>,
    },
    /// No agent that the caller may see has this name.
    Missing {
        /// The skill.
        skill: String,
        /// The agent as the client named it.
        asked: String,
    },
    /// A question to the client.
    Question {
        /// The question.
        text: String,
        /// The agents that it may mean.
        choices: Vec<Choice>,
    },
    /// It failed: the reason, for the client.
    Failed {
        /// The reason.
        text: String,
    },
}

/// A page of agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct FoundPage {
    /// The agents, best first: each with its entry as a search result of Agentic Resource Discovery.
    pub(super) results: Vec<(Uuid, Value)>,
    /// The other members of the search response.
    pub(super) rest: Value,
    /// Agents whose entries are too large to be kept with the others.
    #[serde(default)]
    pub(super) left_out: Vec<Uuid>,
}

/// An agent that a question may mean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Choice {
    /// The agent.
    pub(super) agent: Uuid,
    /// Its name and where it is from, to read.
    pub(super) line: String,
}

/// What is shown of an outcome.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ShownOutcome {
    /// The artifact, in the form of 1.0.
    pub(super) artifact: Option<Value>,
    /// What the agent says with the status.
    pub(super) said: Option<String>,
}

impl Answered {
    /// What is shown of it.
    pub(super) fn shown(&self) -> ShownOutcome {
        self.clone().into_shown()
    }

    /// The same, where nothing else is asked of it.
    pub(super) fn into_shown(self) -> ShownOutcome {
        let (takes_text, takes_data) = (self.text, self.data);
        let artifact = |name: &str, text: String, data: Option<Value>| {
            let part = |name: &str, content: Value, kind: &str| {
                object([(name, content), ("mediaType", kind.into())])
            };
            let mut parts = Vec::new();
            // A client that takes data alone gets words where there is no data.
            if takes_text || data.is_none() {
                parts.push(part("text", text.into(), "text/plain"));
            }
            let data = data.filter(|_| takes_data);
            parts.extend(data.map(|data| part("data", data, "application/json")));
            ShownOutcome {
                artifact: Some(object([
                    ("artifactId", ARTIFACT.into()),
                    ("name", name.into()),
                    ("parts", Value::Array(parts)),
                ])),
                said: None,
            }
        };
        match self.outcome {
            Outcome::Found(page) => {
                let text = words::found(&page);
                let left_out = page.left_out.len();
                let mut shown = artifact(super::card::FIND, text, Some(page.into_response()));
                if let Some(artifact) = shown.artifact.as_mut().filter(|_| left_out > 0) {
                    artifact["metadata"] = object([("leftOut", left_out.into())]);
                }
                shown
            }
            Outcome::About {
                skill, text, data, ..
            } => artifact(&skill, text, data),
            Outcome::Missing { skill, asked } => artifact(&skill, words::missing(&asked), None),
            Outcome::Question { text, choices } => ShownOutcome {
                said: Some(words::question(&text, &choices)),
                ..ShownOutcome::default()
            },
            Outcome::Failed { text } => ShownOutcome {
                said: Some(text),
                ..ShownOutcome::default()
            },
        }
    }

    /// The question, without the agents that it may mean.
    pub(super) fn asked(&self) -> Option<&str> {
        match &self.outcome {
            Outcome::Question { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Leaves out of it what makes it too large: entries, the largest first, or the data of an answer about one agent.
    pub(super) fn shrink(&mut self, too_many: usize) {
        match &mut self.outcome {
            Outcome::Found(page) => page.shrink(too_many),
            Outcome::About { data, .. } => *data = None,
            _ => {}
        }
    }

    /// The agents in it.
    pub(super) fn agents(&self) -> Vec<Uuid> {
        match &self.outcome {
            Outcome::Found(page) => {
                let results = page.results.iter().map(|(agent, _)| agent);
                results.chain(&page.left_out).copied().collect()
            }
            Outcome::About { agent, .. } => vec![*agent],
            Outcome::Question { choices, .. } => choices.iter().map(|one| one.agent).collect(),
            Outcome::Missing { .. } | Outcome::Failed { .. } => Vec::new(),
        }
    }

    /// Leaves out the agents that are not among these.
    pub(super) fn keep_only(&mut self, visible: &HashSet<Uuid>) {
        match &mut self.outcome {
            Outcome::Found(page) => {
                page.results.retain(|(agent, _)| visible.contains(agent));
                page.left_out.retain(|agent| visible.contains(agent));
            }
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
            Outcome::About { .. } | Outcome::Missing { .. } | Outcome::Failed { .. } => {}
        }
    }
}

impl FoundPage {
    /// Leaves out the largest entries until there are so many bytes less.
    fn shrink(&mut self, mut too_many: usize) {
        let size = |(_, entry): &(Uuid, Value)| entry.to_string().len();
        let sizes: Vec<usize> = self.results.iter().map(size).collect();
        let mut places: Vec<usize> = (0..sizes.len()).collect();
        places.sort_by_key(|place| std::cmp::Reverse(sizes[*place]));
        let mut leaving: HashSet<usize> = HashSet::new();
        for place in places {
            if too_many == 0 {
                break;
            }
            too_many = too_many.saturating_sub(sizes[place]);
            leaving.insert(place);
        }
        for (place, result) in std::mem::take(&mut self.results).into_iter().enumerate() {
            match leaving.contains(&place) {
                true => self.left_out.push(result.0),
                false => self.results.push(result),
            }
        }
    }

    /// The search response of Agentic Resource Discovery.
    fn into_response(self) -> Value {
        let results = self.results.into_iter().map(|(_, entry)| entry).collect();
        let mut response = object([("results", Value::Array(results))]);
        if let (Some(members), Value::Object(rest)) = (response.as_object_mut(), self.rest) {
            members.extend(rest);
        }
        response
    }
}

/// Which of these agents the caller may see now.
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
    let labelled = labels_of_all(context, rows).await?;
    let seen = labelled.into_iter().filter(|(_, of)| sees(&labels, of));
    Ok(seen.map(|(agent, _)| agent).collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn page(agents: &[Uuid]) -> Answered {
        let entry = |agent: &Uuid| {
            (
                *agent,
                json!({"identifier": agent.to_string(), "displayName": "x"}),
            )
        };
        Answered {
            text: true,
            data: true,
            outcome: Outcome::Found(FoundPage {
                results: agents.iter().map(entry).collect(),
                rest: json!({"pageToken": "next"}),
                left_out: Vec::new(),
            }),
        }
    }

    #[test]
    fn an_agent_that_is_hidden_is_as_one_that_never_was() {
        let (seen, hidden) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let visible = HashSet::from([seen]);
        let mut both = page(&[hidden, seen]);
        assert_eq!(both.agents(), [hidden, seen]);
        both.keep_only(&visible);
        assert_eq!(both.shown(), page(&[seen]).shown());

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
    fn the_largest_entries_are_left_out_first() {
        let [small, large, larger] = [1, 2, 3].map(Uuid::from_u128);
        let entry = |size: usize| json!("x".repeat(size));
        let all = vec![
            (larger, entry(300)),
            (small, entry(10)),
            (large, entry(200)),
        ];
        for (too_many, kept, left_out) in [
            (0, vec![larger, small, large], vec![]),
            (1, vec![small, large], vec![larger]),
            (302, vec![small, large], vec![larger]),
            (303, vec![small], vec![larger, large]),
            (9999, vec![], vec![larger, small, large]),
        ] {
            let mut answered = page(&[]);
            let Outcome::Found(found) = &mut answered.outcome else {
                unreachable!()
            };
            found.results.clone_from(&all);
            answered.shrink(too_many);
            let agents = [kept.as_slice(), left_out.as_slice()].concat();
            assert_eq!(answered.agents(), agents, "{too_many}");
            let Outcome::Found(found) = &answered.outcome else {
                unreachable!()
            };
            assert_eq!(found.left_out, left_out, "{too_many}");
        }
        // One that is hidden is not counted.
        let mut answered = page(&[small]);
        let Outcome::Found(found) = &mut answered.outcome else {
            unreachable!()
        };
        found.left_out = vec![large, larger];
        answered.keep_only(&HashSet::from([small, large]));
        let artifact = answered.shown().artifact.unwrap();
        assert_eq!(artifact["metadata"], json!({"leftOut": 1}));
        let text = artifact["parts"][0]["text"].as_str().unwrap();
        assert!(text.contains("1 agent of this page is left out"), "{text}");
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
            let artifact = answered.shown().artifact.unwrap();
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
