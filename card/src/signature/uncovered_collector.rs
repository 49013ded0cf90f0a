//! Collector of the members that a signed form does not cover.

use crate::json_pointer::JsonPointer;

/// Maximum number of members listed as not covered.
pub const MAX_UNCOVERED: usize = 1_000;

/// Subject of a member that is not covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UncoveredSubject {
    /// How callers authenticate.
    Security,
    /// The address of the agent.
    Address,
    /// Anything else in the card.
    Other,
}

/// A member, or an element, that is not in the payload of a form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UncoveredMember {
    /// RFC 6901 pointer to it; members below it are not listed separately.
    pub pointer: String,
    /// The subject of the member.
    pub subject: UncoveredSubject,
    /// Whether the member means the same as its absence, such as `"tenant": ""`.
    pub empty: bool,
}

#[derive(Debug)]
pub(super) struct UncoveredMemberCollector {
    members: Vec<UncoveredMember>,
    max_members: usize,
}

impl UncoveredMemberCollector {
    pub(super) fn disabled() -> Self {
        UncoveredMemberCollector {
            members: Vec::new(),
            max_members: 0,
        }
    }

    /// A list of at most [`MAX_UNCOVERED`] members.
    pub(super) fn new() -> Self {
        UncoveredMemberCollector {
            members: Vec::new(),
            max_members: MAX_UNCOVERED,
        }
    }

    /// The current length, for [`replace_parts`](Self::replace_parts).
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }

    /// Adds a member that is not covered at all, replacing its parts added since the mark.
    pub(super) fn add_replacing_parts(
        &mut self,
        start: usize,
        pointer: &JsonPointer<'_>,
        equals_absence: bool,
    ) {
        self.members.truncate(start);
        self.add(pointer, equals_absence);
    }

    pub(super) fn into_members(self) -> Vec<UncoveredMember> {
        self.members
    }

    pub(super) fn add(&mut self, pointer: &JsonPointer<'_>, equals_absence: bool) {
        if self.members.len() < self.max_members {
            let pointer = pointer.to_json_pointer();
            self.members.push(UncoveredMember {
                subject: uncovered_subject(&pointer),
                pointer,
                empty: equals_absence,
            });
        }
    }
}

fn uncovered_subject(pointer: &str) -> UncoveredSubject {
    let mut names = pointer.split('/').skip(1);
    let name = match (names.next(), names.next(), names.next()) {
        (Some("skills"), Some(_), Some(name)) => name,
        (Some(name), ..) => name,
        (None, ..) => return UncoveredSubject::Other,
    };
    match name {
        "securitySchemes"
        | "security_schemes"
        | "securityRequirements"
        | "security_requirements"
        | "security"
        | "authentication" => UncoveredSubject::Security,
        "url"
        | "preferredTransport"
        | "preferred_transport"
        | "additionalInterfaces"
        | "additional_interfaces" => UncoveredSubject::Address,
        _ => UncoveredSubject::Other,
    }
}
