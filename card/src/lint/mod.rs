//! The linter: rules that look at a card as a whole, after it has been read.
//!
//! A rule is one row of [`LINT`] and one function in the file of its subject. A function adds one finding
//! for every breach; severity, section and hint come from the row.

mod endpoint;
mod required;
mod security;
mod signature;
mod wording;

use serde_json::Value;

use crate::document::{self, Nul};
use crate::finding::Findings;
use crate::finding::Severity::{Error, Info, Warning};
use crate::rules::Rule;
use crate::{Finding, Parsed};

/// What a rule looks at.
pub(crate) struct Subject<'a> {
    /// The card as read.
    pub(crate) parsed: &'a Parsed,
    /// The document as it stands, for what the model does not tell: which members are there at all.
    pub(crate) document: &'a Value,
}

/// Every rule of the linter.
#[rustfmt::skip]
pub(crate) static LINT: &[Rule] = &[
    Rule { id: "required.0.1", severity: Error, section: "0.1 AgentCard",
        summary: "the members 0.1 requires: name, url, version, capabilities, skills; a skill's id and name",
        hint: "add the member", check: Some(required::v0_1) },
    Rule { id: "required.0.2", severity: Error, section: "0.2 §5.5",
        summary: "the members 0.2 requires: description and default modes too; a skill's description and tags",
        hint: "add the member", check: Some(required::v0_2) },
    Rule { id: "required.0.3", severity: Error, section: "0.3 §5.5",
        summary: "the members 0.3 requires: those of 0.2, and protocolVersion",
        hint: "add the member", check: Some(required::v0_3) },
    Rule { id: "required.1.0", severity: Error, section: "1.0 §4.4, §5.7",
        summary: "the members 1.0 requires, and at least one element in each required list",
        hint: "add the member", check: Some(required::v1_0) },
    Rule { id: "endpoint.url", severity: Error, section: "1.0 §4.4.6",
        summary: "absolute addresses", hint: "write the whole address, with scheme and host",
        check: Some(endpoint::absolute) },
    Rule { id: "endpoint.private", severity: Warning, section: "1.0 §4.4.6",
        summary: "addresses that callers elsewhere can reach",
        hint: "publish the public address instead of a loopback, private or internal one",
        check: Some(endpoint::private) },
    Rule { id: "endpoint.http", severity: Warning, section: "1.0 §7.1",
        summary: "encrypted endpoints", hint: "serve the agent over https",
        check: Some(endpoint::plain_http) },
    Rule { id: "endpoint.example", severity: Warning, section: "RFC 2606",
        summary: "real host names", hint: "replace the host, which is reserved for examples",
        check: Some(endpoint::example) },
    Rule { id: "endpoint.conflict", severity: Warning, section: "0.3 §5.6.3",
        summary: "one transport for one address", hint: "give each transport an address of its own",
        check: Some(endpoint::conflict) },
    Rule { id: "endpoint.no-core-binding", severity: Warning, section: "1.0 §5.8",
        summary: "at least one of JSONRPC, GRPC and HTTP+JSON",
        hint: "add an interface that ordinary clients speak", check: Some(endpoint::core_binding) },
    Rule { id: "link.scheme", severity: Warning, section: "1.0 §4.4.1",
        summary: "links to web pages", hint: "write an absolute http(s) address",
        check: Some(endpoint::links) },
    Rule { id: "skill.tags", severity: Warning, section: "1.0 §4.4.5",
        summary: "at least one tag in every skill", hint: "add tags: agents are searched by them",
        check: Some(wording::tags) },
    Rule { id: "skill.examples", severity: Info, section: "1.0 §4.4.5",
        summary: "examples in every skill", hint: "add one or two prompts the skill answers well",
        check: Some(wording::examples) },
    Rule { id: "skill.duplicate-id", severity: Error, section: "1.0 §4.4.5",
        summary: "an id of its own for every skill", hint: "rename one of the two skills",
        check: Some(wording::duplicate_ids) },
    Rule { id: "text.placeholder", severity: Warning, section: "registry",
        summary: "text without placeholders", hint: "fill the template in",
        check: Some(wording::placeholders) },
    Rule { id: "security.undeclared", severity: Error, section: "1.0 §4.5.1",
        summary: "requirements that name declared schemes",
        hint: "declare the scheme in `securitySchemes`", check: Some(security::undeclared) },
    Rule { id: "security.unrequired", severity: Warning, section: "1.0 §4.4.1",
        summary: "requirements beside the declared schemes",
        hint: "say which schemes a caller must meet, or remove them",
        check: Some(security::unrequired) },
    Rule { id: "signature.count", severity: Warning, section: "registry",
        summary: "at most 16 signatures", hint: "remove the oldest; what is beyond is not looked at",
        check: Some(signature::count) },
    Rule { id: "signature.form", severity: Warning, section: "1.0 §8.4.2",
        summary: "signatures in JWS form: `protected` and `signature`, base64url without padding",
        hint: "sign the card as 1.0 §8.4 says, or move other proofs to an extension",
        check: Some(signature::form) },
    Rule { id: "signature.kid", severity: Error, section: "1.0 §8.4.2",
        summary: "`kid` in every protected header", hint: "name the key when signing",
        check: Some(signature::kid) },
    Rule { id: "signature.alg", severity: Error, section: "1.0 §8.4.2",
        summary: "an asymmetric `alg` in every protected header",
        hint: "sign with ES256, EdDSA, or another public-key algorithm",
        check: Some(signature::algorithm) },
    Rule { id: "signature.header", severity: Warning, section: "RFC 7515 §4.1, §7.2.1",
        summary: "EdDSA, ES256, ES384, PS256 or RS256, no name in both headers, no `crit`, no key in a header",
        hint: "sign with `alg`, `kid` and `typ`, perhaps `jku`, in the protected header and nothing else",
        check: Some(signature::header) },
];

/// Looks a card over, beyond what reading it noticed: the findings given do not repeat
/// [`Parsed::findings`].
///
/// `bytes` are those that `parsed` was read from. At most [`crate::MAX_FINDINGS`] findings are given.
///
/// ```
/// let bytes = br#"{"name": "Echo", "url": "http://localhost:9000"}"#;
/// let parsed = a2a_card::parse(bytes)?;
/// let findings = a2a_card::lint(&parsed, bytes);
/// assert!(findings.iter().any(|finding| finding.rule == "endpoint.private"));
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn lint(parsed: &Parsed, bytes: &[u8]) -> Vec<Finding> {
    let document = document::read(bytes, Nul::Replace, &mut Findings::default());
    let subject = Subject {
        parsed,
        document: &document.map_or(Value::Null, |document| document.value),
    };
    let mut out = Findings::default();
    for rule in LINT {
        if let Some(check) = rule.check {
            check(&subject, rule, &mut out);
        }
    }
    out.into_list()
}

/// Everything there is to say about a card: what reading noticed and what [`lint`] adds, the gravest first,
/// otherwise in that order. At most twice [`crate::MAX_FINDINGS`].
pub fn all_findings(parsed: &Parsed, bytes: &[u8]) -> Vec<Finding> {
    let mut findings = parsed.findings.clone();
    findings.extend(lint(parsed, bytes));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
