//! A warning before credentials go over the network without encryption.

use a2a_card::AgentCard;
use a2a_client::{SendOptions, chosen_interface, is_loopback};
use url::Url;

use super::origin_of;
use crate::terminal;

/// Warns where the card names a plain http address for what the credentials are sent to.
pub(crate) fn warn_of_plain_http(options: &SendOptions, card: &AgentCard) {
    let has_some = options.bearer.is_some()
        || options.api_key.is_some()
        || options.basic.is_some()
        || options.tokens.is_some()
        || !options.headers.is_empty();
    let Ok(interface) = chosen_interface(card, &options.choice) else {
        return;
    };
    if has_some && is_open(&interface) {
        let origin = origin_of(&interface);
        terminal::note(&format!(
            "warning: the credentials go to {origin} without encryption, so others on the way can read them"
        ));
    }
}

fn is_open(url: &Url) -> bool {
    url.scheme() == "http" && !is_loopback(url)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn plain_http_is_private_on_this_machine_only() {
        for (url, open) in [
            ("http://127.0.0.1:9/", false),
            ("http://localhost/", false),
            ("http://[::1]/", false),
            ("https://a.example/", false),
            ("http://a.example/", true),
            ("http://10.0.0.1/", true),
        ] {
            assert_eq!(is_open(&url.parse().unwrap()), open, "{url}");
        }
    }
}
