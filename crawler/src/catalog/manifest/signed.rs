//! A signed manifest: steps 1 to 4 of the profile, and the check of what they leave.

use a2a_card::{DetachedJws, canonical_json, exact_json};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::did_document::key_of;
use super::fault::ManifestFault;
use super::subject::{EntryFacts, Subject};
use super::{CLOCK_SKEW, PROFILE};
use crate::catalog::identifier::is_publisher;

/// What a signature is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ManifestKind {
    /// One of an entry's `trustManifests`.
    Entry,
    /// A whole catalog, by its root member `signature`.
    Catalog,
}

impl ManifestKind {
    /// The header's `typ`.
    const fn typ(self) -> &'static str {
        match self {
            Self::Entry => "ai-catalog-trust-manifest+jws",
            Self::Catalog => "ai-catalog+jws",
        }
    }
}

/// A manifest whose form and header are in order. It proves nothing before [`SignedManifest::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedManifest {
    kind: ManifestKind,
    signer: String,
    kid: String,
    jws: DetachedJws,
    /// The signed bytes: the canonical form of the object without its own `jws`.
    payload: Vec<u8>,
    issued_at: OffsetDateTime,
    expires_at: Option<OffsetDateTime>,
    subject: Option<Subject>,
}

impl SignedManifest {
    /// Reads a manifest, or a whole catalog, from its bytes as received.
    ///
    /// # Errors
    /// [`ManifestFault`], by steps 1 to 4, and where a member that step 6 or 7 needs is missing.
    pub fn read(bytes: &[u8], kind: ManifestKind) -> Result<Self, ManifestFault> {
        let Some(Value::Object(mut members)) = exact_json(bytes) else {
            return Err(ManifestFault::Ambiguous);
        };
        let signature = members.get("signature").and_then(Value::as_object);
        let signature = signature.ok_or(ManifestFault::Profile)?;
        let text = |name: &str| signature.get(name).and_then(Value::as_str);
        if text("profile") != Some(PROFILE) {
            return Err(ManifestFault::Profile);
        }
        let signer = text("signer").ok_or(ManifestFault::Signer)?.to_owned();
        let speaker = match kind {
            ManifestKind::Entry => members.get("contributor"),
            ManifestKind::Catalog => members.get("host").and_then(|host| host.get("identifier")),
        };
        if domain_of(&signer).is_none() || speaker.and_then(Value::as_str) != Some(&signer) {
            return Err(ManifestFault::Signer);
        }
        let jws = DetachedJws::read(text("jws").unwrap_or_default());
        let jws = jws.ok_or(ManifestFault::NotJws)?;
        let kid = key_id(jws.header(), &signer, kind).ok_or(ManifestFault::Header)?;
        let moment = |name: &str| match signature.get(name) {
            None => Ok(None),
            Some(value) => {
                let at = value
                    .as_str()
                    .and_then(|text| OffsetDateTime::parse(text, &Rfc3339).ok());
                at.map(Some).ok_or(ManifestFault::Time)
            }
        };
        let issued_at = moment("issuedAt")?.ok_or(ManifestFault::Time)?;
        let expires_at = moment("expiresAt")?;
        let subject = match kind {
            ManifestKind::Catalog => None,
            ManifestKind::Entry => Some(Subject::read(members.get("subject"))?),
        };
        if let Some(Value::Object(signature)) = members.get_mut("signature") {
            signature.remove("jws");
        }
        members.remove("additionalSignatures");
        let payload = canonical_json(&Value::Object(members)).ok_or(ManifestFault::Ambiguous)?;
        Ok(Self {
            kind,
            signer,
            kid,
            jws,
            payload,
            issued_at,
            expires_at,
            subject,
        })
    }

    /// The domain of the signer.
    pub fn domain(&self) -> &str {
        domain_of(&self.signer).unwrap_or_default()
    }

    /// What it is on.
    pub const fn kind(&self) -> ManifestKind {
        self.kind
    }

    /// URL of the signer's DID document.
    pub fn did_document_url(&self) -> String {
        format!("https://{}/.well-known/did.json", self.domain())
    }

    /// When it expires, if it says so.
    pub const fn expires_at(&self) -> Option<OffsetDateTime> {
        self.expires_at
    }

    /// Whether the digest of the entry's content is needed to check it, because it states one.
    pub fn states_digest(&self) -> bool {
        self.subject.as_ref().is_some_and(Subject::states_digest)
    }

    /// Checks it with the signer's DID document, at this time. One about an entry is checked against that entry too.
    ///
    /// # Errors
    /// [`ManifestFault`], by steps 5 to 7.
    pub fn check(
        &self,
        did_document: &[u8],
        entry: &EntryFacts<'_>,
        now: OffsetDateTime,
    ) -> Result<(), ManifestFault> {
        let document = exact_json(did_document).ok_or(ManifestFault::Document)?;
        let key = key_of(&document, &self.signer, &self.kid)?;
        if !self.jws.is_es256_by(key, &self.payload) {
            return Err(ManifestFault::Mismatch);
        }
        let skew = time::Duration::seconds(CLOCK_SKEW);
        let expired = self.expires_at.is_some_and(|end| now - skew >= end);
        if now + skew < self.issued_at || expired {
            return Err(ManifestFault::Time);
        }
        match &self.subject {
            Some(subject) => subject.check(entry),
            None => Ok(()),
        }
    }
}

/// The domain of `did:web:` and a domain alone, in lower case, without port and path.
fn domain_of(signer: &str) -> Option<&str> {
    let domain = signer.strip_prefix("did:web:")?;
    is_publisher(domain).then_some(domain)
}

/// Header members that give a key, say where one is, or change what is signed.
const FORBIDDEN: [&str; 6] = ["b64", "jku", "jwk", "x5u", "x5c", "crit"];

/// The key identifier of a header that keeps to the profile. As no extension is understood, `crit` can name none that is.
fn key_id(header: &Map<String, Value>, signer: &str, kind: ManifestKind) -> Option<String> {
    let text = |name: &str| header.get(name).and_then(Value::as_str);
    let kid = text("kid")?;
    let fragment = kid.strip_prefix(signer)?.strip_prefix('#')?;
    let is_usual = text("alg") == Some("ES256") && text("typ") == Some(kind.typ());
    let is_free = FORBIDDEN.iter().all(|name| !header.contains_key(*name));
    (is_usual && is_free && !fragment.is_empty() && !fragment.contains('#')).then(|| kid.to_owned())
}
