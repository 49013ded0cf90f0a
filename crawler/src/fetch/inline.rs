//! Fetches a card that is inside a catalog.

use url::Url;

use super::catalog::ACCEPT;
use super::freshness::freshness;
use super::source::failed;
use super::{Fetcher, GetOptions, HttpResponse, KeySetRules, bounded};
use crate::catalog::{CatalogWalk, MAX_BYTES, ReadOptions, read};
use crate::{Attempt, AttemptOutcome, FetchedCard, SourceVerdict, Validators};

impl Fetcher {
    /// Fetches the document at one URL, conditionally if the validators belong to this very URL, and reads the card in its
    /// entry with that identifier. The card's bytes are those of the entry's `data`, exactly as in the document.
    pub(super) async fn fetch_inline_card(
        &self,
        url: &Url,
        identifier: &str,
        validators: Option<&Validators>,
        rules: &KeySetRules<'_>,
    ) -> (Attempt, SourceVerdict) {
        let mut document = url.clone();
        document.set_fragment(None);
        let validators = validators.filter(|v| v.url == document.as_str());
        let options = GetOptions {
            accept: ACCEPT,
            validators,
            body: MAX_BYTES,
            ..GetOptions::default()
        };
        let fetched = self.get(&document, &options).await;
        let (attempt, mut verdict) = self.judge(
            fetched,
            validators,
            "catalog",
            |answer, asked, now| match self.inline_card(&answer, identifier) {
                Ok((url, bytes)) => match a2a_card::parse(&bytes) {
                    Ok(parsed) => {
                        let name = bounded(&parsed.card.name, 80);
                        let card = FetchedCard {
                            url: url.into(),
                            bytes,
                            parsed,
                            key_sets: Vec::new(),
                            tls: answer.tls,
                            freshness: freshness(&answer.headers, asked, None, now),
                        };
                        let detail = format!("the card of {name:?} inside the catalog");
                        (SourceVerdict::Fetched(Box::new(card)), detail)
                    }
                    Err(error) => (
                        failed(AttemptOutcome::NotACard),
                        format!(
                            "the catalog's entry contains something that is not a card: {error}"
                        ),
                    ),
                },
                Err((outcome, detail)) => (failed(outcome), detail),
            },
        );
        if let SourceVerdict::Fetched(card) = &mut verdict {
            card.key_sets = self
                .fetch_key_sets(&document, &card.parsed.card, rules)
                .await;
        }
        (attempt, verdict)
    }

    fn inline_card(
        &self,
        answer: &HttpResponse,
        identifier: &str,
    ) -> Result<(Url, Vec<u8>), (AttemptOutcome, String)> {
        let options = ReadOptions {
            depth: 0,
            most: usize::MAX,
            registries: false,
        };
        let reading = read(&answer.body, &answer.url, options).map_err(|error| {
            let detail = format!(
                "the server responded with status 200 and something that is not a catalog: {error}"
            );
            (AttemptOutcome::NotACatalog, detail)
        })?;
        let mut walk = CatalogWalk::new(self.guard(), &answer.url);
        walk.take(&answer.url, answer.body.len(), reading);
        let mut cards = walk.end().cards.into_iter();
        let card = cards.find(|card| card.identifier == identifier);
        card.and_then(|card| Some((card.url, card.inline?)))
            .ok_or_else(|| {
                let detail = format!(
                    "the catalog contains no card in an entry with the identifier {}",
                    bounded(identifier, 120)
                );
                (AttemptOutcome::NotFound, detail)
            })
    }
}
