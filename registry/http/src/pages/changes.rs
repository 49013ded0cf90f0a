//! Changes of a card as pages show them: their importance, and the values on both sides.

use a2a_registry_core::text::{self, LINE};
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::review::ChangeClass;
use serde_json::Value;

use crate::pages::trust::Badge;

/// Characters of a value on each side of a change.
const MAX_VALUE_CHARS: usize = 1_500;

/// A value as JSON, on several lines if it has members.
pub(crate) fn value(value: &Value) -> String {
    let json = serde_json::to_string_pretty(value);
    text::block(&json.unwrap_or_default(), MAX_VALUE_CHARS)
}

/// What a class of change means, independent of the decision on it.
pub(crate) const fn change_class_description(class: Option<ChangeClass>) -> &'static str {
    match class {
        Some(ChangeClass::None) => "No client could notice it.",
        Some(ChangeClass::Low) => "A rule may accept a change like this without a review.",
        Some(ChangeClass::High | ChangeClass::Critical) => "A change like this needs a review.",
        None => "Only a later version of this registry knows this class.",
    }
}

pub(crate) fn class_badge(class: &OpenEnum<ChangeClass>) -> Badge {
    let tone = match class.known_value() {
        Some(ChangeClass::None | ChangeClass::Low) | None => "plain",
        Some(ChangeClass::High) => "warn",
        Some(ChangeClass::Critical) => "bad",
    };
    Badge {
        label: text::line(class.as_str(), LINE),
        meaning: change_class_description(class.known_value()).to_owned(),
        tone,
        link: None,
    }
}
