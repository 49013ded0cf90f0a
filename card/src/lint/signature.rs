//! Rules for signatures that can be checked without a key.

use url::Url;

use super::subject::Subject;
use crate::finding::Findings;
use crate::pointer::Pointer;
use crate::rule::Rule;
use crate::signature::{
    MAX_SIGNATURES, SignatureEntry, SignatureFault, VerificationResult, signature_entries,
};

/// Reports each entry for which `breach` describes a fault.
fn each(
    subject: &Subject<'_>,
    rule: &Rule,
    out: &mut Findings,
    breach: impl Fn(&SignatureEntry) -> Option<String>,
) {
    let root = Pointer::Root;
    let spot = subject.spot("signatures");
    let at = spot.below(&root);
    for (index, entry) in signature_entries(&subject.parsed.card).iter().enumerate() {
        if let Some(found) = breach(entry) {
            out.add(rule, &at.index(index), &found);
        }
    }
}

pub(super) fn count(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let count = subject.parsed.card.signatures.len();
    if count > MAX_SIGNATURES {
        let found = format!("{count} entries");
        out.add(rule, &Pointer::Root.name("signatures"), &found);
    }
}

fn is_foreign(entry: &SignatureEntry) -> bool {
    entry.verdict.reason() == Some(SignatureFault::NotJws)
}

pub(super) fn form(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    each(subject, rule, out, |entry| {
        is_foreign(entry).then(|| "no JWS".to_owned())
    });
}

pub(super) fn kid(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    each(subject, rule, out, |entry| {
        let missing = !is_foreign(entry) && entry.kid.is_none();
        missing.then(|| "no `kid`".to_owned())
    });
}

pub(super) fn key_set(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    each(subject, rule, out, |entry| {
        let jku = entry.jku.as_ref()?;
        let safe = Url::parse(jku).is_ok_and(|url| url.scheme() == "https" && url.has_host());
        (!safe).then(|| jku.clone())
    });
}

pub(super) fn algorithm(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    each(subject, rule, out, |entry| {
        if is_foreign(entry) {
            return None;
        }
        match &entry.alg {
            None => Some("no `alg`".to_owned()),
            Some(alg) => is_keyless(alg).then(|| alg.clone()),
        }
    });
}

fn is_keyless(alg: &str) -> bool {
    alg.eq_ignore_ascii_case("none") || alg.starts_with("HS")
}

/// The headers contain nothing else that makes a strict verifier refuse the signature.
pub(super) fn header(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    each(subject, rule, out, |entry| {
        let alg = entry.alg.as_deref()?;
        let reason = entry.verdict.reason()?;
        match entry.verdict {
            _ if is_keyless(alg) => None,
            VerificationResult::Refused {
                reason: SignatureFault::Algorithm,
            } => Some(alg.to_owned()),
            _ => Some(reason.as_str().to_owned()),
        }
    });
}
