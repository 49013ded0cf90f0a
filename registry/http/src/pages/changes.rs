//! Card changes on pages: their importance, and the values on both sides.

use a2a_registry_core::text::{self, LINE};
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::review::ChangeClass;
use serde_json::Value;

use crate::pages::trust::Badge;

/// Maximum number of characters of a value on each side of a change.
const MAX_VALUE_CHARS: usize = 1_500;

/// Formats a value as JSON, on several lines if it has members.
pub(crate) fn format_json_value(value: &Value) -> String {
    let json = serde_json::to_string_pretty(value);
    text::multiline_text(&json.unwrap_or_default(), MAX_VALUE_CHARS)
}

/// Description of a change class, independent of the decision on the change.
pub(crate) const fn change_class_description(class: Option<ChangeClass>) -> &'static str {
    match class {
        Some(ChangeClass::None) => "Clients cannot notice this change.",
        Some(ChangeClass::Low) => "A rule may accept a change like this without a review.",
        Some(ChangeClass::High | ChangeClass::Critical) => "A change like this needs a review.",
        None => "This version of the registry does not know this class.",
    }
}

pub(crate) fn change_class_badge(class: &OpenEnum<ChangeClass>) -> Badge {
    let tone = match class.known_value() {
        Some(ChangeClass::None | ChangeClass::Low) | None => "plain",
        Some(ChangeClass::High) => "warn",
        Some(ChangeClass::Critical) => "bad",
    };
    Badge {
        label: text::single_line(class.as_str(), LINE),
        meaning: change_class_description(class.known_value()).to_owned(),
        tone,
        link: None,
    }
}
