//! Verifies the manifests of a catalog's entries, with the requests that the catalog has left.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::OnceLock;

use serde_json::Value;
use serde_json::value::RawValue;
use time::OffsetDateTime;
use url::Url;

use super::{Fetcher, GetOptions};
use crate::catalog::manifest::{
    EntryFacts, MAX_DID_DOCUMENT, MAX_MANIFESTS, ManifestFault, ManifestKind, SignedManifest,
};
use crate::catalog::{
    Authority, CatalogDocument, CatalogWalk, Endorsement, TypedEntry, publisher_of,
};
use crate::guard::Guard;

/// The signed documents of one catalog.
#[derive(Debug, Default)]
pub(super) struct SignedCatalogs(Vec<SignedCatalog>);

/// A document that is signed as a whole.
#[derive(Debug)]
struct SignedCatalog {
    read: Result<SignedManifest, ManifestFault>,
    /// The identifiers of its entries.
    names: HashSet<String>,
    /// Whether the signature holds. It is the same for all entries, and a document is large.
    verdict: OnceLock<Result<(), ManifestFault>>,
}

impl SignedCatalogs {
    /// Adds a document, if it is signed as a whole.
    pub(super) fn add(&mut self, bytes: &[u8], content: &CatalogDocument) {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let read = SignedManifest::read(bytes, ManifestKind::Catalog);
        if read != Err(ManifestFault::Profile) && !content.others.is_empty() {
            let named = content.others.iter();
            self.0.push(SignedCatalog {
                read,
                names: named.map(|one| one.identifier.clone()).collect(),
                verdict: OnceLock::new(),
            });
        }
    }
}

/// A manifest that may endorse an entry.
struct Candidate<'s> {
    manifest: Cow<'s, SignedManifest>,
    /// The verdict on it, where that is the same for other entries.
    verdict: Option<&'s OnceLock<Result<(), ManifestFault>>>,
}

/// What was fetched for the manifests of one catalog: each document once, or why there is none.
#[derive(Debug, Default)]
struct Fetches {
    documents: BTreeMap<String, Result<Vec<u8>, String>>,
}

impl Fetcher {
    /// Finds out which entries their publishers endorse; returns whether any of them has a manifest of its publisher. The
    /// entries that the serving host does not stand for already come first, because the requests are few.
    pub(super) async fn endorse(
        &self,
        walk: &mut CatalogWalk<'_>,
        signed: &SignedCatalogs,
    ) -> bool {
        let mut fetches = Fetches::default();
        let mut others = std::mem::take(walk.others_mut());
        let mut order: Vec<usize> = (0..others.len()).collect();
        order.sort_by_key(|place| {
            others
                .get(*place)
                .is_some_and(|one| one.authority() == Authority::DomainVerified)
        });
        let mut any = false;
        for place in order {
            let Some(entry) = others.get_mut(place) else {
                continue;
            };
            let manifests = of_publisher(entry, signed);
            any |= !manifests.is_empty();
            for manifest in manifests {
                let found = self.endorsement(walk, &mut fetches, entry, manifest).await;
                let is_verified = matches!(found, Endorsement::Verified { .. });
                // As long as one could not be checked, it is not known that none of them holds.
                if is_verified || !matches!(entry.endorsement, Endorsement::Unchecked(_)) {
                    entry.endorsement = found;
                }
                if is_verified {
                    break;
                }
            }
        }
        *walk.others_mut() = others;
        any
    }

    /// What one manifest says about an entry.
    async fn endorsement(
        &self,
        walk: &mut CatalogWalk<'_>,
        fetches: &mut Fetches,
        entry: &TypedEntry,
        candidate: Result<Candidate<'_>, ManifestFault>,
    ) -> Endorsement {
        let candidate = match candidate {
            Ok(candidate) => candidate,
            Err(fault) => return Endorsement::Failed(fault),
        };
        let manifest = candidate.manifest.as_ref();
        let url = manifest.did_document_url();
        let document = match self.fetched(walk, fetches, &url, MAX_DID_DOCUMENT).await {
            Ok(document) => document.clone(),
            Err(why) => return Endorsement::Unchecked(format!("{url}: {why}")),
        };
        let members: Value = serde_json::from_str(&entry.raw).unwrap_or_default();
        let content = if manifest.states_digest() {
            match self.content_digest(walk, fetches, entry, &members).await {
                Ok(digest) => digest,
                Err(why) => return Endorsement::Unchecked(why),
            }
        } else {
            None
        };
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let facts = EntryFacts {
            identifier: text("identifier").unwrap_or_default(),
            media_type: text("type").unwrap_or_default(),
            version: text("version"),
            url: text("url"),
            digest: text("digest"),
            content: content.as_deref(),
        };
        let now: OffsetDateTime = self.clock.now();
        let check = || manifest.check(&document, &facts, now);
        let verdict = match candidate.verdict {
            Some(kept) => *kept.get_or_init(check),
            None => check(),
        };
        match verdict {
            Ok(()) => Endorsement::Verified {
                domain: manifest.domain().to_owned(),
                expires_at: manifest.expires_at(),
            },
            Err(fault) => Endorsement::Failed(fault),
        }
    }

    /// The digest of an entry's content, fetched if it is at a URL; only from the site of the catalog, so that a catalog
    /// cannot have others' hosts fetched for it.
    async fn content_digest(
        &self,
        walk: &mut CatalogWalk<'_>,
        fetches: &mut Fetches,
        entry: &TypedEntry,
        members: &Value,
    ) -> Result<Option<String>, String> {
        let Some(url) = &entry.url else {
            let canonical = members.get("data").and_then(a2a_card::canonical_json);
            return Ok(canonical.map(|bytes| a2a_card::digest(&bytes)));
        };
        if !Guard::same_site(walk.first(), url) {
            return Err(format!(
                "{url} is not on the site of the catalog, so its digest is not compared"
            ));
        }
        let most = walk.bytes_left();
        let bytes = self.fetched(walk, fetches, url.as_str(), most).await;
        let bytes = bytes.as_ref().map_err(|why| format!("{url}: {why}"))?;
        Ok(Some(a2a_card::digest(bytes)))
    }

    /// The bytes at a URL, fetched once; or why there are none.
    async fn fetched<'f>(
        &self,
        walk: &mut CatalogWalk<'_>,
        fetches: &'f mut Fetches,
        url: &str,
        most: usize,
    ) -> &'f Result<Vec<u8>, String> {
        if !fetches.documents.contains_key(url) {
            let answer = match Url::parse(url) {
                Ok(parsed) if walk.may_ask() => self.fetch_bytes(&parsed, most).await,
                Ok(_) => Err("the requests for one catalog are used up".to_owned()),
                Err(error) => Err(error.to_string()),
            };
            fetches.documents.insert(url.to_owned(), answer);
        }
        fetches
            .documents
            .entry(url.to_owned())
            .or_insert_with(|| Err("it was not fetched".to_owned()))
    }

    /// The body at a URL without redirects: whoever is redirected to may be somebody else.
    async fn fetch_bytes(&self, url: &Url, most: usize) -> Result<Vec<u8>, String> {
        let options = GetOptions {
            accept: "application/did+json, application/json, */*",
            redirects: 0,
            body: most,
            ..GetOptions::default()
        };
        match self.get(url, &options).await.answer {
            Ok(answer) if answer.status == 200 => Ok(answer.body),
            Ok(answer) => Err(format!(
                "the server responded with status {}",
                answer.status
            )),
            Err(error) => Err(super::bounded(&error.detail, super::MAX_DETAIL)),
        }
    }
}

/// The manifests of an entry that its publisher may have signed: its own, at most [`MAX_MANIFESTS`], and then the
/// signatures of the documents that list it. Those of others endorse nothing.
fn of_publisher<'s>(
    entry: &TypedEntry,
    signed: &'s SignedCatalogs,
) -> Vec<Result<Candidate<'s>, ManifestFault>> {
    let Some(publisher) = publisher_of(&entry.identifier) else {
        return Vec::new();
    };
    let contributor = format!("did:web:{publisher}");
    let own = manifests_of(&entry.raw);
    let own = own.iter().filter(|raw| {
        let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
        let is_signed = value.get("signature").is_some();
        is_signed && value.get("contributor").and_then(Value::as_str) == Some(&contributor)
    });
    let own = own.take(MAX_MANIFESTS).map(|raw| {
        let manifest = SignedManifest::read(raw.get().as_bytes(), ManifestKind::Entry)?;
        Ok(Candidate {
            manifest: Cow::Owned(manifest),
            verdict: None,
        })
    });
    let whole = signed.0.iter();
    let whole = whole.filter(|document| document.names.contains(&entry.identifier));
    let whole = whole.filter_map(|document| {
        let manifest = document.read.as_ref().ok()?;
        (manifest.domain() == publisher).then_some(Ok(Candidate {
            manifest: Cow::Borrowed(manifest),
            verdict: Some(&document.verdict),
        }))
    });
    own.chain(whole).collect()
}

/// The manifests of an entry as they stand in the document.
fn manifests_of(raw: &str) -> Vec<Box<RawValue>> {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(raw).unwrap_or_default();
    let list = members.get("trustManifests");
    list.and_then(|list| serde_json::from_str(list.get()).ok())
        .unwrap_or_default()
}
