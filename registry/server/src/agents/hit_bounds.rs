//! The bounds of a hit: what lists show of an agent is cut when it is indexed, so that no card makes a page large. The
//! agent itself shows everything.

use a2a_registry_api::{HitSkill, Summary};
use a2a_registry_search::{MAX_SHOWN_SKILLS, MAX_SKILLS, MAX_VALUE_BYTES};

/// Bytes of a name and other single-line texts.
const LINE_BYTES: usize = 1024;
const DESCRIPTION_BYTES: usize = 2048;
/// Bytes of an address: a longer one is left out, because a part of it leads nowhere.
const ADDRESS_BYTES: usize = 2048;
/// Values of a list, such as tags and interfaces.
const MAX_VALUES: usize = 64;
const LIST_BYTES: usize = 8 * 1024;
const SKILL_DESCRIPTION_BYTES: usize = 512;
const MAX_SKILL_TAGS: usize = 10;
const SKILL_TAG_BYTES: usize = 1024;

/// Cuts the summary of an agent to the bounds, with as many skills as are indexed: a hit shows [`MAX_SHOWN_SKILLS`] of
/// them.
pub(crate) fn bound_summary(mut summary: Summary) -> Summary {
    let mut bounds = Bounds::default();
    bounds.text(&mut summary.name, LINE_BYTES);
    bounds.optional(&mut summary.description, DESCRIPTION_BYTES);
    bounds.optional(&mut summary.version, LINE_BYTES);
    if let Some(provider) = &mut summary.provider {
        bounds.optional(&mut provider.organization, LINE_BYTES);
        bounds.address(&mut provider.url);
    }
    bounds.address(&mut summary.links.origin);
    bounds.list(&mut summary.interfaces, MAX_VALUES, LIST_BYTES, |one| {
        let texts = [&one.protocol_version, &one.tenant].into_iter().flatten();
        let texts = texts.map(String::len).sum::<usize>();
        one.url.len() + one.binding.len() + texts
    });
    let lists = [
        &mut summary.capabilities.extensions,
        &mut summary.tags,
        &mut summary.auth,
    ];
    for list in lists {
        bounds.values(list, MAX_VALUES, LIST_BYTES);
    }
    bounds.is_cut |= summary.skills.len() > MAX_SHOWN_SKILLS;
    summary.skills.truncate(MAX_SKILLS);
    for skill in &mut summary.skills {
        bounds.skill(skill);
    }
    summary.shortened = bounds.is_cut;
    summary
}

#[derive(Default)]
struct Bounds {
    /// Whether anything was cut or left out.
    is_cut: bool,
}

impl Bounds {
    fn text(&mut self, text: &mut String, most: usize) {
        if text.len() > most {
            text.truncate(text.floor_char_boundary(most));
            text.push('…');
            self.is_cut = true;
        }
    }

    fn optional(&mut self, text: &mut Option<String>, most: usize) {
        if let Some(text) = text {
            self.text(text, most);
        }
    }

    fn address(&mut self, url: &mut Option<String>) {
        let before = url.is_some();
        *url = url.take().filter(|url| url.len() <= ADDRESS_BYTES);
        self.is_cut |= before && url.is_none();
    }

    /// Keeps the first values that fit; one that is too long by itself is left out.
    fn list<T>(
        &mut self,
        list: &mut Vec<T>,
        most: usize,
        mut left: usize,
        bytes: impl Fn(&T) -> usize,
    ) {
        let before = list.len();
        list.retain(|one| bytes(one) <= ADDRESS_BYTES);
        let fitting = list.iter().take(most).take_while(|one| {
            let fits = bytes(one) <= left;
            left = left.saturating_sub(bytes(one));
            fits
        });
        let fitting = fitting.count();
        list.truncate(fitting);
        self.is_cut |= list.len() < before;
    }

    /// Values that can be filtered by: those that no filter accepts are left out.
    fn values(&mut self, list: &mut Vec<String>, most: usize, all_bytes: usize) {
        let before = list.len();
        list.retain(|value| value.len() <= MAX_VALUE_BYTES);
        self.is_cut |= list.len() < before;
        self.list(list, most, all_bytes, String::len);
    }

    fn skill(&mut self, skill: &mut HitSkill) {
        self.text(&mut skill.id, MAX_VALUE_BYTES);
        self.text(&mut skill.name, LINE_BYTES);
        self.optional(&mut skill.description, SKILL_DESCRIPTION_BYTES);
        self.values(&mut skill.tags, MAX_SKILL_TAGS, SKILL_TAG_BYTES);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use a2a_registry_api::{Interface, Provider};

    use super::*;
    use crate::pages::tests::samples;

    /// The summary of an agent that has so many of everything, each with so many bytes.
    fn summary_of(count: usize, bytes: usize) -> Summary {
        let card = br#"{"name": "A", "description": "b", "version": "1", "url": "https://a.example", "skills": []}"#;
        let card = a2a_card::parse(card).unwrap().card;
        let text = "é".repeat(bytes / 2);
        let texts = vec![text.clone(); count];
        let skill = HitSkill {
            id: text.clone(),
            name: text.clone(),
            description: Some(text.clone()),
            tags: texts.clone(),
        };
        let interface = Interface {
            url: format!("https://a.example/{text}"),
            binding: text.clone(),
            protocol_version: Some(text.clone()),
            tenant: None,
        };
        let mut summary = samples::summary(&card, 1);
        summary.provider = Some(Provider {
            organization: Some(text.clone()),
            url: Some(format!("https://a.example/{text}")),
        });
        summary.capabilities.extensions.clone_from(&texts);
        summary.auth.clone_from(&texts);
        summary.tags = texts;
        summary.name.clone_from(&text);
        summary.description = Some(text.clone());
        summary.version = Some(text);
        summary.interfaces = vec![interface; count];
        summary.skills = vec![skill; count];
        summary.skills_total = count as u64;
        summary
    }

    #[test]
    fn a_hit_is_small_whatever_its_card_holds() {
        for (count, bytes) in [(1, 1_000_000), (2_000, 10), (200, 3_000), (40, 1_000)] {
            let mut hit = bound_summary(summary_of(count, bytes));
            assert!(hit.shortened, "{count} × {bytes}");
            assert_eq!(hit.skills_total, count as u64);
            assert!(hit.skills.len() <= MAX_SKILLS);
            hit.skills.truncate(MAX_SHOWN_SKILLS);
            let size = serde_json::to_vec(&hit).unwrap().len();
            assert!(size < 80 * 1024, "{count} × {bytes}: {size} bytes");
        }
    }

    #[test]
    fn a_usual_hit_is_whole() {
        let summary = summary_of(MAX_SHOWN_SKILLS, 100);
        assert_eq!(bound_summary(summary.clone()), summary);
        let mut long = summary;
        long.skills[9].tags.push("one more".to_owned());
        let hit = bound_summary(long.clone());
        assert!(hit.shortened && hit.skills[9].tags.len() == MAX_SKILL_TAGS);
        assert_eq!(hit.skills[..9], long.skills[..9]);
    }
}
