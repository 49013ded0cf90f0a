//! Failures as the dialects have them that are spoken beside the API: each has a form of its own.

use actix_web::{HttpRequest, HttpResponse};

use crate::http::problem::Problem;

/// Failures in the form of one dialect: the paths that begin so, and how a failure is written there.
#[derive(Debug, Clone, Copy)]
pub struct DialectErrors {
    /// The path, or that path with `/` and more behind it.
    pub path: &'static str,
    /// Writes a failure.
    pub render: fn(&HttpRequest, &Problem) -> HttpResponse,
}

impl DialectErrors {
    /// The dialect that is spoken at a path.
    pub(crate) fn at<'a>(all: &'a [Self], path: &str) -> Option<&'a Self> {
        all.iter().find(|one| {
            let rest = path.strip_prefix(one.path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}
