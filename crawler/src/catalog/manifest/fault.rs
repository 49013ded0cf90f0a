//! Why a manifest is not verified.

use std::fmt;

/// Why a manifest is not verified, by the step of the profile that it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ManifestFault {
    /// It has no signature with a profile that is verified.
    Profile,
    /// Its signer is not `did:web:` and a domain alone, or not the contributor.
    Signer,
    /// JSON parsers read it differently, so it is not known what was signed.
    Ambiguous,
    /// Its `jws` is no detached JWS.
    NotJws,
    /// The header of its `jws` has a wrong or a forbidden member.
    Header,
    /// The signer's DID document is none, or is somebody else's.
    Document,
    /// The DID document does not have the key exactly once for this purpose, or it is not a P-256 key.
    Key,
    /// The key did not make the signature.
    Mismatch,
    /// It is not valid yet, or no longer, or does not say since when.
    Time,
    /// It is about another entry, or about another version or content of it.
    Subject,
    /// The content does not have the digest that it states.
    Digest,
}

impl ManifestFault {
    /// The stable name, in the API and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Profile => "profile",
            Self::Signer => "signer",
            Self::Ambiguous => "ambiguous",
            Self::NotJws => "not-jws",
            Self::Header => "header",
            Self::Document => "did-document",
            Self::Key => "key",
            Self::Mismatch => "mismatch",
            Self::Time => "time",
            Self::Subject => "subject",
            Self::Digest => "digest",
        }
    }

    /// The fault, as the end of a sentence that begins with the manifest.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Profile => "is not signed by the profile did-web-v1",
            Self::Signer => "is not signed by its contributor's own did:web",
            Self::Ambiguous => "is read differently by different JSON parsers",
            Self::NotJws => "has a signature that is no detached JWS",
            Self::Header => "has a signature with a wrong or forbidden header",
            Self::Document => "names a signer without a usable DID document",
            Self::Key => "names a key that its signer does not publish for assertions",
            Self::Mismatch => "has a signature by another key, or was changed",
            Self::Time => "is not valid at this time",
            Self::Subject => "is about another entry, or another version of it",
            Self::Digest => "states another digest than the content has",
        }
    }
}

impl fmt::Display for ManifestFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sentence())
    }
}
