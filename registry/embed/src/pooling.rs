//! Pooling: combines the vectors of a text's tokens into one.

use serde::{Deserialize, Serialize};

use super::error::ModelError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    Mean,
    /// The first vector, which represents the whole text.
    Cls,
    /// The maximum of each component.
    Max,
}

impl Pooling {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Cls => "cls",
            Self::Max => "max",
        }
    }

    /// Pools the rows of a text's tokens, each with `width` numbers, into one vector of unit length; `None` if there
    /// are no rows, the result has length zero, or a number is not finite.
    pub(super) fn pool_rows(self, rows: &[f32], width: usize) -> Option<Vec<f32>> {
        let mut remaining_rows = rows.chunks_exact(width);
        let mut pooled = remaining_rows.next()?.to_vec();
        match self {
            Self::Cls => {}
            // The vector is normalized below, so the sum serves as the mean.
            Self::Mean => remaining_rows.for_each(|row| {
                pooled.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }),
            Self::Max => remaining_rows.for_each(|row| {
                // `f32::max` would ignore NaN.
                pooled.iter_mut().zip(row).for_each(|(most, &x)| {
                    *most = if *most >= x { *most } else { x };
                });
            }),
        }
        let squares: f64 = pooled.iter().map(|&x| f64::from(x) * f64::from(x)).sum();
        let length = squares.sqrt();
        if !length.is_finite() || length <= f64::from(f32::MIN_POSITIVE) {
            return None;
        }
        pooled
            .iter_mut()
            .for_each(|x| *x = (f64::from(*x) / length) as f32);
        Some(pooled)
    }
}

/// A pooling module's `config.json`, in the form of any version of sentence-transformers.
#[derive(Deserialize)]
struct PoolingConfigFile {
    word_embedding_dimension: Option<usize>,
    embedding_dimension: Option<usize>,
    pooling_mode: Option<serde_json::Value>,
    #[serde(default)]
    pooling_mode_cls_token: bool,
    #[serde(default)]
    pooling_mode_mean_tokens: bool,
    #[serde(default)]
    pooling_mode_max_tokens: bool,
    #[serde(default)]
    pooling_mode_mean_sqrt_len_tokens: bool,
    #[serde(default)]
    pooling_mode_weightedmean_tokens: bool,
    #[serde(default)]
    pooling_mode_lasttoken: bool,
}

/// Reads the pooling method of vectors with `width` numbers from `file`.
pub(super) fn parse_pooling(file: &str, bytes: &[u8], width: usize) -> Result<Pooling, ModelError> {
    let file_content: PoolingConfigFile =
        serde_json::from_slice(bytes).map_err(|error| ModelError::malformed(file, error))?;
    let stated_dimensions = file_content
        .word_embedding_dimension
        .or(file_content.embedding_dimension);
    if let Some(stated_dimensions) = stated_dimensions.filter(|stated| *stated != width) {
        return Err(ModelError::mismatch(
            file,
            format!(
                "it pools vectors of {stated_dimensions} numbers, but config.json says {width}"
            ),
        ));
    }
    let mode_name = match &file_content.pooling_mode {
        Some(serde_json::Value::String(mode)) => Some(mode.as_str()),
        Some(serde_json::Value::Array(modes)) => match modes.as_slice() {
            [serde_json::Value::String(mode)] => Some(mode.as_str()),
            _ => None,
        },
        Some(_) => None,
        None => {
            let flags = [
                ("cls", file_content.pooling_mode_cls_token),
                ("mean", file_content.pooling_mode_mean_tokens),
                ("max", file_content.pooling_mode_max_tokens),
                (
                    "mean_sqrt_len_tokens",
                    file_content.pooling_mode_mean_sqrt_len_tokens,
                ),
                (
                    "weightedmean",
                    file_content.pooling_mode_weightedmean_tokens,
                ),
                ("lasttoken", file_content.pooling_mode_lasttoken),
            ];
            let mut set = flags.iter().filter(|(_, set)| *set);
            match (set.next(), set.next()) {
                (Some((name, _)), None) => Some(*name),
                _ => None,
            }
        }
    };
    match mode_name {
        Some("cls") => Ok(Pooling::Cls),
        // The divisor only changes the length, which is normalized anyway.
        Some("mean" | "mean_sqrt_len_tokens") => Ok(Pooling::Mean),
        Some("max") => Ok(Pooling::Max),
        _ => Err(ModelError::unsupported(
            file,
            "its pooling is not exactly one of mean, cls and max",
        )),
    }
}
