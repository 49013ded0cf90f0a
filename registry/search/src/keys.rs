//! Keys: exact values of all kinds, stored as the terms of one field.
//!
//! Each indexed field of a segment has a term dictionary, and creating one costs more than the values of an agent: a
//! commit of one agent, and each merge of small segments, would mostly create dictionaries. So all exact values share
//! a field. A key is one character for the kind of the value, followed by the value; the values of a kind are a range
//! of the dictionary, in their own order. Values that are counted or sorted also have a column of their own.

use std::sync::Arc;

use a2a_registry_domain::facet::Facet;
use tantivy::postings::TermInfo;
use tantivy::schema::{Field, IndexRecordOption, SchemaBuilder, TextFieldIndexing, TextOptions};
use tantivy::termdict::{TermDictionary, TermStreamer};
use tantivy::{InvertedIndexReader, SegmentReader, Term};
use uuid::Uuid;

use super::suggestion_kind::SuggestionKind;

/// Bytes before the value in a key.
pub(super) const KIND_BYTES: usize = 1;

pub(super) const IDENTIFIER_COLUMN: &str = "identifier";

pub(super) const ATTRIBUTE_COLUMN: &str = "attribute";

/// Characters of an id.
const ID_CHARACTERS: u32 = u128::BITS.div_ceil(7);

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyKind {
    Id,
    VisibleTo,
    Lookup,
    /// The identifier in catalogs.
    Identifier,
    Attribute,
    /// A form of a word in a skill's name.
    SkillWord,
    /// A form of a word in the provider's name.
    ProviderWord,
    /// A text suggested as a completion.
    Suggestion(SuggestionKind),
    Facet(Facet),
}

/// The kinds that have a column, in addition to the facets.
const COLUMN_KINDS: [KeyKind; 5] = [
    KeyKind::Identifier,
    KeyKind::Attribute,
    KeyKind::Suggestion(SuggestionKind::Name),
    KeyKind::Suggestion(SuggestionKind::Skill),
    KeyKind::Suggestion(SuggestionKind::Tag),
];

impl KeyKind {
    pub fn all_with_column() -> impl Iterator<Item = Self> {
        let facets = Facet::ALL.iter().copied();
        facets.map(Self::Facet).chain(COLUMN_KINDS)
    }

    /// The name of the column of these values, if they have one.
    pub fn column_name(self) -> Option<&'static str> {
        match self {
            Self::Facet(facet) => Some(facet.as_str()),
            Self::Identifier => Some(IDENTIFIER_COLUMN),
            Self::Attribute => Some(ATTRIBUTE_COLUMN),
            Self::Suggestion(SuggestionKind::Name) => Some("suggest_name"),
            Self::Suggestion(SuggestionKind::Skill) => Some("suggest_skill"),
            Self::Suggestion(SuggestionKind::Tag) => Some("suggest_tag"),
            Self::Id | Self::VisibleTo | Self::Lookup | Self::SkillWord | Self::ProviderWord => {
                None
            }
        }
    }

    /// The first byte of the keys of this kind, a unique ASCII letter. Facets have the lower-case letters, in their
    /// order.
    fn prefix_byte(self) -> u8 {
        match self {
            Self::Id => b'I',
            Self::VisibleTo => b'V',
            Self::Lookup => b'L',
            Self::Identifier => b'C',
            Self::Attribute => b'A',
            Self::SkillWord => b'W',
            Self::ProviderWord => b'P',
            Self::Suggestion(SuggestionKind::Name) => b'N',
            Self::Suggestion(SuggestionKind::Skill) => b'S',
            Self::Suggestion(SuggestionKind::Tag) => b'T',
            Self::Facet(facet) => b'a' + facet as u8,
        }
    }

    pub fn encode(self, value: &str) -> String {
        let mut key = String::with_capacity(KIND_BYTES + value.len());
        key.push(char::from(self.prefix_byte()));
        key.push_str(value);
        key
    }

    /// The keys of this kind in a dictionary, in the order of their values.
    pub fn stream_keys(self, terms: &TermDictionary) -> std::io::Result<TermStreamer<'_>> {
        let first = self.prefix_byte();
        terms.range().ge([first]).lt([first + 1]).into_stream()
    }
}

/// Visits the terms that start with `prefix`, in ascending order, until `visit` returns `false`.
pub(super) fn visit_prefixed_terms<E: From<std::io::Error>>(
    terms: &TermDictionary,
    prefix: &str,
    mut visit: impl FnMut(&[u8], &TermInfo) -> Result<bool, E>,
) -> Result<(), E> {
    let mut begun = terms.range().ge(prefix).into_stream()?;
    while begun.advance()
        && begun.key().starts_with(prefix.as_bytes())
        && visit(begun.key(), begun.value())?
    {}
    Ok(())
}

pub(super) fn strip_key_kind(key: &[u8]) -> &[u8] {
    key.get(KIND_BYTES..).unwrap_or_default()
}

/// The schema field of the keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyField(Field);

impl KeyField {
    /// Adds the field to a schema, without frequencies and lengths, because keys are not scored.
    pub fn add_to_schema(builder: &mut SchemaBuilder) -> Self {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer("raw")
            .set_fieldnorms(false)
            .set_index_option(IndexRecordOption::Basic);
        let options = TextOptions::default().set_indexing_options(indexing);
        Self(builder.add_text_field("keys", options))
    }

    pub fn field(self) -> Field {
        self.0
    }

    pub fn inverted_index(
        self,
        reader: &SegmentReader,
    ) -> tantivy::Result<Arc<InvertedIndexReader>> {
        reader.inverted_index(self.0)
    }

    pub fn term(self, kind: KeyKind, value: &str) -> Term {
        Term::from_field_text(self.0, &kind.encode(value))
    }

    pub fn facet_term(self, facet: Facet, value: &str) -> Term {
        self.term(KeyKind::Facet(facet), value)
    }

    pub fn id_term(self, id: Uuid) -> Term {
        self.term(KeyKind::Id, &encode_id(id))
    }
}

/// Encodes an id as a key value with seven bits per character: the cost of a dictionary depends on the length of its
/// keys.
pub(super) fn encode_id(id: Uuid) -> String {
    let number = id.as_u128();
    let places = (0..ID_CHARACTERS).rev();
    places
        .map(|place| char::from((number >> (7 * place)) as u8 & 0x7f))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_bit_of_an_id_counts() {
        let numbers = (0..u128::BITS)
            .map(|bit| 1_u128 << bit)
            .chain([0, u128::MAX]);
        let ids: HashSet<String> = numbers.map(|one| encode_id(Uuid::from_u128(one))).collect();
        assert_eq!(ids.len(), 130);
        assert!(ids.iter().all(|id| id.len() == 19));
    }

    #[test]
    fn each_kind_has_a_letter_of_its_own() {
        let without_column = [
            KeyKind::Id,
            KeyKind::VisibleTo,
            KeyKind::Lookup,
            KeyKind::SkillWord,
            KeyKind::ProviderWord,
        ];
        assert!(
            without_column
                .iter()
                .all(|kind| kind.column_name().is_none())
        );
        let all: Vec<KeyKind> = KeyKind::all_with_column().chain(without_column).collect();
        let letters: HashSet<u8> = all.iter().map(|kind| kind.prefix_byte()).collect();
        assert_eq!(letters.len(), all.len());
        assert!(letters.iter().all(u8::is_ascii_alphabetic));
        let columns: HashSet<&str> = all.iter().filter_map(|kind| kind.column_name()).collect();
        assert_eq!(columns.len(), KeyKind::all_with_column().count());
    }
}
