//! Errors of loading and installing models.

use std::path::{Path, PathBuf};

/// The reason why a model cannot be used or installed, in one sentence that names the action to take.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("{path} cannot be read ({error}); check that it exists and that this user may read it")]
    Unreadable {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error(
        "{0} is missing; a model is a folder with config.json, tokenizer.json and model.safetensors"
    )]
    Missing(String),
    #[error("{file} is longer than {limit} bytes; choose a smaller model")]
    TooLarge { file: String, limit: u64 },
    /// A file is not valid JSON, or lacks required members.
    #[error("{file} cannot be read ({problem}); download the model's files again")]
    Malformed { file: String, problem: String },
    /// The model needs an unsupported feature.
    #[error("{file}: {what}; choose another model")]
    Unsupported { file: String, what: String },
    /// Two files of the model, or two sizes in them, are inconsistent.
    #[error("{file}: {what}; download the model's files again, all of the same version")]
    Mismatch { file: String, what: String },
    /// The model loads, but its output is not a vector.
    #[error("a test sentence could not be encoded ({0}); choose another model")]
    Trial(String),
    #[error("{0} is not a folder; unpack the model, and pass its folder")]
    NotAFolder(PathBuf),
    #[error("{path} cannot be written ({error}); check the data folder and its disk")]
    Unwritable {
        path: PathBuf,
        error: std::io::Error,
    },
    #[error("another process is installing a model into {0}; try again when it is done")]
    Installing(PathBuf),
    /// The stored state of installed models is invalid.
    #[error("{path} {what}; install the model again")]
    Damaged { path: PathBuf, what: String },
    #[error("no more threads can be started ({0}); raise the limit of threads for this process")]
    Threads(String),
}

impl ModelError {
    pub(super) fn unreadable(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |error| Self::Unreadable {
            path: path.to_owned(),
            error,
        }
    }

    pub(super) fn unwritable(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |error| Self::Unwritable {
            path: path.to_owned(),
            error,
        }
    }

    pub(super) fn malformed(file: &str, problem: impl ToString) -> Self {
        Self::Malformed {
            file: file.to_owned(),
            problem: first_line(&problem.to_string()),
        }
    }

    pub(super) fn unsupported(file: &str, what: impl Into<String>) -> Self {
        Self::Unsupported {
            file: file.to_owned(),
            what: what.into(),
        }
    }

    pub(super) fn mismatch(file: &str, what: impl Into<String>) -> Self {
        Self::Mismatch {
            file: file.to_owned(),
            what: what.into(),
        }
    }
}

/// The first line of a message: libraries append positions in their own code.
pub(super) fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().trim().to_owned()
}
