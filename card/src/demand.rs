//! The credentials that a card requires of its callers, from all members that mention them.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::wire::informal;
use crate::wire::v0_2::labelled;
use crate::{AgentCard, SchemeKind, SecurityRequirement, SecurityScheme};

/// The alternatives by which a caller can authenticate.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand<'a> {
    /// A caller must meet one of these, with all its schemes; an empty one requires nothing. In the card's order.
    ///
    /// A card that declares schemes without requiring any has one alternative for each of them, because that is what
    /// real cards mean. A card without either has none.
    pub alternatives: Vec<Vec<AskedScheme<'a>>>,
    /// Whether the card requires one of the alternatives, rather than only declaring their schemes.
    pub required: bool,
    /// Whether the card requires credentials but describes none in a readable form, as [`has_unread_demand`]
    /// determines.
    pub unread: bool,
}

/// One scheme of an alternative.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedScheme<'a> {
    /// The name that the card uses for it.
    pub name: &'a str,
    /// The required scopes.
    pub scopes: &'a [String],
    /// The required scheme: as declared, or as its bare name suggests (`bearer`, `oauth2`, …) in a card that requires
    /// a scheme without declaring it. `None` where it is unknown.
    pub kind: Option<Cow<'a, SchemeKind>>,
}

/// Reads the requirements of a card.
///
/// ```
/// let card = br#"{"name": "Echo", "url": "https://echo.example", "security": [{"bearer": []}]}"#;
/// let card = a2a_card::parse(card)?.card;
/// let demand = a2a_card::demand(&card);
/// let asked = demand.alternatives[0][0].kind.as_deref();
/// assert!(matches!(asked, Some(a2a_card::SchemeKind::Http { scheme, .. }) if scheme == "bearer"));
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn demand<'a>(card: &'a AgentCard) -> Demand<'a> {
    let declared = declared(card);
    let required = !card.security.is_empty();
    let alternatives = if required {
        let alternative = |required: &'a SecurityRequirement| {
            let schemes = required.schemes.iter();
            schemes
                .map(|(name, scopes)| asked(&declared, name, scopes))
                .collect()
        };
        card.security.iter().map(alternative).collect()
    } else {
        let schemes = card.security_schemes.iter();
        schemes
            .map(|scheme| {
                vec![AskedScheme {
                    name: &scheme.name,
                    scopes: &[],
                    kind: Some(Cow::Borrowed(&scheme.kind)),
                }]
            })
            .collect()
    };
    Demand {
        alternatives,
        required,
        unread: has_unread_demand(card),
    }
}

fn asked<'a>(
    declared: &HashMap<&str, &'a SecurityScheme>,
    name: &'a str,
    scopes: &'a [String],
) -> AskedScheme<'a> {
    let kind = match declared.get(name) {
        Some(scheme) => Some(Cow::Borrowed(&scheme.kind)),
        None => match labelled(name) {
            SchemeKind::Other { .. } => None,
            kind => Some(Cow::Owned(kind)),
        },
    };
    AskedScheme { name, scopes, kind }
}

/// The card's security schemes by name.
fn declared(card: &AgentCard) -> HashMap<&str, &SecurityScheme> {
    let schemes = card.security_schemes.iter();
    schemes
        .map(|scheme| (scheme.name.as_str(), scheme))
        .collect()
}

/// Whether the card requires credentials but describes none in a readable form: such an agent may refuse callers
/// without credentials.
///
/// ```
/// let card = br#"{"name": "Echo", "url": "https://echo.example", "auth_required": true}"#;
/// assert!(a2a_card::has_unread_demand(&a2a_card::parse(card)?.card));
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn has_unread_demand(card: &AgentCard) -> bool {
    !is_legible(card) && informal::demand_of(&card.unknown).demands()
}

/// Whether any scheme that the card declares or requires needs credentials.
fn is_legible(card: &AgentCard) -> bool {
    let asks = |scheme: &SecurityScheme| scheme.kind != SchemeKind::None;
    if card.security_schemes.iter().any(asks) {
        return true;
    }
    let declared = declared(card);
    let names = card.security.iter().flat_map(|one| &one.schemes);
    names
        .map(|(name, scopes)| asked(&declared, name, scopes))
        .any(|scheme| scheme.kind.as_deref() != Some(&SchemeKind::None))
}
