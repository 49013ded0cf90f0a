//! Fields of the index, and the conversion of a [`Document`] into them.

use a2a_registry_domain::facet::{Facet, FacetMap};
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{TantivyDocument, Term};
use uuid::Uuid;

use super::analysis::{AgentTokenizer, TOKENIZER};
use super::document::{Document, MAX_OTHER_BYTES, MAX_SKILLS, MAX_TEXT_BYTES, MAX_VALUE_BYTES};
use super::folding::fold;
use super::layout::{self, AgentTexts, LAYOUT, LayoutTokenizer};
use super::property::{MAX_ATTRIBUTES, attribute_key};

/// Version of the schema; must rise with every change of the fields or their content. An index with another version is
/// rebuilt.
pub const SCHEMA_VERSION: u32 = 16;

/// What stands between the skills that are rendered apart. JSON in one line does not contain it.
pub(super) const SKILL_SEPARATOR: &str = ",\n";

/// Protocol values of nearly every agent. A query for "text" means something else, and would match all agents.
pub(super) const TELL_NOTHING: [&str; 4] = ["application/json", "none", "text", "text/plain"];

/// The facets whose values are searched as text too.
pub(super) const PROTOCOL: [Facet; 6] = [
    Facet::Capability,
    Facet::Binding,
    Facet::ProtocolVersion,
    Facet::Auth,
    Facet::InputMode,
    Facet::OutputMode,
];

/// The name of the field of identifiers in catalogs.
pub(super) const IDENTIFIER: &str = "identifier";

/// The name of the field of attributes.
pub(super) const ATTRIBUTE: &str = "attribute";

/// The longest sort key by name, in bytes of the folded form.
const MAX_NAME_KEY: usize = 256;

/// Handles of all fields.
#[derive(Debug, Clone)]
pub(super) struct Fields {
    pub id: Field,
    pub id_high: Field,
    pub id_low: Field,
    /// The rendered hit as text, which is read faster than bytes.
    pub hit: Field,
    /// The skills as hits show them, one after another.
    pub shown_skills: Field,
    /// A rendered hit that is not UTF-8.
    pub hit_bytes: Field,
    /// The agent as it is rendered in catalogs.
    pub entry: Field,
    /// All texts of the agent, joined and positioned as in [`layout`]; also stored.
    pub text: Field,
    pub skill_words: Field,
    pub provider_words: Field,
    pub visible_to: Field,
    pub lookup: Field,
    pub identifier: Field,
    pub attribute: Field,
    pub name_key: Field,
    pub created_at: Field,
    pub updated_at: Field,
    pub group_high: Field,
    pub group_low: Field,
    pub preference: Field,
    pub suggested: [Field; 3],
    exact: FacetMap<Field>,
}

impl Fields {
    /// Builds the schema and its handles.
    pub fn build() -> (Schema, Self) {
        let mut builder = Schema::builder();
        let value = || STRING | FAST;
        let words = || {
            TextOptions::default().set_indexing_options(
                TextFieldIndexing::default()
                    .set_tokenizer(TOKENIZER)
                    .set_fieldnorms(false)
                    .set_index_option(IndexRecordOption::Basic),
            )
        };
        let exact = FacetMap::from_fn(|facet| builder.add_text_field(facet.as_str(), value()));
        let fields = Self {
            id: builder.add_bytes_field("id", INDEXED),
            id_high: builder.add_u64_field("id_high", FAST),
            id_low: builder.add_u64_field("id_low", FAST),
            hit: builder.add_text_field("hit", STORED),
            hit_bytes: builder.add_bytes_field("hit_bytes", STORED),
            shown_skills: builder.add_text_field("shown_skills", STORED),
            entry: builder.add_text_field("entry", STORED),
            text: builder.add_text_field(
                "text",
                TextOptions::default().set_stored().set_indexing_options(
                    TextFieldIndexing::default()
                        .set_tokenizer(LAYOUT)
                        .set_index_option(IndexRecordOption::WithFreqsAndPositions),
                ),
            ),
            skill_words: builder.add_text_field("skill_words", words()),
            provider_words: builder.add_text_field("provider_words", words()),
            visible_to: builder.add_text_field("visible_to", STRING),
            lookup: builder.add_text_field("lookup", STRING),
            identifier: builder.add_text_field(IDENTIFIER, value()),
            attribute: builder.add_text_field(ATTRIBUTE, value()),
            name_key: builder.add_text_field("name_key", TextOptions::default().set_fast("raw")),
            created_at: builder.add_i64_field("created_at", FAST),
            updated_at: builder.add_i64_field("updated_at", FAST),
            group_high: builder.add_u64_field("group_high", FAST),
            group_low: builder.add_u64_field("group_low", FAST),
            preference: builder.add_u64_field("preference", FAST),
            suggested: ["suggest_name", "suggest_skill", "suggest_tag"]
                .map(|name| builder.add_text_field(name, value())),
            exact,
        };
        (builder.build(), fields)
    }

    /// Field of the exact values of a filter or facet.
    pub fn exact(&self, facet: Facet) -> Field {
        self.exact[facet]
    }

    /// Term of an agent's id.
    pub fn id_term(&self, id: Uuid) -> Term {
        Term::from_field_bytes(self.id, id.as_bytes())
    }

    /// The agent as a tantivy document.
    pub fn document(&self, agent: Document) -> TantivyDocument {
        let mut out = TantivyDocument::default();
        out.add_bytes(self.id, agent.id.as_bytes());
        let (high, low) = agent.id.as_u64_pair();
        out.add_u64(self.id_high, high);
        out.add_u64(self.id_low, low);
        out.add_i64(self.created_at, agent.created_at);
        out.add_i64(self.updated_at, agent.updated_at);
        let (high, low) = halves(agent.group);
        out.add_u64(self.group_high, high);
        out.add_u64(self.group_low, low);
        out.add_u64(self.preference, agent.preference.into());
        match std::str::from_utf8(&agent.hit) {
            Ok(hit) => out.add_text(self.hit, hit),
            Err(_) => out.add_bytes(self.hit_bytes, &agent.hit),
        }
        let shown = agent.skills.iter().take(MAX_SKILLS);
        let shown: Vec<&str> = shown.map(|skill| skill.rendered.as_str()).collect();
        if shown.iter().any(|skill| !skill.is_empty()) {
            out.add_text(self.shown_skills, shown.join(SKILL_SEPARATOR));
        }
        match std::str::from_utf8(&agent.entry) {
            Ok("") | Err(_) => {}
            Ok(entry) => out.add_text(self.entry, entry),
        }

        let name_key = fold(&agent.name);
        if !name_key.is_empty() {
            out.add_text(self.name_key, cut(&name_key, MAX_NAME_KEY));
        }
        self.add_values(&agent, &mut out);
        out.add_text(self.provider_words, cut(&agent.provider, MAX_VALUE_BYTES));

        let texts = within_limits(agent);
        for skill in &texts.skills {
            out.add_text(self.skill_words, &skill.name);
        }
        out.add_text(self.text, layout::written(&texts));
        out
    }

    fn add_values(&self, agent: &Document, out: &mut TantivyDocument) {
        for (facet, values) in agent.facets.entries() {
            add_distinct(out, self.exact(facet), values.iter().map(String::as_str));
        }
        add_distinct(
            out,
            self.visible_to,
            agent.visible_to.iter().map(String::as_str),
        );
        add_distinct(out, self.lookup, agent.lookups.iter().map(String::as_str));

        self.add_properties(agent, out);

        let [names, skills, tags] = self.suggested;
        let all_tags = agent.facets[Facet::Tag].iter();
        let suggestions = [
            (names, vec![agent.name.as_str()]),
            (
                skills,
                agent
                    .skills
                    .iter()
                    .take(MAX_SKILLS)
                    .map(|skill| skill.name.as_str())
                    .collect(),
            ),
            (tags, all_tags.map(String::as_str).collect()),
        ];
        for (field, shown) in suggestions {
            let keys: Vec<String> = shown.into_iter().filter_map(suggestion_key).collect();
            add_distinct(out, field, keys.iter().map(String::as_str));
        }
    }

    /// What exact conditions are about beside the facets.
    fn add_properties(&self, agent: &Document, out: &mut TantivyDocument) {
        add_distinct(
            out,
            self.identifier,
            std::iter::once(agent.identifier.as_str()),
        );
        let attributes = agent.attributes.iter().take(MAX_ATTRIBUTES);
        let attributes: Vec<String> = attributes
            .map(|(path, value)| attribute_key(path, value))
            .collect();
        add_distinct(out, self.attribute, attributes.iter().map(String::as_str));
    }
}

/// Analyzers of the schema, with their names.
pub(super) fn analyzers() -> [(&'static str, TextAnalyzer); 2] {
    [
        (TOKENIZER, TextAnalyzer::from(AgentTokenizer)),
        (LAYOUT, TextAnalyzer::from(LayoutTokenizer)),
    ]
}

/// Separator of the folded form, which prefixes are compared with, and the text that is shown.
pub(super) const SUGGESTION_MARK: char = '\u{1}';

fn suggestion_key(shown: &str) -> Option<String> {
    let shown = shown.trim();
    let usable =
        !shown.is_empty() && shown.len() <= MAX_VALUE_BYTES / 4 && !shown.contains(SUGGESTION_MARK);
    usable.then(|| format!("{}{SUGGESTION_MARK}{shown}", fold(shown)))
}

fn add_distinct<'a>(
    out: &mut TantivyDocument,
    field: Field,
    values: impl Iterator<Item = &'a str>,
) {
    let mut values: Vec<&str> = values
        .filter(|value| !value.is_empty() && value.len() <= MAX_VALUE_BYTES)
        .collect();
    values.sort_unstable();
    values.dedup();
    for value in values {
        out.add_text(field, value);
    }
}

/// Both halves of a number, as it is written.
fn halves(number: u128) -> (u64, u64) {
    Uuid::from_u128(number).as_u64_pair()
}

/// The text up to this many bytes, cut at a character boundary.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Cuts texts to this many bytes over all of them, and drops what is empty then.
fn cut_all(texts: &mut Vec<String>, mut left: usize) {
    for text in &mut *texts {
        text.truncate(text.floor_char_boundary(left));
        left -= text.len();
    }
    texts.retain(|text| !text.is_empty());
}

/// Searched and stored texts, cut to their limits: each kind of text has its own budget of bytes over the whole agent.
fn within_limits(agent: Document) -> AgentTexts {
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
        protocol: PROTOCOL
            .map(|facet| std::mem::take(&mut facets[facet]))
            .concat(),
        skills: agent.skills,
        other: agent.other_texts,
    };
    // Accepted media types are mostly produced too.
    texts.protocol.sort_unstable();
    texts.protocol.dedup();
    texts
        .protocol
        .retain(|value| !TELL_NOTHING.contains(&value.as_str()));
    cut_all(&mut texts.protocol, MAX_TEXT_BYTES);
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
    cut_all(&mut texts.other, MAX_OTHER_BYTES);
    texts
}
