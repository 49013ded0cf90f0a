//! Reads a model's prompts, the prefixes of texts, from `config_sentence_transformers.json`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::TextKind;
use super::error::ModelError;

pub(super) const PROMPTS: &str = "config_sentence_transformers.json";

/// Longest prompt in bytes, so that most of a query's tokens are its own.
pub const MAX_PROMPT_BYTES: usize = 128;

/// The names of the prompts for queries and for documents in sentence-transformers; the first existing one is used.
const QUERY: &[&str] = &["query"];
const DOCUMENT: &[&str] = &["document", "passage", "corpus"];

/// The prefix for each kind of text; empty for most models.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Prompts {
    query: String,
    card: String,
}

#[derive(Deserialize)]
struct Written {
    prompts: Option<BTreeMap<String, String>>,
    default_prompt_name: Option<String>,
}

impl Prompts {
    pub fn read(bytes: &[u8]) -> Result<Self, ModelError> {
        let written: Written =
            serde_json::from_slice(bytes).map_err(|error| ModelError::malformed(PROMPTS, error))?;
        let prompts = written.prompts.unwrap_or_default();
        let by_default = match written.default_prompt_name {
            None => "",
            Some(name) => prompts.get(&name).ok_or_else(|| {
                ModelError::unsupported(PROMPTS, "default_prompt_name is none of its prompts")
            })?,
        };
        let first = |names: &[&str]| -> Result<String, ModelError> {
            let prompt = names.iter().find_map(|name| prompts.get(*name));
            let prompt = prompt.map_or(by_default, String::as_str);
            if prompt.len() > MAX_PROMPT_BYTES {
                return Err(ModelError::unsupported(
                    PROMPTS,
                    format!("a prompt is longer than {MAX_PROMPT_BYTES} bytes"),
                ));
            }
            Ok(prompt.to_owned())
        };
        Ok(Self {
            query: first(QUERY)?,
            card: first(DOCUMENT)?,
        })
    }

    pub fn before(&self, kind: TextKind) -> &str {
        match kind {
            TextKind::Query => &self.query,
            TextKind::Card => &self.card,
        }
    }
}
