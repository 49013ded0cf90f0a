//! Network configuration from `config.json`: its type and sizes.

use serde::Deserialize;

use super::error::ModelError;

pub(super) const CONFIG_FILE: &str = "config.json";

/// Maximum number of dimensions of a vector.
pub const MAX_DIMENSIONS: usize = 4096;
const MAX_LAYERS: usize = 64;
const MAX_HEADS: usize = 128;
const MAX_INTERMEDIATE_SIZE: usize = 16_384;
/// Maximum number of tokens in a vocabulary; the largest in use have half a million.
const MAX_VOCABULARY: usize = 1_000_000;
/// Maximum number of tokens in a text: the memory for attention grows with their square.
const MAX_POSITIONS: usize = 8192;
/// The fewest tokens of a useful text, including the two special ones.
pub(super) const MIN_POSITIONS: usize = 8;
/// The padding token of a `RoBERTa` model whose configuration names none.
const ROBERTA_PADDING: u32 = 1;
const MAX_TOKEN_TYPES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activation {
    /// GELU by the error function.
    Gelu,
    /// GELU by the hyperbolic tangent, an approximation.
    GeluByTanh,
    Relu,
}

/// The configuration of a BERT network, or of a `RoBERTa` network, which has the same layers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BertConfig {
    pub vocabulary_size: usize,
    /// Numbers per token between the layers, and per vector.
    pub hidden_size: usize,
    pub layer_count: usize,
    /// Number of attention heads, which divide `hidden_size` evenly.
    pub head_count: usize,
    pub intermediate_size: usize,
    /// Maximum number of tokens in a text.
    pub max_positions: usize,
    /// Rows of the position table before the one of the first token.
    pub position_offset: usize,
    /// The padding token, if it takes no position of its own.
    pub padding_token: Option<u32>,
    pub token_type_count: usize,
    /// Added to the variance so that layer norm never divides by zero.
    pub epsilon: f32,
    pub activation: Activation,
}

#[derive(Deserialize)]
struct BertConfigFile {
    vocab_size: usize,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    #[serde(default = "default_activation_name")]
    hidden_act: String,
    max_position_embeddings: usize,
    #[serde(default = "default_type_vocab_size")]
    type_vocab_size: usize,
    pad_token_id: Option<u32>,
    #[serde(default = "default_layer_norm_eps")]
    layer_norm_eps: f64,
    position_embedding_type: Option<String>,
    is_decoder: Option<bool>,
}

fn default_activation_name() -> String {
    "gelu".to_owned()
}

fn default_type_vocab_size() -> usize {
    2
}

fn default_layer_norm_eps() -> f64 {
    1e-12
}

/// The member of the file that determines which other members are required.
#[derive(Deserialize)]
struct ModelTypeField {
    model_type: Option<String>,
}

impl BertConfig {
    pub fn parse(bytes: &[u8]) -> Result<Self, ModelError> {
        let malformed = |error: serde_json::Error| ModelError::malformed(CONFIG_FILE, error);
        // Networks of other types have other members, so the type is read first.
        let model_type: ModelTypeField = serde_json::from_slice(bytes).map_err(malformed)?;
        let offsets_positions = match model_type.model_type.as_deref() {
            None | Some("bert") => false,
            Some("roberta" | "xlm-roberta") => true,
            // Other types have other layers.
            Some(other) => {
                let other: String = other
                    .chars()
                    .take(40)
                    .flat_map(char::escape_debug)
                    .collect();
                return Err(unsupported_config_error(format!(
                    "model_type is \"{other}\", but only \"bert\", \"roberta\" and \"xlm-roberta\" are supported"
                )));
            }
        };
        let file: BertConfigFile = serde_json::from_slice(bytes).map_err(malformed)?;
        file.validate()?;
        let padding_token = offsets_positions.then(|| file.pad_token_id.unwrap_or(ROBERTA_PADDING));
        let position_offset = file.position_offset(padding_token)?;
        let activation = match file.hidden_act.as_str() {
            "gelu" | "gelu_python" => Activation::Gelu,
            "gelu_new" | "gelu_pytorch_tanh" => Activation::GeluByTanh,
            "relu" => Activation::Relu,
            _ => {
                return Err(unsupported_config_error(
                    "hidden_act is not one of gelu, gelu_new, relu",
                ));
            }
        };
        Ok(Self {
            vocabulary_size: file.vocab_size,
            hidden_size: file.hidden_size,
            layer_count: file.num_hidden_layers,
            head_count: file.num_attention_heads,
            intermediate_size: file.intermediate_size,
            max_positions: file.max_position_embeddings - position_offset,
            position_offset,
            padding_token,
            token_type_count: file.type_vocab_size,
            epsilon: file.layer_norm_eps as f32,
            activation,
        })
    }
}

impl BertConfigFile {
    /// Position offset of the first token: `RoBERTa` networks number positions from the padding token's id plus one.
    fn position_offset(&self, padding_token: Option<u32>) -> Result<usize, ModelError> {
        let Some(padding_token) = padding_token else {
            return Ok(0);
        };
        let offset = usize::try_from(padding_token)
            .unwrap_or(usize::MAX)
            .saturating_add(1);
        let remaining_positions = self.max_position_embeddings.checked_sub(offset);
        match remaining_positions.filter(|left| *left >= MIN_POSITIONS) {
            Some(_) => Ok(offset),
            None => Err(unsupported_config_error(format!(
                "pad_token_id is {padding_token}, which leaves fewer than {MIN_POSITIONS} of {} positions",
                self.max_position_embeddings
            ))),
        }
    }

    fn validate(&self) -> Result<(), ModelError> {
        for (name, value, least, most) in [
            ("hidden_size", self.hidden_size, 1, MAX_DIMENSIONS),
            ("num_hidden_layers", self.num_hidden_layers, 1, MAX_LAYERS),
            (
                "num_attention_heads",
                self.num_attention_heads,
                1,
                MAX_HEADS,
            ),
            (
                "intermediate_size",
                self.intermediate_size,
                1,
                MAX_INTERMEDIATE_SIZE,
            ),
            ("vocab_size", self.vocab_size, 1, MAX_VOCABULARY),
            (
                "max_position_embeddings",
                self.max_position_embeddings,
                MIN_POSITIONS,
                MAX_POSITIONS,
            ),
            ("type_vocab_size", self.type_vocab_size, 1, MAX_TOKEN_TYPES),
        ] {
            if !(least..=most).contains(&value) {
                return Err(unsupported_config_error(format!(
                    "{name} is {value}, but must be {least} to {most}"
                )));
            }
        }
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            return Err(unsupported_config_error(format!(
                "hidden_size {} is not divisible by {} attention heads",
                self.hidden_size, self.num_attention_heads
            )));
        }
        if !(self.layer_norm_eps >= 0.0 && self.layer_norm_eps < 1.0) {
            return Err(unsupported_config_error(
                "layer_norm_eps is not between 0 and 1",
            ));
        }
        let positions = self.position_embedding_type.as_deref();
        if positions.is_some_and(|kind| kind != "absolute") {
            return Err(unsupported_config_error(
                "position_embedding_type is not \"absolute\"",
            ));
        }
        if self.is_decoder == Some(true) {
            return Err(unsupported_config_error(
                "is_decoder is true, but a decoder reads only the text before a word",
            ));
        }
        Ok(())
    }
}

fn unsupported_config_error(problem: impl Into<String>) -> ModelError {
    ModelError::unsupported(CONFIG_FILE, problem)
}
