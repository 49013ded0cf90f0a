//! A loaded model: encodes texts as vectors of unit length, on the calling thread.

use std::borrow::Cow;

use super::config::BertConfig;
use super::error::ModelError;
use super::folder::ModelFiles;
use super::forward::Bert;
use super::pooling::Pooling;
use super::prompts::Prompts;
use super::tokens::{Token, Tokens};
use super::weights::Weights;
use super::{EmbedError, ModelInfo, TextKind};

pub const QUERY_TOKENS: usize = 64;

/// Tokens of a batch: it limits the memory, and the work for a caller that no longer waits.
const BATCH_TOKENS: usize = 1024;

const TRIAL: &str = "Find an agent that books flights and hotels.";

pub(super) struct Model {
    pub info: ModelInfo,
    pub max_length: usize,
    pub pooling: Pooling,
    prompts: Prompts,
    tokens: Tokens,
    network: Bert,
}

impl Model {
    /// Also encodes a test sentence.
    pub fn load(files: ModelFiles) -> Result<Self, ModelError> {
        let tokens = Tokens::load(&files)?;
        let BertConfig { hidden, .. } = files.config;
        let network = Bert::load(&files.config, &Weights::open(files.weights)?)?;
        let model = Self {
            info: ModelInfo {
                id: files.id,
                name: files.name,
                dimensions: hidden,
            },
            max_length: files.max_length,
            pooling: files.pooling,
            prompts: files.prompts,
            tokens,
            network,
        };
        for text in [TRIAL, ""] {
            model
                .encode(&[text.to_owned()], TextKind::Card, &|| false)
                .map_err(|error| ModelError::Trial(error.to_string()))?;
        }
        Ok(model)
    }

    /// The vectors of the texts, in order. Calls `given_up` between two batches, and stops if it returns true.
    pub fn encode(
        &self,
        texts: &[String],
        kind: TextKind,
        given_up: &dyn Fn() -> bool,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let longest = match kind {
            TextKind::Query => QUERY_TOKENS.min(self.max_length),
            TextKind::Card => self.max_length,
        };
        let mut vectors = Vec::with_capacity(texts.len());
        let mut batch: Vec<Vec<Token>> = Vec::new();
        for text in texts {
            if given_up() {
                return Err(EmbedError::Away("nobody waits any more".to_owned()));
            }
            let text = match self.prompts.before(kind) {
                "" => Cow::Borrowed(text),
                prompt => Cow::Owned(format!("{prompt}{text}")),
            };
            let tokens = self.tokens.of(&text, longest);
            let tokens = tokens.map_err(EmbedError::Failed)?;
            let waiting: usize = batch.iter().map(Vec::len).sum();
            if waiting + tokens.len() > BATCH_TOKENS {
                self.finish(&mut batch, &mut vectors)?;
            }
            batch.push(tokens);
        }
        self.finish(&mut batch, &mut vectors)?;
        Ok(vectors)
    }

    fn finish(
        &self,
        batch: &mut Vec<Vec<Token>>,
        vectors: &mut Vec<Vec<f32>>,
    ) -> Result<(), EmbedError> {
        if batch.is_empty() {
            return Ok(());
        }
        let rows = self
            .network
            .rows(batch)
            .map_err(|error| EmbedError::Failed(error.to_owned()))?;
        let width = self.info.dimensions;
        let mut rest = rows.as_slice();
        for tokens in batch.drain(..) {
            let (own, others) = rest.split_at(tokens.len() * width);
            rest = others;
            let vector = self.pooling.pool(own, width).ok_or_else(|| {
                EmbedError::Failed("a text's numbers have no direction".to_owned())
            })?;
            vectors.push(vector);
        }
        Ok(())
    }
}
