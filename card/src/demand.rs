//! What a card asks of its callers, read from wherever it says so.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::wire::informal;
use crate::wire::v0_2::labelled;
use crate::{AgentCard, SchemeKind, SecurityRequirement, SecurityScheme};

/// The alternatives by which a caller may be let in.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand<'a> {
    /// One of these has to be met, with everything in it; an empty one asks for nothing. In the card's order.
    ///
    /// A card that declares schemes without requiring any has an alternative for each of them: real cards
    /// mean so. A card without either has none.
    pub alternatives: Vec<Vec<AskedScheme<'a>>>,
    /// Whether the card requires one of the alternatives, rather than only declaring their schemes.
    pub required: bool,
    /// Whether the card says that callers must bring something, and nowhere legibly what, as
    /// [`has_unread_demand`] says.
    pub unread: bool,
}

/// One scheme of an alternative.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedScheme<'a> {
    /// The name by which the card asks for it.
    pub name: &'a str,
    /// The scopes asked for.
    pub scopes: &'a [String],
    /// What is asked: as declared, or what the bare name stands for (`bearer`, `oauth2`, …) in a card that
    /// requires a scheme it forgot to declare. `None` where nobody can tell.
    pub kind: Option<Cow<'a, SchemeKind>>,
}

/// Reads what a card asks of its callers.
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

/// Whether the card says that callers must bring something, and nowhere legibly what: such an agent may be
/// closed to whoever brings nothing.
///
/// ```
/// let card = br#"{"name": "Echo", "url": "https://echo.example", "auth_required": true}"#;
/// assert!(a2a_card::has_unread_demand(&a2a_card::parse(card)?.card));
/// # Ok::<(), a2a_card::ParseError>(())
/// ```
pub fn has_unread_demand(card: &AgentCard) -> bool {
    !is_legible(card) && informal::demand_of(&card.unknown).demands()
}

/// Whether any scheme that the card declares or requires asks for something.
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
