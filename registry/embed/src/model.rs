//! A loaded model: encodes texts as vectors of unit length, on the calling thread.

use std::borrow::Cow;

use super::bert::Bert;
use super::bert_config::BertConfig;
use super::error::ModelError;
use super::languages::ModelLanguages;
use super::model_folder::ModelFiles;
use super::pooling::Pooling;
use super::prompts::Prompts;
use super::tokenizer::{InputToken, ModelTokenizer};
use super::weights::Weights;
use super::{EmbedError, ModelIdentity, TextKind};

pub const MAX_QUERY_TOKENS: usize = 64;

/// Maximum number of tokens in a batch, unless one text has more: limits the memory, and the work done for a caller
/// that no longer waits. More would hardly save time.
const MAX_BATCH_TOKENS: usize = 256;

const TRIAL_TEXT: &str = "Find an agent that books flights and hotels.";

pub(super) struct LoadedModel {
    pub info: ModelIdentity,
    pub max_length: usize,
    pub pooling: Pooling,
    pub languages: ModelLanguages,
    prompts: Prompts,
    tokenizer: ModelTokenizer,
    network: Bert,
}

impl LoadedModel {
    /// Loads the model and encodes a test sentence.
    pub fn load(files: ModelFiles) -> Result<Self, ModelError> {
        let tokenizer = ModelTokenizer::load(&files)?;
        let BertConfig {
            hidden_size: hidden,
            ..
        } = files.config;
        let network = Bert::load(&files.config, &Weights::open(files.weights)?)?;
        let model = Self {
            info: ModelIdentity {
                id: files.id,
                name: files.name,
                dimensions: hidden,
            },
            max_length: files.max_length,
            pooling: files.pooling,
            languages: ModelLanguages::from_tokenizer(&tokenizer),
            prompts: files.prompts,
            tokenizer,
            network,
        };
        for text in [TRIAL_TEXT, ""] {
            model
                .encode(&[text.to_owned()], TextKind::Card, &|| false)
                .map_err(|error| ModelError::Trial(error.to_string()))?;
        }
        Ok(model)
    }

    /// The vectors of the texts, in order. Calls `is_abandoned` before each text, and stops if it returns true.
    pub fn encode(
        &self,
        texts: &[String],
        kind: TextKind,
        is_abandoned: &dyn Fn() -> bool,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let max_tokens = match kind {
            TextKind::Query => MAX_QUERY_TOKENS.min(self.max_length),
            TextKind::Card => self.max_length,
        };
        let mut vectors = Vec::with_capacity(texts.len());
        let mut batch: Vec<Vec<InputToken>> = Vec::new();
        for text in texts {
            if is_abandoned() {
                return Err(EmbedError::Unavailable(
                    "the caller no longer waits".to_owned(),
                ));
            }
            let text = match self.prompts.prefix(kind) {
                "" => Cow::Borrowed(text),
                prompt => Cow::Owned(format!("{prompt}{text}")),
            };
            let tokens = self.tokenizer.tokenize(&text, max_tokens);
            let tokens = tokens.map_err(EmbedError::Failed)?;
            let batch_tokens: usize = batch.iter().map(Vec::len).sum();
            if batch_tokens + tokens.len() > MAX_BATCH_TOKENS {
                self.encode_batch(&mut batch, &mut vectors)?;
            }
            batch.push(tokens);
        }
        self.encode_batch(&mut batch, &mut vectors)?;
        Ok(vectors)
    }

    fn encode_batch(
        &self,
        batch: &mut Vec<Vec<InputToken>>,
        vectors: &mut Vec<Vec<f32>>,
    ) -> Result<(), EmbedError> {
        if batch.is_empty() {
            return Ok(());
        }
        let rows = self
            .network
            .forward(batch)
            .map_err(|error| EmbedError::Failed(error.to_owned()))?;
        let width = self.info.dimensions;
        let mut rest = rows.as_slice();
        for tokens in batch.drain(..) {
            let (text_rows, following_rows) = rest.split_at(tokens.len() * width);
            rest = following_rows;
            let vector = self.pooling.pool_rows(text_rows, width).ok_or_else(|| {
                EmbedError::Failed(
                    "the vector of a text has length zero or is not finite".to_owned(),
                )
            })?;
            vectors.push(vector);
        }
        Ok(())
    }
}
