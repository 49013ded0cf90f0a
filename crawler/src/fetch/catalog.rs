//! Asking for a catalog, and for those nested in it.

use time::OffsetDateTime;
use url::Url;

use super::freshness::freshness;
use super::sentence::{MAX_DETAIL, bounded};
use super::source::failed;
use super::{Fetcher, GetOptions, HttpResponse};
use crate::catalog::{CatalogDocument, CatalogWalk, Findings, Nested, read};
use crate::{Attempt, AttemptOutcome, FetchedCatalog, Freshness, SourceVerdict, Validators};

/// Both standards' documents; ARD has no type of its own.
const ACCEPT: &str = "application/ai-catalog+json, application/json";

impl Fetcher {
    /// Asks for a catalog, conditionally where the validators are of this very URL, and for those nested in it.
    /// The last attempt says what all of them name together.
    pub(super) async fn fetch_catalog(
        &self,
        url: &Url,
        validators: Option<&Validators>,
    ) -> (Vec<Attempt>, SourceVerdict) {
        let validators = validators.filter(|v| v.url == url.as_str());
        let mut walk = CatalogWalk::new(self.guard(), url);
        let first = Nested {
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

    /// One document; what it says goes to the walk. The verdict's own lists stay empty.
    async fn fetch_document(
        &self,
        walk: &mut CatalogWalk<'_>,
        document: &Nested,
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
                    format!("the server answered 200 with something that is no catalog: {error}"),
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

/// What a catalog names, as a sentence.
fn sum(catalog: &FetchedCatalog) -> String {
    let agents = match catalog.entries.len() {
        1 => "it names 1 agent of this host".to_owned(),
        count => format!("it names {count} agents of this host"),
    };
    match catalog.findings.faults() {
        None => agents,
        Some((first, 1)) => format!("{agents}; passed over: {first}"),
        Some((first, count)) => {
            format!("{agents}; {count} passed over, first: {first}")
        }
    }
}

fn entries(count: usize) -> String {
    match count {
        1 => "1 entry".to_owned(),
        count => format!("{count} entries"),
    }
}
