//! Reads a model's folder in the layout of sentence-transformers: its files, their limits, and their settings apart
//! from the weights.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path};

use ring::digest;
use serde::Deserialize;

use super::config::{BertConfig, CONFIG, MIN_POSITIONS};
use super::error::ModelError;
use super::pooling::{self, Pooling};
use super::prompts::{PROMPTS, Prompts};

pub(super) const TOKENIZER: &str = "tokenizer.json";
pub(super) const WEIGHTS: &str = "model.safetensors";
/// File that lists the steps from a text to a vector.
pub(super) const MODULES: &str = "modules.json";
/// File with the longest length of a text.
const LENGTH: &str = "sentence_bert_config.json";
/// Folder of the pooling configuration, unless [`MODULES`] names another.
const POOLING: &str = "1_Pooling";

/// Size of the largest file of weights, in bytes.
pub const MAX_WEIGHTS_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// Size of the largest tokenizer, in bytes.
pub const MAX_TOKENIZER_BYTES: u64 = 64 * 1024 * 1024;
/// Size of the largest other file, in bytes.
pub const MAX_SETTINGS_BYTES: u64 = 1024 * 1024;
/// Longest name of a model, in characters.
pub const MAX_NAME: usize = 100;

/// Prefix of the digested data of every id. Change it with any change of the arithmetic beyond rounding.
const ID_DOMAIN: &[u8] = b"a2a-registry sentence encoder 1\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// Followed: the folder was named by the operator, and download caches consist of links.
    Follow,
    /// Refused: the folder was made by this program, which makes no links.
    Refuse,
}

/// The settings of a model, and the files that determine its vectors.
pub(super) struct ModelFiles {
    pub config: BertConfig,
    pub pooling: Pooling,
    /// In tokens of a text.
    pub max_length: usize,
    pub lowercase: bool,
    pub prompts: Prompts,
    /// Lower-case hexadecimal SHA-256 over the names and contents of the files.
    pub id: String,
    /// Display name, at most [`MAX_NAME`] visible characters.
    pub name: String,
    pub tokenizer: Vec<u8>,
    pub weights: Vec<u8>,
    /// The other files, with the paths of [`Self::tokenizer`] and [`Self::weights`] within the folder.
    settings: Vec<(String, Vec<u8>)>,
    paths: [String; 2],
}

#[derive(Deserialize)]
struct Module {
    #[serde(default)]
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Default, Deserialize)]
struct Length {
    max_seq_length: Option<usize>,
    do_lower_case: Option<bool>,
}

impl Length {
    /// Most tokens of a text, if the network has that many positions.
    fn positions(&self, path: &str, most: usize) -> Result<usize, ModelError> {
        let positions = self.max_seq_length.unwrap_or(most).min(most);
        if positions < MIN_POSITIONS {
            return Err(ModelError::unsupported(
                path,
                format!("max_seq_length is {positions}; at least {MIN_POSITIONS} are needed"),
            ));
        }
        Ok(positions)
    }
}

impl ModelFiles {
    /// `known_as` is the name of a model that has none of its own.
    pub fn read(folder: &Path, known_as: &str, links: Links) -> Result<Self, ModelError> {
        let mut settings = Vec::new();
        let mut optional = |name: &str| -> Result<Option<Vec<u8>>, ModelError> {
            let bytes = read(folder, name, MAX_SETTINGS_BYTES, links)?;
            settings.extend(bytes.iter().map(|bytes| (name.to_owned(), bytes.clone())));
            Ok(bytes)
        };
        let missing = |name: &str| ModelError::Missing(name.to_owned());
        let modules = optional(MODULES)?;
        let (network, pools) = match &modules {
            Some(bytes) => steps(bytes)?,
            None => (String::new(), None),
        };
        let within = |name: &str| join(&network, name);
        let config_path = within(CONFIG);
        let config = optional(&config_path)?.ok_or_else(|| missing(&config_path))?;
        let config = BertConfig::read(&config)?;
        let pooling_path = join(pools.as_deref().unwrap_or(POOLING), CONFIG);
        let pooling = match optional(&pooling_path)? {
            Some(bytes) => pooling::read(&pooling_path, &bytes, config.hidden)?,
            None if pools.is_some() => return Err(missing(&pooling_path)),
            None => Pooling::Mean,
        };
        let length_path = within(LENGTH);
        let length: Length = match optional(&length_path)? {
            Some(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| ModelError::malformed(&length_path, error))?,
            None => Length::default(),
        };
        let prompts = match optional(PROMPTS)? {
            Some(bytes) => Prompts::read(&bytes)?,
            None => Prompts::default(),
        };
        let max_length = length.positions(&length_path, config.positions)?;
        let paths = [within(TOKENIZER), within(WEIGHTS)];
        let whole = |path: &str, limit| {
            read(folder, path, limit, links)?.ok_or_else(|| ModelError::Missing(path.to_owned()))
        };
        let tokenizer = whole(&paths[0], MAX_TOKENIZER_BYTES)?;
        let weights = whole(&paths[1], MAX_WEIGHTS_BYTES)?;
        let named = config.name.as_deref().map_or("", str::trim);
        let name = visible(if named.is_empty() { known_as } else { named });
        let mut files = Self {
            config,
            pooling,
            max_length,
            lowercase: length.do_lower_case == Some(true),
            prompts,
            id: String::new(),
            name,
            tokenizer,
            weights,
            settings,
            paths,
        };
        files.id = files.digest();
        Ok(files)
    }

    /// The files in the order in which they are digested and written.
    pub fn all(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let settings = self.settings.iter();
        let settings = settings.map(|(path, bytes)| (path.as_str(), bytes.as_slice()));
        let [tokenizer, weights] = &self.paths;
        settings.chain([
            (tokenizer.as_str(), self.tokenizer.as_slice()),
            (weights.as_str(), self.weights.as_slice()),
        ])
    }

    fn digest(&self) -> String {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(ID_DOMAIN);
        for (path, bytes) in self.all() {
            // The lengths keep two different sets of files from giving the same bytes.
            for part in [path.as_bytes(), bytes] {
                context.update(&(part.len() as u64).to_le_bytes());
                context.update(part);
            }
        }
        let digest = context.finish();
        digest
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// The folders of the network and its pooling, from the model's list of steps.
fn steps(bytes: &[u8]) -> Result<(String, Option<String>), ModelError> {
    let modules: Vec<Module> =
        serde_json::from_slice(bytes).map_err(|error| ModelError::malformed(MODULES, error))?;
    let mut network = None;
    let mut pools = None;
    for module in modules {
        let kind = module.kind.rsplit('.').next().unwrap_or_default();
        let place = match kind {
            "Transformer" => &mut network,
            "Pooling" => &mut pools,
            // Every vector is normalised here anyway.
            "Normalize" => continue,
            _ => {
                let kind = visible(kind);
                return Err(ModelError::unsupported(
                    MODULES,
                    format!("it names a step of type {kind}, which is not supported"),
                ));
            }
        };
        let safe = Path::new(&module.path)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !safe || module.path.contains('\\') {
            return Err(ModelError::unsupported(
                MODULES,
                "it names a path outside the model's folder",
            ));
        }
        if place.replace(module.path).is_some() {
            return Err(ModelError::unsupported(
                MODULES,
                format!("it names the step {kind} twice"),
            ));
        }
    }
    match (network, pools) {
        (Some(network), Some(pools)) => Ok((network, Some(pools))),
        (None, _) => Err(ModelError::unsupported(MODULES, "it names no Transformer")),
        (_, None) => Err(ModelError::unsupported(MODULES, "it names no Pooling")),
    }
}

fn join(folder: &str, name: &str) -> String {
    match folder.trim_end_matches('/') {
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}

/// The bytes of a file in the folder; `None` if it does not exist.
fn read(
    folder: &Path,
    name: &str,
    limit: u64,
    links: Links,
) -> Result<Option<Vec<u8>>, ModelError> {
    let path = folder.join(name);
    let facts = match links {
        Links::Follow => std::fs::metadata(&path),
        Links::Refuse => std::fs::symlink_metadata(&path),
    };
    let facts = match facts {
        Ok(facts) => facts,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ModelError::unreadable(&path)(error)),
    };
    // Opening a pipe would block until somebody writes to it.
    if !facts.is_file() {
        let error = std::io::Error::other("it is not a regular file");
        return Err(ModelError::unreadable(&path)(error));
    }
    let too_large = || ModelError::TooLarge {
        file: name.to_owned(),
        limit,
    };
    if facts.len() > limit {
        return Err(too_large());
    }
    let file = File::open(&path).map_err(ModelError::unreadable(&path))?;
    let mut bytes = Vec::with_capacity(usize::try_from(facts.len()).unwrap_or_default());
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(ModelError::unreadable(&path))?;
    if bytes.len() as u64 > limit {
        return Err(too_large());
    }
    Ok(Some(bytes))
}

/// A foreign name in visible characters, cut at [`MAX_NAME`].
pub(super) fn visible(name: &str) -> String {
    let shown = name.chars().take(MAX_NAME).flat_map(|character| {
        let plain = character.is_alphanumeric() || matches!(character, ' '..='~');
        let escaped = (!plain).then(|| character.escape_unicode());
        let kept = plain.then_some(character);
        kept.into_iter().chain(escaped.into_iter().flatten())
    });
    shown.take(MAX_NAME).collect()
}
