//! The Content-Security-Policy of pages.
//!
//! Pages load and run nothing from other origins. Only the agent page may send requests to another origin: to the URLs
//! at which its console calls the agent. Card content is untrusted, so a URL enters the policy only as a
//! [`CspConnectSource`].

use std::sync::LazyLock;

use actix_web::http::header::HeaderValue;
use url::{Host, Url};

/// Maximum number of characters of a host name (RFC 1035 section 2.3.4).
const MAX_HOST_CHARS: usize = 253;

/// Sources that every page allows: nothing from other sites, no inline script or style, no frame.
const ALLOWED_SOURCES: &str =
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'";
/// Restrictions of every page. Scripts set text and build elements but never write markup, so writing markup is
/// forbidden.
const RESTRICTIONS: &str = "; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

static DEFAULT_CSP: LazyLock<HeaderValue> = LazyLock::new(|| csp_with_connect_sources(&[]));

/// Policy of pages whose scripts send requests to this origin only.
pub fn default_csp() -> HeaderValue {
    DEFAULT_CSP.clone()
}

/// Policy of a page that may also send requests to these origins.
pub fn csp_with_connect_sources(origins: &[CspConnectSource]) -> HeaderValue {
    let mut policy = ALLOWED_SOURCES.to_owned();
    for CspConnectSource(origin) in origins {
        policy.push(' ');
        policy.push_str(origin);
    }
    policy.push_str(RESTRICTIONS);
    // Sources are ASCII; if one were not, the page would get a policy that allows nothing.
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

/// Origin as a CSP source expression (CSP level 3 section 2.3.1): a scheme, a host and optionally a port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CspConnectSource(String);

impl CspConnectSource {
    /// The origin of a URL; `None` if a policy cannot express it. This excludes IPv6 addresses, host names with
    /// characters other than letters, digits and hyphens (a `*` would match every name), and URLs with a user name,
    /// which browsers refuse to fetch.
    pub fn from_url(url: &Url) -> Option<Self> {
        let is_web = matches!(url.scheme(), "http" | "https");
        let is_plain = url.username().is_empty() && url.password().is_none();
        let host = match url.host()? {
            Host::Domain(name) => is_ascii_domain_name(name).then(|| name.to_owned())?,
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(_) => return None,
        };
        let port = url.port().map(|port| format!(":{port}"));
        let port = port.unwrap_or_default();
        (is_web && is_plain).then(|| Self(format!("{}://{host}{port}", url.scheme())))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_ascii_domain_name(name: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    name.len() <= MAX_HOST_CHARS && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn source(address: &str) -> Option<String> {
        let url = Url::parse(address).ok()?;
        CspConnectSource::from_url(&url).map(|source| source.0)
    }

    #[test]
    fn an_origin_is_a_scheme_a_host_and_perhaps_a_port() {
        for (address, origin) in [
            ("https://agent.example/a2a?x=1#y", "https://agent.example"),
            ("https://Agent.Example:443/", "https://agent.example"),
            ("http://127.0.0.1:9001/rpc", "http://127.0.0.1:9001"),
            ("http://localhost/", "http://localhost"),
            (
                "https://b\u{fc}cher.example/",
                "https://xn--bcher-kva.example",
            ),
            ("https://a.example/;script-src *", "https://a.example"),
            ("https://a.example/'\"\n\r,", "https://a.example"),
        ] {
            assert_eq!(source(address).as_deref(), Some(origin), "{address}");
        }
    }

    #[test]
    fn what_is_no_source_expression_gets_into_no_policy() {
        for address in [
            "https://[::1]/",
            "https://[2001:db8::1]:8443/",
            "https://user@agent.example/",
            "https://user:secret@agent.example/",
            "https://:secret@agent.example/",
            "https://*.example/",
            "https://*/",
            "https://my_agent.example/",
            "https://agent.example./",
            "https://a..example/",
            "https://a.example;script-src/",
            "https://a.example,b.example/",
            "https://a'b.example/",
            "https://a\"b.example/",
            "https://a!b.example/",
            "https://a$b.example/",
            "https://a&b=c.example/",
            "https://(a).example/",
            "ftp://agent.example/",
            "ws://agent.example/",
            "grpc://agent.example:443",
            "data:text/html,x",
            "javascript:alert(1)",
            "file:///etc/passwd",
        ] {
            assert_eq!(source(address), None, "{address}");
        }
        let longest = format!("{}aaa", "a.".repeat(125));
        assert_eq!(longest.len(), MAX_HOST_CHARS);
        assert!(source(&format!("https://{longest}/")).is_some());
        assert_eq!(source(&format!("https://{longest}a/")), None);
    }

    #[test]
    fn origins_widen_one_directive_and_no_other() {
        let usual = default_csp().to_str().unwrap().to_owned();
        assert!(usual.contains("; connect-src 'self'; form-action"));
        assert!(usual.contains("require-trusted-types-for 'script'; trusted-types 'none'"));
        let url = Url::parse("https://agent.example:8443/rpc").unwrap();
        let origin = CspConnectSource::from_url(&url).unwrap();
        let opened = csp_with_connect_sources(std::slice::from_ref(&origin));
        let added = format!(" {}", origin.as_str());
        assert_eq!(opened.to_str().unwrap().replacen(&added, "", 1), usual);
    }
}
