//! The kinds of texts that are suggested as completions.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SuggestionKind {
    Name,
    Skill,
    Tag,
}

impl SuggestionKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Skill => "skill",
            Self::Tag => "tag",
        }
    }
}
