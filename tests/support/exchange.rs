//! What passes between a registry under test and whoever asks it, held against the `OpenAPI` document.
//!
//! A registry that a test starts is asked through a [`Tap`], by the test as well as by the command line, an SDK or a
//! browser: it hands every byte on as it is, and reads along. A request or an answer that the document does not know
//! fails the test that its registry belongs to.

mod conversation;
mod document;
mod schemas;
mod tally;
mod tap;
mod tests;

pub use document::Document;
pub use tally::gathered;
pub use tap::Tap;

/// A request as it was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path with its query, as sent.
    pub target: String,
    /// The headers, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// The body; nothing where it was answered before it was complete.
    pub body: Option<Vec<u8>>,
}

/// An answer as it was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservedResponse {
    /// The status.
    pub status: u16,
    /// The headers, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// The body, without codings; nothing for a stream that goes on.
    pub body: Option<Vec<u8>>,
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut found = headers.iter().filter(|(key, _)| key == name);
    found.next().map(|(_, value)| value.as_str())
}

impl ObservedResponse {
    /// The value of the first header of that (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The media type, in lower case and without parameters.
    pub fn media_type(&self) -> Option<String> {
        let essence = self.header("content-type")?.split(';').next()?;
        Some(essence.trim().to_ascii_lowercase())
    }
}
