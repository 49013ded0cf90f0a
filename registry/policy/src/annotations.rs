//! Annotations: the words before a policy, and the notice with which a policy explains itself to those whom it forbids
//! something.

use cedar_policy::Policy as CedarPolicy;

use crate::policy_error::PolicyError;
use crate::policy_set::PolicySet;

/// The annotations that a policy may have.
pub const ANNOTATIONS: &[&str] = &["mode", "message", "contact", "quiet"];
/// Maximum number of characters of `@message`, because it is repeated in refusals.
pub const MAX_MESSAGE_CHARS: usize = 500;
/// Maximum number of characters of `@contact`.
pub const MAX_CONTACT_CHARS: usize = 200;

/// What a policy tells those whom it forbids something.
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

/// The errors in the values of annotations. Sets that are stored keep their meaning whatever these are.
pub fn annotation_value_errors(set: &PolicySet) -> Vec<PolicyError> {
    let custom = set.policies().iter().filter(|policy| !policy.is_built_in);
    let errors = custom.flat_map(|policy| {
        let messages = annotation_value_messages(&policy.parsed);
        messages.map(move |message| PolicyError::at_start(&policy.id, &policy.text, message))
    });
    errors.collect()
}

fn annotation_value_messages(policy: &CedarPolicy) -> impl Iterator<Item = String> {
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::policy::PolicyText;

    fn compile(annotations: &str) -> PolicySet {
        let text = format!("{annotations}\nforbid (principal, action, resource);");
        let policy = PolicyText {
            id: "no-pii".to_owned(),
            text,
        };
        PolicySet::compile(1, &[policy]).unwrap()
    }

    #[test]
    fn a_notice_has_the_name_unless_the_policy_is_quiet() {
        let notice = |annotations: &str| compile(annotations).policies()[0].notice.clone();
        assert_eq!(notice(""), None);
        assert_eq!(notice("@quiet"), None);
        let message = Some("Ask risk@corp.example.".to_owned());
        let named = PolicyNotice {
            policy: Some("no-pii".to_owned()),
            message: message.clone(),
            contact: None,
        };
        assert_eq!(
            notice("@message(\" Ask risk@corp.example. \")"),
            Some(named)
        );
        let unnamed = PolicyNotice {
            policy: None,
            message,
            contact: Some("https://corp.example/risk".to_owned()),
        };
        let quiet =
            "@message(\"Ask risk@corp.example.\") @contact(\"https://corp.example/risk\") @quiet";
        assert_eq!(notice(quiet), Some(unnamed));
    }

    #[test]
    fn values_are_checked_in_new_sets_and_cut_in_stored_ones() {
        let at_bound = format!("@message(\"{}\")", "x".repeat(MAX_MESSAGE_CHARS));
        assert!(annotation_value_errors(&compile(&at_bound)).is_empty());
        let beyond = compile(&format!(
            "@message(\"{}\")",
            "x".repeat(MAX_MESSAGE_CHARS + 1)
        ));
        let errors = annotation_value_errors(&beyond);
        assert!(errors[0].to_string().contains("`@message`"), "{errors:?}");
        let kept = beyond.policies()[0].notice.clone().unwrap();
        assert_eq!(kept.message.unwrap().len(), MAX_MESSAGE_CHARS);
        for invalid in [
            "@contact(\"\")",
            "@contact(\"a\\nb\")",
            "@quiet(\"yes\")",
            "@message",
        ] {
            assert_eq!(
                annotation_value_errors(&compile(invalid)).len(),
                1,
                "{invalid}"
            );
        }
    }
}
