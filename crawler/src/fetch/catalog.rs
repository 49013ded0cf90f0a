//! Fetches a catalog and the catalogs nested in it.

use time::OffsetDateTime;
use url::Url;

use super::freshness::freshness;
use super::sentence::{MAX_SUMMARY, bounded};
use super::source::failed;
use super::{Fetcher, GetOptions, HttpResponse};
use crate::catalog::{CatalogWalk, Findings, NestedCatalog, NoCatalog, ReadOptions, read};
use crate::guard::Guard;
use crate::{Attempt, AttemptOutcome, FetchedCatalog, SourceVerdict, Validators};

/// Media types of both standards; ARD has none of its own.
pub(super) const ACCEPT: &str = "application/ai-catalog+json, application/json";

/// What the documents of one catalog are read into.
pub(super) struct Reading<'a> {
    walk: CatalogWalk<'a>,
    registries: bool,
}

impl<'a> Reading<'a> {
    pub(super) fn new(guard: &'a Guard, url: &Url, registries: bool) -> Self {
        Self {
            walk: CatalogWalk::new(guard, url),
            registries,
        }
    }

    pub(super) fn take(
        &mut self,
        answer: &HttpResponse,
        depth: usize,
        asked: &str,
        now: OffsetDateTime,
    ) -> Result<(SourceVerdict, String), NoCatalog> {
        let options = ReadOptions {
            depth,
            most: self.walk.entries_left(),
            registries: self.registries,
        };
        let content = read(&answer.body, &answer.url, options)?;
        let detail = format!("a catalog of {}", entries(content.entries));
        self.walk.take(&answer.url, answer.body.len(), content);
        let catalog = FetchedCatalog {
            url: answer.url.to_string(),
            entries: Vec::new(),
            registries: Vec::new(),
            findings: Findings::default(),
            complete: true,
            freshness: freshness(&answer.headers, asked, None, now),
        };
        Ok((SourceVerdict::Catalog(Box::new(catalog)), detail))
    }
}

impl Fetcher {
    /// Fetches a catalog, conditionally if the validators belong to this URL, and the catalogs nested in it. The last
    /// attempt describes all entries. With `registries`, the registries that they name are read too.
    pub(super) async fn fetch_catalog(
        &self,
        url: &Url,
        validators: Option<&Validators>,
        registries: bool,
    ) -> (Vec<Attempt>, SourceVerdict) {
        let validators = validators.filter(|v| v.url == url.as_str());
        let first = NestedCatalog {
            url: url.clone(),
            depth: 0,
        };
        let mut reading = Reading::new(self.guard(), url, registries);
        let (attempt, verdict) = self.fetch_document(&mut reading, &first, validators).await;
        match verdict {
            SourceVerdict::Catalog(catalog) => self.fetch_nested(reading, attempt, catalog).await,
            verdict => (vec![attempt], verdict),
        }
    }

    pub(super) async fn fetch_nested(
        &self,
        mut reading: Reading<'_>,
        first: Attempt,
        mut catalog: Box<FetchedCatalog>,
    ) -> (Vec<Attempt>, SourceVerdict) {
        let url = first.url.clone();
        let mut attempts = vec![first];
        while let Some(nested) = reading.walk.next_nested() {
            let (attempt, verdict) = self.fetch_document(&mut reading, &nested, None).await;
            attempts.push(attempt);
            if !matches!(verdict, SourceVerdict::Catalog(_)) {
                reading.walk.failed();
            }
        }
        if reading.walk.nests() {
            catalog.freshness.validators = None;
        }
        let walked = reading.walk.end();
        catalog.entries = walked.cards;
        catalog.registries = walked.registries;
        catalog.findings = walked.findings;
        catalog.complete = walked.complete;
        if let Some(last) = attempts.last_mut() {
            let nested = last.url != url;
            let link = if nested { "; together " } else { "" };
            let said = if nested { last.detail.as_str() } else { "" };
            last.detail = bounded(&format!("{said}{link}{}", sum(&catalog)), MAX_SUMMARY);
        }
        (attempts, SourceVerdict::Catalog(catalog))
    }

    /// Fetches one document and adds its entries to the walk. The lists in the returned verdict stay empty.
    async fn fetch_document(
        &self,
        reading: &mut Reading<'_>,
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
            reading
                .take(&answer, document.depth, asked, now)
                .unwrap_or_else(|error| {
                    (
                        failed(AttemptOutcome::NotACatalog),
                        format!("the server responded with status 200 and something that is not a catalog: {error}"),
                    )
                })
        })
    }
}

fn sum(catalog: &FetchedCatalog) -> String {
    let registries = match catalog.registries.len() {
        0 => String::new(),
        1 => " and 1 registry".to_owned(),
        count => format!(" and {count} registries"),
    };
    let agents = match catalog.entries.len() {
        1 => "it names 1 agent of this host".to_owned(),
        count => format!("it names {count} agents of this host"),
    };
    let skipped = catalog.findings.sentence();
    let skipped = skipped.map(|skipped| format!("; skipped: {skipped}"));
    format!("{agents}{registries}{}", skipped.unwrap_or_default())
}

fn entries(count: usize) -> String {
    match count {
        1 => "1 entry".to_owned(),
        count => format!("{count} entries"),
    }
}
