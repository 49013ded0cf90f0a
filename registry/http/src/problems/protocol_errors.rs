//! Errors in the forms of the protocols that are spoken beside the API.

use actix_web::{HttpRequest, HttpResponse};

use crate::problems::problem::Problem;

/// Errors in the form of one protocol: its paths, and how an error is written there.
#[derive(Debug, Clone, Copy)]
pub struct ProtocolErrors {
    /// The path, or the prefix of longer ones that continue with `/`.
    pub path: &'static str,
    pub render: fn(&HttpRequest, &Problem) -> HttpResponse,
}

impl ProtocolErrors {
    /// The protocol that is spoken at a path.
    pub(crate) fn for_path<'a>(all: &'a [Self], path: &str) -> Option<&'a Self> {
        all.iter().find(|one| {
            let rest = path.strip_prefix(one.path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}
