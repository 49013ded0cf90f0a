//! Checks of what the registry reaches and of how it is reached: identity providers, and the proxy in front.

use std::net::IpAddr;
use std::sync::Arc;

use a2a_crawler::SystemClock;
use a2a_registry_core::config::Config;
use a2a_registry_core::health::received_request::ReceivedRequest;
use a2a_registry_core::network::NetworkAccess;
use a2a_registry_core::providers::provider_check::{self, ProviderFacts};
use bytes::Bytes;
use serde_json::Value;
use url::{Host, Url};

use super::machine::judge_clock_lead;
use super::{CheckStatus, DoctorCheck};
use crate::client::Client;
use crate::client_error::ClientError;

/// The public keys of the registry, which all its processes share and no other registry has.
const KEYS_PATH: &str = "/.well-known/jwks.json";

/// Queries every identity provider as the registry does, through the guard.
pub(super) async fn check_identity_providers(config: &Config) -> Vec<DoctorCheck> {
    if config.identity.providers.is_empty() {
        return Vec::new();
    }
    let check = |verdict, detail: String| DoctorCheck::new("identity provider", verdict, detail);
    let network = match NetworkAccess::with_system_resolver(config, Arc::new(SystemClock)) {
        Ok(network) => network,
        Err(error) => return vec![check(CheckStatus::Fail, error.to_string())],
    };
    let Some(fetcher) = &network.identity_fetcher else {
        return Vec::new();
    };
    let outcomes =
        provider_check::check_identity_providers(&config.identity, fetcher, &SystemClock).await;
    let results = outcomes.into_iter().map(|(name, outcome)| match outcome {
        Err(error) => check(
            CheckStatus::Fail,
            format!(
                "{name}: {error}; compare identity.providers.{name}.issuer with the provider, and allow its address \
                 in [identity]"
            ),
        ),
        Ok(ProviderFacts { keys, clock_lead }) => {
            let reached = format!("{name} responds and publishes {keys} keys");
            match clock_lead.map(|lead| judge_clock_lead("the provider", lead)) {
                Some((verdict, clock)) => check(verdict, format!("{reached}; {clock}")),
                None => check(CheckStatus::Ok, reached),
            }
        }
    });
    results.collect()
}

/// Checks `server.public_url`: whether it is reached from here, leads to this registry, and shows it the addresses of
/// clients. Without that setting clients use the address that the registry listens on.
pub(super) async fn check_public_url(
    config: &Config,
    client: &Client,
    registry_id: Option<&str>,
) -> Vec<DoctorCheck> {
    if config.server.public_url.is_empty() {
        return Vec::new();
    }
    let public = config.public_url();
    let check = |verdict, detail: String| DoctorCheck::new("public URL", verdict, detail);
    let (Ok(url), Ok(anonymous)) = (Url::parse(&public), client.for_address(&public, false)) else {
        let detail = format!("{public} is not a URL; correct server.public_url");
        return vec![check(CheckStatus::Fail, detail)];
    };
    let own_keys = client.fetch_status_and_body(KEYS_PATH).await;
    let public_keys = anonymous.fetch_status_and_body(KEYS_PATH).await;
    let reached = match judge_keys(&public, &own_keys, &public_keys) {
        Ok(reached) => reached,
        Err((verdict, detail)) => return vec![check(verdict, detail)],
    };
    let (verdict, detail) = match are_keys_equal(&own_keys, &public_keys) {
        // Somebody else may answer there, who must not get the token.
        false => (
            CheckStatus::Warn,
            "forwarded headers were not checked, because the token is sent only where the keys of the registry are; \
             give --registry its own address"
                .to_owned(),
        ),
        true => match read_received_request(client, &url).await {
            Some(request) => judge_received_request(&url, &request, registry_id),
            None => (
                CheckStatus::Warn,
                "forwarded headers were not checked; give --token one that may read events, and begin \
                 server.public_url with https"
                    .to_owned(),
            ),
        },
    };
    vec![
        check(CheckStatus::Ok, reached),
        DoctorCheck::new("proxy", verdict, detail),
    ]
}

type KeysResponse = Result<(u16, Bytes), ClientError>;

/// Whether both addresses have published the same keys.
fn are_keys_equal(own_keys: &KeysResponse, public_keys: &KeysResponse) -> bool {
    matches!((own_keys, public_keys), (Ok((200, own)), Ok((200, others))) if own == others)
}

/// Whether the public URL leads to the registry that answers directly; a sentence about it, or the finding.
fn judge_keys(
    public: &str,
    own_keys: &KeysResponse,
    public_keys: &KeysResponse,
) -> Result<String, (CheckStatus, String)> {
    match (own_keys, public_keys) {
        // Without the registry itself a proxy cannot work either, which another check reports.
        (Err(_), Err(error)) => Err((
            CheckStatus::Warn,
            format!("{public} cannot be reached from here: {error}; start the registry first"),
        )),
        (Ok(_), Err(error)) => Err((
            CheckStatus::Fail,
            format!(
                "{public} cannot be reached from here: {error}; start the proxy, or correct server.public_url"
            ),
        )),
        (_, Ok((502..=504, _))) => Err((
            CheckStatus::Fail,
            format!(
                "{public} is reached, but its proxy does not reach the registry; compare its upstream with \
                 server.listen"
            ),
        )),
        (Ok(_), Ok(_)) if are_keys_equal(own_keys, public_keys) => {
            Ok(format!("{public} leads to this registry"))
        }
        (Ok((200, _)), Ok((status, _))) => Err((
            CheckStatus::Fail,
            format!(
                "{public} leads to something other than --registry (HTTP {status} without its keys); correct \
                 server.public_url or the proxy"
            ),
        )),
        (_, Ok((status, _))) => Ok(format!(
            "{public} responds with HTTP {status}; without its keys, whether it leads to this registry is unknown"
        )),
    }
}

/// How a request through the public URL arrived; `None` without a token that may read events. The token is sent only
/// over TLS, or to this machine.
async fn read_received_request(client: &Client, public: &Url) -> Option<ReceivedRequest> {
    let is_here = match public.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    };
    if !client.has_token() || !(is_here || public.scheme() == "https") {
        return None;
    }
    let through = client.for_address(public.as_str(), true).ok()?;
    let (_, body) = through.readiness().await.ok()?;
    let request = body?.get_mut("request").map(Value::take)?;
    serde_json::from_value(request).ok()
}

/// Judges how a request through the public URL arrived.
fn judge_received_request(
    public: &Url,
    request: &ReceivedRequest,
    registry_id: Option<&str>,
) -> (CheckStatus, String) {
    if let (Some(expected), Some(found)) = (registry_id, request.registry.as_deref())
        && expected != found
    {
        let detail = format!(
            "{public} leads to a registry with another database; correct the proxy, or --config and --database"
        );
        return (CheckStatus::Fail, detail);
    }
    let peer = request
        .peer
        .as_deref()
        .unwrap_or("an address that is not known");
    let client = request.client.as_deref().unwrap_or_default();
    match (request.trusted, request.forwarded_for.is_some()) {
        (false, true) => {
            let detail = format!(
                "requests come through the proxy {peer}, which server.trusted_proxies does not contain, so that all \
                 clients count as one; add it"
            );
            return (CheckStatus::Fail, detail);
        }
        (true, _) if client == peer && !names_client(request) => {
            let detail = format!(
                "the proxy {peer} does not name the client's address; have it set X-Forwarded-For"
            );
            return (CheckStatus::Fail, detail);
        }
        _ => {}
    }
    if let Some(detail) = find_other_origin(public, request) {
        return (CheckStatus::Warn, detail);
    }
    let detail = match request.trusted {
        true => format!("requests come through the trusted proxy {peer}, this one from {client}"),
        false => format!("requests come directly, this one from {peer}"),
    };
    (CheckStatus::Ok, detail)
}

/// Whether the proxy names an address. That of a client on a trusted machine, such as the proxy's own, counts as the
/// proxy's.
fn names_client(request: &ReceivedRequest) -> bool {
    let forwarded = request.forwarded_for.as_deref().unwrap_or_default();
    let last = forwarded.rsplit(',').next().unwrap_or_default();
    last.trim().parse::<IpAddr>().is_ok()
}

/// The finding if the registry sees another scheme or host than those of its public URL.
fn find_other_origin(public: &Url, request: &ReceivedRequest) -> Option<String> {
    let expected = public[url::Position::BeforeHost..url::Position::AfterPort].to_owned();
    let mut seen_hosts = [&request.forwarded_host, &request.host]
        .into_iter()
        .flatten();
    let other_host = seen_hosts.find(|host| !host.eq_ignore_ascii_case(&expected));
    if let Some(host) = other_host {
        return Some(format!(
            "the registry sees the host {host} instead of {expected}; have the proxy pass the Host of the request on"
        ));
    }
    let scheme = request.forwarded_proto.as_deref()?;
    (scheme != public.scheme()).then(|| {
        format!(
            "the proxy says that clients use {scheme}, and server.public_url begins with {}; correct one of them",
            public.scheme()
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn proxied_request() -> ReceivedRequest {
        ReceivedRequest {
            registry: Some("one".into()),
            client: Some("192.0.2.7".into()),
            peer: Some("10.0.0.1".into()),
            trusted: true,
            host: Some("registry.example.com".into()),
            forwarded_for: Some("192.0.2.7".into()),
            forwarded_host: None,
            forwarded_proto: Some("https".into()),
        }
    }

    fn judge(change: impl FnOnce(&mut ReceivedRequest)) -> (CheckStatus, String) {
        let mut request = proxied_request();
        change(&mut request);
        let public = Url::parse("https://registry.example.com").unwrap();
        judge_received_request(&public, &request, Some("one"))
    }

    #[test]
    fn each_fault_of_a_proxy_is_named_with_its_remedy() {
        assert_eq!(judge(|_| ()).0, CheckStatus::Ok);
        for (finding, expected, words) in [
            (
                judge(|request| request.registry = Some("two".into())),
                CheckStatus::Fail,
                "another database",
            ),
            (
                judge(|request| {
                    request.trusted = false;
                    request.client.clone_from(&request.peer);
                }),
                CheckStatus::Fail,
                "server.trusted_proxies does not contain",
            ),
            (
                judge(|request| {
                    request.forwarded_for = None;
                    request.client.clone_from(&request.peer);
                }),
                CheckStatus::Fail,
                "set X-Forwarded-For",
            ),
            (
                judge(|request| request.host = Some("127.0.0.1:8080".into())),
                CheckStatus::Warn,
                "sees the host 127.0.0.1:8080",
            ),
            (
                judge(|request| request.forwarded_proto = Some("http".into())),
                CheckStatus::Warn,
                "clients use http",
            ),
        ] {
            assert_eq!(finding.0, expected, "{finding:?}");
            assert!(finding.1.contains(words), "{finding:?}");
        }
        let direct = judge(|request| {
            request.trusted = false;
            request.forwarded_for = None;
            request.forwarded_proto = None;
        });
        assert_eq!(direct.0, CheckStatus::Ok, "{direct:?}");
        let from_the_same_machine = judge(|request| {
            request.client.clone_from(&request.peer);
            request.forwarded_for.clone_from(&request.peer);
        });
        assert_eq!(
            from_the_same_machine.0,
            CheckStatus::Ok,
            "{from_the_same_machine:?}"
        );
        let unreadable = judge(|request| {
            request.client.clone_from(&request.peer);
            request.forwarded_for = Some("unknown".into());
        });
        assert_eq!(unreadable.0, CheckStatus::Fail, "{unreadable:?}");
    }

    #[test]
    fn another_registry_is_told_from_one_that_is_down() {
        let keys = |status, text: &'static str| Ok((status, Bytes::from_static(text.as_bytes())));
        let down = || Err(ClientError::Failed("refused".into()));
        let verdict = |own: &KeysResponse, public: &KeysResponse| {
            judge_keys("https://a.example", own, public).map_err(|(verdict, _)| verdict)
        };
        assert!(verdict(&keys(200, "a"), &keys(200, "a")).is_ok());
        assert!(verdict(&keys(404, ""), &keys(404, "")).is_ok());
        assert!(are_keys_equal(&keys(200, "a"), &keys(200, "a")));
        // Nothing of this tells who answers, so no token is sent.
        for (own, public) in [
            (keys(404, ""), keys(404, "")),
            (down(), keys(200, "a")),
            (keys(200, "a"), keys(200, "b")),
        ] {
            assert!(!are_keys_equal(&own, &public), "{own:?} {public:?}");
        }
        for (own, public, expected) in [
            (keys(200, "a"), keys(200, "b"), CheckStatus::Fail),
            (keys(200, "a"), keys(404, ""), CheckStatus::Fail),
            (keys(200, "a"), keys(502, ""), CheckStatus::Fail),
            (keys(200, "a"), down(), CheckStatus::Fail),
            (down(), down(), CheckStatus::Warn),
        ] {
            assert_eq!(verdict(&own, &public), Err(expected), "{own:?} {public:?}");
        }
    }
}
