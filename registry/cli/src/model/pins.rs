//! What the files of a model on a hub must be: given with flags, or known to this program.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::command_error::CommandError;
use crate::program_name::{program_name, shell_quote};

/// Models whose files the maintainers have hashed, as a list of [`ModelPins`].
const KNOWN_MODELS: &str = include_str!("known_models.json");
/// Maximum length of a model's name on a hub, with its owner.
const MAX_HUB_NAME_CHARS: usize = 96;
/// Maximum number of digests that are given with flags; a model consists of seven files.
const MAX_PINS: usize = 32;
/// Endings of the files that a model may consist of. Pickle files, which run code when they are read, are not among
/// them.
const FILE_ENDINGS: [&str; 2] = [".json", ".safetensors"];

/// Files of a model at a commit, by their SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelPins {
    pub name: String,
    /// Commit of the model's repository.
    pub revision: String,
    /// Lower-case hexadecimal digests by path.
    pub sha256: BTreeMap<String, String>,
}

impl ModelPins {
    /// Command that installs exactly these files.
    pub fn to_command(&self, hub: Option<&str>) -> String {
        let mut command = format!(
            "{} model install {} --revision {}",
            program_name(),
            shell_quote(&self.name),
            self.revision
        );
        if let Some(hub) = hub {
            command.push_str(&format!(" --hub {}", shell_quote(hub)));
        }
        for (path, digest) in &self.sha256 {
            command.push_str(&format!(
                " --sha256 {}",
                shell_quote(&format!("{path}={digest}"))
            ));
        }
        command
    }
}

/// Digest of one file, as `--sha256` gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePin {
    path: String,
    digest: String,
}

/// Model that is requested from a hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubRequest {
    pub name: String,
    /// Commit of the model's repository; `None`: the newest one, which the hub names.
    pub revision: Option<String>,
    /// Digests by path; `None`: the files are trusted as they are.
    pub pins: Option<BTreeMap<String, String>>,
}

impl HubRequest {
    /// Combines a name with the values of `--revision`, `--sha256` and `--trust-on-first-use`; without any of them the
    /// model must be known.
    pub fn new(
        name: &str,
        revision: Option<&str>,
        pins: &[FilePin],
        trusts_first_use: bool,
    ) -> Result<Self, CommandError> {
        if !is_hub_name(name) {
            return Err(CommandError::new(format!(
                "{name} is not the name of a model on a hub; it must be NAME or OWNER/NAME, of letters, digits and \
                 . _ -, with at most {MAX_HUB_NAME_CHARS} characters"
            )));
        }
        let request = |revision: Option<&str>, pins| Self {
            name: name.to_owned(),
            revision: revision.map(str::to_owned),
            pins,
        };
        if trusts_first_use {
            return Ok(request(revision, None));
        }
        if !pins.is_empty() {
            return Ok(request(revision, Some(collect_pins(pins)?)));
        }
        let advice = "give --revision and --sha256 FILE=HASH for each file, or --trust-on-first-use, which prints \
                      what to give";
        if revision.is_some() {
            return Err(CommandError::new(format!(
                "{name}: the digests of the files are missing; {advice}"
            )));
        }
        match find_known_model(KNOWN_MODELS, name)? {
            Some(known) => Ok(request(Some(&known.revision), Some(known.sha256))),
            None => Err(CommandError::new(format!(
                "{name} is not a folder, and this program does not know the files of a model with this name; {advice}"
            ))),
        }
    }
}

fn collect_pins(pins: &[FilePin]) -> Result<BTreeMap<String, String>, CommandError> {
    if pins.len() > MAX_PINS {
        return Err(CommandError::new(format!(
            "--sha256 was given {} times; at most {MAX_PINS} are allowed",
            pins.len()
        )));
    }
    let mut by_path = BTreeMap::new();
    for FilePin { path, digest } in pins {
        if by_path.insert(path.clone(), digest.clone()).is_some() {
            return Err(CommandError::new(format!(
                "--sha256 was given twice for {path}; give one digest for each file"
            )));
        }
    }
    Ok(by_path)
}

fn find_known_model(list: &str, name: &str) -> Result<Option<ModelPins>, CommandError> {
    let known: Vec<ModelPins> = serde_json::from_str(list).map_err(|error| {
        CommandError::new(format!(
            "the list of known models cannot be read ({error}); install the program again"
        ))
    })?;
    Ok(known.into_iter().find(|model| model.name == name))
}

/// Whether a text is the name of a model on a hub: `NAME` or `OWNER/NAME`, where no part can lead to another folder.
pub fn is_hub_name(text: &str) -> bool {
    let is_part = |part: &str| {
        let mut bytes = part.bytes();
        bytes
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric())
            && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
            && !part.contains("..")
    };
    text.len() <= MAX_HUB_NAME_CHARS && text.split('/').count() <= 2 && text.split('/').all(is_part)
}

/// Whether a text is the full id of a commit.
pub fn is_commit(text: &str) -> bool {
    is_lower_hex(text, 40)
}

fn is_lower_hex(text: &str, length: usize) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == length && text.bytes().all(is_digit)
}

/// Parses `--revision`.
pub fn parse_revision(text: &str) -> Result<String, String> {
    let commit = text.to_ascii_lowercase();
    match is_commit(&commit) {
        true => Ok(commit),
        false => Err(
            "a commit has 40 hexadecimal digits; branches and tags can change, and are not accepted"
                .to_owned(),
        ),
    }
}

/// Parses `--sha256`.
pub fn parse_file_pin(text: &str) -> Result<FilePin, String> {
    let Some((path, digest)) = text.rsplit_once('=') else {
        return Err("write FILE=HASH, such as config.json=9f86d0…".to_owned());
    };
    if !FILE_ENDINGS.iter().any(|ending| path.ends_with(ending)) {
        return Err(format!(
            "{path} is not a safetensors or JSON file; no others are taken"
        ));
    }
    let digest = digest.to_ascii_lowercase();
    if !is_lower_hex(&digest, 64) {
        return Err("a SHA-256 has 64 hexadecimal digits".to_owned());
    }
    Ok(FilePin {
        path: path.to_owned(),
        digest,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn pin(path: &str, digit: &str) -> FilePin {
        parse_file_pin(&format!("{path}={}", digit.repeat(64))).unwrap()
    }

    fn error_line(result: Result<HubRequest, CommandError>) -> String {
        match result {
            Err(CommandError::Failed(line)) => line,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn names_lead_nowhere_else() {
        let longest = format!("a/{}", "b".repeat(MAX_HUB_NAME_CHARS - 2));
        for name in [
            "tiny",
            "intfloat/multilingual-e5-small",
            "BAAI/bge-small-en-v1.5",
            &longest,
        ] {
            assert!(is_hub_name(name), "{name}");
        }
        for name in [
            "",
            "/a",
            "a/",
            "a//b",
            "a/b/c",
            "../a",
            "a/..",
            "a..b",
            "./a",
            ".a",
            "-a",
            "a/-b",
            "a b",
            "a%2fb",
            "a?b",
            "a\\b",
            "ä",
            &format!("{longest}b"),
        ] {
            assert!(!is_hub_name(name), "{name}");
            let line = error_line(HubRequest::new(name, None, &[], true));
            assert!(line.contains("is not the name"), "{line}");
        }
    }

    #[test]
    fn revisions_and_digests_are_complete() {
        assert_eq!(parse_revision(&COMMIT.to_uppercase()).unwrap(), COMMIT);
        for wrong in [
            "",
            "main",
            &COMMIT[1..],
            &format!("{COMMIT}0"),
            &"g".repeat(40),
        ] {
            assert!(parse_revision(wrong).is_err(), "{wrong}");
        }
        let digest = "AB".repeat(32);
        let parsed = parse_file_pin(&format!("1_Pooling/config.json={digest}")).unwrap();
        assert_eq!(parsed.path, "1_Pooling/config.json");
        assert_eq!(parsed.digest, digest.to_lowercase());
        for (wrong, reason) in [
            ("config.json".to_owned(), "FILE=HASH"),
            ("config.json=ab".to_owned(), "64"),
            (format!("config.json={}", "g".repeat(64)), "64"),
            (format!("pytorch_model.bin={digest}"), "safetensors"),
            (format!("model.pkl={digest}"), "safetensors"),
        ] {
            let error = parse_file_pin(&wrong).unwrap_err();
            assert!(error.contains(reason), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_model_is_pinned_known_or_trusted() {
        let pins = [pin("config.json", "a"), pin("tokenizer.json", "b")];
        let pinned = HubRequest::new("acme/tiny", Some(COMMIT), &pins, false).unwrap();
        assert_eq!(pinned.revision.as_deref(), Some(COMMIT));
        assert_eq!(pinned.pins.unwrap()["tokenizer.json"], "b".repeat(64));
        let trusted = HubRequest::new("acme/tiny", None, &[], true).unwrap();
        assert_eq!((trusted.revision, trusted.pins), (None, None));

        for (revision, pins, reason) in [
            (None, vec![], "--trust-on-first-use"),
            (Some(COMMIT), vec![], "--sha256"),
            (
                Some(COMMIT),
                vec![pins[0].clone(), pins[0].clone()],
                "twice",
            ),
            (
                Some(COMMIT),
                vec![pins[0].clone(); MAX_PINS + 1],
                "at most 32",
            ),
        ] {
            let line = error_line(HubRequest::new("acme/tiny", revision, &pins, false));
            assert!(line.contains(reason), "{reason}: {line}");
        }
    }

    #[test]
    fn the_list_of_known_models_is_complete_and_valid() {
        let known: Vec<ModelPins> = serde_json::from_str(KNOWN_MODELS).unwrap();
        for model in known {
            assert!(is_hub_name(&model.name), "{model:?}");
            assert!(is_commit(&model.revision), "{model:?}");
            for file in ["config.json", "tokenizer.json", "model.safetensors"] {
                let path = |path: &String| path.rsplit('/').next() == Some(file);
                assert!(model.sha256.keys().any(path), "{file}: {model:?}");
            }
            for (path, digest) in &model.sha256 {
                assert_eq!(
                    parse_file_pin(&format!("{path}={digest}")).unwrap().path,
                    *path
                );
            }
        }
        let list = format!(
            r#"[{{"name": "acme/tiny", "revision": "{COMMIT}", "sha256": {{"config.json": "ab"}}}}]"#
        );
        let found = find_known_model(&list, "acme/tiny").unwrap().unwrap();
        assert_eq!(
            (&*found.revision, &*found.sha256["config.json"]),
            (COMMIT, "ab")
        );
        assert_eq!(find_known_model(&list, "acme/other").unwrap(), None);
    }

    #[test]
    fn the_printed_command_has_every_digest() {
        let pins = ModelPins {
            name: "acme/tiny".to_owned(),
            revision: COMMIT.to_owned(),
            sha256: [("config.json", "ab"), ("tokenizer.json", "cd")]
                .map(|(path, digest)| (path.to_owned(), digest.to_owned()))
                .into(),
        };
        let rest = format!(
            " model install acme/tiny --revision {COMMIT} --hub https://h.example \
             --sha256 config.json=ab --sha256 tokenizer.json=cd"
        );
        let command = pins.to_command(Some("https://h.example"));
        assert!(command.ends_with(&rest), "{command}");
        assert!(!pins.to_command(None).contains("--hub"));
    }
}
