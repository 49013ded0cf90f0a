//! The network: runs tokens through the layers of a BERT.
//!
//! All of it runs on the calling thread: [`super::pool`] limits how many texts are encoded at once. The matrix
//! products are in [`super::product`], the operations between them in [`super::rows`].
//!
//! The texts of a batch follow one another without padding: the dense layers process the tokens of all texts at once,
//! and attention each text by itself. So the vector of a text does not depend on the rest of its batch, and no text
//! costs more because of a longer one.

use std::ops::Range;

use super::config::{Activation, BertConfig};
use super::error::ModelError;
use super::product::{Matrix, Rows};
use super::rows::{Bias, Norm, softmax};
use super::tokens::Token;
use super::weights::Weights;

pub(super) struct Bert {
    hidden: usize,
    heads: usize,
    before_positions: usize,
    padding: Option<u32>,
    /// The tables of tokens, positions and types: one row of `hidden` numbers for each.
    words: Vec<f32>,
    positions: Vec<f32>,
    kinds: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

struct Layer {
    /// Query, key and value side by side: one large product takes less time than three.
    query_key_value: Dense,
    attention_output: Dense,
    attention_norm: Norm,
    intermediate: Dense,
    output: Dense,
    output_norm: Norm,
}

struct Dense {
    inputs: usize,
    outputs: usize,
    weight: Matrix,
    bias: Bias,
}

impl Bert {
    pub fn load(config: &BertConfig, weights: &Weights) -> Result<Self, ModelError> {
        let table =
            |name: &str, rows| weights.table(&format!("embeddings.{name}"), rows, config.hidden);
        Ok(Self {
            hidden: config.hidden,
            heads: config.heads,
            before_positions: config.before_positions,
            padding: config.padding,
            words: table("word_embeddings.weight", config.vocabulary)?,
            positions: table(
                "position_embeddings.weight",
                config.before_positions + config.positions,
            )?,
            kinds: table("token_type_embeddings.weight", config.types)?,
            norm: norm(config, weights, "embeddings.LayerNorm")?,
            layers: (0..config.layers)
                .map(|index| Layer::load(config, weights, &format!("encoder.layer.{index}")))
                .collect::<Result<_, _>>()?,
        })
    }

    /// The output rows of all tokens of these texts, one text after the other, each row with `hidden` numbers.
    pub fn rows(&self, texts: &[Vec<Token>]) -> Result<Vec<f32>, &'static str> {
        let mut spans = Vec::with_capacity(texts.len());
        let mut total = 0;
        for text in texts {
            spans.push(total..total + text.len());
            total += text.len();
        }
        let mut rows = self.first_rows(texts)?;
        for layer in &self.layers {
            rows = layer.forward(&rows, &spans, self.heads);
        }
        Ok(rows)
    }

    /// The input row of each token: the sum of its own row and those of its position and type.
    fn first_rows(&self, texts: &[Vec<Token>]) -> Result<Vec<f32>, &'static str> {
        let row = |table: &'_ [f32], index: usize| -> Option<Range<usize>> {
            let begin = index.checked_mul(self.hidden)?;
            let end = begin.checked_add(self.hidden)?;
            (end <= table.len()).then_some(begin..end)
        };
        let outside = "a token or its place is in none of the tables";
        let mut rows = Vec::new();
        for text in texts {
            let mut next = self.before_positions;
            for token in text {
                // A padding token within a text has the place before all others, and takes none.
                let place = match self.padding {
                    Some(padding) if padding == token.id => self.before_positions - 1,
                    _ => next,
                };
                next += usize::from(place == next);
                let word = row(&self.words, token.id as usize).ok_or(outside)?;
                let place = row(&self.positions, place).ok_or(outside)?;
                let kind = row(&self.kinds, token.kind as usize).ok_or(outside)?;
                let parts = self.words[word].iter().zip(&self.positions[place]);
                let sums = parts.zip(&self.kinds[kind]);
                rows.extend(sums.map(|((word, place), kind)| word + kind + place));
            }
        }
        self.norm.apply(&mut rows);
        Ok(rows)
    }
}

impl Layer {
    fn load(config: &BertConfig, weights: &Weights, name: &str) -> Result<Self, ModelError> {
        let (hidden, wide) = (config.hidden, config.intermediate);
        let parts = ["query", "key", "value"].map(|part| format!("{name}.attention.self.{part}"));
        let dense = |part: &str, inputs, outputs, activation| {
            let name = format!("{name}.{part}.dense");
            Dense::load(weights, &[name], inputs, outputs, activation)
        };
        let norm = |part: &str| norm(config, weights, &format!("{name}.{part}.LayerNorm"));
        Ok(Self {
            query_key_value: Dense::load(weights, &parts, hidden, hidden, None)?,
            attention_output: dense("attention.output", hidden, hidden, None)?,
            attention_norm: norm("attention.output")?,
            intermediate: dense("intermediate", hidden, wide, Some(config.activation))?,
            output: dense("output", wide, hidden, None)?,
            output_norm: norm("output")?,
        })
    }

    fn forward(&self, rows: &[f32], spans: &[Range<usize>], heads: usize) -> Vec<f32> {
        let projected = self.query_key_value.forward(rows);
        let mut attended = vec![0.0; rows.len()];
        let hidden = self.attention_output.outputs;
        for span in spans {
            attend(
                &projected[span.start * 3 * hidden..span.end * 3 * hidden],
                &mut attended[span.start * hidden..span.end * hidden],
                hidden,
                heads,
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
fn attend(projected: &[f32], attended: &mut [f32], hidden: usize, heads: usize) {
    let width = hidden / heads;
    let stride = 3 * hidden;
    let length = attended.len() / hidden;
    let mut scores = vec![0.0; length * length];
    for first in (0..heads).map(|head| head * width) {
        let keys = Matrix::new(width, length, |number, token| {
            projected[token * stride + hidden + first + number]
        });
        let values = Matrix::new(length, width, |token, number| {
            projected[token * stride + 2 * hidden + first + number]
        });
        let queries = Rows {
            numbers: projected.get(first..).unwrap_or_default(),
            stride,
        };
        let all = Rows {
            numbers: scores.as_mut_slice(),
            stride: length,
        };
        keys.multiply(queries, length, all);
        softmax(&mut scores, length, (width as f32).sqrt().recip());
        let weights = Rows {
            numbers: scores.as_slice(),
            stride: length,
        };
        let attended = Rows {
            numbers: attended.get_mut(first..).unwrap_or_default(),
            stride: hidden,
        };
        values.multiply(weights, length, attended);
    }
}

impl Dense {
    /// Loads several matrices with the same inputs and `columns` outputs each, side by side.
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
            matrices.push(weights.table(&format!("{name}.weight"), columns, inputs)?);
            numbers.extend(weights.vector(&format!("{name}.bias"), columns)?);
        }
        // Stored by output and input.
        let weight = Matrix::new(inputs, outputs, |input, output| {
            matrices[output / columns][output % columns * inputs + input]
        });
        Ok(Self {
            inputs,
            outputs,
            weight,
            bias: Bias {
                numbers,
                activation,
            },
        })
    }

    fn forward(&self, rows: &[f32]) -> Vec<f32> {
        let count = rows.len() / self.inputs;
        let mut products = vec![0.0; count * self.outputs];
        let read = Rows {
            numbers: rows,
            stride: self.inputs,
        };
        let written = Rows {
            numbers: products.as_mut_slice(),
            stride: self.outputs,
        };
        self.weight.multiply(read, count, written);
        self.bias.apply(&mut products);
        products
    }
}

fn norm(config: &BertConfig, weights: &Weights, name: &str) -> Result<Norm, ModelError> {
    // Weights converted from TensorFlow still have its names.
    let vector = |modern: &str, old: &str| {
        let old = format!("{name}.{old}");
        let held = weights.holds(&old);
        let modern = format!("{name}.{modern}");
        weights.vector(if held { &old } else { &modern }, config.hidden)
    };
    Ok(Norm {
        scale: vector("weight", "gamma")?,
        shift: vector("bias", "beta")?,
        epsilon: config.epsilon,
    })
}
