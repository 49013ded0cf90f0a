//! The network itself: tokens through the layers of a BERT.
//!
//! candle multiplies the matrices; what lies between is in [`super::rows`], which also says why. The texts of a batch
//! stand one after the other without any padding: the dense layers go over the tokens of all of them at once, and
//! attention over each text by itself. So no text can tell what else is in its batch, and none pays for a longer one.
//!
//! candle splits a large product over the rayon pool of the thread that asks for it, so whoever calls this must be on a
//! thread of a pool of its own ([`super::pool`]); elsewhere it would start the pool that the whole process shares.

use std::ops::Range;

use candle_core::{D, Device, Error, Result as Computed, Tensor};

use super::config::{Activation, BertConfig};
use super::error::ModelError;
use super::folder::WEIGHTS;
use super::rows::{Bias, Norm, Shares};
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
    /// By input and output, in one piece: turned round at each product it takes twice as long for a short text.
    weight: Tensor,
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
    pub fn rows(&self, texts: &[Vec<Token>]) -> Computed<Vec<f32>> {
        let mut spans = Vec::with_capacity(texts.len());
        let mut total = 0;
        for text in texts {
            spans.push(total..total + text.len());
            total += text.len();
        }
        let first = self.first_rows(texts)?;
        let mut rows = Tensor::from_vec(first, (total, self.hidden), &Device::Cpu)?;
        for layer in &self.layers {
            rows = layer.forward(&rows, &spans, self.heads)?;
        }
        rows.flatten_all()?.to_vec1()
    }

    /// For each token the sum of its own row and those of its place and kind.
    fn first_rows(&self, texts: &[Vec<Token>]) -> Computed<Vec<f32>> {
        let row = |table: &'_ [f32], index: usize| -> Option<Range<usize>> {
            let begin = index.checked_mul(self.hidden)?;
            let end = begin.checked_add(self.hidden)?;
            (end <= table.len()).then_some(begin..end)
        };
        let outside = || Error::Msg("a token or its place is in none of the tables".to_owned());
        let mut rows = Vec::new();
        for text in texts {
            for (place, token) in text.iter().enumerate() {
                let word = row(&self.words, token.id as usize).ok_or_else(outside)?;
                let place = row(&self.places, place).ok_or_else(outside)?;
                let kind = row(&self.kinds, token.kind as usize).ok_or_else(outside)?;
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

    fn forward(&self, rows: &Tensor, spans: &[Range<usize>], heads: usize) -> Computed<Tensor> {
        let asked = self.asking.forward(rows)?;
        let mixed = spans
            .iter()
            .map(|span| attend(&asked.narrow(0, span.start, span.len())?, heads))
            .collect::<Computed<Vec<_>>>()?;
        let mixed = self.mixing.forward(&Tensor::cat(&mixed, 0)?)?;
        mixed.inplace_op2(rows, &self.mixing_norm)?;
        let wide = self.widening.forward(&mixed)?;
        let narrow = self.narrowing.forward(&wide)?;
        narrow.inplace_op2(&mixed, &self.narrowing_norm)?;
        Ok(narrow)
    }
}

/// Attention within one text: from queries, keys and values side by side to what each token makes of all of them.
fn attend(asked: &Tensor, heads: usize) -> Computed<Tensor> {
    let (length, columns) = asked.dims2()?;
    let width = columns / 3 / heads;
    let parts = asked.reshape((length, 3, heads, width))?;
    let part = |index| parts.narrow(1, index, 1)?.squeeze(1)?.transpose(0, 1);
    let scores = part(0)?.matmul(&part(1)?.transpose(D::Minus1, D::Minus2)?)?;
    scores.inplace_op1(&Shares {
        factor: (width as f32).sqrt().recip(),
    })?;
    let mixed = scores.matmul(&part(2)?)?.transpose(0, 1)?;
    mixed.reshape((length, heads * width))
}

impl Dense {
    /// Several of the same inputs and outputs side by side.
    fn load(
        weights: &Weights,
        names: &[String],
        inputs: usize,
        outputs: usize,
        activation: Option<Activation>,
    ) -> Result<Self, ModelError> {
        let mut matrices = Vec::with_capacity(names.len());
        let mut numbers = Vec::with_capacity(names.len() * outputs);
        for name in names {
            matrices.push(weights.matrix(&format!("{name}.weight"), outputs, inputs)?);
            numbers.extend(weights.vector(&format!("{name}.bias"), outputs)?);
        }
        let weight = Tensor::cat(&matrices, 0)
            .and_then(|matrix| matrix.t()?.contiguous())
            .map_err(|error| ModelError::malformed(WEIGHTS, error))?;
        Ok(Self {
            weight,
            bias: Bias {
                numbers,
                activation,
            },
        })
    }

    fn forward(&self, rows: &Tensor) -> Computed<Tensor> {
        let product = rows.matmul(&self.weight)?;
        product.inplace_op1(&self.bias)?;
        Ok(product)
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
