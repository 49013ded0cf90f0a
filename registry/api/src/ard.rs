//! Types of Agentic Resource Discovery 0.91 (ARD), with the members that AI Catalog 1.0 adds. A document may have
//! further members; readers ignore those that they do not know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type};

use super::object_list::deserialize_objects;

/// The media type of A2A agent cards, of every version of the protocol.
pub const AGENT_CARD_TYPE: &str = "application/a2a-agent-card+json";
/// The media type of registries; the URL of such an entry is the base of their API.
pub const REGISTRY_TYPE: &str = "application/ai-registry+json";

/// The base URL of a registry's API, from a URL that a person wrote or a catalog lists: without a trailing slash, and
/// without the name of an operation after it.
pub fn registry_base_url(url: &str) -> &str {
    let base = url.trim_end_matches('/');
    let operations = ["/search", "/explore", "/agents"];
    let bare = operations.iter().find_map(|end| base.strip_suffix(end));
    bare.unwrap_or(base)
}

/// An entry of a catalog (ARD section 4). No member is ever null.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArdEntry)]
pub struct Entry {
    /// `urn:air:<publisher>:…:<name>`: names the agent, whatever its version and address.
    pub identifier: String,
    /// Name for people.
    pub display_name: String,
    /// Media type of the resource at `url`.
    #[serde(rename = "type")]
    pub media_type: String,
    /// URL of the resource: for an agent its card, byte for byte as it was approved.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// The resource itself, instead of `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub data: Option<Value>,
    /// Description from the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Version of the agent, from the card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When the card last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// `sha256:` and the hexadecimal digest of the bytes at `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Tags of all skills, in lower case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Ids of the skills.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// Two to five questions that the agent answers; absent in search results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub representative_queries: Vec<String>,
    /// Its publisher, as the card names it: this is not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publisher: Option<Publisher>,
    /// What the registry has verified of its origin; absent if that is nothing, and in results of peers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_manifest: Option<TrustManifest>,
    /// Further values: text, numbers, true and false.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = BTreeMap<String, Value>)]
    pub metadata: Map<String, Value>,
}

/// Who publishes a resource (AI Catalog).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArdPublisher)]
pub struct Publisher {
    /// A DID or URI.
    pub identifier: String,
    /// Name for people.
    pub display_name: String,
}

/// What is known about a resource's origin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArdTrustManifest)]
pub struct TrustManifest {
    /// DID, SPIFFE id or domain of the publisher, of the same domain as the identifier.
    pub identity: String,
    /// `did`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity_type: Option<String>,
    /// What has been attested: `A2A-Card-JWS` for a card whose own signature is valid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attestations: Vec<Attestation>,
}

/// One attestation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArdAttestation)]
pub struct Attestation {
    /// What kind of attestation.
    #[serde(rename = "type")]
    pub kind: String,
    /// Where it is.
    pub uri: String,
    /// Its media type.
    #[serde(default)]
    pub media_type: String,
    /// Digest of its bytes.
    #[serde(default)]
    pub digest: String,
}

/// One value, or several alternatives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged, expecting = "expected a text, or a list of texts")]
#[schema(as = ArdFilterValues)]
pub enum FilterValues {
    /// One value.
    One(String),
    /// Alternatives; at least one.
    Many(Vec<String>),
}

/// What is searched for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ArdQuery)]
pub struct Query {
    /// Text of the search, as `q` of `/v1/agents`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Conditions, all of which must hold: the path of a term, and its values. Values are compared exactly.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub filter: BTreeMap<String, FilterValues>,
    /// JSON-LD context of the paths in `filter`, beside the base context of ARD.
    #[serde(default, rename = "@context", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = json_ld_context_schema)]
    pub context: Option<Value>,
}

/// A context of JSON-LD: a URL, an object of names, or a list of such. It is one schema of several types, because
/// openapi-generator writes TypeScript that does not compile for alternatives within alternatives.
fn json_ld_context_schema() -> Schema {
    let types = [Type::String, Type::Object, Type::Array, Type::Null];
    let names = SchemaType::from_iter([Type::String, Type::Object]);
    ArrayBuilder::new()
        .schema_type(SchemaType::from_iter(types))
        .items(ObjectBuilder::new().schema_type(names))
        .description(Some(
            "JSON-LD context of the paths in `filter`, beside the base context of ARD.",
        ))
        .build()
        .into()
}

/// How far a search reaches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ArdFederation)]
pub enum Federation {
    /// This registry and its peers.
    #[default]
    Auto,
    /// This registry alone; its peers are returned for the client to query.
    Referrals,
    /// This registry alone.
    None,
}

/// A search (ARD section 5.3.1).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = ArdSearchRequest)]
pub struct SearchRequest {
    /// What is searched for; `text` is required.
    pub query: Query,
    /// How far the search reaches.
    #[serde(default)]
    pub federation: Federation,
    /// Results on the page: 10 by default, at most 100; larger values count as 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub page_size: Option<i64>,
    /// `pageToken` of the previous page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_token: Option<String>,
}

/// A result: the entry, and how well it matches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ArdResult)]
pub struct SearchResult {
    /// The entry.
    #[serde(flatten)]
    pub entry: Entry,
    /// 0 to 100, higher first. It is relevance: no measure of trust, and no permission to call anything.
    #[schema(minimum = 0, maximum = 100)]
    pub score: u8,
    /// Base URL of the registry that has it.
    pub source: String,
}

/// A registry for the client to query.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArdReferral)]
pub struct Referral {
    /// Its identifier.
    pub identifier: String,
    /// Its name.
    pub display_name: String,
    /// `application/ai-registry+json`.
    #[serde(rename = "type")]
    pub media_type: String,
    /// URL at which it accepts searches.
    pub url: String,
}

/// A page of results.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArdSearchResponse)]
pub struct SearchResponse {
    /// The results, best first.
    pub results: Vec<SearchResult>,
    /// Further registries; only if referrals were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub referrals: Option<Vec<Referral>>,
    /// Token of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_token: Option<String>,
}

/// A facet to count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = ArdFacetRequest)]
pub struct FacetRequest {
    /// The path of a term, as in `filter`.
    pub field: String,
    /// Maximum number of values to return, up to 1000; 20 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Lowest count of a value to return; 1 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub min_count: Option<i64>,
}

/// What to compute over the matches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ArdResultType)]
pub struct ResultType {
    /// The facets; at least one, at most 16.
    #[serde(deserialize_with = "deserialize_objects")]
    pub facets: Vec<FacetRequest>,
}

/// A count over matches (ARD section 5.3.2).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = ArdExploreRequest)]
pub struct ExploreRequest {
    /// What is searched for; everything if it is absent.
    #[serde(default)]
    pub query: Query,
    /// What to compute over the matches.
    pub result_type: ResultType,
}

/// A value of a facet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ArdBucket)]
pub struct Bucket {
    /// The value.
    pub value: String,
    /// Number of entries that have it.
    pub count: u64,
}

/// The values of a facet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArdFacet)]
pub struct Facet {
    /// The most frequent values, equally frequent ones by value.
    pub buckets: Vec<Bucket>,
    /// Sum of the counts of all other values.
    pub other_count: u64,
}

/// Counts over all matches, not over a page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArdExploreResponse)]
pub struct ExploreResponse {
    /// `facets`.
    pub result_type: String,
    /// The facets, by the requested field.
    pub facets: BTreeMap<String, Facet>,
}

/// A page of a list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArdList)]
pub struct List {
    /// The entries, in order.
    pub items: Vec<Entry>,
    /// Number of entries on all pages.
    #[serde(default)]
    pub total: u64,
    /// Token of the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_token: Option<String>,
}

/// A failure (ARD section 5.4).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArdError)]
pub struct Error {
    /// `INVALID_ARGUMENT`, `UNAUTHENTICATED`, `NOT_FOUND`, `RATE_LIMIT_EXCEEDED`, `INTERNAL_ERROR`.
    pub error_code: String,
    /// What is wrong, and what to do.
    pub message: String,
}
