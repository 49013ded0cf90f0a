//! Authority: how far the publisher that an entry's identifier names stands behind the entry.
//!
//! Neither `publisher` objects nor `host.identifier` count: nothing signs them. A parent domain does not vouch for the
//! hosts below it, nor they for it.

use super::identifier::is_publisher;

/// How far an entry's publisher stands behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Authority {
    /// The document came from the publisher's own host.
    DomainVerified,
    /// A manifest that the publisher has signed endorses the entry.
    ManifestVerified,
    /// Neither. Anybody may list an entry under any name.
    Unverified,
}

impl Authority {
    /// The stable name, in the API and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DomainVerified => "domain-verified",
            Self::ManifestVerified => "manifest-verified",
            Self::Unverified => "unverified",
        }
    }
}

/// An entry's `trustManifest` names another domain than its identifier, so that one of the two is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdentityMismatch;

/// The authority of an entry with this identifier, in a document that came from the host `served_by` (with its port, if it
/// is not the scheme's own).
///
/// `identity` is what the entry's `trustManifest` declares, and `endorsed_by` the domain whose verified manifest endorses
/// the entry.
///
/// # Errors
/// [`IdentityMismatch`]: such an entry is not used at all. Where the identifier or the declaration names no domain, there
/// is nothing to compare.
pub fn authority(
    identifier: &str,
    served_by: &str,
    identity: Option<&str>,
    endorsed_by: Option<&str>,
) -> Result<Authority, IdentityMismatch> {
    let named = named_publisher(identifier);
    let declared = identity.and_then(domain_of_identity);
    if let (Some(named), Some(declared)) = (named, declared)
        && named.to_ascii_lowercase() != declared
    {
        return Err(IdentityMismatch);
    }
    // A name in other letters than a domain's own form names no publisher that could be compared exactly.
    let Some(publisher) = named.filter(|named| is_publisher(named)) else {
        return Ok(Authority::Unverified);
    };
    Ok(if served_by == publisher {
        Authority::DomainVerified
    } else if endorsed_by == Some(publisher) {
        Authority::ManifestVerified
    } else {
        Authority::Unverified
    })
}

/// The publisher that an identifier names, as it is written.
fn named_publisher(identifier: &str) -> Option<&str> {
    let rest = identifier.strip_prefix("urn:air:")?;
    rest.split(':').next()
}

/// Domain of `did:web:D`, `spiffe://D/…`, `https://D/…` or a bare `D`, in lower case.
pub fn domain_of_identity(identity: &str) -> Option<String> {
    let rest = ["did:web:", "spiffe://", "https://"]
        .iter()
        .find_map(|prefix| identity.strip_prefix(prefix))
        .unwrap_or(identity);
    let domain = rest.split(['/', ':']).next().unwrap_or_default();
    domain.contains('.').then(|| domain.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::Authority::{DomainVerified, ManifestVerified, Unverified};
    use super::*;

    const OURS: &str = "urn:air:house.example.com:tools:sorter";

    /// Whatever can be said about an entry, and what it is worth.
    #[test]
    fn only_the_host_itself_and_its_signature_give_authority() {
        let table: &[(&str, &str, Option<&str>, Option<&str>, _)] = &[
            // The serving host is the publisher, exactly.
            (OURS, "house.example.com", None, None, Ok(DomainVerified)),
            (
                OURS,
                "house.example.com",
                Some("did:web:house.example.com"),
                None,
                Ok(DomainVerified),
            ),
            (
                OURS,
                "house.example.com",
                None,
                Some("house.example.com"),
                Ok(DomainVerified),
            ),
            // Neighbours, parents, children, other ports and other letters are somebody else.
            (OURS, "neighbour.example.com", None, None, Ok(Unverified)),
            (OURS, "example.com", None, None, Ok(Unverified)),
            (OURS, "a.house.example.com", None, None, Ok(Unverified)),
            (OURS, "house.example.com:8443", None, None, Ok(Unverified)),
            (OURS, "House.example.com", None, None, Ok(Unverified)),
            (OURS, "house.example.com.", None, None, Ok(Unverified)),
            // A signature of the publisher makes up for that, and nobody else's does.
            (
                OURS,
                "neighbour.example.com",
                None,
                Some("house.example.com"),
                Ok(ManifestVerified),
            ),
            (
                OURS,
                "neighbour.example.com",
                None,
                Some("neighbour.example.com"),
                Ok(Unverified),
            ),
            (
                OURS,
                "neighbour.example.com",
                None,
                Some("example.com"),
                Ok(Unverified),
            ),
            // A declaration proves nothing, but may not contradict the identifier.
            (
                OURS,
                "neighbour.example.com",
                Some("did:web:house.example.com"),
                None,
                Ok(Unverified),
            ),
            (
                OURS,
                "house.example.com",
                Some("did:web:House.Example.com"),
                None,
                Ok(DomainVerified),
            ),
            (
                OURS,
                "house.example.com",
                Some("did:web:house.example.com:a"),
                None,
                Ok(DomainVerified),
            ),
            (
                OURS,
                "house.example.com",
                Some("spiffe://house.example.com/x"),
                None,
                Ok(DomainVerified),
            ),
            (
                OURS,
                "house.example.com",
                Some("https://house.example.com/x"),
                None,
                Ok(DomainVerified),
            ),
            (
                OURS,
                "house.example.com",
                Some("house.example.com"),
                None,
                Ok(DomainVerified),
            ),
            (
                OURS,
                "house.example.com",
                Some("did:web:example.com"),
                None,
                Err(IdentityMismatch),
            ),
            (
                OURS,
                "house.example.com",
                Some("spiffe://a.house.example.com/x"),
                None,
                Err(IdentityMismatch),
            ),
            (
                OURS,
                "house.example.com",
                Some("https://evil.example/"),
                None,
                Err(IdentityMismatch),
            ),
            (
                OURS,
                "house.example.com",
                Some("evil.example"),
                Some("house.example.com"),
                Err(IdentityMismatch),
            ),
            // Where there is no domain, there is nothing to compare.
            (
                OURS,
                "house.example.com",
                Some("did:key:z6Mk"),
                None,
                Ok(DomainVerified),
            ),
            (
                "free text",
                "house.example.com",
                Some("evil.example"),
                None,
                Ok(Unverified),
            ),
            // Publishers that are no domain in its own form.
            (
                "urn:air:House.example.com:x",
                "House.example.com",
                None,
                None,
                Ok(Unverified),
            ),
            (
                "urn:air:localhost:x",
                "localhost",
                None,
                None,
                Ok(Unverified),
            ),
            ("urn:air:10.0.0.1:x", "10.0.0.1", None, None, Ok(Unverified)),
            (
                "urn:air:did:web:house.example.com:x",
                "did",
                None,
                None,
                Ok(Unverified),
            ),
            (
                "urn:ai:house.example.com:x",
                "house.example.com",
                None,
                None,
                Ok(Unverified),
            ),
        ];
        for (identifier, served_by, identity, endorsed_by, expected) in table {
            let found = authority(identifier, served_by, *identity, *endorsed_by);
            assert_eq!(
                found, *expected,
                "{identifier} {served_by} {identity:?} {endorsed_by:?}"
            );
        }
    }
}
