//! Annotations: the words before a policy, and the notice with which a policy explains itself to those whom it forbids
//! something.

use cedar_policy::Policy as CedarPolicy;

/// The annotations that a policy may have.
pub const ANNOTATIONS: &[&str] = &["mode", "from", "until", "message", "contact", "quiet"];
/// Maximum number of characters of `@message`, because it is repeated in refusals.
pub const MAX_MESSAGE_CHARS: usize = 500;
/// Maximum number of characters of `@contact`.
pub const MAX_CONTACT_CHARS: usize = 200;

/// A policy's message to callers to whom it denies something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyNotice {
    /// The identifier of the policy; `None` with `@quiet`.
    pub policy: Option<String>,
    pub message: Option<String>,
    pub contact: Option<String>,
}

impl PolicyNotice {
    /// The notice of a policy; `None` if it has neither a message nor a contact. Texts of sets that were stored before
    /// these annotations had a meaning are cut.
    pub(crate) fn from_annotations(id: &str, policy: &CedarPolicy) -> Option<Self> {
        let text = |name: &str, max_chars: usize| {
            let value = policy.annotation(name)?.trim();
            let cut: String = value.chars().take(max_chars).collect();
            (!cut.is_empty()).then_some(cut)
        };
        let notice = Self {
            policy: (!is_quiet(policy)).then(|| id.to_owned()),
            message: text("message", MAX_MESSAGE_CHARS),
            contact: text("contact", MAX_CONTACT_CHARS),
        };
        (notice.message.is_some() || notice.contact.is_some()).then_some(notice)
    }
}

/// Whether a policy does not tell its name to those whom it forbids something.
pub(crate) fn is_quiet(policy: &CedarPolicy) -> bool {
    policy.annotation("quiet").is_some()
}

/// What is wrong with the values of a policy's annotations.
pub(crate) fn annotation_value_messages(policy: &CedarPolicy) -> impl Iterator<Item = String> {
    let texts = [
        ("message", MAX_MESSAGE_CHARS),
        ("contact", MAX_CONTACT_CHARS),
    ];
    let text_errors = texts.into_iter().filter_map(move |(name, max_chars)| {
        let value = policy.annotation(name)?;
        let is_valid = !value.trim().is_empty()
            && value.chars().count() <= max_chars
            && !value.chars().any(char::is_control);
        (!is_valid).then(|| format!("`@{name}` must be one line of 1 to {max_chars} characters"))
    });
    let quiet = policy.annotation("quiet").filter(|value| !value.is_empty());
    let quiet_error = quiet.map(|_| "`@quiet` takes no value".to_owned());
    text_errors.chain(quiet_error)
}
