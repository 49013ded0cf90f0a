//! Errors of models.

use std::path::{Path, PathBuf};

/// Why a model cannot be used or installed, in one sentence that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A file or folder cannot be read.
    #[error("{path} cannot be read ({error}); check that it exists and that this user may read it")]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A required file is missing.
    #[error(
        "{0} is missing; a model is a folder with config.json, tokenizer.json and model.safetensors"
    )]
    Missing(String),
    /// A file is longer than the limit.
    #[error("{file} is longer than {limit} bytes; choose a smaller model")]
    TooLarge {
        /// The file.
        file: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// A file is not JSON, or lacks required members.
    #[error("{file} cannot be read ({problem}); download the model's files again")]
    Malformed {
        /// The file.
        file: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The model needs a feature that this program does not have.
    #[error("{file}: {what}; choose another model")]
    Unsupported {
        /// The file that requires it.
        file: String,
        /// The feature.
        what: String,
    },
    /// Two files of the model, or two sizes in them, contradict each other.
    #[error("{file}: {what}; download the model's files again, all of the same version")]
    Mismatch {
        /// The file in which this was found.
        file: String,
        /// The contradiction.
        what: String,
    },
    /// The model loads, but its output is not a vector.
    #[error("a test sentence gave no vector ({0}); choose another model")]
    Trial(String),
    /// The path is not a folder.
    #[error("{0} is not a folder; unpack the model, and give its folder")]
    NoFolder(PathBuf),
    /// The data folder cannot be written.
    #[error("{path} cannot be written ({error}); check the data folder and its disk")]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// Another process installs into the same data folder.
    #[error("another process is installing a model into {0}; try again when it is done")]
    Installing(PathBuf),
    /// The record of installed models is wrong.
    #[error("{path} {what}; install the model again")]
    Damaged {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The system does not start more threads.
    #[error("no more threads can be started ({0}); raise the limit of threads for this process")]
    Threads(String),
}

impl ModelError {
    /// Makes the error for a failed read.
    pub(super) fn unreadable(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |error| Self::Unreadable {
            path: path.to_owned(),
            error,
        }
    }

    /// Makes the error for a failed write.
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

/// The first line of a message: libraries append the position in their own code.
pub(super) fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().trim().to_owned()
}
