//! Fetches the key sets that a card's signatures name.

use std::collections::BTreeSet;

use a2a_card::{AgentCard, MAX_KEY_SET_BYTES, unverified_signatures};
use url::Url;

use super::{Fetcher, GetOptions};
use crate::ReferencedKeySet;
use crate::foreign_text::{MAX_DETAIL, sanitize_text};
use crate::guard::SsrfGuard;

/// Maximum number of key sets fetched for one card; a key rotation needs two.
pub const MAX_KEY_SETS: usize = 2;

/// Rules for key sets outside the card's own origin. The default allows none: a `jku` lets the signer choose which
/// keys are trusted, and which hosts the registry contacts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeySetRules<'a> {
    /// Whether DNS currently proves the card's domain. If so, its key sets may be on any host of the same registrable
    /// domain, on the scheme's default port. Hosts that share only a public suffix, such as two customers of one
    /// platform, never have the same registrable domain.
    pub dns_proved: bool,
    /// Hosts that the operator trusts with the keys of any card, on the scheme's default port; lower-case.
    pub trusted_hosts: &'a [String],
}

impl KeySetRules<'_> {
    /// Whether the key set at `jku_url` may be fetched for a card from `card_url`.
    pub fn allows(&self, card_url: &Url, jku_url: &Url) -> bool {
        if jku_url.origin() == card_url.origin() {
            return true;
        }
        // A card served over TLS must not trust keys served without it.
        let as_safe = jku_url.scheme() == "https" || jku_url.scheme() == card_url.scheme();
        let own_port = jku_url.port().is_none();
        let Some(host) = jku_url.domain().filter(|_| as_safe && own_port) else {
            return false;
        };
        (self.dns_proved && SsrfGuard::is_same_site(card_url, jku_url))
            || self.trusted_hosts.iter().any(|trusted| trusted == host)
    }
}

impl Fetcher {
    /// Fetches the allowed key sets of a card, at most [`MAX_KEY_SET_BYTES`] each. Redirects are not followed.
    pub async fn fetch_key_sets(
        &self,
        card_url: &Url,
        card: &AgentCard,
        rules: &KeySetRules<'_>,
    ) -> Vec<ReferencedKeySet> {
        let mut jku_urls: Vec<String> = Vec::new();
        let mut seen_jku_urls = BTreeSet::new();
        for entry in unverified_signatures(card) {
            jku_urls.extend(entry.jku.filter(|jku| seen_jku_urls.insert(jku.clone())));
        }
        let mut sets = Vec::new();
        for jku in jku_urls.into_iter().take(MAX_KEY_SETS) {
            let url = Url::parse(&jku).map_err(|error| format!("`jku` is not a URL: {error}"));
            let proved = KeySetRules {
                dns_proved: true,
                ..*rules
            };
            let is_foreign = url.as_ref().is_ok_and(|url| !proved.allows(card_url, url));
            let result = match url {
                Ok(url) if !rules.allows(card_url, &url) => Err(format!(
                    "`jku` is not on {}, so the keys are not fetched; publish them on the card's own origin",
                    card_url.origin().ascii_serialization()
                )),
                Ok(url) => self.fetch_key_set(&url).await,
                Err(error) => Err(error),
            };
            sets.push(ReferencedKeySet {
                url: jku,
                is_foreign,
                result,
            });
        }
        sets
    }

    async fn fetch_key_set(&self, url: &Url) -> Result<Vec<u8>, String> {
        let options = GetOptions {
            max_redirects: 0,
            max_body_bytes: MAX_KEY_SET_BYTES,
            ..GetOptions::default()
        };
        match self.get(url, &options).await.result {
            Ok(answer) if answer.status == 200 => Ok(answer.body),
            Ok(answer) => Err(format!(
                "the server responded with status {} instead of the keys",
                answer.status
            )),
            Err(error) => Err(sanitize_text(&error.detail, MAX_DETAIL)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn key_sets_lie_where_the_rules_say_and_nowhere_else() {
        let hosts = ["keys.example.org".to_owned()];
        let own = KeySetRules::default();
        let proved = KeySetRules {
            dns_proved: true,
            ..own
        };
        let listed = KeySetRules {
            trusted_hosts: &hosts,
            ..own
        };
        for (card, jku, expected) in [
            (
                "https://a.example.com/c",
                "https://a.example.com/k",
                [true, true, true],
            ),
            (
                "https://a.example.com/c",
                "https://A.example.com:443/k",
                [true, true, true],
            ),
            (
                "https://a.example.com:8443/c",
                "https://a.example.com:8443/k",
                [true, true, true],
            ),
            (
                "https://a.example.com/c",
                "https://a.example.com:8443/k",
                [false, false, false],
            ),
            (
                "https://a.example.com/c",
                "http://a.example.com/k",
                [false, false, false],
            ),
            (
                "https://a.example.com/c",
                "https://b.example.com/k",
                [false, true, false],
            ),
            (
                "https://a.example.com/c",
                "https://example.com/k",
                [false, true, false],
            ),
            (
                "https://a.example.com/c",
                "https://b.example.com:8443/k",
                [false, false, false],
            ),
            (
                "https://a.example.com/c",
                "http://b.example.com/k",
                [false, false, false],
            ),
            (
                "https://a.example.com/c",
                "https://a.example.com.evil.net/k",
                [false, false, false],
            ),
            (
                "https://a.example.com/c",
                "https://keys.example.org/k",
                [false, false, true],
            ),
            (
                "https://a.example.com/c",
                "http://keys.example.org/k",
                [false, false, false],
            ),
            (
                "https://a.example.com/c",
                "https://x.keys.example.org/k",
                [false, false, false],
            ),
            (
                "https://one.github.io/c",
                "https://two.github.io/k",
                [false, false, false],
            ),
            (
                "https://one.co.uk/c",
                "https://two.co.uk/k",
                [false, false, false],
            ),
            (
                "https://10.0.0.1/c",
                "https://10.0.0.2/k",
                [false, false, false],
            ),
            (
                "https://a.example.com/c",
                "data:application/json,{}",
                [false, false, false],
            ),
        ] {
            let (card, jku) = (card.parse().unwrap(), jku.parse().unwrap());
            let found = [own, proved, listed].map(|rules| rules.allows(&card, &jku));
            assert_eq!(found, expected, "{card} {jku}");
        }
    }
}
