//! Why a model cannot be used or kept.

use std::path::{Path, PathBuf};

/// Why a model cannot be used or kept, in one sentence that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// Something of it cannot be read.
    #[error("{path} cannot be read ({error}); check that it is there and may be read")]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// A file is not there without which there is no model.
    #[error(
        "{0} is missing; a model is a folder with config.json, tokenizer.json and model.safetensors"
    )]
    Missing(String),
    /// A file is longer than any that is read.
    #[error("{file} is longer than {limit} bytes; choose a smaller model")]
    TooLarge {
        /// The file.
        file: String,
        /// The most bytes that are read.
        limit: u64,
    },
    /// A file is no JSON, or has not the members it must have.
    #[error("{file} cannot be understood ({problem}); fetch the model's files again")]
    Malformed {
        /// The file.
        file: String,
        /// What is wrong with it.
        problem: String,
    },
    /// It says something that no sentence encoder for this program does.
    #[error("{file}: {what}; choose another model")]
    Unsupported {
        /// The file that says so.
        file: String,
        /// What it says.
        what: String,
    },
    /// Two of its files, or two sizes in them, contradict each other.
    #[error("{file}: {what}; fetch the model's files again, all of the same version")]
    Mismatch {
        /// The file where it shows.
        file: String,
        /// What does not fit.
        what: String,
    },
    /// It loads, and what comes out of it is no vector.
    #[error("a sentence was tried and gave no vector ({0}); choose another model")]
    Trial(String),
    /// It is no folder.
    #[error("{0} is no folder; unpack a model that was packed, and give its folder")]
    NoFolder(PathBuf),
    /// The data folder cannot be written.
    #[error("{path} cannot be written ({error}); check the data folder and its disk")]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// Another process installs into the same data folder.
    #[error("another process is installing a model into {0}; try again when it is done")]
    Installing(PathBuf),
    /// What is written down of the installed models is not true.
    #[error("{path} {what}; install the model again")]
    Damaged {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The system gives no more threads.
    #[error("no threads can be started ({0}); give this process more of them")]
    Threads(String),
}

impl ModelError {
    /// For `map_err` where something is read.
    pub(super) fn unreadable(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |error| Self::Unreadable {
            path: path.to_owned(),
            error,
        }
    }

    /// For `map_err` where something is written.
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

/// The first line of a message: libraries append where in their own code it arose.
pub(super) fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().trim().to_owned()
}
