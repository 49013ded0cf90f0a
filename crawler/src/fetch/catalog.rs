//! Fetches a catalog and the catalogs nested in it.

use time::OffsetDateTime;
use url::Url;

use super::freshness::parse_freshness;
use super::source::failed_source_result;
use super::{Fetcher, GetOptions, HttpResponse};
use crate::catalog::{
    CatalogError, CatalogReadOptions, CatalogWalk, NestedCatalog, SkippedEntryList, parse_catalog,
};
use crate::foreign_text::{MAX_SUMMARY, sanitize_text};
use crate::guard::SsrfGuard;
use crate::{AttemptOutcome, FetchAttempt, FetchedCatalog, SourceResult, Validators};

/// Accepted media types of both standards; ARD has none of its own.
pub(super) const CATALOG_ACCEPT: &str = "application/ai-catalog+json, application/json";

/// Collects the documents of one catalog.
pub(super) struct CatalogFetch<'a> {
    walk: CatalogWalk<'a>,
    read_registries: bool,
}

impl<'a> CatalogFetch<'a> {
    pub(super) fn new(guard: &'a SsrfGuard, url: &Url, read_registries: bool) -> Self {
        Self {
            walk: CatalogWalk::new(guard, url),
            read_registries,
        }
    }

    pub(super) fn add_response(
        &mut self,
        response: &HttpResponse,
        depth: usize,
        requested_url: &str,
        now: OffsetDateTime,
    ) -> Result<(SourceResult, String), CatalogError> {
        let options = CatalogReadOptions {
            depth,
            max_entries: self.walk.entries_left(),
            read_registries: self.read_registries,
        };
        let content = parse_catalog(&response.body, &response.url, options)?;
        let detail = format!("a catalog of {}", format_entry_count(content.entry_count));
        self.walk
            .add_document(&response.url, response.body.len(), content);
        let catalog = FetchedCatalog {
            url: response.url.to_string(),
            entries: Vec::new(),
            registries: Vec::new(),
            skipped: SkippedEntryList::default(),
            is_complete: true,
            freshness: parse_freshness(&response.headers, requested_url, None, now),
        };
        Ok((SourceResult::Catalog(Box::new(catalog)), detail))
    }
}

impl Fetcher {
    /// Fetches a catalog, conditionally if the validators belong to this URL, and its nested catalogs. The last
    /// attempt describes all entries. With `read_registries`, the registries that the catalogs name are read too.
    pub(super) async fn fetch_catalog(
        &self,
        url: &Url,
        validators: Option<&Validators>,
        read_registries: bool,
    ) -> (Vec<FetchAttempt>, SourceResult) {
        let validators = validators.filter(|v| v.url == url.as_str());
        let first = NestedCatalog {
            url: url.clone(),
            depth: 0,
        };
        let mut catalog_fetch = CatalogFetch::new(self.guard(), url, read_registries);
        let (attempt, result) = self
            .fetch_catalog_document(&mut catalog_fetch, &first, validators)
            .await;
        match result {
            SourceResult::Catalog(catalog) => {
                self.fetch_nested_catalogs(catalog_fetch, attempt, catalog)
                    .await
            }
            result => (vec![attempt], result),
        }
    }

    pub(super) async fn fetch_nested_catalogs(
        &self,
        mut catalog_fetch: CatalogFetch<'_>,
        first: FetchAttempt,
        mut catalog: Box<FetchedCatalog>,
    ) -> (Vec<FetchAttempt>, SourceResult) {
        let url = first.url.clone();
        let mut attempts = vec![first];
        while let Some(nested) = catalog_fetch.walk.take_next_nested_catalog() {
            let (attempt, result) = self
                .fetch_catalog_document(&mut catalog_fetch, &nested, None)
                .await;
            attempts.push(attempt);
            if !matches!(result, SourceResult::Catalog(_)) {
                catalog_fetch.walk.mark_incomplete();
            }
        }
        if catalog_fetch.walk.has_nested_catalogs() {
            catalog.freshness.validators = None;
        }
        let contents = catalog_fetch.walk.into_contents();
        catalog.entries = contents.cards;
        catalog.registries = contents.registries;
        catalog.skipped = contents.skipped;
        catalog.is_complete = contents.is_complete;
        if let Some(last) = attempts.last_mut() {
            let has_nested = last.url != url;
            let link = if has_nested { "; together " } else { "" };
            let last_detail = if has_nested { last.detail.as_str() } else { "" };
            last.detail = sanitize_text(
                &format!("{last_detail}{link}{}", summarize_catalog(&catalog)),
                MAX_SUMMARY,
            );
        }
        (attempts, SourceResult::Catalog(catalog))
    }

    /// Fetches one document and adds its entries to the walk. The lists in the returned result stay empty.
    async fn fetch_catalog_document(
        &self,
        catalog_fetch: &mut CatalogFetch<'_>,
        document: &NestedCatalog,
        validators: Option<&Validators>,
    ) -> (FetchAttempt, SourceResult) {
        let options = GetOptions {
            accept: CATALOG_ACCEPT,
            validators,
            max_body_bytes: catalog_fetch.walk.bytes_left(),
            ..GetOptions::default()
        };
        let record = self.get(&document.url, &options).await;
        self.interpret_response(record, validators, "catalog", |response, requested_url, now| {
            catalog_fetch
                .add_response(&response, document.depth, requested_url, now)
                .unwrap_or_else(|error| {
                    (
                        failed_source_result(AttemptOutcome::NotACatalog),
                        format!("the server responded with status 200 and something that is not a catalog: {error}"),
                    )
                })
        })
    }
}

fn summarize_catalog(catalog: &FetchedCatalog) -> String {
    let registries = match catalog.registries.len() {
        0 => String::new(),
        1 => " and 1 registry".to_owned(),
        count => format!(" and {count} registries"),
    };
    let agents = match catalog.entries.len() {
        1 => "it names 1 agent of this host".to_owned(),
        count => format!("it names {count} agents of this host"),
    };
    let skipped = catalog.skipped.summary();
    let skipped = skipped.map(|skipped| format!("; skipped: {skipped}"));
    format!("{agents}{registries}{}", skipped.unwrap_or_default())
}

fn format_entry_count(count: usize) -> String {
    match count {
        1 => "1 entry".to_owned(),
        count => format!("{count} entries"),
    }
}
