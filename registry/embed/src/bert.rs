//! The BERT network: runs tokens through its layers.
//!
//! All of it runs on the calling thread: [`super::job_pool`] limits how many texts are encoded at once. The matrix
//! products are in [`super::matmul`], the operations between them in [`super::row_ops`].
//!
//! The texts of a batch are concatenated without padding: the dense layers process the tokens of all texts at once,
//! and attention handles each text separately. So the vector of a text does not depend on the rest of its batch, and a
//! long text does not make the others more expensive.

use std::ops::Range;

use super::bert_config::{Activation, BertConfig};
use super::error::ModelError;
use super::matmul::{Matrix, StridedRows};
use super::row_ops::{BiasActivation, LayerNorm, softmax};
use super::tokenizer::InputToken;
use super::weights::Weights;

pub(super) struct Bert {
    hidden_size: usize,
    head_count: usize,
    position_offset: usize,
    padding_token: Option<u32>,
    /// The tables of tokens, positions and types: one row of `hidden_size` numbers for each.
    word_embeddings: Vec<f32>,
    position_embeddings: Vec<f32>,
    type_embeddings: Vec<f32>,
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
    weight: Matrix,
    bias: BiasActivation,
}

impl Bert {
    pub fn load(config: &BertConfig, weights: &Weights) -> Result<Self, ModelError> {
        let load_table = |name: &str, rows| {
            weights.matrix(&format!("embeddings.{name}"), rows, config.hidden_size)
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
        let row_range = |table: &'_ [f32], index: usize| -> Option<Range<usize>> {
            let begin = index.checked_mul(self.hidden_size)?;
            let end = begin.checked_add(self.hidden_size)?;
            (end <= table.len()).then_some(begin..end)
        };
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
                let word_range =
                    row_range(&self.word_embeddings, token.id as usize).ok_or(out_of_range)?;
                let position_range =
                    row_range(&self.position_embeddings, position).ok_or(out_of_range)?;
                let type_range =
                    row_range(&self.type_embeddings, token.kind as usize).ok_or(out_of_range)?;
                let parts = self.word_embeddings[word_range]
                    .iter()
                    .zip(&self.position_embeddings[position_range]);
                let sums = parts.zip(&self.type_embeddings[type_range]);
                rows.extend(sums.map(|((word, place), kind)| word + kind + place));
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
        let keys = Matrix::new(head_size, length, |number, token| {
            projected[token * stride + hidden_size + head_offset + number]
        });
        let values = Matrix::new(length, head_size, |token, number| {
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
        let mut matrices = Vec::with_capacity(names.len());
        let outputs = columns * names.len();
        let mut numbers = Vec::with_capacity(outputs);
        for name in names {
            matrices.push(weights.matrix(&format!("{name}.weight"), columns, inputs)?);
            numbers.extend(weights.vector(&format!("{name}.bias"), columns)?);
        }
        // Stored in order of output, then input.
        let weight = Matrix::new(inputs, outputs, |input, output| {
            matrices[output / columns][output % columns * inputs + input]
        });
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
        self.weight.multiply(input_rows, count, written);
        self.bias.apply(&mut products);
        products
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
