//! The key sets that a card's signatures name.

use std::collections::BTreeSet;

use a2a_card::{AgentCard, MAX_KEY_SET_BYTES, signature_entries};
use url::Url;

use super::sentence::{MAX_DETAIL, bounded};
use super::{Fetcher, GetOptions};
use crate::FetchedKeySet;

/// Most key sets that are asked for one card; a rotation needs two.
pub const MAX_KEY_SETS: usize = 2;

impl Fetcher {
    /// Asks for the key sets that a card names, as far as they lie on the origin that was asked for the card:
    /// anywhere else the signer would choose whom to trust, and whom the registry calls. No redirect is
    /// followed, and no more than [`MAX_KEY_SET_BYTES`] are read.
    pub(super) async fn fetch_key_sets(&self, asked: &Url, card: &AgentCard) -> Vec<FetchedKeySet> {
        let mut named: Vec<String> = Vec::new();
        let mut seen = BTreeSet::new();
        for entry in signature_entries(card) {
            named.extend(entry.jku.filter(|jku| seen.insert(jku.clone())));
        }
        let mut sets = Vec::new();
        for jku in named.into_iter().take(MAX_KEY_SETS) {
            let answer = self.fetch_key_set(asked, &jku).await;
            sets.push(FetchedKeySet { url: jku, answer });
        }
        sets
    }

    async fn fetch_key_set(&self, asked: &Url, jku: &str) -> Result<Vec<u8>, String> {
        let url = Url::parse(jku).map_err(|error| format!("`jku` is no URL: {error}"))?;
        if url.origin() != asked.origin() {
            return Err(format!(
                "`jku` leads away from {}, so nothing is fetched; publish the keys on the card's own origin",
                asked.origin().ascii_serialization()
            ));
        }
        let options = GetOptions {
            redirects: 0,
            body: MAX_KEY_SET_BYTES,
            ..GetOptions::default()
        };
        match self.get(&url, &options).await.answer {
            Ok(answer) if answer.status == 200 => Ok(answer.body),
            Ok(answer) => Err(format!(
                "the server answered {} where the keys should be",
                answer.status
            )),
            Err(error) => Err(bounded(&error.detail, MAX_DETAIL)),
        }
    }
}
