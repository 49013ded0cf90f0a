//! Rules for skills and texts.

use std::collections::HashSet;

use serde_json::Value;

use super::required::held_to;
use super::subject::Subject;
use crate::Skill;
use crate::finding::Findings;
use crate::pointer::Pointer;
use crate::rule::Rule;

fn each(subject: &Subject<'_>, rule: &Rule, out: &mut Findings, breach: impl Fn(&Skill) -> bool) {
    subject.each_skill(|skill, at| {
        if breach(skill) {
            out.add(rule, at, &skill.id);
        }
    });
}

/// There are skills: the tools that check 0.x cards require at least one, and 1.0 requires it anyway.
pub(super) fn any_skill(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let skills = subject.find("skills");
    if let Some((spot, Value::Array(list))) = skills
        && list.is_empty()
        && !held_to(subject).contains(&"1.0")
    {
        out.add(rule, &spot.below(&Pointer::Root), "[]");
    }
}

pub(super) fn tags(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    each(subject, rule, out, |skill| skill.tags.is_empty());
}

pub(super) fn examples(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    each(subject, rule, out, |skill| skill.examples.is_empty());
}

pub(super) fn duplicate_ids(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let mut seen = HashSet::new();
    subject.each_skill(|skill, at| {
        if !seen.insert(skill.id.clone()) {
            out.add(rule, at, &skill.id);
        }
    });
}

pub(super) fn placeholders(subject: &Subject<'_>, rule: &Rule, out: &mut Findings) {
    let card = &subject.parsed.card;
    let root = Pointer::Root;
    let mut visit = |at: &Pointer<'_>, text: &str| {
        if is_placeholder(text) {
            out.add(rule, at, text);
        }
    };
    visit(&subject.spot("name").below(&root), &card.name);
    if let Some(text) = &card.description {
        visit(&subject.spot("description").below(&root), text);
    }
    let provider = subject.spot("provider");
    let provider = provider.below(&root);
    if let Some(told) = &card.provider {
        visit(
            &provider.name("organization"),
            told.organization.as_deref().unwrap_or_default(),
        );
        visit(
            &provider.name("url"),
            told.url.as_deref().unwrap_or_default(),
        );
    }
    subject.each_interface(|interface, _, at| visit(at, &interface.url));
    subject.each_skill(|skill, at| {
        visit(&at.name("name"), &skill.name);
        if let Some(text) = &skill.description {
            visit(&at.name("description"), text);
        }
    });
}

/// Whether a text still has a template's marks, such as `{NAME}`, `<NAME>`, `__NAME__`, `YOUR_…`, or `TODO`.
fn is_placeholder(text: &str) -> bool {
    // Most texts have none of the marks, which is checked without a copy in lower case.
    let (mut marked, mut words) = (text.len() < 16, false);
    for pair in text.as_bytes().windows(2) {
        match pair {
            [b'{' | b'<' | b'$', _] | b"__" => marked = true,
            [b'y' | b'Y', b'o' | b'O'] | [b'l' | b'L', b'o' | b'O'] => words = true,
            _ => {}
        }
    }
    if !marked && !words {
        return false;
    }
    let lower = text.to_lowercase();
    let told = [
        "{{",
        "${",
        "lorem ipsum",
        "your_",
        "your-domain",
        "yourdomain",
        "<your",
    ];
    let alone = ["todo", "tbd", "fixme", "changeme", "placeholder"];
    told.iter().any(|mark| lower.contains(mark))
        || alone.contains(&lower.trim_end_matches('.'))
        || [("{", "}"), ("<", ">"), ("__", "__")]
            .iter()
            .any(|(open, close)| has_constant(text, open, close))
}

/// Longest name of a template's constant, its closing mark included.
const MAX_CONSTANT_BYTES: usize = 64;

fn has_constant(text: &str, open: &str, close: &str) -> bool {
    let capital = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(open) {
        let near = after.bytes().take(MAX_CONSTANT_BYTES);
        let length = near.take_while(capital).count();
        let (name, behind) = after.split_at(length);
        // Underscores close a name that may contain underscores itself.
        let closed = behind.starts_with(close) || (close == "__" && name.ends_with(close));
        let name = name.trim_end_matches(close);
        if closed && name.len() >= 3 && name.contains(|c: char| c != '_') {
            return true;
        }
        rest = behind;
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
            "see {lower} and {UPPER_1}",
            "Find us at YourDomain dot com",
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
            "________________________",
            "{AB}",
            "",
        ] {
            assert!(!is_placeholder(text), "{text}");
        }
    }
}
