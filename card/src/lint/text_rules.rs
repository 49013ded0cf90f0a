//! Rules for skills and texts.

use std::collections::HashSet;

use serde_json::Value;

use super::required_members::applicable_versions;
use super::target::LintTarget;
use crate::Skill;
use crate::finding::FindingCollector;
use crate::json_pointer::JsonPointer;
use crate::rule::Rule;

fn report_breaching_skills(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
    is_breach: impl Fn(&Skill) -> bool,
) {
    target.for_each_skill(|skill, pointer| {
        if is_breach(skill) {
            out.add(rule, pointer, &skill.id);
        }
    });
}

/// Checks that there are skills: the tools that check 0.x cards require at least one, and 1.0 requires one anyway.
pub(super) fn check_skill_presence(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    let skills = target.find_member("skills");
    if let Some((position, Value::Array(list))) = skills
        && list.is_empty()
        && !applicable_versions(target).contains(&"1.0")
    {
        out.add(rule, &position.pointer_in(&JsonPointer::Root), "[]");
    }
}

pub(super) fn check_skill_tags(target: &LintTarget<'_>, rule: &Rule, out: &mut FindingCollector) {
    report_breaching_skills(target, rule, out, |skill| skill.tags.is_empty());
}

pub(super) fn check_skill_examples(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    report_breaching_skills(target, rule, out, |skill| skill.examples.is_empty());
}

pub(super) fn check_duplicate_skill_ids(
    target: &LintTarget<'_>,
    rule: &Rule,
    out: &mut FindingCollector,
) {
    let mut borrowed_ids = HashSet::new();
    let mut skills = target.parsed.card.skills.iter();
    if skills.all(|skill| borrowed_ids.insert(skill.id.as_str())) {
        return;
    }
    let mut unique_ids = HashSet::new();
    target.for_each_skill(|skill, pointer| {
        if !unique_ids.insert(skill.id.clone()) {
            out.add(rule, pointer, &skill.id);
        }
    });
}

pub(super) fn check_placeholders(target: &LintTarget<'_>, rule: &Rule, out: &mut FindingCollector) {
    let card = &target.parsed.card;
    let root = JsonPointer::Root;
    let mut check_text = |pointer: &JsonPointer<'_>, text: &str| {
        if contains_placeholder(text) {
            out.add(rule, pointer, text);
        }
    };
    check_text(&target.position_of("name").pointer_in(&root), &card.name);
    if let Some(text) = &card.description {
        check_text(&target.position_of("description").pointer_in(&root), text);
    }
    let provider_position = target.position_of("provider");
    let provider_pointer = provider_position.pointer_in(&root);
    if let Some(card_provider) = &card.provider {
        check_text(
            &provider_pointer.member("organization"),
            card_provider.organization.as_deref().unwrap_or_default(),
        );
        check_text(
            &provider_pointer.member("url"),
            card_provider.url.as_deref().unwrap_or_default(),
        );
    }
    target.for_each_interface(|interface, _, pointer| check_text(pointer, &interface.url));
    target.for_each_skill(|skill, pointer| {
        check_text(&pointer.member("name"), &skill.name);
        if let Some(text) = &skill.description {
            check_text(&pointer.member("description"), text);
        }
    });
}

/// Whether a text still has template placeholders, such as `{NAME}`, `<NAME>`, `__NAME__`, `YOUR_…`, or `TODO`.
fn contains_placeholder(text: &str) -> bool {
    // Most texts have none of the placeholder characters, which is checked without a copy in lower case.
    let (mut has_marks, mut words) = (text.len() < 16, false);
    for pair in text.as_bytes().windows(2) {
        match pair {
            [b'{' | b'<' | b'$', _] | b"__" => has_marks = true,
            [b'y' | b'Y', b'o' | b'O'] | [b'l' | b'L', b'o' | b'O'] => words = true,
            _ => {}
        }
    }
    if !has_marks && !words {
        return false;
    }
    let lower = text.to_lowercase();
    let placeholder_marks = [
        "{{",
        "${",
        "lorem ipsum",
        "your_",
        "your-domain",
        "yourdomain",
        "<your",
    ];
    let placeholder_words = ["todo", "tbd", "fixme", "changeme", "placeholder"];
    placeholder_marks.iter().any(|mark| lower.contains(mark))
        || placeholder_words.contains(&lower.trim_end_matches('.'))
        || [("{", "}"), ("<", ">"), ("__", "__")]
            .iter()
            .any(|(open, close)| has_template_constant(text, open, close))
}

/// Maximum length of a placeholder constant in bytes, including its closing mark.
const MAX_CONSTANT_BYTES: usize = 64;

fn has_template_constant(text: &str, open: &str, close: &str) -> bool {
    let is_constant_byte =
        |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(open) {
        let constant_range = after.bytes().take(MAX_CONSTANT_BYTES);
        let length = constant_range.take_while(is_constant_byte).count();
        let (name, after_name) = after.split_at(length);
        // Underscores close a name that may itself contain underscores.
        let is_closed = after_name.starts_with(close) || (close == "__" && name.ends_with(close));
        let name = name.trim_end_matches(close);
        if is_closed && name.len() >= 3 && name.contains(|c: char| c != '_') {
            return true;
        }
        rest = after_name;
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
            assert!(contains_placeholder(text), "{text}");
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
            assert!(!contains_placeholder(text), "{text}");
        }
    }
}
