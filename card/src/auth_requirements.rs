//! Credentials that a card requires of its callers, from all members that mention them.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::wire::informal_credentials;
use crate::wire::v0_2::scheme_kind_from_label;
use crate::{AgentCard, SchemeKind, SecurityRequirement, SecurityScheme};

/// Requirements of a card: the alternatives by which a caller can authenticate.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthRequirements<'a> {
    /// Alternatives in the card's order. A caller must meet one of them, with all its schemes; an empty one requires
    /// nothing.
    ///
    /// A card that declares schemes without requiring any has one alternative for each scheme, as real cards intend.
    pub alternatives: Vec<Vec<AuthScheme<'a>>>,
    /// Whether the card requires one of the alternatives, rather than only declaring their schemes.
    pub required: bool,
    /// Whether the card requires credentials in a form that cannot be read, as [`has_unreadable_auth`] determines.
    pub unreadable: bool,
}

/// One scheme of an alternative.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthScheme<'a> {
    /// The card's name for the scheme.
    pub name: &'a str,
    /// The scopes that a token must grant.
    pub scopes: &'a [String],
    /// The required scheme: as declared, or as suggested by its bare name (`bearer`, `oauth2`, …) in a card that
    /// requires a scheme without declaring it. `None` if it is unknown.
    pub kind: Option<Cow<'a, SchemeKind>>,
}

/// Reads a card's requirements for authentication.
///
/// ```
/// let card = br#"{"name": "Echo", "url": "https://echo.example", "security": [{"bearer": []}]}"#;
/// let card = a2a_card::parse_card(card)?.card;
/// let requirements = a2a_card::auth_requirements(&card);
/// let kind = requirements.alternatives[0][0].kind.as_deref();
/// assert!(matches!(kind, Some(a2a_card::SchemeKind::Http { scheme, .. }) if scheme == "bearer"));
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn auth_requirements<'a>(card: &'a AgentCard) -> AuthRequirements<'a> {
    let declared_schemes = schemes_by_name(card);
    let required = !card.security.is_empty();
    let alternatives = if required {
        let alternative = |requirement: &'a SecurityRequirement| {
            let schemes = requirement.schemes.iter();
            schemes
                .map(|(name, scopes)| resolve_auth_scheme(&declared_schemes, name, scopes))
                .collect()
        };
        card.security.iter().map(alternative).collect()
    } else {
        let schemes = card.security_schemes.iter();
        schemes
            .map(|scheme| {
                vec![AuthScheme {
                    name: &scheme.name,
                    scopes: &[],
                    kind: Some(Cow::Borrowed(&scheme.kind)),
                }]
            })
            .collect()
    };
    AuthRequirements {
        alternatives,
        required,
        unreadable: has_unreadable_auth(card),
    }
}

fn resolve_auth_scheme<'a>(
    declared_schemes: &HashMap<&str, &'a SecurityScheme>,
    name: &'a str,
    scopes: &'a [String],
) -> AuthScheme<'a> {
    let kind = match declared_schemes.get(name) {
        Some(scheme) => Some(Cow::Borrowed(&scheme.kind)),
        None => match scheme_kind_from_label(name) {
            SchemeKind::Other { .. } => None,
            kind => Some(Cow::Owned(kind)),
        },
    };
    AuthScheme { name, scopes, kind }
}

fn schemes_by_name(card: &AgentCard) -> HashMap<&str, &SecurityScheme> {
    let schemes = card.security_schemes.iter();
    schemes
        .map(|scheme| (scheme.name.as_str(), scheme))
        .collect()
}

/// Whether the card requires credentials in a form that cannot be read. Its agent may reject callers without
/// credentials.
///
/// ```
/// let card = br#"{"name": "Echo", "url": "https://echo.example", "auth_required": true}"#;
/// assert!(a2a_card::has_unreadable_auth(&a2a_card::parse_card(card)?.card));
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn has_unreadable_auth(card: &AgentCard) -> bool {
    !describes_credentials(card)
        && informal_credentials::combined_credential_requirement(&card.unknown).is_required()
}

/// Whether the card describes credentials: a scheme that it declares or requires needs some.
fn describes_credentials(card: &AgentCard) -> bool {
    let needs_credentials = |scheme: &SecurityScheme| scheme.kind != SchemeKind::None;
    if card.security_schemes.iter().any(needs_credentials) {
        return true;
    }
    let declared_schemes = schemes_by_name(card);
    let names = card.security.iter().flat_map(|one| &one.schemes);
    names
        .map(|(name, scopes)| resolve_auth_scheme(&declared_schemes, name, scopes))
        .any(|scheme| scheme.kind.as_deref() != Some(&SchemeKind::None))
}
