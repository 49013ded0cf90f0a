//! Entity tags of responses (RFC 9110 section 8.8.3): a value is rendered as JSON, and its tag is a hash of that.

use bytes::Bytes;
use data_encoding::BASE64URL_NOPAD;
use ring::digest::{SHA256, digest};
use serde::Serialize;

use crate::error::AppError;

/// A value rendered as JSON, with its entity tag.
#[derive(Debug, Clone)]
pub struct RenderedJson {
    pub body: Bytes,
    /// The entity tag: weak, because a compressed response has other bytes (RFC 9110 section 8.8.1).
    pub tag: String,
}

impl RenderedJson {
    /// Renders a value whose entity tag begins with the tag of a part of it. Preconditions of changes compare only
    /// that part (see [`IfMatch::check_part`](crate::precondition::IfMatch::check_part)).
    pub fn with_part(value: &impl Serialize, part: &impl Serialize) -> Result<Self, AppError> {
        Self::with_part_tag(value, Self::render(part)?.tag_value())
    }

    /// Renders another view of the resource, whose entity tag begins with the tag of the same part.
    pub fn with_same_part(&self, value: &impl Serialize) -> Result<Self, AppError> {
        let part = self.tag_value().split('.').next().unwrap_or_default();
        Self::with_part_tag(value, part)
    }

    fn with_part_tag(value: &impl Serialize, part: &str) -> Result<Self, AppError> {
        let rendered = Self::render(value)?;
        let tag = format!("W/\"{part}.{}\"", rendered.tag_value());
        Ok(Self { tag, ..rendered })
    }

    pub fn tag_value(&self) -> &str {
        self.tag.trim_start_matches("W/").trim_matches('"')
    }

    pub fn render(value: &impl Serialize) -> Result<Self, AppError> {
        let body =
            serde_json::to_vec(value).map_err(|error| AppError::internal(error.to_string()))?;
        let hash = digest(&SHA256, &body);
        Ok(Self {
            tag: format!("W/\"{}\"", BASE64URL_NOPAD.encode(&hash.as_ref()[..16])),
            body: Bytes::from(body),
        })
    }
}
