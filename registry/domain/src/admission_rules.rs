//! The admission rules: pure, the first match decides (docs/model.md#admission).
//!
//! An invalid signature blocks every rule here; `admission/decision.rs` of the server drops an approval that was given
//! with the registration for it, and `crawl/derivation.rs` puts a served card on hold whose signature becomes invalid.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::review::ChangeClass;
use super::text_enum::text_enum;

text_enum! {
    /// The rule that made a decision.
    Rule {
        /// 1: the domain is on `deny_domains`.
        DenyDomains = "deny_domains",
        /// 2: a person decided on this content.
        Person = "person",
        /// 3: the server runs with `--approve-all`.
        ApproveAll = "approve_all",
        /// 4: the domain is on `allow_domains` and the card has no error finding.
        AllowDomains = "allow_domains",
        /// 5: the domain is verified, the card has no error finding, and it is new or changed little.
        VerifiedDomain = "verified_domain",
        /// A change of class low to an approved card.
        LowChange = "low-change",
        /// A change of class none to an approved card.
        NoChange = "no-change",
        /// 6: no rule approved it; it waits for a curator.
        NoRule = "no_rule",
    }
}

/// A domain, or every domain below one: `example.com`, `*.example.com`, `127.0.0.1:9001`, `127.0.0.1:*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DomainPattern(pub String);

impl DomainPattern {
    /// Whether a normalised domain (`host` or `host:port`) matches. Case does not count. `*.` stands for
    /// one or more labels and never for none; `:*` for any port and for none.
    pub fn matches(&self, domain: &str) -> bool {
        let pattern = self.0.trim().to_ascii_lowercase();
        let domain = domain.to_ascii_lowercase();
        let (pattern, domain) = match pattern.strip_suffix(":*") {
            Some(host_pattern) => (host_pattern.to_owned(), host_of(&domain).to_owned()),
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
fn host_of(domain: &str) -> &str {
    match domain.rfind(':') {
        Some(colon) if !domain[colon..].contains(']') => &domain[..colon],
        _ => domain,
    }
}

/// The rules that the operator has configured.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Domains that are never registered; their existing agents are put on hold.
    pub deny_domains: Vec<DomainPattern>,
    /// Domains approved without proof, while the card has no error finding.
    pub allow_domains: Vec<DomainPattern>,
    /// Approved whatever it is, unless the domain is on `deny_domains`, a person has rejected the content, or a signature
    /// is invalid.
    pub approve_all: bool,
}

impl Rules {
    /// Whether a domain is on `deny_domains`.
    pub fn denies(&self, domain: &str) -> bool {
        self.deny_domains
            .iter()
            .any(|pattern| pattern.matches(domain))
    }

    /// Whether a domain is on `allow_domains`.
    pub fn allows(&self, domain: &str) -> bool {
        self.allow_domains
            .iter()
            .any(|pattern| pattern.matches(domain))
    }
}

impl fmt::Display for Rules {
    /// One line, equal for equal rules.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |patterns: &[DomainPattern]| {
            let texts: Vec<&str> = patterns.iter().map(|pattern| pattern.0.as_str()).collect();
            texts.join(" ")
        };
        write!(
            formatter,
            "deny {}; allow {}; approve all: {}",
            list(&self.deny_domains),
            list(&self.allow_domains),
            self.approve_all
        )
    }
}

/// The facts by which a card is decided.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The normalised domain.
    pub domain: &'a str,
    /// Whether a proof (dns, http, operator) holds for it.
    pub verified: bool,
    /// The change against the approved version; `None` for an agent that has none.
    pub change: Option<ChangeClass>,
    /// Whether the card is the domain's own, or was admitted for it (docs/ownership.md#coverage): rules 4 and 5 apply
    /// to no other.
    pub admitted: bool,
    /// Whether the card has a finding of severity error.
    pub has_error: bool,
    /// Whether its signature was found invalid.
    pub signature_invalid: bool,
    /// The decision of a person on exactly this content and signature, if there is one.
    pub person: Option<bool>,
}

/// The ruling on a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ruling {
    /// The agent gets the hold `denied`.
    Denied,
    /// The version is approved.
    Approved(Rule),
    /// The version is rejected, by a person.
    Rejected,
    /// The version waits for a review.
    Pending,
}

impl Ruling {
    /// The rule of the decision.
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
    /// An obstacle that keeps a rule from approving a card. An invalid signature stops every rule, the others those that
    /// trust the domain.
    Obstacle {
        /// The domain is not proved, and not on `allow_domains`.
        Unproved = "unproved",
        /// Somebody else has nominated the card's URL.
        Nomination = "nomination",
        /// The card has a finding of severity error.
        ErrorFinding = "error_finding",
        /// A signature of the card is invalid.
        InvalidSignature = "invalid_signature",
        /// The change is of too high a class.
        Change = "change",
    }
}

/// The ruling of the first rule that matches.
pub fn decide(facts: &Facts<'_>, rules: &Rules) -> Ruling {
    explain(facts, rules).0
}

/// The ruling; for a review with the obstacles that kept the rules from approving.
pub fn explain(facts: &Facts<'_>, rules: &Rules) -> (Ruling, Vec<Obstacle>) {
    match first_to_decide(facts, rules) {
        Ok(ruling) => (ruling, Vec::new()),
        Err(obstacles) => (Ruling::Pending, obstacles),
    }
}

fn first_to_decide(facts: &Facts<'_>, rules: &Rules) -> Result<Ruling, Vec<Obstacle>> {
    if rules.denies(facts.domain) {
        return Ok(Ruling::Denied);
    }
    match facts.person {
        Some(true) => return Ok(Ruling::Approved(Rule::Person)),
        Some(false) => return Ok(Ruling::Rejected),
        None => {}
    }
    // No rule admits an invalid signature; a person who has seen the result may.
    if facts.signature_invalid {
        return Err(vec![Obstacle::InvalidSignature]);
    }
    if rules.approve_all {
        return Ok(Ruling::Approved(Rule::ApproveAll));
    }
    // The largest change that each rule that trusts the domain approves.
    let allowed = rules
        .allows(facts.domain)
        .then_some((Rule::AllowDomains, ChangeClass::High));
    let verified = facts
        .verified
        .then_some((Rule::VerifiedDomain, ChangeClass::Low));
    let trusting = [allowed, verified].into_iter().flatten();
    let small = |largest| facts.change.is_none_or(|class| class <= largest);
    let fitting = trusting.clone().find(|(_, largest)| small(*largest));
    let mut obstacles = Vec::new();
    if allowed.is_none() && verified.is_none() {
        obstacles.push(Obstacle::Unproved);
    } else if fitting.is_none() {
        obstacles.push(Obstacle::Change);
    }
    if !facts.admitted {
        obstacles.push(Obstacle::Nomination);
    }
    if facts.has_error {
        obstacles.push(Obstacle::ErrorFinding);
    }
    match (facts.change, fitting) {
        (_, Some((rule, _))) if obstacles.is_empty() => Ok(Ruling::Approved(rule)),
        (Some(ChangeClass::None), _) => Ok(Ruling::Approved(Rule::NoChange)),
        (Some(ChangeClass::Low), _) => Ok(Ruling::Approved(Rule::LowChange)),
        _ => Err(obstacles),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(change: Option<ChangeClass>) -> Facts<'static> {
        Facts {
            domain: "agents.example.com",
            verified: false,
            change,
            admitted: true,
            has_error: false,
            signature_invalid: false,
            person: None,
        }
    }

    fn rules(deny: &[&str], allow: &[&str], approve_all: bool) -> Rules {
        let patterns = |list: &[&str]| {
            list.iter()
                .map(|text| DomainPattern((*text).into()))
                .collect()
        };
        Rules {
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

    #[test]
    fn the_first_rule_wins() {
        let all = rules(&["*.example.com"], &["*.example.com"], true);
        assert_eq!(decide(&facts(None), &all), Ruling::Denied);
        let rejected = Facts {
            person: Some(false),
            ..facts(None)
        };
        assert_eq!(
            decide(&rejected, &rules(&[], &["*.example.com"], true)),
            Ruling::Rejected
        );
        assert_eq!(
            decide(&facts(Some(ChangeClass::Critical)), &rules(&[], &[], true)),
            Ruling::Approved(Rule::ApproveAll)
        );
    }

    /// However trusted the domain is, an invalid signature waits for a person, whose decision counts.
    #[test]
    fn no_rule_admits_an_invalid_signature() {
        let allow = rules(&[], &["*.example.com"], false);
        let all = rules(&[], &["*.example.com"], true);
        let changes = [
            None,
            Some(ChangeClass::None),
            Some(ChangeClass::Low),
            Some(ChangeClass::High),
            Some(ChangeClass::Critical),
        ];
        for rules in [&rules(&[], &[], false), &allow, &all] {
            for change in changes {
                for verified in [false, true] {
                    let invalid = Facts {
                        verified,
                        signature_invalid: true,
                        ..facts(change)
                    };
                    assert_eq!(decide(&invalid, rules), Ruling::Pending, "{invalid:?}");
                    for (person, ruling) in [
                        (true, Ruling::Approved(Rule::Person)),
                        (false, Ruling::Rejected),
                    ] {
                        let decided = Facts {
                            person: Some(person),
                            ..invalid
                        };
                        assert_eq!(decide(&decided, rules), ruling, "{decided:?}");
                    }
                }
            }
        }
        let denied = rules(&["*.example.com"], &[], true);
        let invalid = Facts {
            signature_invalid: true,
            ..facts(None)
        };
        assert_eq!(decide(&invalid, &denied), Ruling::Denied);
    }

    #[test]
    fn allowed_domains_stop_at_errors_and_critical_changes() {
        let allow = rules(&[], &["*.example.com"], false);
        assert_eq!(
            decide(&facts(None), &allow),
            Ruling::Approved(Rule::AllowDomains)
        );
        assert_eq!(
            decide(&facts(Some(ChangeClass::High)), &allow),
            Ruling::Approved(Rule::AllowDomains)
        );
        assert_eq!(
            decide(&facts(Some(ChangeClass::Critical)), &allow),
            Ruling::Pending
        );
        let broken = Facts {
            has_error: true,
            ..facts(None)
        };
        assert_eq!(decide(&broken, &allow), Ruling::Pending);
    }

    #[test]
    fn a_verified_domain_gets_its_first_card_and_small_changes_through() {
        let none = rules(&[], &[], false);
        let verified = |change| Facts {
            verified: true,
            ..facts(change)
        };
        assert_eq!(
            decide(&verified(None), &none),
            Ruling::Approved(Rule::VerifiedDomain)
        );
        assert_eq!(
            decide(&verified(Some(ChangeClass::High)), &none),
            Ruling::Pending
        );
        assert_eq!(
            decide(&facts(Some(ChangeClass::Low)), &none),
            Ruling::Approved(Rule::LowChange)
        );
        assert_eq!(decide(&facts(None), &none), Ruling::Pending);
    }

    /// A nomination waits for a person, even on an allowed or proved domain; a small change to a card that a person has
    /// approved does not.
    #[test]
    fn rules_that_trust_a_domain_decide_on_no_nomination() {
        let nominated = |change| Facts {
            verified: true,
            admitted: false,
            ..facts(change)
        };
        let allow = rules(&[], &["*.example.com"], false);
        for change in [None, Some(ChangeClass::High), Some(ChangeClass::Critical)] {
            assert_eq!(decide(&nominated(change), &allow), Ruling::Pending);
        }
        assert_eq!(
            decide(&nominated(Some(ChangeClass::Low)), &allow),
            Ruling::Approved(Rule::LowChange)
        );
        let by_person = Facts {
            person: Some(true),
            ..nominated(None)
        };
        assert_eq!(decide(&by_person, &allow), Ruling::Approved(Rule::Person));
        assert_eq!(
            decide(&nominated(None), &rules(&[], &[], true)),
            Ruling::Approved(Rule::ApproveAll)
        );
    }

    /// The obstacles named for a waiting card come from the rules themselves.
    #[test]
    fn a_card_that_waits_says_what_keeps_it() {
        use Obstacle::{Change, ErrorFinding, Nomination, Unproved};
        let none = rules(&[], &[], false);
        let told = |facts: Facts<'_>| explain(&facts, &none).1;
        assert_eq!(told(facts(None)), [Unproved]);
        let proved = Facts {
            verified: true,
            ..facts(None)
        };
        assert_eq!(told(proved), []);
        let broken = Facts {
            has_error: true,
            ..proved
        };
        assert_eq!(told(broken), [ErrorFinding]);
        let nominated = Facts {
            admitted: false,
            ..broken
        };
        assert_eq!(told(nominated), [Nomination, ErrorFinding]);
        let changed = Facts {
            change: Some(ChangeClass::High),
            ..proved
        };
        assert_eq!(told(changed), [Change]);
    }
}
