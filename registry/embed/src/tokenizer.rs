//! Tokenizer: splits a text into token ids by the model's own rules.

use tokenizers::{PostProcessor, Tokenizer, TruncationDirection};

use super::error::{ModelError, first_line};
use super::model_folder::{ModelFiles, TOKENIZER_FILE};

/// Bytes of a text that are tokenized: more than any model uses, because tokenizing takes time for the whole text.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// Names of the token for unknown characters.
const UNKNOWN_TOKENS: [&str; 2] = ["[UNK]", "<unk>"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InputToken {
    pub id: u32,
    /// The token type; a single text has only one.
    pub kind: u32,
}

/// A model's tokenizer, without the truncation and padding settings of its file: truncation is decided for each text.
pub(super) struct ModelTokenizer {
    tokenizer: Tokenizer,
    /// Number of special tokens added to a text.
    special_token_count: usize,
    lowercase: bool,
}

impl ModelTokenizer {
    pub fn load(files: &ModelFiles) -> Result<Self, ModelError> {
        let mut tokenizer = Tokenizer::from_bytes(&files.tokenizer)
            .map_err(|error| ModelError::malformed(TOKENIZER_FILE, error))?;
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(None)
            .map_err(|error| ModelError::malformed(TOKENIZER_FILE, error))?;
        let greatest = tokenizer.get_vocab(true).into_values().max();
        let vocabulary = files.config.vocabulary_size;
        match greatest {
            Some(id) if (id as usize) < vocabulary => {}
            Some(id) => {
                return Err(ModelError::mismatch(
                    TOKENIZER_FILE,
                    format!(
                        "it has a token with number {id}, but config.json has a vocabulary of {vocabulary}"
                    ),
                ));
            }
            None => {
                return Err(ModelError::mismatch(
                    TOKENIZER_FILE,
                    "its vocabulary is empty".to_owned(),
                ));
            }
        }
        let special_token_count = tokenizer
            .get_post_processor()
            .map_or(0, |processor| processor.added_tokens(false));
        if !(1..super::bert_config::MIN_POSITIONS).contains(&special_token_count) {
            return Err(ModelError::unsupported(
                TOKENIZER_FILE,
                format!(
                    "it adds {special_token_count} special tokens to a text; one or two are expected"
                ),
            ));
        }
        Ok(Self {
            tokenizer,
            special_token_count,
            lowercase: files.lowercase,
        })
    }

    /// The number of tokens of a text without special ones, and how many of them stand for unknown characters.
    pub fn count_tokens(&self, text: &str) -> Option<(usize, usize)> {
        let encoding = self.tokenizer.encode_fast(text, false).ok()?;
        let unknown_ids = UNKNOWN_TOKENS.map(|name| self.tokenizer.token_to_id(name));
        let ids = encoding.get_ids().iter();
        let unknown = ids.filter(|id| unknown_ids.contains(&Some(**id))).count();
        Some((encoding.len(), unknown))
    }

    /// The tokens of a text, at most `max_tokens` (at least [`super::bert_config::MIN_POSITIONS`]) including the
    /// special ones.
    pub fn tokenize(&self, text: &str, max_tokens: usize) -> Result<Vec<InputToken>, String> {
        let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
        let to_message = |error: tokenizers::Error| first_line(&error.to_string());
        let encoding = if self.lowercase {
            self.tokenizer.encode_fast(text.to_lowercase(), false)
        } else {
            self.tokenizer.encode_fast(text, false)
        };
        let mut encoding = encoding.map_err(to_message)?;
        let room = max_tokens.saturating_sub(self.special_token_count);
        encoding.truncate(room, 0, TruncationDirection::Right);
        let encoding = self
            .tokenizer
            .post_process(encoding, None, true)
            .map_err(to_message)?;
        let kinds = encoding.get_type_ids().iter();
        Ok(encoding
            .get_ids()
            .iter()
            .zip(kinds)
            .map(|(&id, &kind)| InputToken { id, kind })
            .collect())
    }
}
