//! The subject of a manifest: step 7 of the profile.

use serde_json::Value;

use super::fault::ManifestFault;

/// What a manifest's subject is compared with, each member as the entry has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EntryFacts<'e> {
    /// `identifier`.
    pub identifier: &'e str,
    /// `type`.
    pub media_type: &'e str,
    /// `version`.
    pub version: Option<&'e str>,
    /// `url`.
    pub url: Option<&'e str>,
    /// `digest`.
    pub digest: Option<&'e str>,
    /// The digest of the content: of the fetched bytes for `url`, of the canonical form for `data`; `None` where it was not
    /// fetched, or has none.
    pub content: Option<&'e str>,
}

/// The subject of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subject {
    identifier: String,
    media_type: String,
    version: Option<String>,
    url: Option<String>,
    digest: Option<String>,
}

impl Subject {
    /// Reads a subject: identifier and type, and at least one of digest and URL.
    pub(super) fn read(value: Option<&Value>) -> Result<Self, ManifestFault> {
        let subject = value
            .and_then(Value::as_object)
            .ok_or(ManifestFault::Subject)?;
        let text = |name: &str| match subject.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(ManifestFault::Subject),
        };
        let read = Self {
            identifier: text("identifier")?.ok_or(ManifestFault::Subject)?,
            media_type: text("type")?.ok_or(ManifestFault::Subject)?,
            version: text("version")?,
            url: text("url")?,
            digest: text("digest")?,
        };
        if read.url.is_none() && read.digest.is_none() {
            return Err(ManifestFault::Subject);
        }
        Ok(read)
    }

    pub(super) const fn states_digest(&self) -> bool {
        self.digest.is_some()
    }

    /// Compares it with an entry, each member exactly.
    pub(super) fn check(&self, entry: &EntryFacts<'_>) -> Result<(), ManifestFault> {
        let is_same = self.identifier == entry.identifier
            && self.media_type == entry.media_type
            && self.version.as_deref() == entry.version
            && self.digest.as_deref() == entry.digest;
        let url_fits = self
            .url
            .as_deref()
            .is_none_or(|url| url.starts_with("https://") && entry.url == Some(url));
        if !is_same || !url_fits {
            return Err(ManifestFault::Subject);
        }
        match &self.digest {
            Some(digest) if entry.content != Some(digest) => Err(ManifestFault::Digest),
            _ => Ok(()),
        }
    }
}
