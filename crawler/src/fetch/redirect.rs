//! Decides whether a redirect is followed, and where it leads.

use reqwest::header::{HeaderMap, LOCATION};
use url::Url;

use super::error::FetchError;
use crate::AttemptOutcome;
use crate::foreign_text::sanitize_text;
use crate::guard::{MAX_URL_BYTES, SsrfGuard};

const MAX_TARGET_CHARS: usize = 120;

/// Whether the status means that the same resource is at another URL. 303 refers to another resource, 300 offers a
/// choice, 305 and 306 are obsolete: none of them leads to a card.
pub(super) const fn is_followed_status(status: u16) -> bool {
    matches!(status, 301 | 302 | 307 | 308)
}

/// The error for a redirection status that is not followed. 304 is not a redirection.
pub(super) fn unfollowed_status_error(status: u16) -> Option<FetchError> {
    (matches!(status, 300..=399) && status != 304 && !is_followed_status(status)).then(|| {
        bad_redirect_error(&format!(
            "the server responded with status {status}, which is not followed; redirect with 301, 302, 307 or 308, or serve the card here"
        ))
    })
}

/// The next URL, which must meet all conditions: exactly one `Location`, accepted by the guard, on the same site,
/// never from https to http, not yet visited.
pub(super) fn next_redirect_url(
    guard: &SsrfGuard,
    visited: &[Url],
    headers: &HeaderMap,
    max_redirects: usize,
) -> Result<Url, FetchError> {
    let Some(current) = visited.last() else {
        return Err(bad_redirect_error("the redirect has no URL to start from"));
    };
    if visited.len() > max_redirects {
        return Err(bad_redirect_error(&format!(
            "the server redirects more than {max_redirects} times"
        )));
    }
    let mut locations = headers.get_all(LOCATION).iter();
    let (Some(location), None) = (locations.next(), locations.next()) else {
        return Err(bad_redirect_error(
            "the server redirects without exactly one Location",
        ));
    };
    let text = location.to_str().ok().filter(|text| {
        !text.is_empty() && text.len() <= MAX_URL_BYTES && !text.contains(['\\', ' ', '\t'])
    });
    let Some(text) = text else {
        return Err(bad_redirect_error(
            "the server redirects to something that is not a URL",
        ));
    };
    let displayed = sanitize_text(text, MAX_TARGET_CHARS);
    let mut target = current.join(text).map_err(|error| {
        bad_redirect_error(&format!(
            "the server redirects to {displayed}, which is not a URL: {error}"
        ))
    })?;
    // A fragment is for the reader of a page and is never sent to a server.
    target.set_fragment(None);
    let target = guard.check_parsed_url(target).map_err(|error| {
        FetchError::new(
            AttemptOutcome::Refused,
            &format!("the server redirects to {displayed}: {error}"),
        )
    })?;
    if !SsrfGuard::is_same_site(current, &target) {
        return Err(bad_redirect_error(&format!(
            "the server redirects to {displayed}, on another registrable domain; register the card at that URL"
        )));
    }
    if current.scheme() == "https" && target.scheme() != "https" {
        return Err(bad_redirect_error(&format!(
            "the server redirects from https to {displayed}"
        )));
    }
    if visited.contains(&target) {
        return Err(bad_redirect_error(&format!(
            "the server redirects in a loop, to {displayed}"
        )));
    }
    Ok(target)
}

fn bad_redirect_error(detail: &str) -> FetchError {
    FetchError::new(AttemptOutcome::BadRedirect, detail)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use reqwest::header::HeaderValue;

    use super::*;
    use crate::guard::{AllowedPorts, GuardConfig};

    fn hop(from: &str, locations: &[&str]) -> Result<String, AttemptOutcome> {
        let guard = SsrfGuard::new(GuardConfig {
            allow_http: true,
            allow_ports: AllowedPorts::List(vec![80, 443, 8443]),
            ..GuardConfig::default()
        });
        let mut headers = HeaderMap::new();
        for location in locations {
            headers.append(
                LOCATION,
                HeaderValue::from_bytes(location.as_bytes()).unwrap(),
            );
        }
        next_redirect_url(&guard, &[from.parse().unwrap()], &headers, 3)
            .map(String::from)
            .map_err(|error| error.outcome)
    }

    /// Inputs 95 to 104 of the list of hostile inputs.
    #[test]
    fn only_a_proper_hop_on_the_same_site_is_followed() {
        use AttemptOutcome::{BadRedirect, Refused};
        let from = "https://a.example.com/x/y?z";
        for (location, expected) in [
            (
                "https://b.example.com/card",
                Ok("https://b.example.com/card"),
            ),
            ("/card#part", Ok("https://a.example.com/card")),
            ("card", Ok("https://a.example.com/x/card")),
            ("//b.example.com/", Ok("https://b.example.com/")),
            (
                "https://a.example.com:8443/",
                Ok("https://a.example.com:8443/"),
            ),
            ("https://10.0.0.1/", Err(Refused)),
            ("https://8.8.8.8/", Err(Refused)),
            ("//169.254.169.254", Err(Refused)),
            ("https://a.example.com:22/", Err(Refused)),
            ("https://user@a.example.com/", Err(Refused)),
            ("file:///etc/passwd", Err(Refused)),
            ("https://localhost/", Err(Refused)),
            ("http://a.example.com/", Err(BadRedirect)),
            ("https://example.org/", Err(BadRedirect)),
            ("https://a.example.com/x/y?z", Err(BadRedirect)),
            ("https://a.example.com/x/y?z#w", Err(BadRedirect)),
            ("https:\\\\b.example.com", Err(BadRedirect)),
            ("https://[", Err(BadRedirect)),
            ("", Err(BadRedirect)),
            ("/\u{e4}", Err(BadRedirect)),
        ] {
            assert_eq!(
                hop(from, &[location]),
                expected.map(str::to_owned),
                "{location}"
            );
        }
        assert_eq!(hop(from, &[]), Err(BadRedirect));
        assert_eq!(hop(from, &["/a", "/b"]), Err(BadRedirect));
        assert_eq!(
            hop("http://a.example.com/", &["https://a.example.com/"]).unwrap(),
            "https://a.example.com/"
        );
        assert_eq!(
            hop("https://one.github.io/", &["https://two.github.io/"]),
            Err(BadRedirect)
        );
    }

    #[test]
    fn other_redirections_are_named() {
        for status in [300, 303, 305, 306, 310, 399] {
            assert_eq!(
                unfollowed_status_error(status).unwrap().outcome,
                AttemptOutcome::BadRedirect
            );
        }
        for status in [200, 299, 301, 302, 304, 307, 308, 400] {
            assert_eq!(unfollowed_status_error(status), None);
        }
    }
}
