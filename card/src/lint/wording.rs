//! Rules about what skills and texts say.

use std::collections::HashSet;

use serde_json::Value;

use super::Subject;
use super::required::held_to;
use crate::Skill;
use crate::finding::Findings;
use crate::pointer::Pointer;
use crate::rules::Rule;

/// Reports the skills that `breach` finds fault with.
fn each(subject: &Subject<'_>, rule: &Rule, out: &mut Findings, breach: impl Fn(&Skill) -> bool) {
    subject.each_skill(|skill, at| {
        if breach(skill) {
            out.add(rule, at, &skill.id);
        }
    });
}

/// There are skills: the tools that check 0.x cards ask for one at least, and 1.0 requires it anyway.
pub(super) fn any_skill(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let skills = subject.find("skills");
    if let Some((spot, Value::Array(list))) = skills
        && list.is_empty()
        && !held_to(subject).contains(&"1.0")
    {
        out.add(rule, &spot.below(&Pointer::Root), "[]");
    }
}

/// Skills have tags.
pub(super) fn tags(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    each(subject, rule, out, |skill| skill.tags.is_empty());
}

/// Skills have examples.
pub(super) fn examples(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    each(subject, rule, out, |skill| skill.examples.is_empty());
}

/// Skills have ids of their own.
pub(super) fn duplicate_ids(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let mut seen = HashSet::new();
    subject.each_skill(|skill, at| {
        if !seen.insert(skill.id.clone()) {
            out.add(rule, at, &skill.id);
        }
    });
}

/// Texts and addresses are filled in.
pub(super) fn placeholders(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let card = &subject.parsed.card;
    let root = Pointer::Root;
    let mut look = |at: &Pointer<'_>, text: &str| {
        if is_placeholder(text) {
            out.add(rule, at, text);
        }
    };
    look(&subject.spot("name").below(&root), &card.name);
    if let Some(text) = &card.description {
        look(&subject.spot("description").below(&root), text);
    }
    let provider = subject.spot("provider");
    let provider = provider.below(&root);
    if let Some(told) = &card.provider {
        look(
            &provider.name("organization"),
            told.organization.as_deref().unwrap_or_default(),
        );
        look(
            &provider.name("url"),
            told.url.as_deref().unwrap_or_default(),
        );
    }
    subject.each_interface(|interface, _, at| look(at, &interface.url));
    subject.each_skill(|skill, at| {
        look(&at.name("name"), &skill.name);
        if let Some(text) = &skill.description {
            look(&at.name("description"), text);
        }
    });
}

/// Whether a text still has a template's marks: `{NAME}`, `${NAME}`, `{{ name }}`, `<NAME>`, `__NAME__`,
/// `YOUR_…`, `lorem ipsum`, or nothing but `TODO` and its like.
fn is_placeholder(text: &str) -> bool {
    let lower = text.to_lowercase();
    if lower.contains("{{") || lower.contains("${") || lower.contains("lorem ipsum") {
        return true;
    }
    if matches!(
        lower.trim_end_matches('.'),
        "todo" | "tbd" | "fixme" | "changeme" | "placeholder"
    ) {
        return true;
    }
    if ["your_", "your-domain", "yourdomain", "<your"]
        .iter()
        .any(|mark| lower.contains(mark))
    {
        return true;
    }
    [("{", "}"), ("<", ">"), ("__", "__")]
        .iter()
        .any(|(open, close)| has_constant(text, open, close))
}

/// Longest name of a template's constant that is looked for, its closing mark included.
const MAX_CONSTANT_CHARS: usize = 64;

/// Whether a name in capitals stands between the marks.
fn has_constant(text: &str, open: &str, close: &str) -> bool {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(open) {
        // Names are short; looking no further keeps long texts full of opening marks cheap.
        let end = after.char_indices().nth(MAX_CONSTANT_CHARS);
        let near = end.map_or(after, |(end, _)| &after[..end]);
        if let Some((inner, _)) = near.split_once(close) {
            let capital = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
            if inner.len() >= 3 && inner.bytes().all(capital) {
                return true;
            }
        }
        rest = after;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_marks_are_told_from_prose() {
        for text in [
            "{BASE_URL}/a2a",
            "https://${HOST}",
            "{{ name }}",
            "__ADVERTISED_URL__",
            "https://<HOST>/",
            "https://your-domain.com",
            "TODO",
            "Lorem ipsum dolor",
        ] {
            assert!(is_placeholder(text), "{text}");
        }
        for text in [
            "Keeps a todo list",
            "Answers {\"a\": 1}",
            "a < b > c",
            "https://a.example/{id}",
            "__init__",
            "",
        ] {
            assert!(!is_placeholder(text), "{text}");
        }
    }
}
