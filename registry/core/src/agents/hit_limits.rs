//! Size limits of a hit: an agent's data in lists is truncated when it is indexed, so that no card makes a page large.
//! The agent's own page shows everything.

use a2a_registry_api::{HitSkill, Summary};
use a2a_registry_search::{MAX_SHOWN_SKILLS, MAX_SKILLS, MAX_VALUE_BYTES};

/// Maximum length of a name and other single-line texts, in bytes.
const MAX_LINE_BYTES: usize = 1024;
const MAX_DESCRIPTION_BYTES: usize = 2048;
/// Maximum length of an address, in bytes. A longer one is omitted, because a truncated address is useless.
const MAX_URL_BYTES: usize = 2048;
/// Maximum number of values in a list, such as tags and interfaces.
const MAX_LIST_ITEMS: usize = 64;
const MAX_LIST_BYTES: usize = 8 * 1024;
const MAX_SKILL_DESCRIPTION_BYTES: usize = 512;
pub const MAX_SKILL_TAGS: usize = 10;
const MAX_SKILL_TAG_BYTES: usize = 1024;

/// Truncates the summary of an agent to the limits, with as many skills as are indexed; a hit shows
/// [`MAX_SHOWN_SKILLS`] of them.
pub fn truncate_summary(mut summary: Summary) -> Summary {
    let mut truncator = SummaryTruncator::default();
    truncator.cut_text(&mut summary.name, MAX_LINE_BYTES);
    truncator.cut_optional_text(&mut summary.description, MAX_DESCRIPTION_BYTES);
    truncator.cut_optional_text(&mut summary.version, MAX_LINE_BYTES);
    if let Some(provider) = &mut summary.provider {
        truncator.cut_optional_text(&mut provider.organization, MAX_LINE_BYTES);
        truncator.drop_long_url(&mut provider.url);
    }
    truncator.drop_long_url(&mut summary.links.origin);
    truncator.cut_list(
        &mut summary.interfaces,
        MAX_LIST_ITEMS,
        MAX_LIST_BYTES,
        |one| {
            let texts = [&one.protocol_version, &one.tenant].into_iter().flatten();
            let texts = texts.map(String::len).sum::<usize>();
            one.url.len() + one.binding.len() + texts
        },
    );
    let lists = [
        &mut summary.capabilities.extensions,
        &mut summary.tags,
        &mut summary.auth,
    ];
    for list in lists {
        truncator.cut_filter_values(list, MAX_LIST_ITEMS, MAX_LIST_BYTES);
    }
    truncator.is_cut |= summary.skills.len() > MAX_SHOWN_SKILLS;
    summary.skills.truncate(MAX_SKILLS);
    for skill in &mut summary.skills {
        truncator.cut_skill(skill);
    }
    summary.shortened = truncator.is_cut;
    summary
}

#[derive(Default)]
struct SummaryTruncator {
    /// Whether anything was truncated or omitted.
    is_cut: bool,
}

impl SummaryTruncator {
    fn cut_text(&mut self, text: &mut String, max_bytes: usize) {
        if text.len() > max_bytes {
            text.truncate(text.floor_char_boundary(max_bytes));
            text.push('…');
            self.is_cut = true;
        }
    }

    fn cut_optional_text(&mut self, text: &mut Option<String>, max_bytes: usize) {
        if let Some(text) = text {
            self.cut_text(text, max_bytes);
        }
    }

    fn drop_long_url(&mut self, url: &mut Option<String>) {
        let was_present = url.is_some();
        *url = url.take().filter(|url| url.len() <= MAX_URL_BYTES);
        self.is_cut |= was_present && url.is_none();
    }

    /// Keeps the first values that fit; a value that is too long by itself is omitted.
    fn cut_list<T>(
        &mut self,
        list: &mut Vec<T>,
        max_items: usize,
        mut bytes_left: usize,
        item_bytes: impl Fn(&T) -> usize,
    ) {
        let len_before = list.len();
        list.retain(|one| item_bytes(one) <= MAX_URL_BYTES);
        let fitting_items = list.iter().take(max_items).take_while(|one| {
            let fits = item_bytes(one) <= bytes_left;
            bytes_left = bytes_left.saturating_sub(item_bytes(one));
            fits
        });
        let fitting = fitting_items.count();
        list.truncate(fitting);
        self.is_cut |= list.len() < len_before;
    }

    /// Truncates a list of filterable values; values that no filter accepts are omitted.
    fn cut_filter_values(&mut self, list: &mut Vec<String>, max_items: usize, max_bytes: usize) {
        let len_before = list.len();
        list.retain(|value| value.len() <= MAX_VALUE_BYTES);
        self.is_cut |= list.len() < len_before;
        self.cut_list(list, max_items, max_bytes, String::len);
    }

    fn cut_skill(&mut self, skill: &mut HitSkill) {
        self.cut_text(&mut skill.id, MAX_VALUE_BYTES);
        self.cut_text(&mut skill.name, MAX_LINE_BYTES);
        self.cut_optional_text(&mut skill.description, MAX_SKILL_DESCRIPTION_BYTES);
        self.cut_filter_values(&mut skill.tags, MAX_SKILL_TAGS, MAX_SKILL_TAG_BYTES);
    }
}
