//! Prompts of a model, the prefixes of texts, read from `config_sentence_transformers.json`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::TextKind;
use super::error::ModelError;

pub(super) const PROMPTS_FILE: &str = "config_sentence_transformers.json";

/// The longest prompt in bytes: a longer one would take most of a query's tokens.
pub const MAX_PROMPT_BYTES: usize = 128;

/// Names of the prompts for queries and documents in sentence-transformers; the first existing one is used.
const QUERY_PROMPT_NAMES: &[&str] = &["query"];
const DOCUMENT_PROMPT_NAMES: &[&str] = &["document", "passage", "corpus"];

/// The prefix for each kind of text; empty for most models.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Prompts {
    query: String,
    card: String,
}

#[derive(Deserialize)]
struct PromptsFile {
    prompts: Option<BTreeMap<String, String>>,
    default_prompt_name: Option<String>,
}

impl Prompts {
    pub fn parse(bytes: &[u8]) -> Result<Self, ModelError> {
        let file: PromptsFile = serde_json::from_slice(bytes)
            .map_err(|error| ModelError::malformed(PROMPTS_FILE, error))?;
        let prompts = file.prompts.unwrap_or_default();
        let default_prompt = match file.default_prompt_name {
            None => "",
            Some(name) => prompts.get(&name).ok_or_else(|| {
                ModelError::unsupported(
                    PROMPTS_FILE,
                    "default_prompt_name does not name any of its prompts",
                )
            })?,
        };
        let find_prompt = |names: &[&str]| -> Result<String, ModelError> {
            let prompt = names.iter().find_map(|name| prompts.get(*name));
            let prompt = prompt.map_or(default_prompt, String::as_str);
            if prompt.len() > MAX_PROMPT_BYTES {
                return Err(ModelError::unsupported(
                    PROMPTS_FILE,
                    format!("a prompt is longer than {MAX_PROMPT_BYTES} bytes"),
                ));
            }
            Ok(prompt.to_owned())
        };
        Ok(Self {
            query: find_prompt(QUERY_PROMPT_NAMES)?,
            card: find_prompt(DOCUMENT_PROMPT_NAMES)?,
        })
    }

    pub fn prefix(&self, kind: TextKind) -> &str {
        match kind {
            TextKind::Query => &self.query,
            TextKind::Card => &self.card,
        }
    }
}
