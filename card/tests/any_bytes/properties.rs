//! Properties that hold for any bytes.

use std::fmt;

use a2a_card::{
    AgentCard, CardFamily, ChangeClass, ConversionTarget, KeySet, LintContext, MAX_FINDINGS,
    ParseError, ParsedCard, VerificationResult, all_findings, all_findings_with_context, all_rules,
    auth_labels, bytes_digest, capability_labels, content_digest, convert_card, diff_cards,
    is_hidden_character, parse_card, sarif_results, security_sentences, signature_state,
    signature_summary, skill_tags, verify_signatures,
};
use serde_json::Value;

/// Checks a property of the bytes and of the result of parsing them. The error says what is wrong.
pub type PropertyCheck = fn(&[u8], Result<&ParsedCard, &ParseError>) -> Result<(), String>;

/// A property that holds for any bytes.
pub struct Property {
    /// The property in a few words.
    pub name: &'static str,
    /// Checks it.
    pub holds: PropertyCheck,
}

/// A property that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenProperty {
    /// The name of the property.
    pub property: &'static str,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for BrokenProperty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.what)
    }
}

/// All properties.
pub const PROPERTIES: &[Property] = &[
    Property {
        name: "a card and its family have names",
        holds: named,
    },
    Property {
        name: "the model is the same after serialisation",
        holds: stored,
    },
    Property {
        name: "findings are bounded, listed and visible",
        holds: findings,
    },
    Property {
        name: "lint context only adds findings",
        holds: context,
    },
    Property {
        name: "digests depend on bytes and content alone",
        holds: digests,
    },
    Property {
        name: "every card has labels and sentences",
        holds: words,
    },
    Property {
        name: "every finding is a SARIF result with a rule and a region, without hidden characters",
        holds: results,
    },
    Property {
        name: "a card can be converted to every version, and again",
        holds: conversions,
    },
    Property {
        name: "a card does not differ from itself, and every difference has a change",
        holds: differences,
    },
    Property {
        name: "no signature of a card is valid without keys",
        holds: signatures,
    },
];

/// Returns an error if the condition does not hold.
fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

fn named(_: &[u8], outcome: Result<&ParsedCard, &ParseError>) -> Result<(), String> {
    match outcome {
        Ok(parsed) => {
            ensure(!parsed.card.name.trim().is_empty(), || "no name".into())?;
            ensure(
                parsed.family.as_str().parse::<CardFamily>() == Ok(parsed.family),
                || format!("{:?}", parsed.family),
            )
        }
        Err(error) => ensure(!error.to_string().contains('\n'), || {
            format!("{error:?} is more than a line")
        }),
    }
}

fn stored(_: &[u8], outcome: Result<&ParsedCard, &ParseError>) -> Result<(), String> {
    let Ok(parsed) = outcome else { return Ok(()) };
    let text = serde_json::to_string(&parsed.card).map_err(|error| error.to_string())?;
    let again: AgentCard = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    ensure(again == parsed.card, || text)
}

fn findings(bytes: &[u8], outcome: Result<&ParsedCard, &ParseError>) -> Result<(), String> {
    let Ok(parsed) = outcome else { return Ok(()) };
    let findings = all_findings(parsed, bytes);
    ensure(findings.len() <= 2 * MAX_FINDINGS, || {
        format!("{} findings", findings.len())
    })?;
    for finding in &findings {
        let listed = all_rules().iter().any(|rule| rule.id == finding.rule);
        let short = finding.found.chars().count() <= 200 && finding.pointer.len() <= 4_096;
        let visible = !finding.found.contains(char::is_control);
        ensure(listed && short && visible, || format!("{finding:?}"))?;
    }
    Ok(())
}

fn context(bytes: &[u8], outcome: Result<&ParsedCard, &ParseError>) -> Result<(), String> {
    let Ok(parsed) = outcome else { return Ok(()) };
    let card_url = url::Url::parse("https://agents.dev/.well-known/agent-card.json").ok();
    let context = LintContext {
        card_url: card_url.as_ref(),
        previous: Some(parsed),
    };
    let (with, without) = (
        all_findings_with_context(parsed, bytes, context),
        all_findings(parsed, bytes),
    );
    let alone = with
        .iter()
        .any(|finding| finding.rule.starts_with("version."));
    ensure(!alone, || "differs from itself".into())?;
    ensure(with.len() >= without.len(), || {
        format!("{} findings, {} without", with.len(), without.len())
    })
}

fn digests(bytes: &[u8], _: Result<&ParsedCard, &ParseError>) -> Result<(), String> {
    for text in [bytes_digest(bytes), content_digest(bytes)] {
        let hex = text.strip_prefix("sha256:").unwrap_or_default();
        let wanted = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
        ensure(wanted, || text)?;
    }
    Ok(())
}

fn words(_: &[u8], outcome: Result<&ParsedCard, &ParseError>) -> Result<(), String> {
    let Ok(parsed) = outcome else { return Ok(()) };
    let card = &parsed.card;
    let _ = (skill_tags(card), auth_labels(card), capability_labels(card));
    let _ = (signature_state(card), signature_summary(card));
    let sentences = security_sentences(card);
    ensure(!sentences.is_empty(), || "no sentence".into())
}

fn results(bytes: &[u8], outcome: Result<&ParsedCard, &ParseError>) -> Result<(), String> {
    let Ok(parsed) = outcome else { return Ok(()) };
    let findings = all_findings(parsed, bytes);
    let results = sarif_results("card.json", bytes, &findings);
    ensure(results.len() == findings.len(), || {
        format!("{} results", results.len())
    })?;
    for result in results {
        let line = result.pointer("/locations/0/physicalLocation/region/startLine");
        let placed = line.and_then(Value::as_u64).is_some_and(|line| line >= 1);
        ensure(placed && result.get("ruleIndex").is_some(), || {
            result.to_string()
        })?;
        let hidden = |character| is_hidden_character(character) || character.is_control();
        ensure(!result.to_string().contains(hidden), || result.to_string())?;
    }
    Ok(())
}

fn conversions(_: &[u8], outcome: Result<&ParsedCard, &ParseError>) -> Result<(), String> {
    let Ok(parsed) = outcome else { return Ok(()) };
    for target in ConversionTarget::ALL {
        let once = convert_card(parsed, target);
        let bytes = serde_json::to_vec(&once.card).map_err(|error| error.to_string())?;
        // A card with a very long list may become too large to be read.
        let Ok(again) = parse_card(&bytes) else {
            continue;
        };
        ensure(again.card.name == parsed.card.name, || {
            format!("to {target}: {:?}", again.card.name)
        })?;
        let twice = convert_card(&again, target);
        ensure(twice.card == once.card, || format!("to {target}, twice"))?;
    }
    Ok(())
}

fn differences(bytes: &[u8], outcome: Result<&ParsedCard, &ParseError>) -> Result<(), String> {
    const OTHER: &[u8] = br#"{"name": "Another", "url": "https://another.example/"}"#;
    if outcome.is_err() {
        return ensure(diff_cards(bytes, OTHER, None).is_err(), || {
            "compared".into()
        });
    }
    let same = diff_cards(bytes, bytes, None).map_err(|error| error.to_string())?;
    ensure(
        same.class == ChangeClass::None && same.changes.is_empty(),
        || format!("{same:?}"),
    )?;
    let other = diff_cards(bytes, OTHER, None).map_err(|error| error.to_string())?;
    let expected = content_digest(bytes) == content_digest(OTHER);
    ensure(other.changes.is_empty() == expected, || {
        format!("{other:?}")
    })
}

fn signatures(bytes: &[u8], outcome: Result<&ParsedCard, &ParseError>) -> Result<(), String> {
    let Ok(parsed) = outcome else { return Ok(()) };
    let entries = verify_signatures(parsed, bytes, &KeySet::default());
    let valid = entries
        .iter()
        .any(|entry| matches!(entry.result, VerificationResult::Valid { .. }));
    ensure(!valid, || format!("{entries:?}"))
}
