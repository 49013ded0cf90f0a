//! Schema: the fields of the index, and the conversion of an [`AgentDocument`] into them.

use a2a_registry_domain::facet::Facet;
use tantivy::schema::{
    FAST, Field, IndexRecordOption, STORED, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{TantivyDocument, Term};
use uuid::Uuid;

use super::agent_property::{MAX_ATTRIBUTES, attribute_key};
use super::analysis::indexed_forms;
use super::document::{
    AgentDocument, MAX_OTHER_TEXT_BYTES, MAX_SKILLS, MAX_TEXT_BYTES, MAX_VALUE_BYTES,
};
use super::keys::{KeyField, KeyKind, encode_id};
use super::suggestion_kind::SuggestionKind;
use super::text_folding::fold_text;
use super::text_layout::{self, AgentTexts, JoinedTextsTokenizer, LAYOUT_TOKENIZER};

/// Version of the schema. Increase it with every change of the fields or their content: an index with another version
/// is rebuilt.
pub const SCHEMA_VERSION: u32 = 18;

/// Separator of the separately rendered skills, which JSON in one line cannot contain.
pub(super) const SKILL_SEPARATOR: &str = ",\n";

/// Protocol values of nearly every agent, not searched as text: a query for "text" means something else and would
/// match all.
pub(super) const UNINFORMATIVE_VALUES: [&str; 4] =
    ["application/json", "none", "text", "text/plain"];

/// The facets whose values are also searched as text.
pub(super) const PROTOCOL_FACETS: [Facet; 6] = [
    Facet::Capability,
    Facet::Binding,
    Facet::ProtocolVersion,
    Facet::Auth,
    Facet::InputMode,
    Facet::OutputMode,
];

/// The longest sort key by name, in bytes of the folded form.
const MAX_NAME_KEY_BYTES: usize = 256;

#[derive(Debug, Clone)]
pub(super) struct IndexFields {
    /// Exact values by which agents are found, including the id.
    pub keys: KeyField,
    pub id_high: Field,
    pub id_low: Field,
    /// The rendered hit as text, which is faster to read than bytes.
    pub hit: Field,
    /// The skills as shown in hits, one after another.
    pub rendered_skills: Field,
    /// A rendered hit that is not UTF-8.
    pub hit_bytes: Field,
    /// The entry rendered for catalogs.
    pub catalog_entry: Field,
    /// All texts of the agent, joined and positioned as in [`text_layout`](super::text_layout); also stored.
    pub text: Field,
    pub name_key: Field,
    pub created_at: Field,
    pub updated_at: Field,
    pub group_high: Field,
    pub group_low: Field,
    pub preference: Field,
    /// Columns of key values.
    columns: Vec<(KeyKind, Field)>,
}

impl IndexFields {
    pub fn build_schema() -> (Schema, Self) {
        let mut builder = Schema::builder();
        let column = || TextOptions::default().set_fast("raw");
        let columns = KeyKind::all_with_column()
            .filter_map(|kind| Some((kind, builder.add_text_field(kind.column_name()?, column()))))
            .collect();
        let fields = Self {
            columns,
            keys: KeyField::add_to_schema(&mut builder),
            id_high: builder.add_u64_field("id_high", FAST),
            id_low: builder.add_u64_field("id_low", FAST),
            hit: builder.add_text_field("hit", STORED),
            hit_bytes: builder.add_bytes_field("hit_bytes", STORED),
            rendered_skills: builder.add_text_field("shown_skills", STORED),
            catalog_entry: builder.add_text_field("entry", STORED),
            text: builder.add_text_field(
                "text",
                TextOptions::default().set_stored().set_indexing_options(
                    TextFieldIndexing::default()
                        .set_tokenizer(LAYOUT_TOKENIZER)
                        .set_index_option(IndexRecordOption::WithFreqsAndPositions),
                ),
            ),
            name_key: builder.add_text_field("name_key", column()),
            created_at: builder.add_i64_field("created_at", FAST),
            updated_at: builder.add_i64_field("updated_at", FAST),
            group_high: builder.add_u64_field("group_high", FAST),
            group_low: builder.add_u64_field("group_low", FAST),
            preference: builder.add_u64_field("preference", FAST),
        };
        (builder.build(), fields)
    }

    pub fn id_term(&self, id: Uuid) -> Term {
        self.keys.id_term(id)
    }

    pub fn to_document(&self, agent: AgentDocument) -> TantivyDocument {
        let mut document = TantivyDocument::default();
        let id = encode_id(agent.id);
        self.add_keys(&mut document, KeyKind::Id, std::iter::once(id.as_str()));
        let (high, low) = agent.id.as_u64_pair();
        document.add_u64(self.id_high, high);
        document.add_u64(self.id_low, low);
        document.add_i64(self.created_at, agent.created_at);
        document.add_i64(self.updated_at, agent.updated_at);
        let (high, low) = split_u128(agent.duplicate_key);
        document.add_u64(self.group_high, high);
        document.add_u64(self.group_low, low);
        document.add_u64(self.preference, agent.preference.into());
        match std::str::from_utf8(&agent.hit) {
            Ok(hit) => document.add_text(self.hit, hit),
            Err(_) => document.add_bytes(self.hit_bytes, &agent.hit),
        }
        let shown = agent.skills.iter().take(MAX_SKILLS);
        let shown: Vec<&str> = shown.map(|skill| skill.rendered.as_str()).collect();
        if shown.iter().any(|skill| !skill.is_empty()) {
            document.add_text(self.rendered_skills, shown.join(SKILL_SEPARATOR));
        }
        match std::str::from_utf8(&agent.catalog_entry) {
            Ok("") | Err(_) => {}
            Ok(entry) => document.add_text(self.catalog_entry, entry),
        }

        let name_key = fold_text(&agent.name);
        if !name_key.is_empty() {
            document.add_text(
                self.name_key,
                truncate_to_bytes(&name_key, MAX_NAME_KEY_BYTES),
            );
        }
        self.add_filter_keys(&agent, &mut document);
        self.add_identifier_and_attributes(&agent, &mut document);
        self.add_suggestions(&agent, &mut document);
        let provider = truncate_to_bytes(&agent.provider, MAX_VALUE_BYTES);
        self.add_word_forms(
            &mut document,
            KeyKind::ProviderWord,
            std::iter::once(provider),
        );

        let texts = limit_agent_texts(agent);
        let skills = texts.skills.iter().map(|skill| skill.name.as_str());
        self.add_word_forms(&mut document, KeyKind::SkillWord, skills);
        document.add_text(self.text, text_layout::join_agent_texts(&texts));
        document
    }

    fn add_filter_keys(&self, agent: &AgentDocument, out: &mut TantivyDocument) {
        let facets = agent.facets.entries();
        let facets = facets.map(|(facet, values)| (KeyKind::Facet(facet), values));
        let lists = [
            (KeyKind::VisibleTo, &agent.visible_to),
            (KeyKind::Lookup, &agent.lookup_keys),
        ];
        for (kind, values) in facets.chain(lists) {
            self.add_keys(out, kind, values.iter().map(String::as_str));
        }
    }

    /// Adds the values for exact conditions other than facets.
    fn add_identifier_and_attributes(&self, agent: &AgentDocument, out: &mut TantivyDocument) {
        let identifier = std::iter::once(agent.identifier.as_str());
        self.add_keys(out, KeyKind::Identifier, identifier);
        let attributes = agent.attributes.iter().take(MAX_ATTRIBUTES);
        let attributes: Vec<String> = attributes
            .map(|(path, value)| attribute_key(path, value))
            .collect();
        let attributes = attributes.iter().map(String::as_str);
        self.add_keys(out, KeyKind::Attribute, attributes);
    }

    /// Adds the texts that completions suggest.
    fn add_suggestions(&self, agent: &AgentDocument, out: &mut TantivyDocument) {
        let skills = agent.skills.iter().take(MAX_SKILLS);
        let tags = agent.facets[Facet::Tag].iter();
        let suggestions = [
            (SuggestionKind::Name, vec![agent.name.as_str()]),
            (
                SuggestionKind::Skill,
                skills.map(|skill| skill.name.as_str()).collect(),
            ),
            (SuggestionKind::Tag, tags.map(String::as_str).collect()),
        ];
        for (kind, shown) in suggestions {
            let texts: Vec<String> = shown.into_iter().filter_map(encode_suggestion).collect();
            let texts = texts.iter().map(String::as_str);
            self.add_keys(out, KeyKind::Suggestion(kind), texts);
        }
    }

    /// Adds the forms of all words of texts.
    fn add_word_forms<'a>(
        &self,
        out: &mut TantivyDocument,
        kind: KeyKind,
        texts: impl Iterator<Item = &'a str>,
    ) {
        let forms: Vec<String> = texts.flat_map(indexed_forms).collect();
        self.add_keys(out, kind, forms.iter().map(String::as_str));
    }

    /// Adds the keys of these values, and the values to the column of their kind.
    fn add_keys<'a>(
        &self,
        out: &mut TantivyDocument,
        kind: KeyKind,
        values: impl Iterator<Item = &'a str>,
    ) {
        let mut values: Vec<&str> = values
            .filter(|value| !value.is_empty() && value.len() <= MAX_VALUE_BYTES)
            .collect();
        values.sort_unstable();
        values.dedup();
        let column = self.columns.iter().find(|(of, _)| *of == kind);
        for value in values {
            out.add_text(self.keys.field(), kind.encode(value));
            if let Some((_, column)) = column {
                out.add_text(*column, value);
            }
        }
    }
}

/// The analyzer of the schema, with its name.
pub(super) fn agent_text_analyzer() -> (&'static str, TextAnalyzer) {
    (LAYOUT_TOKENIZER, TextAnalyzer::from(JoinedTextsTokenizer))
}

/// Separator between the folded form, which is compared with prefixes, and the shown text.
pub(super) const SUGGESTION_MARK: char = '\u{1}';

fn encode_suggestion(shown: &str) -> Option<String> {
    let shown = shown.trim();
    let usable =
        !shown.is_empty() && shown.len() <= MAX_VALUE_BYTES / 4 && !shown.contains(SUGGESTION_MARK);
    usable.then(|| format!("{}{SUGGESTION_MARK}{shown}", fold_text(shown)))
}

/// Splits a number into its high and low half.
fn split_u128(number: u128) -> (u64, u64) {
    Uuid::from_u128(number).as_u64_pair()
}

/// Cuts a text to at most this many bytes, at a character boundary.
fn truncate_to_bytes(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Cuts texts to this many bytes in total, and drops the empty ones.
fn truncate_texts(texts: &mut Vec<String>, mut bytes_left: usize) {
    for text in &mut *texts {
        text.truncate(text.floor_char_boundary(bytes_left));
        bytes_left -= text.len();
    }
    texts.retain(|text| !text.is_empty());
}

/// Cuts the searched and stored texts to their limits: each kind of text has its own budget of bytes for the whole
/// agent.
fn limit_agent_texts(agent: AgentDocument) -> AgentTexts {
    let mut names = MAX_TEXT_BYTES;
    let mut descriptions = MAX_TEXT_BYTES;
    let mut examples = MAX_TEXT_BYTES;
    let take = |text: &mut String, left: &mut usize| {
        text.truncate(text.floor_char_boundary(*left));
        *left -= text.len();
    };
    let mut facets = agent.facets;
    let mut texts = AgentTexts {
        name: agent.name,
        description: agent.description,
        provider: format!("{} {}", agent.provider, facets[Facet::Domain].concat())
            .trim()
            .to_owned(),
        protocol: PROTOCOL_FACETS
            .map(|facet| std::mem::take(&mut facets[facet]))
            .concat(),
        skills: agent.skills,
        other: agent.other_texts,
    };
    // Most accepted media types are also produced.
    texts.protocol.sort_unstable();
    texts.protocol.dedup();
    texts
        .protocol
        .retain(|value| !UNINFORMATIVE_VALUES.contains(&value.as_str()));
    truncate_texts(&mut texts.protocol, MAX_TEXT_BYTES);
    texts
        .name
        .truncate(texts.name.floor_char_boundary(MAX_TEXT_BYTES));
    texts
        .provider
        .truncate(texts.provider.floor_char_boundary(MAX_TEXT_BYTES));
    take(&mut texts.description, &mut descriptions);
    texts.skills.truncate(MAX_SKILLS);
    for skill in &mut texts.skills {
        take(&mut skill.id, &mut names);
        take(&mut skill.name, &mut names);
        for tag in &mut skill.tags {
            take(tag, &mut names);
        }
        skill.tags.retain(|tag| !tag.is_empty());
        take(&mut skill.description, &mut descriptions);
        for example in &mut skill.examples {
            take(example, &mut examples);
        }
        skill.examples.retain(|example| !example.is_empty());
    }
    truncate_texts(&mut texts.other, MAX_OTHER_TEXT_BYTES);
    texts
}
