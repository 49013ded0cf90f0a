//! The BERT network: runs tokens through its layers.
//!
//! All of it runs on the calling thread: [`super::job_pool`] limits how many texts are encoded at once. The matrix
//! products are in [`super::matmul`] and [`super::int8_matmul`], the operations between them in [`super::row_ops`].
//! With weights of 8 bits the output is equal bit for bit on every processor.
//!
//! The texts of a batch are concatenated without padding: the dense layers process the tokens of all texts at once,
//! and attention handles each text separately. So the vector of a text does not depend on the rest of its batch, and a
//! long text does not make the others more expensive.

use std::ops::Range;

use super::bert_config::{Activation, BertConfig};
use super::error::ModelError;
use super::int8_matmul::{BLOCK_OUTPUTS, GROUP_INPUTS, Int8Matrix};
use super::matmul::{Matrix, StridedRows};
use super::model_folder::WEIGHTS_FILE;
use super::row_ops::{BiasActivation, LayerNorm, softmax};
use super::token_table::TokenTable;
use super::tokenizer::InputToken;
use super::weights::Weights;

pub(super) struct Bert {
    hidden_size: usize,
    head_count: usize,
    position_offset: usize,
    padding_token: Option<u32>,
    /// The tables of tokens, positions and types: one row of `hidden_size` numbers for each.
    word_embeddings: TokenTable,
    position_embeddings: TokenTable,
    type_embeddings: TokenTable,
    norm: LayerNorm,
    layers: Vec<EncoderLayer>,
}

struct EncoderLayer {
    /// Query, key and value side by side: one large product takes less time than three.
    query_key_value: DenseLayer,
    attention_output: DenseLayer,
    attention_norm: LayerNorm,
    intermediate: DenseLayer,
    output: DenseLayer,
    output_norm: LayerNorm,
}

struct DenseLayer {
    inputs: usize,
    outputs: usize,
    weight: DenseWeight,
    bias: BiasActivation,
}

enum DenseWeight {
    Floats(Matrix),
    Int8(Int8Matrix),
}

impl Bert {
    pub fn load(config: &BertConfig, weights: &Weights) -> Result<Self, ModelError> {
        let load_table = |name: &str, rows| {
            TokenTable::load(
                weights,
                &format!("embeddings.{name}"),
                rows,
                config.hidden_size,
            )
        };
        Ok(Self {
            hidden_size: config.hidden_size,
            head_count: config.head_count,
            position_offset: config.position_offset,
            padding_token: config.padding_token,
            word_embeddings: load_table("word_embeddings.weight", config.vocabulary_size)?,
            position_embeddings: load_table(
                "position_embeddings.weight",
                config.position_offset + config.max_positions,
            )?,
            type_embeddings: load_table("token_type_embeddings.weight", config.token_type_count)?,
            norm: load_layer_norm(config, weights, "embeddings.LayerNorm")?,
            layers: (0..config.layer_count)
                .map(|index| EncoderLayer::load(config, weights, &format!("encoder.layer.{index}")))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Computes the output rows of all tokens of these texts, one text after the other, `hidden_size` numbers per row.
    pub fn forward(&self, texts: &[Vec<InputToken>]) -> Result<Vec<f32>, &'static str> {
        let mut spans = Vec::with_capacity(texts.len());
        let mut total = 0;
        for text in texts {
            spans.push(total..total + text.len());
            total += text.len();
        }
        let mut rows = self.embed_tokens(texts)?;
        for layer in &self.layers {
            rows = layer.forward(&rows, &spans, self.head_count);
        }
        Ok(rows)
    }

    /// Computes the input row of each token: the sum of its own row and those of its position and type.
    fn embed_tokens(&self, texts: &[Vec<InputToken>]) -> Result<Vec<f32>, &'static str> {
        let out_of_range = "a token or its position is outside the tables of the model";
        let mut rows = Vec::new();
        for text in texts {
            let mut next_position = self.position_offset;
            for token in text {
                // A padding token within a text has the position before all others, and takes up none.
                let position = match self.padding_token {
                    Some(padding) if padding == token.id => self.position_offset - 1,
                    _ => next_position,
                };
                next_position += usize::from(position == next_position);
                let begin = rows.len();
                rows.resize(begin + self.hidden_size, 0.0);
                let sums = &mut rows[begin..];
                let parts = [
                    (&self.word_embeddings, token.id as usize),
                    (&self.type_embeddings, token.kind as usize),
                    (&self.position_embeddings, position),
                ];
                for (table, index) in parts {
                    table.add_row(index, sums).ok_or(out_of_range)?;
                }
            }
        }
        self.norm.apply(&mut rows);
        Ok(rows)
    }
}

impl EncoderLayer {
    fn load(config: &BertConfig, weights: &Weights, name: &str) -> Result<Self, ModelError> {
        let (hidden_size, intermediate_size) = (config.hidden_size, config.intermediate_size);
        let names = ["query", "key", "value"].map(|part| format!("{name}.attention.self.{part}"));
        let load_dense = |part: &str, inputs, outputs, activation| {
            let name = format!("{name}.{part}.dense");
            DenseLayer::load(weights, &[name], inputs, outputs, activation)
        };
        let load_norm =
            |part: &str| load_layer_norm(config, weights, &format!("{name}.{part}.LayerNorm"));
        Ok(Self {
            query_key_value: DenseLayer::load(weights, &names, hidden_size, hidden_size, None)?,
            attention_output: load_dense("attention.output", hidden_size, hidden_size, None)?,
            attention_norm: load_norm("attention.output")?,
            intermediate: load_dense(
                "intermediate",
                hidden_size,
                intermediate_size,
                Some(config.activation),
            )?,
            output: load_dense("output", intermediate_size, hidden_size, None)?,
            output_norm: load_norm("output")?,
        })
    }

    fn forward(&self, rows: &[f32], spans: &[Range<usize>], head_count: usize) -> Vec<f32> {
        let projected = self.query_key_value.forward(rows);
        let mut attended = vec![0.0; rows.len()];
        let hidden_size = self.attention_output.outputs;
        for span in spans {
            apply_attention(
                &projected[span.start * 3 * hidden_size..span.end * 3 * hidden_size],
                &mut attended[span.start * hidden_size..span.end * hidden_size],
                hidden_size,
                head_count,
            );
        }
        let mut attended = self.attention_output.forward(&attended);
        self.attention_norm.add_and_apply(&mut attended, rows);
        let wide = self.intermediate.forward(&attended);
        let mut out = self.output.forward(&wide);
        self.output_norm.add_and_apply(&mut out, &attended);
        out
    }
}

/// Attention within one text: from query, key and value side by side to the attention output of each token.
fn apply_attention(projected: &[f32], attended: &mut [f32], hidden_size: usize, head_count: usize) {
    let head_size = hidden_size / head_count;
    let stride = 3 * hidden_size;
    let length = attended.len() / hidden_size;
    let mut scores = vec![0.0; length * length];
    for head_offset in (0..head_count).map(|head| head * head_size) {
        let keys = Matrix::new_portable(head_size, length, |number, token| {
            projected[token * stride + hidden_size + head_offset + number]
        });
        let values = Matrix::new_portable(length, head_size, |token, number| {
            projected[token * stride + 2 * hidden_size + head_offset + number]
        });
        let queries = StridedRows {
            numbers: projected.get(head_offset..).unwrap_or_default(),
            stride,
        };
        let score_rows = StridedRows {
            numbers: scores.as_mut_slice(),
            stride: length,
        };
        keys.multiply(queries, length, score_rows);
        softmax(&mut scores, length, (head_size as f32).sqrt().recip());
        let weight_rows = StridedRows {
            numbers: scores.as_slice(),
            stride: length,
        };
        let attended = StridedRows {
            numbers: attended.get_mut(head_offset..).unwrap_or_default(),
            stride: hidden_size,
        };
        values.multiply(weight_rows, length, attended);
    }
}

impl DenseLayer {
    /// Loads several matrices with the same inputs and `columns` outputs each, placed side by side.
    fn load(
        weights: &Weights,
        names: &[String],
        inputs: usize,
        columns: usize,
        activation: Option<Activation>,
    ) -> Result<Self, ModelError> {
        let outputs = columns * names.len();
        let mut numbers = Vec::with_capacity(outputs);
        for name in names {
            numbers.extend(weights.vector(&format!("{name}.bias"), columns)?);
        }
        let weight = DenseWeight::load(weights, names, inputs, columns)?;
        Ok(Self {
            inputs,
            outputs,
            weight,
            bias: BiasActivation {
                numbers,
                activation,
            },
        })
    }

    fn forward(&self, rows: &[f32]) -> Vec<f32> {
        let mut products = match &self.weight {
            DenseWeight::Int8(matrix) => matrix.multiply(rows),
            DenseWeight::Floats(matrix) => {
                let count = rows.len() / self.inputs;
                let mut products = vec![0.0; count * self.outputs];
                let input_rows = StridedRows {
                    numbers: rows,
                    stride: self.inputs,
                };
                let written = StridedRows {
                    numbers: products.as_mut_slice(),
                    stride: self.outputs,
                };
                matrix.multiply(input_rows, count, written);
                products
            }
        };
        self.bias.apply(&mut products);
        products
    }
}

impl DenseWeight {
    /// Loads several matrices, placed side by side.
    fn load(
        weights: &Weights,
        names: &[String],
        inputs: usize,
        columns: usize,
    ) -> Result<Self, ModelError> {
        let names: Vec<String> = names.iter().map(|name| format!("{name}.weight")).collect();
        if names.iter().any(|name| weights.is_int8(name)) {
            if !inputs.is_multiple_of(BLOCK_OUTPUTS) || !columns.is_multiple_of(BLOCK_OUTPUTS) {
                return Err(ModelError::unsupported(
                    WEIGHTS_FILE,
                    format!(
                        "it has weights of 8 bits, for which sizes of layers are multiples of {BLOCK_OUTPUTS}"
                    ),
                ));
            }
            let (blocks, groups) = (columns / BLOCK_OUTPUTS, inputs / GROUP_INPUTS);
            let shape = [blocks, groups, BLOCK_OUTPUTS, GROUP_INPUTS];
            let parts = names
                .iter()
                .map(|name| weights.int8_tensor(name, &shape, columns));
            let parts = parts.collect::<Result<Vec<_>, _>>()?;
            return Ok(Self::Int8(Int8Matrix::new(inputs, parts)));
        }
        let matrices = names
            .iter()
            .map(|name| weights.matrix(name, columns, inputs));
        let matrices = matrices.collect::<Result<Vec<_>, _>>()?;
        // Stored in order of output, then input.
        let matrix = Matrix::new(inputs, columns * names.len(), |input, output| {
            matrices[output / columns][output % columns * inputs + input]
        });
        Ok(Self::Floats(matrix))
    }
}

fn load_layer_norm(
    config: &BertConfig,
    weights: &Weights,
    name: &str,
) -> Result<LayerNorm, ModelError> {
    // Weights converted from TensorFlow keep its names.
    let vector = |modern: &str, old: &str| {
        let old = format!("{name}.{old}");
        let has_old_name = weights.contains(&old);
        let modern = format!("{name}.{modern}");
        weights.vector(
            if has_old_name { &old } else { &modern },
            config.hidden_size,
        )
    };
    Ok(LayerNorm {
        scale: vector("weight", "gamma")?,
        shift: vector("bias", "beta")?,
        epsilon: config.epsilon,
    })
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use a2a_registry_builtin_model as builtin_model;

    use super::*;

    /// Weights of 8 bits stay where they are in the program, so that a loaded model takes little memory beside it.
    #[test]
    fn the_built_in_weights_are_not_copied() {
        let config = BertConfig::parse(builtin_model::CONFIG.bytes).unwrap();
        let weights = Weights::open(Cow::Borrowed(builtin_model::WEIGHTS.bytes)).unwrap();
        let network = Bert::load(&config, &weights).unwrap();
        let mut copied = network.norm.scale.len() + network.norm.shift.len();
        let mut borrowed = 0;
        let mut count_tensor = |tensor: &crate::weights::Int8Tensor| {
            assert!(matches!(tensor.numbers, Cow::Borrowed(_)));
            borrowed += tensor.numbers.len();
            copied += tensor.scales.len();
        };
        for table in [
            &network.word_embeddings,
            &network.position_embeddings,
            &network.type_embeddings,
        ] {
            let TokenTable::Int8(tensor) = table else {
                panic!("a table was expanded");
            };
            count_tensor(tensor);
        }
        let mut biases = 0;
        for layer in &network.layers {
            for dense in [
                &layer.query_key_value,
                &layer.attention_output,
                &layer.intermediate,
                &layer.output,
            ] {
                let DenseWeight::Int8(matrix) = &dense.weight else {
                    panic!("a layer was expanded");
                };
                matrix.parts().iter().for_each(&mut count_tensor);
                biases += dense.bias.numbers.len();
            }
            biases += 4 * network.hidden_size;
        }
        // All of the file but the numbers of 32 bits and its header.
        assert!(borrowed > 22_000_000, "{borrowed}");
        assert!((copied + biases) * size_of::<f32>() < 1_000_000);
    }
}
