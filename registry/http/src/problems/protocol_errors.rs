//! Error formats of the protocols that are served in addition to the API.

use actix_web::{HttpRequest, HttpResponse};

use crate::problems::problem::Problem;

/// Error format of one protocol: its paths and the function that renders an error.
#[derive(Debug, Clone, Copy)]
pub struct ProtocolErrorFormat {
    /// Path, or prefix of longer paths that continue with `/`.
    pub path: &'static str,
    pub render: fn(&HttpRequest, &Problem) -> HttpResponse,
}

impl ProtocolErrorFormat {
    /// Finds the protocol of a path.
    pub(crate) fn for_path<'a>(all: &'a [Self], path: &str) -> Option<&'a Self> {
        all.iter().find(|one| {
            let rest = path.strip_prefix(one.path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}
