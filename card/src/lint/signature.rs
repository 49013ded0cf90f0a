//! Rules for signatures that can be checked without a key.

use url::Url;

use super::target::LintTarget;
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::rule::Rule;
use crate::signature::{
    MAX_SIGNATURES, SignatureFault, SignatureResult, VerificationResult, unverified_signatures,
};

/// Reports each entry for which `find_breach` describes a fault.
fn report_signature_breaches(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
    find_breach: impl Fn(&SignatureResult) -> Option<String>,
) {
    let root = JsonPointer::Root;
    let position = target.position_of("signatures");
    let pointer = position.pointer_in(&root);
    for (index, entry) in unverified_signatures(&target.parsed.card)
        .iter()
        .enumerate()
    {
        if let Some(found) = find_breach(entry) {
            out.add(rule, &pointer.element(index), &found);
        }
    }
}

pub(super) fn check_signature_count(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    let count = target.parsed.card.signatures.len();
    if count > MAX_SIGNATURES {
        let found = format!("{count} entries");
        out.add(rule, &JsonPointer::Root.member("signatures"), &found);
    }
}

fn is_not_jws(entry: &SignatureResult) -> bool {
    entry.result.fault() == Some(SignatureFault::NotJws)
}

pub(super) fn check_jws_format(target: &LintTarget<'_>, rule: &Rule, out: &mut FindingCollector) {
    report_signature_breaches(target, rule, out, |entry| {
        is_not_jws(entry).then(|| "no JWS".to_owned())
    });
}

pub(super) fn check_kid(target: &LintTarget<'_>, rule: &Rule, out: &mut FindingCollector) {
    report_signature_breaches(target, rule, out, |entry| {
        let is_missing = !is_not_jws(entry) && entry.kid.is_none();
        is_missing.then(|| "no `kid`".to_owned())
    });
}

pub(super) fn check_key_set_url(target: &LintTarget<'_>, rule: &Rule, out: &mut FindingCollector) {
    report_signature_breaches(target, rule, out, |entry| {
        let jku = entry.jku.as_ref()?;
        let is_https = Url::parse(jku).is_ok_and(|url| url.scheme() == "https" && url.has_host());
        (!is_https).then(|| jku.clone())
    });
}

pub(super) fn check_signature_algorithm(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    report_signature_breaches(target, rule, out, |entry| {
        if is_not_jws(entry) {
            return None;
        }
        match &entry.alg {
            None => Some("no `alg`".to_owned()),
            Some(alg) => is_symmetric_or_none(alg).then(|| alg.clone()),
        }
    });
}

fn is_symmetric_or_none(alg: &str) -> bool {
    alg.eq_ignore_ascii_case("none") || alg.starts_with("HS")
}

/// Checks that the headers contain nothing else that makes a strict verifier reject the signature.
pub(super) fn check_signature_header(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    report_signature_breaches(target, rule, out, |entry| {
        let alg = entry.alg.as_deref()?;
        let reason = entry.result.fault()?;
        match entry.result {
            _ if is_symmetric_or_none(alg) => None,
            VerificationResult::Refused {
                reason: SignatureFault::Algorithm,
            } => Some(alg.to_owned()),
            _ => Some(reason.as_str().to_owned()),
        }
    });
}
