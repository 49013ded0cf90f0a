//! A warning before credentials go over the network without encryption.

use a2a_card::AgentCard;
use a2a_client::{SendOptions, is_loopback, select_interface_url};
use url::Url;

use super::url_origin;
use crate::terminal;

/// Warns if the card sends the credentials to a plain http address.
pub(crate) fn warn_of_plain_http(options: &SendOptions, card: &AgentCard) {
    let has_credentials = options.bearer_token.is_some()
        || options.api_key.is_some()
        || options.basic_login.is_some()
        || options.token_source.is_some()
        || !options.headers.is_empty();
    let Ok(interface) = select_interface_url(card, &options.interface_filter) else {
        return;
    };
    if has_credentials && is_unencrypted(&interface) {
        let origin = url_origin(&interface);
        terminal::eprint_note(&format!(
            "warning: the credentials go to {origin} without encryption, so others on the network can read them"
        ));
    }
}

fn is_unencrypted(url: &Url) -> bool {
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
            assert_eq!(is_unencrypted(&url.parse().unwrap()), open, "{url}");
        }
    }
}
