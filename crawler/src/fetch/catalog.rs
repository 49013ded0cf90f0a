//! Fetches a catalog and the catalogs nested in it.

use time::OffsetDateTime;
use url::Url;

use super::endorsement::SignedCatalogs;
use super::freshness::freshness;
use super::sentence::{MAX_DETAIL, bounded};
use super::source::failed;
use super::{Fetcher, GetOptions, HttpResponse};
use crate::catalog::{CatalogDocument, CatalogWalk, Findings, NestedCatalog, ReadOptions, read};
use crate::{Attempt, AttemptOutcome, FetchedCatalog, Freshness, SourceVerdict, Validators};

/// Media types of both standards; ARD has none of its own.
pub(super) const ACCEPT: &str = "application/ai-catalog+json, application/json";

/// What the documents of one catalog are read into.
struct Reading<'r, 'w> {
    walk: &'r mut CatalogWalk<'w>,
    signed: &'r mut SignedCatalogs,
    /// Whether entries that are neither cards nor catalogs are read.
    others: bool,
}

impl Fetcher {
    /// Fetches a catalog, conditionally if the validators belong to this very URL, and the catalogs nested in it. The
    /// last attempt describes the entries of all of them. With `others`, entries that are neither cards nor catalogs are
    /// read too, and their manifests verified with what requests are left.
    pub(super) async fn fetch_catalog(
        &self,
        url: &Url,
        validators: Option<&Validators>,
        others: bool,
    ) -> (Vec<Attempt>, SourceVerdict) {
        let validators = validators.filter(|v| v.url == url.as_str());
        let mut walk = CatalogWalk::new(self.guard(), url);
        let first = NestedCatalog {
            url: url.clone(),
            depth: 0,
        };
        let mut signed = SignedCatalogs::default();
        let mut reading = Reading {
            walk: &mut walk,
            signed: &mut signed,
            others,
        };
        let (attempt, verdict) = self.fetch_document(&mut reading, &first, validators).await;
        let mut attempts = vec![attempt];
        let SourceVerdict::Catalog(mut catalog) = verdict else {
            return (attempts, verdict);
        };
        while let Some(nested) = walk.next_nested() {
            let mut reading = Reading {
                walk: &mut walk,
                signed: &mut signed,
                others,
            };
            let (attempt, verdict) = self.fetch_document(&mut reading, &nested, None).await;
            attempts.push(attempt);
            if !matches!(verdict, SourceVerdict::Catalog(_)) {
                walk.failed();
            }
        }
        let is_signed = self.endorse(&mut walk, &signed).await;
        if walk.nests() || is_signed {
            catalog.freshness.validators = None;
        }
        let walked = walk.end();
        catalog.entries = walked.cards;
        catalog.others = walked.others;
        catalog.findings = walked.findings;
        catalog.complete = walked.complete;
        if let Some(last) = attempts.last_mut() {
            let nested = last.url != url.as_str();
            let link = if nested { "; together " } else { "" };
            let said = if nested { last.detail.as_str() } else { "" };
            last.detail = bounded(&format!("{said}{link}{}", sum(&catalog)), MAX_DETAIL);
        }
        (attempts, SourceVerdict::Catalog(catalog))
    }

    /// Fetches one document and adds its entries to the walk. The lists in the returned verdict stay empty.
    async fn fetch_document(
        &self,
        reading: &mut Reading<'_, '_>,
        document: &NestedCatalog,
        validators: Option<&Validators>,
    ) -> (Attempt, SourceVerdict) {
        let options = GetOptions {
            accept: ACCEPT,
            validators,
            body: reading.walk.bytes_left(),
            ..GetOptions::default()
        };
        let fetched = self.get(&document.url, &options).await;
        self.judge(fetched, validators, "catalog", |answer, asked, now| {
            let options = ReadOptions {
                depth: document.depth,
                most: reading.walk.entries_left(),
                others: reading.others,
            };
            match read(&answer.body, &answer.url, options) {
                Ok(content) => {
                    let detail = format!("a catalog of {}", entries(content.entries));
                    if reading.others {
                        reading.signed.add(&answer.body, &content);
                    }
                    let freshness = take(reading.walk, &answer, content, asked, now);
                    let catalog = FetchedCatalog {
                        url: answer.url.to_string(),
                        entries: Vec::new(),
                        others: Vec::new(),
                        findings: Findings::default(),
                        complete: true,
                        freshness,
                    };
                    (SourceVerdict::Catalog(Box::new(catalog)), detail)
                }
                Err(error) => (
                    failed(AttemptOutcome::NotACatalog),
                    format!("the server responded with status 200 and something that is not a catalog: {error}"),
                ),
            }
        })
    }
}

fn take(
    walk: &mut CatalogWalk<'_>,
    answer: &HttpResponse,
    reading: CatalogDocument,
    asked: &str,
    now: OffsetDateTime,
) -> Freshness {
    walk.take(&answer.url, answer.body.len(), reading);
    freshness(&answer.headers, asked, None, now)
}

/// One sentence about the entries of a catalog.
fn sum(catalog: &FetchedCatalog) -> String {
    let others = match catalog.others.len() {
        0 => String::new(),
        1 => " and 1 other entry".to_owned(),
        count => format!(" and {count} other entries"),
    };
    let agents = match catalog.entries.len() {
        1 => "it names 1 agent of this host".to_owned(),
        count => format!("it names {count} agents of this host"),
    };
    let agents = format!("{agents}{others}");
    match catalog.findings.faults() {
        None => agents,
        Some((first, 1)) => format!("{agents}; skipped: {first}"),
        Some((first, count)) => {
            format!("{agents}; {count} skipped, first: {first}")
        }
    }
}

fn entries(count: usize) -> String {
    match count {
        1 => "1 entry".to_owned(),
        count => format!("{count} entries"),
    }
}
