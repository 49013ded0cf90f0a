//! The signer's key in its DID document: step 5 of the profile.

use serde_json::Value;

use super::fault::ManifestFault;

/// The JWK of the method `kid` in a DID document: the only one of that name, listed under `assertionMethod` exactly once,
/// by reference or in place, and controlled by the signer.
pub(super) fn key_of<'d>(
    document: &'d Value,
    signer: &str,
    kid: &str,
) -> Result<&'d Value, ManifestFault> {
    if text(document, "id") != Some(signer) {
        return Err(ManifestFault::Document);
    }
    let assertions = list(document, "assertionMethod").ok_or(ManifestFault::Key)?;
    let mut meant = assertions
        .iter()
        .filter(|one| one.as_str() == Some(kid) || text(one, "id") == Some(kid));
    let (Some(reference), None) = (meant.next(), meant.next()) else {
        return Err(ManifestFault::Key);
    };
    let kept = list(document, "verificationMethod").into_iter().flatten();
    let mut methods = kept.filter(|method| text(method, "id") == Some(kid));
    let method = match (reference, methods.next(), methods.next()) {
        (Value::String(_), Some(method), None) => method,
        (Value::Object(_), None, None) => reference,
        _ => return Err(ManifestFault::Key),
    };
    if text(method, "controller") != Some(signer) {
        return Err(ManifestFault::Key);
    }
    let jwk = method.get("publicKeyJwk").ok_or(ManifestFault::Key)?;
    // Its `use`, `key_ops` and `alg` are checked where it is used.
    let is_p256 = text(jwk, "kty") == Some("EC") && text(jwk, "crv") == Some("P-256");
    (is_p256 && jwk.get("d").is_none())
        .then_some(jwk)
        .ok_or(ManifestFault::Key)
}

fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name)?.as_str()
}

fn list<'v>(value: &'v Value, name: &str) -> Option<&'v Vec<Value>> {
    value.get(name)?.as_array()
}
