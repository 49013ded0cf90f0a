//! Coverage: whether a source belongs to the domain itself (a proof of the domain covers it) or was nominated by
//! others (docs/publish/prove.md#what-a-proof-covers). Pure functions, and the only place that decides this for
//! ingest, rules, URNs, trust levels and views.

use uuid::Uuid;

use super::role::Role;
use super::source::SourceKind;
use super::text_enum::text_enum;

text_enum! {
    /// The coverage level of a source's cards, the weakest first.
    CoverageLevel {
        /// Nominated by a third party: policies that trust the domain do not admit it, and it gets no trust level or
        /// URN.
        Nomination = "nomination",
        /// Added by a curator, or by the account of an operator's vouch: admitted, but without trust level or URN of
        /// the domain.
        Admitted = "admitted",
        /// The domain's own, covered by its proof.
        Covered = "covered",
    }
}

text_enum! {
    /// Whether a proof of the domain covers a source.
    Coverage {
        /// Covered once the domain is proved: a well-known path, a card in the domain's own catalog, or a URL from its
        /// owner.
        Covered = "covered",
        /// Not covered: a third party named this URL, or a redirect led to another host.
        Nomination = "nomination",
    }
}

impl Coverage {
    /// A description for people who decide whether to rely on the card. `is_proved`: an account has proved the domain.
    pub const fn description(self, is_proved: bool) -> &'static str {
        match self {
            Self::Covered if is_proved => "the domain's own: a proof of the domain covers it",
            Self::Covered => "the domain's own, but no account has proved the domain",
            Self::Nomination => "a nomination: no proof of the domain covers it",
        }
    }
}

impl CoverageLevel {
    /// Whether policies that trust the domain admit the card.
    pub const fn is_admitted(self) -> bool {
        !matches!(self, Self::Nomination)
    }

    pub const fn coverage(self) -> Coverage {
        match self {
            Self::Covered => Coverage::Covered,
            Self::Admitted | Self::Nomination => Coverage::Nomination,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceRegistrant {
    /// The registering account; `None` for an anonymous client.
    pub account: Option<Uuid>,
    /// The account's role when it registered the source.
    pub role: Option<Role>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DomainCoverageFacts {
    pub name: String,
    /// Scheme, host and port, such as `https://a.example`.
    pub origin: String,
    pub owner: Option<Uuid>,
    /// The account that an admin has vouched for as the owner of exactly [`origin`](Self::origin).
    pub vouched_owner: Option<Uuid>,
    /// The accounts named in operators' vouches.
    pub vouched_accounts: Vec<Uuid>,
    /// DNS names whose records, with `policy=subdomains`, prove the owner: they cover every host below them.
    pub zones: Vec<String>,
    /// Origins of other domains that the same account has proved.
    pub same_owner_origins: Vec<String>,
}

impl DomainCoverageFacts {
    /// Whether an origin belongs to the owner of the domain: it is the domain, a host that the same account has
    /// proved, or a host that the owner's record covers.
    pub fn covers_origin(&self, origin: &str) -> bool {
        is_same_owner_origin(self, origin)
    }

    /// Whether an origin is the domain itself, as registered or over TLS.
    fn has_origin(&self, origin: &str) -> bool {
        let over_tls = |origin: &str| origin.strip_prefix("https://") == Some(self.name.as_str());
        origin == self.origin || over_tls(origin)
    }
}

/// Facts about a source, or about the URL where a version of a card was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceCoverageFacts<'a> {
    pub kind: SourceKind,
    pub origin: String,
    /// The origin that responded, after redirects.
    pub answered_by: &'a str,
    /// Whether the domain's own catalog currently lists the URL.
    pub is_in_own_catalog: bool,
    pub registrants: Vec<SourceRegistrant>,
}

/// Whether only the domain controls the location of such a source, whoever registered it.
pub const fn is_domain_controlled(kind: SourceKind) -> bool {
    match kind {
        SourceKind::WellKnown | SourceKind::Ard | SourceKind::AiCatalog => true,
        SourceKind::Url | SourceKind::Entry => false,
    }
}

/// The coverage level of a source, with the domain's actual proof or an assumed one.
pub fn coverage_level(
    domain: &DomainCoverageFacts,
    source: &SourceCoverageFacts<'_>,
) -> CoverageLevel {
    if !domain.has_origin(&source.origin) || !is_same_owner_origin(domain, source.answered_by) {
        return CoverageLevel::Nomination;
    }
    let has_registrant =
        |predicate: &dyn Fn(&SourceRegistrant) -> bool| source.registrants.iter().any(predicate);
    let is_exact = source.origin == domain.origin && source.answered_by == domain.origin;
    let vouched_owner = domain.vouched_owner.filter(|_| is_exact);
    let by_owner = |registrant: &SourceRegistrant| {
        registrant.account.is_some()
            && (registrant.account == domain.owner || registrant.account == vouched_owner)
    };
    if is_domain_controlled(source.kind) || source.is_in_own_catalog || has_registrant(&by_owner) {
        return CoverageLevel::Covered;
    }
    let by_curator = |registrant: &SourceRegistrant| registrant.role.is_some_and(Role::is_staff);
    let by_vouched = |registrant: &SourceRegistrant| {
        registrant
            .account
            .is_some_and(|account| domain.vouched_accounts.contains(&account))
    };
    if has_registrant(&by_curator) || has_registrant(&by_vouched) {
        return CoverageLevel::Admitted;
    }
    CoverageLevel::Nomination
}

/// Whether responses of this origin belong to the domain: the origin is the domain, a host that the same account has
/// proved, or a host that the owner's record covers.
fn is_same_owner_origin(domain: &DomainCoverageFacts, origin: &str) -> bool {
    if domain.has_origin(origin)
        || domain
            .same_owner_origins
            .iter()
            .any(|other| other == origin)
    {
        return true;
    }
    // A record covers host names on port 443, as proofs do.
    let Some(host) = origin.strip_prefix("https://") else {
        return false;
    };
    let is_in_zone = |zone: &String| {
        host == zone
            || host
                .strip_suffix(zone.as_str())
                .is_some_and(|front| front.ends_with('.'))
    };
    !host.contains(':') && domain.zones.iter().any(is_in_zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Uuid = Uuid::from_u128(1);
    const STRANGER: Uuid = Uuid::from_u128(2);
    const PARTNER: Uuid = Uuid::from_u128(3);
    const HOME: &str = "https://a.example";

    fn domain() -> DomainCoverageFacts {
        DomainCoverageFacts {
            name: "a.example".into(),
            origin: HOME.into(),
            owner: Some(OWNER),
            vouched_accounts: vec![PARTNER],
            ..DomainCoverageFacts::default()
        }
    }

    fn source(
        kind: SourceKind,
        registrants: &[(Option<Uuid>, Option<Role>)],
    ) -> SourceCoverageFacts<'static> {
        SourceCoverageFacts {
            kind,
            origin: HOME.into(),
            answered_by: HOME,
            is_in_own_catalog: false,
            registrants: registrants
                .iter()
                .map(|&(account, role)| SourceRegistrant { account, role })
                .collect(),
        }
    }

    #[test]
    fn no_proof_is_claimed_of_an_unproved_domain() {
        assert!(Coverage::Covered.description(true).contains("a proof of"));
        assert!(!Coverage::Covered.description(false).contains("a proof of"));
        for is_proved in [false, true] {
            assert!(
                Coverage::Nomination
                    .description(is_proved)
                    .contains("no proof of")
            );
        }
    }

    #[test]
    fn a_source_stands_by_who_placed_or_registered_it() {
        use SourceKind::{Entry, Url, WellKnown};
        let by = |account, role| (Some(account), Some(role));
        let anyone = (None, None);
        let stranger = by(STRANGER, Role::Publisher);
        for (kind, registrants, expected) in [
            (WellKnown, vec![anyone], CoverageLevel::Covered),
            (WellKnown, vec![], CoverageLevel::Covered),
            (Url, vec![], CoverageLevel::Nomination),
            (Url, vec![anyone], CoverageLevel::Nomination),
            (Url, vec![stranger], CoverageLevel::Nomination),
            (
                Url,
                vec![by(OWNER, Role::Publisher)],
                CoverageLevel::Covered,
            ),
            (
                Url,
                vec![stranger, by(OWNER, Role::Publisher)],
                CoverageLevel::Covered,
            ),
            (
                Url,
                vec![stranger, by(STRANGER, Role::Curator)],
                CoverageLevel::Admitted,
            ),
            (
                Url,
                vec![by(STRANGER, Role::Admin)],
                CoverageLevel::Admitted,
            ),
            (
                Url,
                vec![by(PARTNER, Role::Publisher)],
                CoverageLevel::Admitted,
            ),
            (Entry, vec![], CoverageLevel::Nomination),
        ] {
            let facts = source(kind, &registrants);
            assert_eq!(
                coverage_level(&domain(), &facts),
                expected,
                "{kind} {registrants:?}"
            );
            let named = SourceCoverageFacts {
                is_in_own_catalog: true,
                ..facts.clone()
            };
            assert_eq!(
                coverage_level(&domain(), &named),
                CoverageLevel::Covered,
                "named"
            );
            for elsewhere in [
                "https://evil.example",
                "http://a.example",
                "https://a.example:8443",
            ] {
                let redirected = SourceCoverageFacts {
                    answered_by: elsewhere,
                    ..named.clone()
                };
                assert_eq!(
                    coverage_level(&domain(), &redirected),
                    CoverageLevel::Nomination,
                    "{elsewhere}"
                );
                let there = SourceCoverageFacts {
                    origin: elsewhere.into(),
                    ..named.clone()
                };
                assert_eq!(
                    coverage_level(&domain(), &there),
                    CoverageLevel::Nomination,
                    "asked at {elsewhere}"
                );
            }
        }
    }

    /// Without an owner no registration counts as the owner's: an anonymous one has no account either.
    #[test]
    fn nobody_owns_what_nobody_has_proved() {
        let unproved = DomainCoverageFacts {
            owner: None,
            ..domain()
        };
        let anyone = source(SourceKind::Url, &[(None, None)]);
        assert_eq!(
            coverage_level(&unproved, &anyone),
            CoverageLevel::Nomination
        );
        let owner_to_be = source(SourceKind::Url, &[(Some(OWNER), Some(Role::Publisher))]);
        assert_eq!(
            coverage_level(&unproved, &owner_to_be),
            CoverageLevel::Nomination
        );
    }

    /// An admin's vouch covers one scheme, host and port, and nothing that a redirect leads to.
    #[test]
    fn a_vouched_owner_covers_its_own_origin_alone() {
        let host = |scheme: &str, name: &str| DomainCoverageFacts {
            name: name.into(),
            origin: format!("{scheme}://{name}"),
            vouched_owner: Some(OWNER),
            same_owner_origins: vec!["http://10.0.0.2".into()],
            ..DomainCoverageFacts::default()
        };
        for (domain, origin, answered_by, expected) in [
            (
                host("http", "10.0.0.1"),
                "http://10.0.0.1",
                "http://10.0.0.1",
                CoverageLevel::Covered,
            ),
            (
                host("http", "10.0.0.1"),
                "https://10.0.0.1",
                "https://10.0.0.1",
                CoverageLevel::Nomination,
            ),
            (
                host("http", "10.0.0.1"),
                "http://10.0.0.1",
                "https://10.0.0.1",
                CoverageLevel::Nomination,
            ),
            (
                host("http", "10.0.0.1"),
                "http://10.0.0.1",
                "http://10.0.0.2",
                CoverageLevel::Nomination,
            ),
            (
                host("https", "10.0.0.1:8080"),
                "https://10.0.0.1:8080",
                "https://10.0.0.1:8080",
                CoverageLevel::Covered,
            ),
            (
                host("https", "10.0.0.1:8080"),
                "https://10.0.0.1:8081",
                "https://10.0.0.1:8081",
                CoverageLevel::Nomination,
            ),
        ] {
            let facts = SourceCoverageFacts {
                origin: origin.into(),
                answered_by,
                ..source(SourceKind::Url, &[(Some(OWNER), Some(Role::Publisher))])
            };
            let of_other = SourceCoverageFacts {
                registrants: vec![SourceRegistrant {
                    account: None,
                    role: None,
                }],
                ..facts.clone()
            };
            assert_eq!(
                coverage_level(&domain, &facts),
                expected,
                "{origin} by {answered_by}"
            );
            assert_eq!(
                coverage_level(&domain, &of_other),
                CoverageLevel::Nomination,
                "{origin}"
            );
        }
    }

    #[test]
    fn a_redirect_stays_the_domains_own_as_far_as_its_owners_proof_reaches() {
        let reaching = DomainCoverageFacts {
            zones: vec!["a.example".into()],
            same_owner_origins: vec!["https://b.example".into()],
            ..domain()
        };
        for (origin, own) in [
            (HOME, true),
            ("https://www.a.example", true),
            ("https://x.y.a.example", true),
            ("https://b.example", true),
            ("https://www.b.example", false),
            ("https://nota.example", false),
            ("https://a.example.evil.example", false),
            ("https://www.a.example:8443", false),
            ("http://www.a.example", false),
            ("http://b.example", false),
        ] {
            assert_eq!(is_same_owner_origin(&reaching, origin), own, "{origin}");
            assert_eq!(
                is_same_owner_origin(&domain(), origin),
                origin == HOME,
                "{origin}, without them"
            );
        }
    }
}
