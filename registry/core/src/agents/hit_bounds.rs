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
pub const MAX_SKILL_TAGS: usize = 10;
const SKILL_TAG_BYTES: usize = 1024;

/// Cuts the summary of an agent to the bounds, with as many skills as are indexed: a hit shows [`MAX_SHOWN_SKILLS`] of
/// them.
pub fn bound_summary(mut summary: Summary) -> Summary {
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
