//! Model folders in the layout of sentence-transformers: their files, size limits, and settings other than the
//! weights.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path};

use a2a_registry_builtin_model as builtin_model;
use ring::digest;
use serde::Deserialize;

use super::bert_config::{BertConfig, CONFIG_FILE, MIN_POSITIONS};
use super::error::ModelError;
use super::pooling::{self, Pooling};
use super::prompts::{PROMPTS_FILE, Prompts};

pub(super) const TOKENIZER_FILE: &str = "tokenizer.json";
pub(super) const WEIGHTS_FILE: &str = "model.safetensors";
/// File that lists the steps from a text to a vector.
pub(super) const MODULES_FILE: &str = "modules.json";
/// File with the maximum length of a text.
pub(super) const LENGTH_CONFIG_FILE: &str = "sentence_bert_config.json";
/// Folder of the pooling configuration, unless [`MODULES_FILE`] names another.
pub(super) const DEFAULT_POOLING_FOLDER: &str = "1_Pooling";

/// Maximum size of a weights file, in bytes.
pub const MAX_WEIGHTS_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// Maximum size of a tokenizer file, in bytes.
pub const MAX_TOKENIZER_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum size of any other file, in bytes.
pub const MAX_SETTINGS_BYTES: u64 = 1024 * 1024;
/// Maximum length of a model's name, in characters.
pub const MAX_MODEL_NAME_CHARS: usize = 100;

/// Prefix of the hashed data of every id. Change it with any change of the arithmetic beyond rounding.
const ID_DIGEST_PREFIX: &[u8] = b"a2a-registry sentence encoder 1\n";

/// The id of the built-in model, which a test computes: hashing its files would take time at every start, and bring
/// all of them into memory.
const BUILT_IN_ID: &str = "b72b405f7cb2021ebd4fc4d670128ab51b22571311865d2ead50335bb644588a";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SymlinkPolicy {
    /// Follow links: the operator named the folder, and download caches consist of links.
    Follow,
    /// Reject links: this program created the folder, and it creates no links.
    Reject,
}

/// The settings of a model, and the files that determine its vectors.
pub(super) struct ModelFiles {
    pub config: BertConfig,
    pub pooling: Pooling,
    /// Maximum number of tokens in a text.
    pub max_length: usize,
    pub lowercase: bool,
    pub prompts: Prompts,
    /// Lower-case hexadecimal SHA-256 over the names and contents of the files.
    pub id: String,
    /// Display name, at most [`MAX_MODEL_NAME_CHARS`] visible characters.
    pub name: String,
    pub tokenizer: Cow<'static, [u8]>,
    pub weights: Cow<'static, [u8]>,
    /// The other files, with their paths in the folder; [`Self::tokenizer`] and [`Self::weights`] hold the two large
    /// ones.
    settings: Vec<(String, Vec<u8>)>,
    paths: [String; 2],
}

#[derive(Deserialize)]
struct ModuleEntry {
    #[serde(default)]
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Default, Deserialize)]
struct SentenceBertConfigFile {
    max_seq_length: Option<usize>,
    do_lower_case: Option<bool>,
}

impl SentenceBertConfigFile {
    /// Maximum number of tokens in a text, if the network has that many positions.
    fn max_tokens(&self, path: &str, max_positions: usize) -> Result<usize, ModelError> {
        let max_tokens = self
            .max_seq_length
            .unwrap_or(max_positions)
            .min(max_positions);
        if max_tokens < MIN_POSITIONS {
            return Err(ModelError::unsupported(
                path,
                format!("max_seq_length is {max_tokens}; at least {MIN_POSITIONS} are needed"),
            ));
        }
        Ok(max_tokens)
    }
}

/// Reads how the vectors of a text's words become one: their mean, unless `folder` or the default folder says otherwise.
fn read_pooling(
    folder: Option<&str>,
    hidden_size: usize,
    mut read_optional: impl FnMut(&str) -> Result<Option<Vec<u8>>, ModelError>,
) -> Result<Pooling, ModelError> {
    let path = join_path(folder.unwrap_or(DEFAULT_POOLING_FOLDER), CONFIG_FILE);
    match read_optional(&path)? {
        Some(bytes) => pooling::parse_pooling(&path, &bytes, hidden_size),
        None if folder.is_some() => Err(ModelError::Missing(path)),
        None => Ok(Pooling::Mean),
    }
}

impl ModelFiles {
    /// Reads a model folder. The name is the caller's, because the files of most models name only the model that they
    /// were trained from.
    pub fn read(folder: &Path, name: &str, symlinks: SymlinkPolicy) -> Result<Self, ModelError> {
        let mut files = Self::read_files(name, |path, limit| {
            let bytes = read_model_file(folder, path, limit, symlinks)?;
            Ok(bytes.map(Cow::Owned))
        })?;
        files.id = files.compute_id();
        Ok(files)
    }

    /// The built-in model, whose bytes stay where they are in the program.
    pub fn built_in() -> Result<Self, ModelError> {
        let mut files = Self::read_files(builtin_model::NAME, |path, _| {
            let file = builtin_model::FILES.iter().find(|file| file.path == path);
            Ok(file.map(|file| Cow::Borrowed(file.bytes)))
        })?;
        files.id = BUILT_IN_ID.to_owned();
        Ok(files)
    }

    /// Reads a model whose files `read_file` finds by their paths, none longer than the given limit.
    fn read_files(
        name: &str,
        mut read_file: impl FnMut(&str, u64) -> Result<Option<Cow<'static, [u8]>>, ModelError>,
    ) -> Result<Self, ModelError> {
        let mut settings = Vec::new();
        let mut read_optional = |name: &str| -> Result<Option<Vec<u8>>, ModelError> {
            let bytes = read_file(name, MAX_SETTINGS_BYTES)?.map(Cow::into_owned);
            settings.extend(bytes.iter().map(|bytes| (name.to_owned(), bytes.clone())));
            Ok(bytes)
        };
        let missing = |name: &str| ModelError::Missing(name.to_owned());
        let modules = read_optional(MODULES_FILE)?;
        let (network_folder, pooling_folder) = match &modules {
            Some(bytes) => parse_module_folders(bytes)?,
            None => (String::new(), None),
        };
        let in_network_folder = |name: &str| join_path(&network_folder, name);
        let config_path = in_network_folder(CONFIG_FILE);
        let config = read_optional(&config_path)?.ok_or_else(|| missing(&config_path))?;
        let config = BertConfig::parse(&config)?;
        let pooling_folder = pooling_folder.as_deref();
        let pooling = read_pooling(pooling_folder, config.hidden_size, &mut read_optional)?;
        let length_path = in_network_folder(LENGTH_CONFIG_FILE);
        let length: SentenceBertConfigFile = match read_optional(&length_path)? {
            Some(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| ModelError::malformed(&length_path, error))?,
            None => SentenceBertConfigFile::default(),
        };
        let prompts = match read_optional(PROMPTS_FILE)? {
            Some(bytes) => Prompts::parse(&bytes)?,
            None => Prompts::default(),
        };
        let max_length = length.max_tokens(&length_path, config.max_positions)?;
        let paths = [
            in_network_folder(TOKENIZER_FILE),
            in_network_folder(WEIGHTS_FILE),
        ];
        let mut read_required = |path: &str, limit| {
            read_file(path, limit)?.ok_or_else(|| ModelError::Missing(path.to_owned()))
        };
        let tokenizer = read_required(&paths[0], MAX_TOKENIZER_BYTES)?;
        let weights = read_required(&paths[1], MAX_WEIGHTS_BYTES)?;
        Ok(Self {
            config,
            pooling,
            max_length,
            lowercase: length.do_lower_case == Some(true),
            prompts,
            id: String::new(),
            name: sanitize_model_name(name),
            tokenizer,
            weights,
            settings,
            paths,
        })
    }

    /// The files in the order in which they are hashed and written.
    pub fn iter_files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let settings = self.settings.iter();
        let settings = settings.map(|(path, bytes)| (path.as_str(), bytes.as_slice()));
        let [tokenizer, weights] = &self.paths;
        settings.chain([
            (tokenizer.as_str(), &*self.tokenizer),
            (weights.as_str(), &*self.weights),
        ])
    }

    /// Whether these are all of its files, by path with the lower-case hexadecimal SHA-256 of each.
    pub fn have_digests(&self, digests: &BTreeMap<String, String>) -> bool {
        self.iter_files().count() == digests.len()
            && self.iter_files().all(|(path, bytes)| {
                let actual = digest::digest(&digest::SHA256, bytes);
                digests.get(path) == Some(&to_hexadecimal(actual.as_ref()))
            })
    }

    fn compute_id(&self) -> String {
        let mut context = digest::Context::new(&digest::SHA256);
        context.update(ID_DIGEST_PREFIX);
        for (path, bytes) in self.iter_files() {
            // Without the lengths, two different sets of files could give the same bytes.
            for part in [path.as_bytes(), bytes] {
                context.update(&(part.len() as u64).to_le_bytes());
                context.update(part);
            }
        }
        to_hexadecimal(context.finish().as_ref())
    }
}

fn to_hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The folders of the network and its pooling, from the model's list of modules.
pub(super) fn parse_module_folders(bytes: &[u8]) -> Result<(String, Option<String>), ModelError> {
    let modules: Vec<ModuleEntry> = serde_json::from_slice(bytes)
        .map_err(|error| ModelError::malformed(MODULES_FILE, error))?;
    let mut network_folder = None;
    let mut pooling_folder = None;
    for module in modules {
        let kind = module.kind.rsplit('.').next().unwrap_or_default();
        let folder_slot = match kind {
            "Transformer" => &mut network_folder,
            "Pooling" => &mut pooling_folder,
            // Every vector is normalized here anyway.
            "Normalize" => continue,
            _ => {
                let kind = sanitize_model_name(kind);
                return Err(ModelError::unsupported(
                    MODULES_FILE,
                    format!("it names a step of type {kind}, which is not supported"),
                ));
            }
        };
        let safe = Path::new(&module.path)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        // A download shows the path on a terminal, and in a command to copy.
        let is_permitted = |character| character != '\\' && is_visible(character);
        if !safe || !module.path.chars().all(is_permitted) {
            return Err(ModelError::unsupported(
                MODULES_FILE,
                "it names a path outside the model's folder, or one with invisible characters",
            ));
        }
        if folder_slot.replace(module.path).is_some() {
            return Err(ModelError::unsupported(
                MODULES_FILE,
                format!("it names the step {kind} twice"),
            ));
        }
    }
    match (network_folder, pooling_folder) {
        (Some(network), Some(pools)) => Ok((network, Some(pools))),
        (None, _) => Err(ModelError::unsupported(
            MODULES_FILE,
            "it names no Transformer",
        )),
        (_, None) => Err(ModelError::unsupported(MODULES_FILE, "it names no Pooling")),
    }
}

pub(super) fn join_path(folder: &str, name: &str) -> String {
    match folder.trim_end_matches('/') {
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}

/// The bytes of a file in the folder; `None` if it does not exist.
fn read_model_file(
    folder: &Path,
    name: &str,
    limit: u64,
    symlinks: SymlinkPolicy,
) -> Result<Option<Vec<u8>>, ModelError> {
    let path = folder.join(name);
    let metadata = match symlinks {
        SymlinkPolicy::Follow => std::fs::metadata(&path),
        SymlinkPolicy::Reject => std::fs::symlink_metadata(&path),
    };
    let metadata = match metadata {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ModelError::unreadable(&path)(error)),
    };
    // Opening a pipe would block until another process writes to it.
    if !metadata.is_file() {
        let error = std::io::Error::other("it is not a regular file");
        return Err(ModelError::unreadable(&path)(error));
    }
    let too_large = || ModelError::TooLarge {
        file: name.to_owned(),
        limit,
    };
    if metadata.len() > limit {
        return Err(too_large());
    }
    let file = File::open(&path).map_err(ModelError::unreadable(&path))?;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(ModelError::unreadable(&path))?;
    if bytes.len() as u64 > limit {
        return Err(too_large());
    }
    Ok(Some(bytes))
}

fn is_visible(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, ' '..='~')
}

/// An untrusted name in visible characters, cut at [`MAX_MODEL_NAME_CHARS`].
pub(super) fn sanitize_model_name(name: &str) -> String {
    let characters = name
        .chars()
        .take(MAX_MODEL_NAME_CHARS)
        .flat_map(|character| {
            let plain = is_visible(character);
            let escaped = (!plain).then(|| character.escape_unicode());
            let unescaped = plain.then_some(character);
            unescaped.into_iter().chain(escaped.into_iter().flatten())
        });
    characters.take(MAX_MODEL_NAME_CHARS).collect()
}
