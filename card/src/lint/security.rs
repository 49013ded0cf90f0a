//! Rules about how schemes and requirements fit together.

use super::Subject;
use crate::finding::Findings;
use crate::pointer::Pointer;
use crate::rules::Rule;

/// Requirements of card and skills name declared schemes.
pub(super) fn undeclared(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let card = &subject.parsed.card;
    let root = Pointer::Root;
    let declared: std::collections::HashSet<&str> = card
        .security_schemes
        .iter()
        .map(|s| s.name.as_str())
        .collect();
    let names = |requirements: &'_ [crate::SecurityRequirement]| -> Vec<String> {
        let schemes = requirements.iter().flat_map(|r| &r.schemes);
        let unknown = schemes.filter(|(name, _)| !declared.contains(name.as_str()));
        unknown.map(|(name, _)| name.clone()).collect()
    };
    let member = if subject.document.get("securityRequirements").is_some() {
        "securityRequirements"
    } else {
        "security"
    };
    for name in names(&card.security) {
        out.add(rule, &root.name(member), &name);
    }
    let skills = root.name("skills");
    for (index, skill) in card.skills.iter().enumerate() {
        for name in names(&skill.security) {
            out.add(rule, &skills.index(index), &name);
        }
    }
}

/// Declared schemes are required somewhere.
pub(super) fn unrequired(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let card = &subject.parsed.card;
    let asked = !card.security.is_empty() || card.skills.iter().any(|s| !s.security.is_empty());
    if !card.security_schemes.is_empty() && !asked {
        let names: Vec<&str> = card
            .security_schemes
            .iter()
            .map(|s| s.name.as_str())
            .collect();
        out.add(
            rule,
            &Pointer::Root.name("securitySchemes"),
            &names.join(", "),
        );
    }
}
