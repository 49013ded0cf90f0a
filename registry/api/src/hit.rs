//! Search hits: an agent and how it matched, and the selection of the members that are shown.

use std::borrow::Cow;
use std::collections::BTreeMap;

use a2a_registry_domain::lifecycle::{ShownLifecycle, Visibility};
use a2a_registry_domain::open_enum::OpenEnum;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Object, Schema};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

use super::endpoint::EndpointSummary;
use super::summary::{
    Capabilities, Deprecation, HitSkill, Interface, Links, Liveness, Provider, Summary, Trust,
};

/// One agent in a list. A search shows some members only if `fields` names them.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Hit {
    /// Summary of the agent.
    #[serde(flatten)]
    pub summary: Summary,
    /// How it matched the search.
    #[serde(flatten)]
    pub matched: Match,
}

/// The members of a [`Hit`] side by side, as they are read: serde first copies members that are flattened, and a page
/// has hundreds of them.
#[derive(Deserialize)]
struct HitMembers {
    id: Uuid,
    urn: Option<String>,
    name: String,
    description: Option<String>,
    version: Option<String>,
    provider: Option<Provider>,
    domain: String,
    interfaces: Vec<Interface>,
    #[serde(default)]
    capabilities: Capabilities,
    skills: Vec<HitSkill>,
    #[serde(default)]
    skills_total: u64,
    #[serde(default)]
    shortened: bool,
    tags: Vec<String>,
    auth: Vec<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    trust: Trust,
    lifecycle: OpenEnum<ShownLifecycle>,
    deprecation: Option<Deprecation>,
    visibility: OpenEnum<Visibility>,
    liveness: Liveness,
    #[serde(default)]
    endpoint: EndpointSummary,
    #[serde(default)]
    card_digest: String,
    #[serde(default)]
    links: Links,
    score: Option<f32>,
    #[serde(default)]
    weak: bool,
    #[serde(default)]
    highlights: Vec<HighlightView>,
    #[serde(default)]
    matched_skills: Vec<String>,
    explain: Option<Value>,
    duplicates: Option<Duplicates>,
}

impl<'de> Deserialize<'de> for Hit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members = HitMembers::deserialize(deserializer)?;
        Ok(Self {
            summary: Summary {
                id: members.id,
                urn: members.urn,
                name: members.name,
                description: members.description,
                version: members.version,
                provider: members.provider,
                domain: members.domain,
                interfaces: members.interfaces,
                capabilities: members.capabilities,
                skills: members.skills,
                skills_total: members.skills_total,
                shortened: members.shortened,
                tags: members.tags,
                auth: members.auth,
                labels: members.labels,
                trust: members.trust,
                lifecycle: members.lifecycle,
                deprecation: members.deprecation,
                visibility: members.visibility,
                liveness: members.liveness,
                endpoint: members.endpoint,
                card_digest: members.card_digest,
                links: members.links,
            },
            matched: Match {
                score: members.score,
                weak: members.weak,
                highlights: members.highlights,
                matched_skills: members.matched_skills,
                explain: members.explain,
                duplicates: members.duplicates,
            },
        })
    }
}

/// How an agent matched a search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Match {
    /// Relevance, if the search has a text. It is not a measure of trust.
    #[serde(default)]
    pub score: Option<f32>,
    /// Whether it is a weak match: it only shares words that say little about the query, and is not close to it in
    /// meaning. In the order `relevance` weak matches come after all others.
    #[serde(default)]
    pub weak: bool,
    /// Excerpts in which something matched; only if `fields` names them.
    #[serde(default)]
    pub highlights: Vec<HighlightView>,
    /// Ids of the skills that matched.
    #[serde(default)]
    pub matched_skills: Vec<String>,
    /// The components of the score, with `explain=true`, for the first ten hits of a page: `summary` has a sentence
    /// for each, whose figures add up to the score; `value`, `description` and `details` are the computation as a
    /// tree. Null or absent for all others.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub explain: Option<Value>,
    /// The duplicates that it stands for, with `group=content`; null or absent if it has none.
    #[serde(default)]
    pub duplicates: Option<Duplicates>,
}

/// Further agents with the same name at the same endpoint, or with the same content.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Duplicates {
    /// Number of agents.
    pub count: u64,
    /// Ids of the first ten of them.
    #[schema(max_items = 10)]
    pub agents: Vec<Uuid>,
}

/// An excerpt in which something matched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HighlightView {
    /// Name of the field: `name`, `description`, `provider`, `protocol`, `skill.name`, `skill.description`,
    /// `skill.tag`, `skill.example`, or `other` for a text of the card that no protocol version defines.
    pub field: String,
    /// Id of the skill, if the field belongs to one.
    pub skill: Option<String>,
    /// The excerpt, split into matching and other pieces.
    pub fragments: Vec<Fragment>,
}

/// A piece of an excerpt, verbatim from the card: escape it before display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Fragment {
    /// The text of the piece.
    pub text: String,
    /// True if it matched.
    pub matched: bool,
}

/// The members of a hit, each with whether it is shown by default; those of the agent come first. A name with a dot is
/// a nested member, shown beside those that are always shown: the id and the name of a skill.
const HIT_FIELDS: [(&str, bool); 30] = [
    (HitFields::ID, true),
    ("urn", true),
    ("name", true),
    ("description", true),
    ("version", true),
    ("provider", true),
    ("domain", true),
    ("interfaces", true),
    ("capabilities", false),
    (HitFields::SKILLS, true),
    ("skills.description", false),
    ("skills.tags", false),
    ("skills_total", true),
    ("shortened", true),
    ("tags", true),
    ("auth", true),
    ("labels", false),
    ("trust", true),
    ("lifecycle", true),
    ("deprecation", true),
    ("visibility", true),
    ("liveness", true),
    ("endpoint", true),
    ("card_digest", false),
    ("links", false),
    ("score", true),
    ("weak", true),
    (HitFields::HIGHLIGHTS, false),
    ("matched_skills", true),
    ("duplicates", true),
];

/// The fields that explain a score, which `explain=true` selects as well.
const EXPLAIN_FIELDS: [&str; 2] = [HitFields::EXPLAIN, HitFields::EXPLAIN_SUMMARY];

/// Members that every hit has, and every skill that is shown.
const ALWAYS_SHOWN: [&str; 3] = [HitFields::ID, "skills.id", "skills.name"];

/// The bits of the agent's own fields; those above them are about how it matched.
const AGENT_BITS: u32 = (1 << 25) - 1;

/// The bits of the fields that are shown by default.
const DEFAULT_BITS: u32 = {
    let (mut bits, mut bit) = (0, 0);
    while bit < HIT_FIELDS.len() {
        if HIT_FIELDS[bit].1 {
            bits |= 1_u32 << bit;
        }
        bit += 1;
    }
    bits
};

/// The members of hits that a search shows, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HitFields(u32);

impl HitFields {
    /// The id, which every hit has.
    pub const ID: &'static str = "id";
    /// The skills.
    pub const SKILLS: &'static str = "skills";
    /// Excerpts in which something matched.
    pub const HIGHLIGHTS: &'static str = "highlights";
    /// The explanation of the score.
    pub const EXPLAIN: &'static str = "explain";
    /// The explanation of the score as sentences only.
    pub const EXPLAIN_SUMMARY: &'static str = "explain.summary";

    /// The names of all fields.
    pub fn all_names() -> impl Iterator<Item = &'static str> {
        HIT_FIELDS
            .iter()
            .map(|(name, _)| *name)
            .chain(EXPLAIN_FIELDS)
    }

    /// The names of the fields that are shown by default.
    pub fn default_names() -> impl Iterator<Item = &'static str> {
        let shown = HIT_FIELDS.iter().filter(|(_, shown)| *shown);
        shown.map(|(name, _)| *name)
    }

    /// The fields of these names; the default ones if there are no names.
    ///
    /// # Errors
    /// The first name that is not a field.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, &'a str> {
        let mut fields = 0;
        for name in names {
            fields |= Self::field_bit(name).ok_or(name)?;
        }
        Ok(match fields {
            0 => Self::default(),
            fields => Self(fields),
        })
    }

    /// These fields and the explanation of the score.
    #[must_use]
    pub fn with_explanation(self) -> Self {
        Self(self.0 | Self::field_bit(Self::EXPLAIN).unwrap_or_default())
    }

    /// Whether a member, or a member nested in it, is shown.
    pub fn includes(self, name: &str) -> bool {
        let is_in_member = |field: &str| {
            let rest = field.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        ALWAYS_SHOWN.contains(&name)
            || Self::all_names().any(|field| is_in_member(field) && self.selects_field(field))
    }

    /// Whether exactly this field is selected.
    pub fn selects_field(self, name: &str) -> bool {
        Self::field_bit(name).is_some_and(|bit| self.0 & bit != 0)
    }

    /// Whether exactly the default members of the agent itself are shown.
    pub fn shows_default_summary(self) -> bool {
        self.0 & AGENT_BITS == DEFAULT_BITS & AGENT_BITS
    }

    fn field_bit(name: &str) -> Option<u32> {
        let bit = Self::all_names().position(|known| known == name)?;
        Some(1_u32 << bit)
    }
}

impl Default for HitFields {
    fn default() -> Self {
        Self(DEFAULT_BITS)
    }
}

/// An agent found by a search, with the selected members: the schema of one in [`AgentList`](super::AgentList).
#[derive(Debug)]
pub struct FoundAgent;

impl PartialSchema for FoundAgent {
    fn schema() -> RefOr<Schema> {
        let description = "An agent found by a search, with the members that `fields` names. \
             Its id is always included.";
        let mut schema = Object::new();
        schema.description = Some(description.to_owned());
        schema.required.push(HitFields::ID.to_owned());
        for part in [Summary::schema(), Match::schema()] {
            if let RefOr::T(Schema::Object(part)) = part {
                schema.schema_type = part.schema_type;
                schema.properties.extend(part.properties);
            }
        }
        Schema::Object(schema).into()
    }
}

impl ToSchema for FoundAgent {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("FoundAgent")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        Hit::schemas(schemas);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn every_member_of_a_hit_is_read() {
        let mut written = json!({
            "id": "00000000-0000-0000-0000-000000000007",
            "urn": "urn:air:a.example:agents:x",
            "name": "Kite",
            "description": "Flies.",
            "version": "1.2",
            "provider": {"organization": "Acme", "url": "https://a.example/"},
            "domain": "a.example",
            "interfaces": [{"url": "https://a.example/a2a", "binding": "JSONRPC", "protocol_version": "1.0"}],
            "capabilities": {
                "streaming": true, "push_notifications": true, "extended_agent_card": true, "extensions": ["x"],
            },
            "skills": [{"id": "s", "name": "Fly", "description": null, "tags": ["air"]}],
            "skills_total": 11,
            "shortened": true,
            "tags": ["air"],
            "auth": ["none"],
            "labels": {"team": "a"},
            "trust": {"level": "L1", "domain": "verified", "signature": "unsigned"},
            "lifecycle": "deprecated",
            "deprecation": {"message": "Old.", "since": "2026-01-01T00:00:00Z"},
            "visibility": "public",
            "liveness": {"state": "fresh", "last_changed": null},
            "endpoint": {"state": "answers"},
            "card_digest": "sha256:0",
            "links": {
                "self": "https://r.example/v1/agents/7", "card": "c", "page": "p", "resolver": "r", "origin": "o",
                "similar": "s",
            },
            "score": 1.5,
            "weak": true,
            "highlights": [{"field": "name", "skill": null, "fragments": [{"text": "Kite", "matched": true}]}],
            "matched_skills": ["s"],
            "explain": {"summary": []},
            "duplicates": {"count": 1, "agents": ["00000000-0000-0000-0000-000000000008"]},
        });
        let names = written.as_object().unwrap().keys();
        let names: BTreeSet<&str> = names.map(String::as_str).collect();
        let fields = HitFields::all_names().filter(|name| !name.contains('.'));
        assert_eq!(names, fields.collect::<BTreeSet<&str>>());
        let hit: Hit = serde_json::from_value(written.clone()).unwrap();
        written["deprecation"]["since"] = json!(hit)["deprecation"]["since"].clone();
        assert_eq!(json!(hit), written);
    }

    #[test]
    fn the_fields_are_the_members_of_a_hit() {
        let RefOr::T(Schema::Object(schema)) = FoundAgent::schema() else {
            panic!("the schema of a found agent is an object");
        };
        let members: BTreeSet<&str> = schema.properties.keys().map(String::as_str).collect();
        let named: BTreeSet<&str> = HitFields::all_names()
            .map(|name| name.split('.').next().unwrap_or_default())
            .collect();
        assert_eq!(members, named);
        assert_eq!(schema.required, ["id"]);
        assert!(HitFields::all_names().count() <= 32, "one bit each");
        let RefOr::T(Schema::Object(summary)) = Summary::schema() else {
            panic!("the schema of an agent is an object");
        };
        for (bit, (name, _)) in HIT_FIELDS.iter().enumerate() {
            let member = name.split('.').next().unwrap_or_default();
            let is_of_agent = summary.properties.contains_key(member);
            assert_eq!((AGENT_BITS >> bit) & 1 == 1, is_of_agent, "{name}");
        }
    }

    #[test]
    fn fields_are_those_named_and_the_usual_ones_where_none_are() {
        let usual = HitFields::from_names([]).unwrap();
        assert_eq!(usual, HitFields::default());
        assert_eq!(HitFields::from_names(HitFields::default_names()), Ok(usual));
        assert!(usual.shows_default_summary());
        assert!(usual.includes("name") && usual.includes("skills") && usual.includes("score"));
        for left_out in ["links", "capabilities", "card_digest", "labels"] {
            assert!(!usual.includes(left_out), "{left_out}");
        }
        assert!(!usual.includes("highlights") && !usual.includes("explain"));
        assert!(!usual.selects_field("skills.tags"));

        let few = HitFields::from_names(["name", "skills.tags", "explain.summary"]).unwrap();
        assert!(
            few.includes("id")
                && few.includes("name")
                && few.includes("skills")
                && few.includes("explain")
        );
        assert!(few.selects_field("skills.tags") && !few.selects_field("explain"));
        assert!(
            !few.includes("skills_total") && !few.includes("score") && !few.shows_default_summary()
        );

        let marked = HitFields::default_names().chain(["highlights", "explain"]);
        assert!(
            HitFields::from_names(marked)
                .unwrap()
                .shows_default_summary()
        );
        let unscored = HitFields::default_names().filter(|name| *name != "score");
        assert!(
            HitFields::from_names(unscored)
                .unwrap()
                .shows_default_summary()
        );
        assert_eq!(HitFields::from_names(["name", "nome", "x"]), Err("nome"));
        assert_eq!(HitFields::from_names(["skill"]), Err("skill"));
    }
}
