//! Reads `config.json`: the type and the sizes of the network.

use serde::Deserialize;

use super::error::ModelError;

pub(super) const CONFIG: &str = "config.json";

/// Longest vector, in numbers.
pub const MAX_DIMENSIONS: usize = 4096;
const MAX_LAYERS: usize = 64;
const MAX_HEADS: usize = 128;
const MAX_INTERMEDIATE: usize = 16_384;
/// Most tokens in a vocabulary; the largest in use have half a million.
const MAX_VOCABULARY: usize = 1_000_000;
/// Most tokens in a text: the memory for attention grows with their square.
const MAX_POSITIONS: usize = 8192;
/// Fewest tokens in a useful text, the two special ones included.
pub(super) const MIN_POSITIONS: usize = 8;
/// The padding token of a `RoBERTa` whose configuration names none.
const ROBERTA_PADDING: u32 = 1;
const MAX_TYPES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activation {
    /// GELU by the error function.
    Gelu,
    /// GELU by the hyperbolic tangent, an approximation.
    GeluByTanh,
    Relu,
}

/// The configuration of a BERT network, or of a `RoBERTa`, which has the same layers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BertConfig {
    pub vocabulary: usize,
    /// Numbers for each token between the layers, and in a vector.
    pub hidden: usize,
    pub layers: usize,
    /// They share `hidden` evenly.
    pub heads: usize,
    pub intermediate: usize,
    /// Tokens in the longest text.
    pub positions: usize,
    /// Rows of the table of positions before that of the first token.
    pub before_positions: usize,
    /// The token that fills up texts, where it takes no position of its own.
    pub padding: Option<u32>,
    pub types: usize,
    /// Added to the variance, so that a norm never divides by zero.
    pub epsilon: f32,
    pub activation: Activation,
    pub name: Option<String>,
}

#[derive(Deserialize)]
struct Written {
    vocab_size: usize,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    #[serde(default = "gelu")]
    hidden_act: String,
    max_position_embeddings: usize,
    #[serde(default = "two")]
    type_vocab_size: usize,
    pad_token_id: Option<u32>,
    #[serde(default = "tiny")]
    layer_norm_eps: f64,
    position_embedding_type: Option<String>,
    is_decoder: Option<bool>,
    #[serde(rename = "_name_or_path")]
    name: Option<String>,
}

fn gelu() -> String {
    "gelu".to_owned()
}

fn two() -> usize {
    2
}

fn tiny() -> f64 {
    1e-12
}

/// The part of the file that decides which other members are needed.
#[derive(Deserialize)]
struct Kind {
    model_type: Option<String>,
}

impl BertConfig {
    pub fn read(bytes: &[u8]) -> Result<Self, ModelError> {
        let malformed = |error: serde_json::Error| ModelError::malformed(CONFIG, error);
        // A network of another type has other members, so its type is read first.
        let kind: Kind = serde_json::from_slice(bytes).map_err(malformed)?;
        let counts_behind_padding = match kind.model_type.as_deref() {
            None | Some("bert") => false,
            Some("roberta" | "xlm-roberta") => true,
            // Others have other layers.
            Some(other) => {
                let other: String = other
                    .chars()
                    .take(40)
                    .flat_map(char::escape_debug)
                    .collect();
                return Err(unsupported(format!(
                    "model_type is \"{other}\", and only \"bert\", \"roberta\" and \"xlm-roberta\" are supported"
                )));
            }
        };
        let written: Written = serde_json::from_slice(bytes).map_err(malformed)?;
        written.check()?;
        let padding =
            counts_behind_padding.then(|| written.pad_token_id.unwrap_or(ROBERTA_PADDING));
        let before_positions = written.before_positions(padding)?;
        let activation = match written.hidden_act.as_str() {
            "gelu" | "gelu_python" => Activation::Gelu,
            "gelu_new" | "gelu_pytorch_tanh" => Activation::GeluByTanh,
            "relu" => Activation::Relu,
            _ => return Err(unsupported("hidden_act is not one of gelu, gelu_new, relu")),
        };
        Ok(Self {
            vocabulary: written.vocab_size,
            hidden: written.hidden_size,
            layers: written.num_hidden_layers,
            heads: written.num_attention_heads,
            intermediate: written.intermediate_size,
            positions: written.max_position_embeddings - before_positions,
            before_positions,
            padding,
            types: written.type_vocab_size,
            epsilon: written.layer_norm_eps as f32,
            activation,
            name: written.name,
        })
    }
}

impl Written {
    /// Positions before the first token's: `RoBERTa` and its kin count from behind the padding token's number.
    fn before_positions(&self, padding: Option<u32>) -> Result<usize, ModelError> {
        let Some(padding) = padding else {
            return Ok(0);
        };
        let before = usize::try_from(padding)
            .unwrap_or(usize::MAX)
            .saturating_add(1);
        let left = self.max_position_embeddings.checked_sub(before);
        match left.filter(|left| *left >= MIN_POSITIONS) {
            Some(_) => Ok(before),
            None => Err(unsupported(format!(
                "pad_token_id is {padding}, which leaves fewer than {MIN_POSITIONS} of {} positions",
                self.max_position_embeddings
            ))),
        }
    }

    fn check(&self) -> Result<(), ModelError> {
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
                MAX_INTERMEDIATE,
            ),
            ("vocab_size", self.vocab_size, 1, MAX_VOCABULARY),
            (
                "max_position_embeddings",
                self.max_position_embeddings,
                MIN_POSITIONS,
                MAX_POSITIONS,
            ),
            ("type_vocab_size", self.type_vocab_size, 1, MAX_TYPES),
        ] {
            if !(least..=most).contains(&value) {
                return Err(unsupported(format!(
                    "{name} is {value}, and {least} to {most} are allowed"
                )));
            }
        }
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            return Err(unsupported(format!(
                "hidden_size {} is not divisible by {} attention heads",
                self.hidden_size, self.num_attention_heads
            )));
        }
        if !(self.layer_norm_eps >= 0.0 && self.layer_norm_eps < 1.0) {
            return Err(unsupported("layer_norm_eps is not between 0 and 1"));
        }
        let positions = self.position_embedding_type.as_deref();
        if positions.is_some_and(|kind| kind != "absolute") {
            return Err(unsupported("position_embedding_type is not \"absolute\""));
        }
        if self.is_decoder == Some(true) {
            return Err(unsupported(
                "is_decoder is true, and a decoder reads only what comes before a word",
            ));
        }
        Ok(())
    }
}

fn unsupported(what: impl Into<String>) -> ModelError {
    ModelError::unsupported(CONFIG, what)
}
