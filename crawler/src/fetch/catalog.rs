//! Fetches a catalog and the catalogs nested in it.

use time::OffsetDateTime;
use url::Url;

use super::freshness::freshness;
use super::sentence::{MAX_DETAIL, bounded};
use super::source::failed;
use super::{Fetcher, GetOptions, HttpResponse};
use crate::catalog::{CatalogDocument, CatalogWalk, Findings, NestedCatalog, read};
use crate::{Attempt, AttemptOutcome, FetchedCatalog, Freshness, SourceVerdict, Validators};

/// Media types of both standards; ARD has none of its own.
const ACCEPT: &str = "application/ai-catalog+json, application/json";

impl Fetcher {
    /// Fetches a catalog, conditionally if the validators belong to this very URL, and the catalogs nested in it. The
    /// last attempt describes the entries of all of them.
    pub(super) async fn fetch_catalog(
        &self,
        url: &Url,
        validators: Option<&Validators>,
    ) -> (Vec<Attempt>, SourceVerdict) {
        let validators = validators.filter(|v| v.url == url.as_str());
        let mut walk = CatalogWalk::new(self.guard(), url);
        let first = NestedCatalog {
            url: url.clone(),
            depth: 0,
        };
        let (attempt, verdict) = self.fetch_document(&mut walk, &first, validators).await;
        let mut attempts = vec![attempt];
        let SourceVerdict::Catalog(mut catalog) = verdict else {
            return (attempts, verdict);
        };
        while let Some(nested) = walk.next_nested() {
            let (attempt, verdict) = self.fetch_document(&mut walk, &nested, None).await;
            attempts.push(attempt);
            if !matches!(verdict, SourceVerdict::Catalog(_)) {
                walk.failed();
            }
        }
        if walk.nests() {
            catalog.freshness.validators = None;
        }
        (catalog.entries, catalog.findings, catalog.complete) = walk.end();
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
        walk: &mut CatalogWalk<'_>,
        document: &NestedCatalog,
        validators: Option<&Validators>,
    ) -> (Attempt, SourceVerdict) {
        let options = GetOptions {
            accept: ACCEPT,
            validators,
            body: walk.bytes_left(),
            ..GetOptions::default()
        };
        let fetched = self.get(&document.url, &options).await;
        self.judge(fetched, validators, "catalog", |answer, asked, now| {
            let most = walk.entries_left();
            match read(&answer.body, &answer.url, document.depth, most) {
                Ok(reading) => {
                    let detail = format!("a catalog of {}", entries(reading.entries));
                    let freshness = take(walk, &answer, reading, asked, now);
                    let catalog = FetchedCatalog {
                        url: answer.url.to_string(),
                        entries: Vec::new(),
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
    let agents = match catalog.entries.len() {
        1 => "it names 1 agent of this host".to_owned(),
        count => format!("it names {count} agents of this host"),
    };
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
