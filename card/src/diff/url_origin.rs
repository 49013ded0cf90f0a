//! Comparison of addresses: whether they lead to the same server for every client.

use url::Url;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct UrlOrigin {
    scheme: String,
    host: String,
    port: Option<u16>,
}

/// The origin of an address. `None` if URL parsers could disagree about it, that is, for anything but visible ASCII, a
/// backslash, a user name or an escape in the host, and for a text that is not an address.
///
/// A bare `host:port`, as in gRPC interfaces, is an origin with a scheme of its own.
pub(super) fn url_origin(address: &str) -> Option<UrlOrigin> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\\\"<>^`{|}".contains(&byte);
    if !address.bytes().all(is_plain) {
        return None;
    }
    let is_plain_authority = |rest: &str| -> bool {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let host = rest.get(..end).unwrap_or_default();
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._:[]".contains(&b);
        !host.is_empty() && host.bytes().all(is_allowed)
    };
    let Some((_, rest)) = address.split_once("://") else {
        let (host, port) = address.rsplit_once(':')?;
        let is_bare_authority =
            is_plain_authority(address) && is_plain_authority(host) && !host.contains(':');
        return is_bare_authority.then_some(UrlOrigin {
            scheme: String::new(),
            host: host.to_ascii_lowercase(),
            port: Some(port.parse().ok()?),
        });
    };
    let url = Url::parse(address)
        .ok()
        .filter(|_| is_plain_authority(rest))?;
    Some(UrlOrigin {
        scheme: url.scheme().to_owned(),
        host: url.host_str()?.to_owned(),
        port: url.port_or_known_default(),
    })
}

impl UrlOrigin {
    /// Whether a link may move here from `earlier`: within the same server, or from http to https.
    pub(super) fn is_safe_successor(&self, earlier: &UrlOrigin) -> bool {
        let is_https_upgrade = self.scheme == "https" && earlier.scheme == "http";
        let has_default_ports =
            is_https_upgrade && (earlier.port, self.port) == (Some(80), Some(443));
        self.is_http() && self.host == earlier.host && (self == earlier || has_default_ports)
    }

    pub(super) fn is_http(&self) -> bool {
        matches!(self.scheme.as_str(), "http" | "https")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_those_that_every_reader_sees() {
        let same = |a: &str, b: &str| url_origin(a).is_some() && url_origin(a) == url_origin(b);
        assert!(same("https://a.example/x", "HTTPS://A.example:443/y?z#f"));
        assert!(same("a.example:443", "A.example:443"));
        for other in [
            "http://a.example/",
            "https://b.example/",
            "https://a.example:8443/",
            "https://a.example./",
            "a.example:443",
            "wss://a.example/",
        ] {
            assert!(!same("https://a.example/", other), "{other}");
        }
    }

    #[test]
    fn what_readers_disagree_about_has_no_origin() {
        for text in [
            "https://a.example\\@evil.example/",
            "https://a.example@evil.example/",
            "https://evil.example\t/",
            " https://a.example/",
            "https:/a.example/",
            "https:///a.example/",
            "https://%61.example/",
            "https://а.example/",
            "https://a.example/\u{202e}",
            "/relative",
            "a.example",
            "a:b:443",
            "a.example:99999",
            "mailto:a@a.example",
            "",
        ] {
            assert_eq!(url_origin(text), None, "{text}");
        }
    }

    #[test]
    fn links_move_on_their_server_only() {
        let moves = |from: &str, to: &str| {
            let (from, to) = (url_origin(from), url_origin(to));
            to.zip(from)
                .is_some_and(|(to, from)| to.is_safe_successor(&from))
        };
        assert!(moves("https://a.example/1", "https://a.example/2"));
        assert!(moves("http://a.example/1", "https://a.example/1"));
        assert!(!moves("https://a.example/1", "http://a.example/1"));
        assert!(!moves("http://a.example:8080/", "https://a.example/"));
        assert!(!moves("https://a.example/", "https://www.a.example/"));
        assert!(!moves("ftp://a.example/", "ftp://a.example/x"));
    }
}
