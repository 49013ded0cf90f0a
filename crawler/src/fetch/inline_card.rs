//! Fetches a card inside a catalog.

use url::Url;

use super::catalog::CATALOG_ACCEPT;
use super::freshness::parse_freshness;
use super::source::failed_source_result;
use super::{Fetcher, GetOptions, HttpResponse, KeySetRules};
use crate::catalog::{CatalogReadOptions, CatalogWalk, MAX_CATALOG_BYTES, parse_catalog};
use crate::foreign_text::sanitize_text;
use crate::{AttemptOutcome, FetchAttempt, FetchedCard, SourceResult, Validators};

impl Fetcher {
    /// Fetches the document at one URL, conditionally if the validators belong to exactly this URL, and reads the card
    /// in the entry with that identifier. The card's bytes are those of the entry's `data`, exactly as in the
    /// document.
    pub(super) async fn fetch_inline_card(
        &self,
        url: &Url,
        identifier: &str,
        validators: Option<&Validators>,
        rules: &KeySetRules<'_>,
    ) -> (FetchAttempt, SourceResult) {
        let mut document = url.clone();
        document.set_fragment(None);
        let validators = validators.filter(|v| v.url == document.as_str());
        let options = GetOptions {
            accept: CATALOG_ACCEPT,
            validators,
            max_body_bytes: MAX_CATALOG_BYTES,
            ..GetOptions::default()
        };
        let record = self.get(&document, &options).await;
        let (attempt, mut result) = self.interpret_response(
            record,
            validators,
            "catalog",
            |response, requested_url, now| match self.find_inline_card(&response, identifier) {
                Ok((url, bytes)) => match a2a_card::parse_card(&bytes) {
                    Ok(parsed) => {
                        let name = sanitize_text(&parsed.card.name, 80);
                        let card = FetchedCard {
                            url: url.into(),
                            bytes,
                            parsed,
                            key_sets: Vec::new(),
                            over_tls: response.over_tls,
                            with_credential: false,
                            freshness: parse_freshness(&response.headers, requested_url, None, now),
                        };
                        let detail = format!("the card of {name:?} inside the catalog");
                        (SourceResult::Fetched(Box::new(card)), detail)
                    }
                    Err(error) => (
                        failed_source_result(AttemptOutcome::NotACard),
                        format!(
                            "the catalog's entry contains something that is not a card: {error}"
                        ),
                    ),
                },
                Err((outcome, detail)) => (failed_source_result(outcome), detail),
            },
        );
        if let SourceResult::Fetched(card) = &mut result {
            card.key_sets = self
                .fetch_key_sets(&document, &card.parsed.card, rules)
                .await;
        }
        (attempt, result)
    }

    fn find_inline_card(
        &self,
        response: &HttpResponse,
        identifier: &str,
    ) -> Result<(Url, Vec<u8>), (AttemptOutcome, String)> {
        let options = CatalogReadOptions {
            depth: 0,
            max_entries: usize::MAX,
            read_registries: false,
        };
        let document = parse_catalog(&response.body, &response.url, options).map_err(|error| {
            let detail = format!(
                "the server responded with status 200 and something that is not a catalog: {error}"
            );
            (AttemptOutcome::NotACatalog, detail)
        })?;
        let mut walk = CatalogWalk::new(self.guard(), &response.url);
        walk.add_document(&response.url, response.body.len(), document);
        let mut cards = walk.into_contents().cards.into_iter();
        let card = cards.find(|card| card.identifier == identifier);
        card.and_then(|card| Some((card.url, card.inline_card?)))
            .ok_or_else(|| {
                let detail = format!(
                    "the catalog contains no card in an entry with the identifier {}",
                    sanitize_text(identifier, 120)
                );
                (AttemptOutcome::NotFound, detail)
            })
    }
}
