//! The network itself: tokens through the layers of a BERT.
//!
//! All of it stays on the thread that asks: how many texts are read at once is bounded in one place, [`super::pool`]. The
//! products are in [`super::product`], and what lies between in [`super::rows`].
//!
//! The texts of a batch stand one after the other without any padding: the dense layers go over the tokens of all of
//! them at once, and attention over each text by itself. So no text can tell what else is in its batch, and none pays
//! for a longer one.

use std::ops::Range;

use super::config::{Activation, BertConfig};
use super::error::ModelError;
use super::product::{Matrix, Rows};
use super::rows::{Bias, Norm, share};
use super::tokens::Token;
use super::weights::Weights;

/// A BERT, ready to read.
pub(super) struct Bert {
    hidden: usize,
    heads: usize,
    /// The tables of tokens, places and kinds: one row of `hidden` numbers for each.
    words: Vec<f32>,
    places: Vec<f32>,
    kinds: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

struct Layer {
    /// Queries, keys and values side by side: one large product takes less time than three.
    asking: Dense,
    mixing: Dense,
    mixing_norm: Norm,
    widening: Dense,
    narrowing: Dense,
    narrowing_norm: Norm,
}

/// A product with a matrix, and one number more for each column.
struct Dense {
    inputs: usize,
    outputs: usize,
    weight: Matrix,
    bias: Bias,
}

impl Bert {
    /// Takes the network out of its weights.
    ///
    /// # Errors
    /// Where a weight is missing, of another shape, or holds what is no number.
    pub fn load(config: &BertConfig, weights: &Weights) -> Result<Self, ModelError> {
        let table =
            |name: &str, rows| weights.table(&format!("embeddings.{name}"), rows, config.hidden);
        Ok(Self {
            hidden: config.hidden,
            heads: config.heads,
            words: table("word_embeddings.weight", config.vocabulary)?,
            places: table("position_embeddings.weight", config.positions)?,
            kinds: table("token_type_embeddings.weight", config.types)?,
            norm: norm(config, weights, "embeddings.LayerNorm")?,
            layers: (0..config.layers)
                .map(|index| Layer::load(config, weights, &format!("encoder.layer.{index}")))
                .collect::<Result<_, _>>()?,
        })
    }

    /// The rows of all tokens of these texts, one text after the other, each row of as many numbers as a vector has.
    ///
    /// # Errors
    /// Where a token is unknown or a text too long for this network.
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

    /// For each token the sum of its own row and those of its place and kind.
    fn first_rows(&self, texts: &[Vec<Token>]) -> Result<Vec<f32>, &'static str> {
        let row = |table: &'_ [f32], index: usize| -> Option<Range<usize>> {
            let begin = index.checked_mul(self.hidden)?;
            let end = begin.checked_add(self.hidden)?;
            (end <= table.len()).then_some(begin..end)
        };
        let outside = "a token or its place is in none of the tables";
        let mut rows = Vec::new();
        for text in texts {
            for (place, token) in text.iter().enumerate() {
                let word = row(&self.words, token.id as usize).ok_or(outside)?;
                let place = row(&self.places, place).ok_or(outside)?;
                let kind = row(&self.kinds, token.kind as usize).ok_or(outside)?;
                let parts = self.words[word].iter().zip(&self.places[place]);
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
            asking: Dense::load(weights, &parts, hidden, hidden, None)?,
            mixing: dense("attention.output", hidden, hidden, None)?,
            mixing_norm: norm("attention.output")?,
            widening: dense("intermediate", hidden, wide, Some(config.activation))?,
            narrowing: dense("output", wide, hidden, None)?,
            narrowing_norm: norm("output")?,
        })
    }

    fn forward(&self, rows: &[f32], spans: &[Range<usize>], heads: usize) -> Vec<f32> {
        let asked = self.asking.forward(rows);
        let mut mixed = vec![0.0; rows.len()];
        let hidden = self.mixing.outputs;
        for span in spans {
            attend(
                &asked[span.start * 3 * hidden..span.end * 3 * hidden],
                &mut mixed[span.start * hidden..span.end * hidden],
                hidden,
                heads,
            );
        }
        let mut mixed = self.mixing.forward(&mixed);
        self.mixing_norm.add_and_apply(&mut mixed, rows);
        let wide = self.widening.forward(&mixed);
        let mut narrow = self.narrowing.forward(&wide);
        self.narrowing_norm.add_and_apply(&mut narrow, &mixed);
        narrow
    }
}

/// Attention within one text: from queries, keys and values side by side to what each token makes of all of them.
fn attend(asked: &[f32], mixed: &mut [f32], hidden: usize, heads: usize) {
    let width = hidden / heads;
    let stride = 3 * hidden;
    let length = mixed.len() / hidden;
    let mut scores = vec![0.0; length * length];
    for first in (0..heads).map(|head| head * width) {
        let keys = Matrix::new(width, length, |number, token| {
            asked[token * stride + hidden + first + number]
        });
        let values = Matrix::new(length, width, |token, number| {
            asked[token * stride + 2 * hidden + first + number]
        });
        let queries = Rows {
            numbers: asked.get(first..).unwrap_or_default(),
            stride,
        };
        let all = Rows {
            numbers: scores.as_mut_slice(),
            stride: length,
        };
        keys.multiply(queries, length, all);
        share(&mut scores, length, (width as f32).sqrt().recip());
        let shares = Rows {
            numbers: scores.as_slice(),
            stride: length,
        };
        let mixed = Rows {
            numbers: mixed.get_mut(first..).unwrap_or_default(),
            stride: hidden,
        };
        values.multiply(shares, length, mixed);
    }
}

impl Dense {
    /// Several of the same inputs and of `columns` outputs each, side by side.
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
    // Weights that once came from TensorFlow still have its names.
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
