//! From a text to the numbers of its tokens, as the model's own tokenizer cuts it.

use tokenizers::{PostProcessor, Tokenizer, TruncationDirection};

use super::error::{ModelError, first_line};
use super::folder::{ModelFiles, TOKENIZER};

/// The most bytes of a text that are looked at. A text of the longest model has fewer even where every token is long;
/// cutting it into tokens takes as long as all of it.
pub const MAX_TEXT_BYTES: usize = 64 * 1024;

/// A token of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    /// Its number in the vocabulary.
    pub id: u32,
    /// Its kind; one text alone has only one.
    pub kind: u32,
}

/// A model's tokenizer, without what its file says of truncation and padding: both are decided for each text.
pub(super) struct Tokens {
    tokenizer: Tokenizer,
    /// Special tokens around a text.
    added: usize,
    lowercase: bool,
}

impl Tokens {
    /// Takes the tokenizer out of a model's files.
    ///
    /// # Errors
    /// Where it does not load or does not belong to the network.
    pub fn load(files: &ModelFiles) -> Result<Self, ModelError> {
        let mut tokenizer = Tokenizer::from_bytes(&files.tokenizer)
            .map_err(|error| ModelError::malformed(TOKENIZER, error))?;
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(None)
            .map_err(|error| ModelError::malformed(TOKENIZER, error))?;
        let greatest = tokenizer.get_vocab(true).into_values().max();
        let vocabulary = files.config.vocabulary;
        match greatest {
            Some(id) if (id as usize) < vocabulary => {}
            Some(id) => {
                return Err(ModelError::mismatch(
                    TOKENIZER,
                    format!(
                        "it has a token of number {id}, and config.json a vocabulary of {vocabulary}"
                    ),
                ));
            }
            None => {
                return Err(ModelError::mismatch(
                    TOKENIZER,
                    "its vocabulary is empty".to_owned(),
                ));
            }
        }
        let added = tokenizer
            .get_post_processor()
            .map_or(0, |processor| processor.added_tokens(false));
        if !(1..super::config::MIN_POSITIONS).contains(&added) {
            return Err(ModelError::unsupported(
                TOKENIZER,
                format!("it puts {added} special tokens around a text, where one or two belong"),
            ));
        }
        Ok(Self {
            tokenizer,
            added,
            lowercase: files.lowercase,
        })
    }

    /// A text's tokens, at most `longest` (at least [`super::config::MIN_POSITIONS`]) with the special ones.
    ///
    /// # Errors
    /// In words, where the tokenizer fails.
    pub fn of(&self, text: &str, longest: usize) -> Result<Vec<Token>, String> {
        let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
        let said = |error: tokenizers::Error| first_line(&error.to_string());
        let encoding = if self.lowercase {
            self.tokenizer.encode_fast(text.to_lowercase(), false)
        } else {
            self.tokenizer.encode_fast(text, false)
        };
        let mut encoding = encoding.map_err(said)?;
        let room = longest.saturating_sub(self.added);
        encoding.truncate(room, 0, TruncationDirection::Right);
        let encoding = self
            .tokenizer
            .post_process(encoding, None, true)
            .map_err(said)?;
        let kinds = encoding.get_type_ids().iter();
        Ok(encoding
            .get_ids()
            .iter()
            .zip(kinds)
            .map(|(&id, &kind)| Token { id, kind })
            .collect())
    }
}
