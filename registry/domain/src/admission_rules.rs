//! Admission rules: pure functions, where the first matching rule decides
//! (docs/govern/policies.md#admit-cards-without-a-review). The caller
//! evaluates the policies first.
//!
//! An invalid signature blocks every rule here. `admission/decision.rs` of the server then drops an approval that came
//! with the registration, and `crawl/derivation.rs` puts a served card on hold when its signature becomes invalid.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::review::ChangeClass;
use super::text_enum::text_enum;

text_enum! {
    /// The rule that made a decision.
    Rule {
        /// The domain is on `deny_domains`.
        DenyDomains = "deny_domains",
        /// A person decided about this content.
        Person = "person",
        ApproveAll = "approve_all",
        /// The domain is on `allow_domains` and the card has no error finding.
        AllowDomains = "allow_domains",
        /// The domain is verified, the card has no error finding, and it is new or changed little.
        VerifiedDomain = "verified_domain",
        /// A custom policy permits the card.
        Policy = "policy",
        /// A change of class low to an approved card.
        LowChange = "low-change",
        /// A change of class none to an approved card.
        NoChange = "no-change",
        /// One account alone approved the card, for a day (docs/govern/reviews.md#approve-alone-in-an-emergency).
        BreakGlass = "break_glass",
        /// No rule approved the card; it waits for a curator.
        NoRule = "no_rule",
    }
}

/// A pattern for a domain, or for all domains below one: `example.com`, `*.example.com`, `127.0.0.1:9001`,
/// `127.0.0.1:*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DomainPattern(pub String);

impl DomainPattern {
    /// Whether a normalized domain (`host` or `host:port`) matches, ignoring case. `*.` stands for one or more labels,
    /// never for none; `:*` stands for any port or none.
    pub fn matches(&self, domain: &str) -> bool {
        let pattern = self.0.trim().to_ascii_lowercase();
        let domain = domain.to_ascii_lowercase();
        let (pattern, domain) = match pattern.strip_suffix(":*") {
            Some(host_pattern) => (host_pattern.to_owned(), strip_port(&domain).to_owned()),
            None => (pattern, domain),
        };
        match pattern.strip_prefix("*.") {
            Some(parent) => domain
                .strip_suffix(parent)
                .is_some_and(|front| front.len() > 1 && front.ends_with('.')),
            None => pattern == domain,
        }
    }
}

/// The host of `host` or `host:port`; an IPv6 literal keeps its brackets.
fn strip_port(domain: &str) -> &str {
    match domain.rfind(':') {
        Some(colon) if !domain[colon..].contains(']') => &domain[..colon],
        _ => domain,
    }
}

/// Domain patterns indexed for many lookups: each lookup takes as many steps as the domain has labels.
#[derive(Debug, Clone, Default)]
pub struct DomainPatternSet {
    /// Patterns for a single domain.
    exact: HashSet<String>,
    /// The part after `*.` of the other patterns.
    parents: HashSet<String>,
    /// Single hosts from the patterns that end with `:*`, without that ending.
    exact_hosts: HashSet<String>,
    parent_hosts: HashSet<String>,
}

impl DomainPatternSet {
    pub fn new(patterns: &[DomainPattern]) -> Self {
        let mut set = Self::default();
        for pattern in patterns {
            let pattern = pattern.0.trim().to_ascii_lowercase();
            let (text, exact, parents) = match pattern.strip_suffix(":*") {
                Some(host) => (host, &mut set.exact_hosts, &mut set.parent_hosts),
                None => (pattern.as_str(), &mut set.exact, &mut set.parents),
            };
            match text.strip_prefix("*.") {
                Some(parent) => parents.insert(parent.to_owned()),
                None => exact.insert(text.to_owned()),
            };
        }
        set
    }

    pub fn matches(&self, domain: &str) -> bool {
        let domain = domain.to_ascii_lowercase();
        let host = strip_port(&domain);
        matches_domain_patterns(&domain, &self.exact, &self.parents)
            || matches_domain_patterns(host, &self.exact_hosts, &self.parent_hosts)
    }
}

fn matches_domain_patterns(name: &str, exact: &HashSet<String>, parents: &HashSet<String>) -> bool {
    let mut dots = name.match_indices('.').filter(|(at, _)| *at > 0);
    exact.contains(name) || dots.any(|(at, _)| parents.contains(&name[at + 1..]))
}

#[derive(Debug, Clone, Default)]
pub struct AdmissionRules {
    /// Domains that are never registered; their existing agents are put on hold.
    pub deny_domains: Vec<DomainPattern>,
    /// Domains approved without a proof, if the card has no error finding.
    pub allow_domains: Vec<DomainPattern>,
    /// Approves everything except denied domains, content that a person has rejected, and invalid signatures.
    pub approve_all: bool,
}

impl AdmissionRules {
    pub fn denies(&self, domain: &str) -> bool {
        self.deny_domains
            .iter()
            .any(|pattern| pattern.matches(domain))
    }

    pub fn allows(&self, domain: &str) -> bool {
        self.allow_domains
            .iter()
            .any(|pattern| pattern.matches(domain))
    }
}

impl fmt::Display for AdmissionRules {
    /// Writes one line, the same for equal rules.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join_patterns = |patterns: &[DomainPattern]| {
            let texts: Vec<&str> = patterns.iter().map(|pattern| pattern.0.as_str()).collect();
            texts.join(" ")
        };
        write!(
            formatter,
            "deny {}; allow {}; approve all: {}",
            join_patterns(&self.deny_domains),
            join_patterns(&self.allow_domains),
            self.approve_all
        )
    }
}

#[derive(Debug, Clone, Copy)]
pub struct AdmissionFacts<'a> {
    pub domain: &'a str,
    /// Whether the domain has a valid proof (dns, http, operator).
    pub verified: bool,
    /// The change since the approved version; `None` without an approved version.
    pub change: Option<ChangeClass>,
    /// Whether the card is the domain's own or was admitted for it (docs/publish/prove.md#what-a-proof-covers).
    pub admitted: bool,
    pub has_error: bool,
    pub signature_invalid: bool,
    /// A person's decision about exactly this content and signature, if there is one.
    pub person_approved: Option<bool>,
    /// The rule of the policy that permits the card, if any.
    pub permitting_rule: Option<Rule>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionDecision {
    /// The agent gets the hold `denied`.
    Denied,
    Approved(Rule),
    Rejected,
    Pending,
}

impl AdmissionDecision {
    pub const fn rule(self) -> Rule {
        match self {
            Self::Denied => Rule::DenyDomains,
            Self::Approved(rule) => rule,
            Self::Rejected => Rule::Person,
            Self::Pending => Rule::NoRule,
        }
    }
}

text_enum! {
    /// A reason why rules cannot approve a card. An invalid signature blocks every rule; the other reasons block the
    /// rules that trust the domain.
    Obstacle {
        /// The domain is neither proved nor on `allow_domains`.
        Unproved = "unproved",
        /// A third party nominated the card's URL.
        Nomination = "nomination",
        ErrorFinding = "error_finding",
        InvalidSignature = "invalid_signature",
        /// The class of the change is too high.
        Change = "change",
    }
}

/// Decides about a card: the denied domains first, then a person's decision, then the policies.
pub fn decide_admission(facts: &AdmissionFacts<'_>, rules: &AdmissionRules) -> AdmissionDecision {
    if rules.denies(facts.domain) {
        return AdmissionDecision::Denied;
    }
    match (facts.person_approved, facts.permitting_rule) {
        (Some(true), _) => AdmissionDecision::Approved(Rule::Person),
        (Some(false), _) => AdmissionDecision::Rejected,
        // No policy approves a card with an invalid signature; a person may, having seen the result.
        (None, Some(rule)) if !facts.signature_invalid => AdmissionDecision::Approved(rule),
        (None, _) => AdmissionDecision::Pending,
    }
}

/// The reasons why the default policies cannot approve a card without a person's decision.
pub fn approval_obstacles(facts: &AdmissionFacts<'_>, rules: &AdmissionRules) -> Vec<Obstacle> {
    if facts.signature_invalid {
        return vec![Obstacle::InvalidSignature];
    }
    // The largest change that each policy trusting the domain approves.
    let allowed = rules.allows(facts.domain).then_some(ChangeClass::High);
    let verified = facts.verified.then_some(ChangeClass::Low);
    let approvable_classes = [allowed, verified].into_iter().flatten();
    let fits = |largest| facts.change.is_none_or(|class| class <= largest);
    let mut obstacles = Vec::new();
    if approvable_classes.clone().next().is_none() {
        obstacles.push(Obstacle::Unproved);
    } else if !approvable_classes.clone().any(fits) {
        obstacles.push(Obstacle::Change);
    }
    if !facts.admitted {
        obstacles.push(Obstacle::Nomination);
    }
    if facts.has_error {
        obstacles.push(Obstacle::ErrorFinding);
    }
    obstacles
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(change: Option<ChangeClass>) -> AdmissionFacts<'static> {
        AdmissionFacts {
            domain: "agents.example.com",
            verified: false,
            change,
            admitted: true,
            has_error: false,
            signature_invalid: false,
            person_approved: None,
            permitting_rule: None,
        }
    }

    fn rules(deny: &[&str], allow: &[&str], approve_all: bool) -> AdmissionRules {
        let patterns = |list: &[&str]| {
            list.iter()
                .map(|text| DomainPattern((*text).into()))
                .collect()
        };
        AdmissionRules {
            deny_domains: patterns(deny),
            allow_domains: patterns(allow),
            approve_all,
        }
    }

    #[test]
    fn patterns_mean_what_they_say() {
        let cases = [
            ("example.com", "example.com", true),
            ("example.com", "a.example.com", false),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "badexample.com", false),
            ("Example.COM", "example.com", true),
            ("127.0.0.1:*", "127.0.0.1:9001", true),
            ("127.0.0.1:*", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.1:9001", false),
            ("*.example.com:*", "a.example.com:8443", true),
            ("[::1]:*", "[::1]:80", true),
            ("[::1]:*", "[::1]", true),
        ];
        for (pattern, domain, expected) in cases {
            assert_eq!(
                DomainPattern(pattern.into()).matches(domain),
                expected,
                "{pattern} on {domain}"
            );
        }
    }

    /// A pattern set matches a domain exactly if one of its patterns does, for all domains built from the same parts.
    #[test]
    fn a_set_of_patterns_matches_as_each_of_them_does() {
        let fronts = ["", "*.", "a.", ".", "a.b."];
        let names = [
            "example.com",
            "com",
            "Example.COM",
            "127.0.0.1",
            "[::1]",
            "",
        ];
        let ports = ["", ":*", ":8443", ":80"];
        let texts: Vec<String> = fronts
            .iter()
            .flat_map(|front| names.iter().map(move |name| format!("{front}{name}")))
            .flat_map(|text| ports.iter().map(move |port| format!("{text}{port}")))
            .collect();
        for pattern in &texts {
            let alone = [DomainPattern(format!(" {pattern} "))];
            let set = DomainPatternSet::new(&alone);
            for domain in &texts {
                let matches = alone[0].matches(domain);
                assert_eq!(set.matches(domain), matches, "{pattern} on {domain}");
            }
        }
        let all: Vec<DomainPattern> = ["*.b.test", "c.test:*", "d.test"]
            .map(|text| DomainPattern(text.into()))
            .into();
        let set = DomainPatternSet::new(&all);
        for (domain, matches) in [
            ("a.b.test", true),
            ("b.test", false),
            ("c.test:1", true),
            ("d.test", true),
            ("d.test:1", false),
        ] {
            assert_eq!(set.matches(domain), matches, "{domain}");
        }
    }

    #[test]
    fn the_floors_and_a_person_come_before_the_policies() {
        let deny = rules(&["*.example.com"], &[], false);
        let none = rules(&[], &[], false);
        let permitted = AdmissionFacts {
            permitting_rule: Some(Rule::ApproveAll),
            ..facts(None)
        };
        assert_eq!(
            decide_admission(&permitted, &deny),
            AdmissionDecision::Denied
        );
        assert_eq!(
            decide_admission(&permitted, &none),
            AdmissionDecision::Approved(Rule::ApproveAll)
        );
        assert_eq!(
            decide_admission(&facts(None), &none),
            AdmissionDecision::Pending
        );
        let invalid = AdmissionFacts {
            signature_invalid: true,
            ..permitted
        };
        assert_eq!(
            decide_admission(&invalid, &none),
            AdmissionDecision::Pending
        );
        for (person, ruling) in [
            (true, AdmissionDecision::Approved(Rule::Person)),
            (false, AdmissionDecision::Rejected),
        ] {
            let decided = AdmissionFacts {
                person_approved: Some(person),
                ..invalid
            };
            assert_eq!(decide_admission(&decided, &none), ruling);
            assert_eq!(decide_admission(&decided, &deny), AdmissionDecision::Denied);
        }
    }

    /// A waiting card lists the reasons why it waits.
    #[test]
    fn a_card_that_waits_says_what_keeps_it() {
        use Obstacle::{Change, ErrorFinding, Nomination, Unproved};
        let none = rules(&[], &[], false);
        let told = |facts: AdmissionFacts<'_>| approval_obstacles(&facts, &none);
        assert_eq!(told(facts(None)), [Unproved]);
        let proved = AdmissionFacts {
            verified: true,
            ..facts(None)
        };
        assert_eq!(told(proved), []);
        let broken = AdmissionFacts {
            has_error: true,
            ..proved
        };
        assert_eq!(told(broken), [ErrorFinding]);
        let nominated = AdmissionFacts {
            admitted: false,
            ..broken
        };
        assert_eq!(told(nominated), [Nomination, ErrorFinding]);
        let changed = AdmissionFacts {
            change: Some(ChangeClass::High),
            ..proved
        };
        assert_eq!(told(changed), [Change]);
    }
}
