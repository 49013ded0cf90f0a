//! Errors of calls to a registry: rejections as problem documents, and failed connections.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::command_error::{CommandError, CommandErrorDetails, build_problem_document};

/// A problem document (RFC 9457).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProblemDetails {
    /// Kind of the problem, as a URL or path.
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    pub status: u16,
    pub detail: String,
    pub errors: Vec<ProblemMemberError>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProblemMemberError {
    /// The JSON Pointer (RFC 6901) to the member.
    pub pointer: String,
    pub detail: String,
}

/// Error of a call to a registry. Displays as one line that may quote the server.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClientError {
    /// No connection could be made.
    #[error(
        "no registry answers at {base} ({reason}); start one with `a2a-registry serve`, or name \
         another with --registry URL"
    )]
    Unreachable { base: String, reason: String },
    /// The registry refused the request with a problem document.
    #[error("{}", describe_problem(.problem, .retry_after.as_deref()))]
    Rejected {
        problem: Box<ProblemDetails>,
        /// The document as received.
        raw: Bytes,
        retry_after: Option<String>,
    },
    /// The response is not from a registry.
    #[error(
        "{url} answered HTTP {status} with {what}; is a registry running there? check --registry"
    )]
    NotARegistry {
        url: String,
        status: u16,
        /// Content of the response.
        what: String,
    },
    /// A change was sent and got no response, so it may have been made.
    #[error(
        "{0}; the change may have been made: check with `show`, `list` or `history` before you repeat it, or wait \
         longer with --registry-timeout"
    )]
    OutcomeUnknown(String),
    /// A request that changes nothing got no response.
    #[error("{0}; check the registry's /readyz, or wait longer with --registry-timeout")]
    NoResponse(String),
    #[error("{base} redirects to {location}; give that registry's URL with --registry")]
    Redirected { base: String, location: String },
    /// Any other failure, as a sentence.
    #[error("{0}")]
    Failed(String),
}

impl ClientError {
    /// Whether the error is a rejection of the kind `slug`, the last segment of the problem's `type`.
    pub fn is_problem_of_kind(&self, slug: &str) -> bool {
        match self {
            Self::Rejected { problem, .. } => problem.kind.strip_prefix("/problems/") == Some(slug),
            _ => false,
        }
    }

    /// HTTP status of a rejection.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Rejected { problem, .. } => Some(problem.status),
            _ => None,
        }
    }

    /// The message without flags and commands, for a reader without a shell.
    pub fn message_without_commands(&self) -> String {
        match self {
            Self::Unreachable { base, reason } => {
                format!("no registry answers at {base} ({reason})")
            }
            Self::Rejected {
                problem,
                retry_after,
                ..
            } => match problem.status {
                401 => format!(
                    "{}; the user must give this program a valid token",
                    summarize_problem(problem).trim_end_matches('.')
                ),
                _ => describe_problem(problem, retry_after.as_deref()),
            },
            Self::NotARegistry { url, status, what } => {
                format!(
                    "{url} answered HTTP {status} with {what}, which is not a registry's response"
                )
            }
            Self::NoResponse(what) | Self::OutcomeUnknown(what) | Self::Failed(what) => {
                what.clone()
            }
            Self::Redirected { base, location } => format!("{base} redirects to {location}"),
        }
    }
}

/// The result, or `None` if the registry has no such resource or the caller may not see it.
pub fn not_found_as_none<T>(result: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.status() == Some(404) => Ok(None),
        Err(error) => Err(error),
    }
}

impl From<ClientError> for CommandError {
    /// Converts 404 to a negative result, every other error to a failure.
    fn from(error: ClientError) -> Self {
        let (summary, is_negative) = (error.to_string(), error.status() == Some(404));
        let without_commands = error.message_without_commands();
        let document = match error {
            ClientError::Rejected { raw, .. } => raw,
            _ => build_problem_document(&summary, 2, &Value::Null),
        };
        Self::Detailed(Box::new(CommandErrorDetails {
            is_negative,
            summary,
            without_commands: Some(without_commands),
            preamble: Vec::new(),
            document,
        }))
    }
}

/// Detail of a problem, for a user of the program. The registry's own sentences about tokens and conflicting changes
/// refer to request headers, which a user does not write.
fn problem_detail_for_user(problem: &ProblemDetails) -> &str {
    let names = |header: &str| problem.detail.contains(header);
    match problem.status {
        // The title already says that a token is required, and the advice on how to give one follows.
        401 if names("`Authorization") => "",
        412 if names("`If-Match`") => {
            "Nothing was changed. Check the current state, then run the command again."
        }
        _ => &problem.detail,
    }
}

/// Problem document in one line, with advice.
fn describe_problem(problem: &ProblemDetails, retry_after: Option<&str>) -> String {
    let mut line = summarize_problem(problem);
    match problem.status {
        // A code that cannot be exchanged takes another login, not a token.
        401 if line.contains("`a2a-registry login`") => {}
        401 => {
            if !line.ends_with(['.', '?', '!']) {
                line.push('.');
            }
            line.push_str(
                " Give a token with --token or in A2A_REGISTRY_TOKEN. `a2a-registry login` gets and keeps one.",
            );
        }
        429 => {
            if let Some(seconds) = retry_after {
                line.push_str(&format!(" Try again in {seconds} s."));
            }
        }
        _ => {}
    }
    line
}

/// Summary of a problem document, in one line.
fn summarize_problem(problem: &ProblemDetails) -> String {
    let mut parts = Vec::new();
    // The detail of a 404 says what is missing; "Not found" adds nothing to it.
    let detail_suffices = problem.status == 404 && !problem.detail.is_empty();
    let title = Some(problem.title.as_str()).filter(|_| !detail_suffices);
    parts.extend(
        title
            .into_iter()
            .chain([problem_detail_for_user(problem)])
            .filter(|text| !text.is_empty()),
    );
    let mut line = parts.join(": ");
    if line.is_empty() {
        line = format!("the registry answered HTTP {}", problem.status);
    }
    let members: Vec<_> = problem
        .errors
        .iter()
        .filter(|member| member.detail != problem.detail)
        .map(|member| format!("{}: {}", member.pointer, member.detail))
        .collect();
    if !members.is_empty() {
        line = format!("{line} ({})", members.join("; "));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_become_one_line() {
        let member = |pointer: &str, detail: &str| ProblemMemberError {
            pointer: pointer.into(),
            detail: detail.into(),
        };
        let mut problem = ProblemDetails {
            title: "Invalid request".into(),
            status: 400,
            detail: "limit is no member.".into(),
            errors: vec![
                member("/limit", "limit is no member."),
                member("/q", "too long"),
            ],
            ..ProblemDetails::default()
        };
        assert_eq!(
            describe_problem(&problem, None),
            "Invalid request: limit is no member. (/q: too long)"
        );
        problem = ProblemDetails {
            status: 404,
            title: "Not found".into(),
            detail: "Domain nope.example is not registered.".into(),
            ..ProblemDetails::default()
        };
        assert_eq!(
            describe_problem(&problem, None),
            "Domain nope.example is not registered."
        );
        problem = ProblemDetails {
            status: 401,
            title: "Who are you?".into(),
            ..ProblemDetails::default()
        };
        assert!(describe_problem(&problem, None).contains("--token"));
        problem.title = "A token is required".into();
        problem.detail = "This needs a token: send it as `Authorization: Bearer …`.".into();
        assert_eq!(
            describe_problem(&problem, None),
            "A token is required. Give a token with --token or in A2A_REGISTRY_TOKEN. `a2a-registry login` gets and \
             keeps one."
        );
        problem = ProblemDetails {
            status: 412,
            title: "The resource was changed by someone else".into(),
            detail: "The newest policy set is 4, not the one that `If-Match` names. Nothing was changed; read it again.".into(),
            ..ProblemDetails::default()
        };
        assert_eq!(
            describe_problem(&problem, None),
            "The resource was changed by someone else: Nothing was changed. \
             Check the current state, then run the command again."
        );
        problem = ProblemDetails {
            status: 429,
            title: "Slow down.".into(),
            ..ProblemDetails::default()
        };
        assert_eq!(
            describe_problem(&problem, Some("7")),
            "Slow down. Try again in 7 s."
        );
        assert!(
            describe_problem(
                &ProblemDetails {
                    status: 500,
                    ..ProblemDetails::default()
                },
                None
            )
            .contains("500")
        );
    }
}
