//! Challenges: the record or file that an account places to prove a domain.

use a2a_card::AgentCard;
use a2a_crawler::challenge::dns_persistent::DnsRecordPolicy;
use a2a_crawler::challenge::{
    ExpectedProof, Nonce, format_persistent_dns_record, persistent_record_dns_name,
};
use a2a_registry_api::Challenge;
use a2a_registry_domain::ownership::{CHALLENGE_VALIDITY, Method};
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_store::entity::{challenge, domain};
use a2a_registry_store::{WriteTransaction, ownership};
use url::Url;
use uuid::Uuid;

use crate::admission::change_class::owner_extension_uri;
use crate::context::AppContext;
use crate::error::Result;
use crate::sources::https_origin;

/// Explains why a domain has no challenges, and what to do instead; `None` if it can be proved.
pub fn challenge_unavailable_reason(row: &domain::Model) -> Option<String> {
    if row.can_be_proved() {
        return None;
    }
    if row.has_plain_host_name() {
        return Some(format!(
            "{} was registered over plain http, which cannot be proved. Publish the card over https on port 443, \
             register it there, and run `a2a-registry domain verify {0}`, or ask an admin of this registry to vouch \
             for it: `a2a-registry domain vouch {0}`. With `--owner NAME` the admin vouches for an account as its \
             owner.",
            row.name
        ));
    }
    Some(format!(
        "{} cannot be proved: only a host name on port 443 over https can, by a record or a file. Publish the card on \
         port 443 and register it there, or ask an admin of this registry to vouch for it: \
         `a2a-registry domain vouch {0}`. With `--owner NAME` the admin vouches for an account as its owner.",
        row.name
    ))
}

pub async fn insert_challenges(
    context: &AppContext,
    write: &WriteTransaction,
    domains: &[i64],
    account: Uuid,
) -> Result<()> {
    let new_row = |domain: &i64| {
        let mut random = [0; 32];
        context.entropy.fill(&mut random);
        challenge::Model {
            id: 0,
            domain_id: *domain,
            account_id: account,
            nonce: Nonce::from_bytes(&random).as_str().into(),
            expires_at: context.now().plus_micros(CHALLENGE_VALIDITY).0,
        }
    };
    let rows = domains.iter().map(new_row).collect();
    Ok(write.upsert_challenges(rows).await?)
}

/// Creates a challenge for an account on each of these domains that has no open challenge of it.
pub async fn ensure_challenges(
    context: &AppContext,
    write: &WriteTransaction,
    domains: &[i64],
    account: Uuid,
) -> Result<()> {
    let now = context.now().0;
    let existing = ownership::challenges_by_domain(write, domains).await?;
    let is_open = |domain: &i64| {
        let mut own = existing.iter().filter(|one| one.domain_id == *domain);
        own.any(|one| one.account_id == account && one.expires_at > now)
    };
    let missing: Vec<i64> = domains.iter().copied().filter(|id| !is_open(id)).collect();
    insert_challenges(context, write, &missing, account).await
}

/// The URI of an account in records and cards.
pub fn account_uri(context: &AppContext, account: Uuid) -> String {
    format!("{}/accounts/{account}", context.config().public_url())
}

/// The account that a card's owner extension names (docs/publish/prove.md). It may not exist.
pub fn card_claimed_owner(context: &AppContext, card: &AgentCard) -> Option<Uuid> {
    let uri = owner_extension_uri(context);
    let extension = card
        .capabilities
        .extensions
        .iter()
        .find(|extension| extension.uri == uri)?;
    let account = extension.params.as_ref()?.get("account")?.as_str()?;
    let id: Uuid = account.rsplit('/').next()?.parse().ok()?;
    (account_uri(context, id) == account).then_some(id)
}

/// The host of this registry in DNS records, with `:port` if it has one.
pub fn registry_host(context: &AppContext) -> String {
    let url = context.config().public_url();
    let host = Url::parse(&url).ok().and_then(|url| {
        let host = url.host_str()?.to_owned();
        Some(match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host,
        })
    });
    host.unwrap_or(url)
}

/// The records and the file of a challenge, ready to copy; each of them alone is a proof. The persistent record comes
/// first, because it needs no renewal.
pub fn challenge_views(context: &AppContext, host: &str, row: &challenge::Model) -> Vec<Challenge> {
    let Ok(nonce) = Nonce::parse(&row.nonce) else {
        return Vec::new();
    };
    let uri = account_uri(context, row.account_id);
    let expected = ExpectedProof {
        account: &uri,
        nonce: &nonce,
    };
    let expires = Timestamp(row.expires_at);
    let record = |name: String, value: String, expires| Challenge {
        method: Method::Dns.into(),
        name: Some(name),
        url: None,
        value: Some(value),
        body: None,
        expires,
    };
    let persistent_record =
        format_persistent_dns_record(&registry_host(context), &uri, DnsRecordPolicy::Exact, None);
    let [plain, _] = expected.one_off_record_names(host);
    let mut views = vec![
        record(persistent_record_dns_name(host), persistent_record, None),
        record(
            plain,
            expected.one_off_record(expires.into()),
            Some(expires),
        ),
    ];
    if let Some(origin) = https_origin(host) {
        views.push(Challenge {
            method: Method::Http.into(),
            name: None,
            url: Some(expected.file_url(&origin).into()),
            value: None,
            body: Some(expected.file_content()),
            expires: Some(expires),
        });
    }
    views
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::{domain_host, new_domain_row};

    #[test]
    fn host_names_are_checked_whatever_their_port_and_addresses_are_not() {
        for (name, host) in [
            ("a.example", Some("a.example")),
            ("a.example:8443", Some("a.example")),
            ("localhost.example", Some("localhost.example")),
            ("localhost", None),
            ("localhost:8080", None),
            ("agents.localhost", None),
            ("127.0.0.1", None),
            ("127.0.0.1:8080", None),
            ("[::1]", None),
            ("[::1]:8080", None),
            ("[2001:db8::1]", None),
        ] {
            assert_eq!(domain_host(name), host, "{name}");
            let row = new_domain_row(name, "https", Timestamp(7));
            assert_eq!(row.check_due_at, host.map(|_| 7), "{name}");
        }
        let provable = |name, scheme| new_domain_row(name, scheme, Timestamp(0)).can_be_proved();
        assert!(provable("a.example", "https"));
        assert!(!provable("a.example", "http"));
        assert!(!provable("a.example:8443", "https"));
        assert!(!provable("127.0.0.1", "https"));
    }
}
