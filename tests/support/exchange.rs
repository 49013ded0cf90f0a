//! Requests and responses of a registry under test, checked against the `OpenAPI` document.
//!
//! Every client of a registry in a test connects through a [`ValidatingProxy`]: the test as well as the command line,
//! an SDK or a browser. The proxy forwards every byte unchanged and parses a copy. A request or a response that is not
//! documented fails the test that owns the registry.

mod connection_parser;
mod document;
mod exchange_counts;
mod schemas;
mod tests;
mod validating_proxy;

pub use document::ApiDocument;
pub use exchange_counts::read_run_counts;
pub use validating_proxy::ValidatingProxy;

/// A request as it was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservedRequest {
    /// The method.
    pub method: String,
    /// The path with its query, as sent.
    pub target: String,
    /// The headers, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// The body; `None` if the response came before the request was complete.
    pub body: Option<Vec<u8>>,
}

/// A response as it was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservedResponse {
    /// The status.
    pub status: u16,
    /// The headers, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// The body, without content coding; `None` for a stream that does not end.
    pub body: Option<Vec<u8>>,
}

fn find_header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut found = headers.iter().filter(|(key, _)| key == name);
    found.next().map(|(_, value)| value.as_str())
}

impl ObservedResponse {
    /// The value of the first header of that (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        find_header(&self.headers, name)
    }

    /// The media type, in lower case and without parameters.
    pub fn media_type(&self) -> Option<String> {
        let essence = self.header("content-type")?.split(';').next()?;
        Some(essence.trim().to_ascii_lowercase())
    }
}
