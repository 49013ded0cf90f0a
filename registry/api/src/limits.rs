//! Limits of request members: one constant each, which the code checks and the `OpenAPI` document shows.
//!
//! `utoipa` takes only literals in its attributes, so a member with a limit names one of these types as the type of
//! its schema.

use std::borrow::Cow;

use a2a_registry_domain::role::{Role, Scope};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AdditionalProperties, ArrayBuilder, KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type,
};
use utoipa::{PartialSchema, ToSchema};

/// Entries on a page by default.
pub const DEFAULT_PAGE_SIZE: u32 = 20;
/// Entries on a page at most.
pub const MAX_PAGE_SIZE: u32 = 100;
/// Default number of similar agents in a response.
pub const DEFAULT_SIMILAR_AGENTS: u32 = 5;
/// Maximum number of similar agents in a response.
pub const MAX_SIMILAR_AGENTS: u32 = 20;
/// Characters of a reason.
pub const MAX_REASON: usize = 1000;
/// Characters of a preview token.
pub const MAX_PREVIEW_TOKEN_CHARS: usize = 1024;
/// Characters of the name of an account or a token.
pub const MAX_NAME: usize = 100;
/// Longest lifetime of a token, in days.
pub const MAX_TOKEN_DAYS: u32 = 365;
/// Default lifetime of a token, in days.
pub const DEFAULT_TOKEN_DAYS: u32 = 90;
/// Longest lifetime of an owner vouch, in days.
pub const MAX_VOUCH_DAYS: u32 = 365;
/// Default lifetime of an owner vouch, in days.
pub const DEFAULT_VOUCH_DAYS: u32 = 180;
/// Longest duration of a waiver, in days.
pub const MAX_WAIVER_DAYS: u32 = 180;
/// Unexpired tokens of an account.
pub const MAX_TOKENS_PER_ACCOUNT: u64 = 100;
/// Live sessions of an account.
pub const MAX_SESSIONS_PER_ACCOUNT: usize = 20;
/// Groups created by admins.
pub const MAX_GROUPS: u64 = 1000;
/// Accounts in a group.
pub const MAX_GROUP_MEMBERS: usize = 1000;
/// Groups of an account that admins maintain.
pub const MAX_GROUPS_PER_ACCOUNT: usize = 100;
/// Bytes of the text of a policy.
pub const MAX_POLICY_TEXT_BYTES: usize = 64 * 1024;
/// Bytes of a request with a policy set.
pub const MAX_POLICIES_BODY_BYTES: usize = 4 * 1024 * 1024;
/// Characters of a contact.
pub const MAX_CONTACT_CHARS: usize = 300;
/// Characters of a comment.
pub const MAX_COMMENT: usize = 2000;
/// Comments on a review.
pub const MAX_COMMENTS_PER_REVIEW: u64 = 200;
/// Decisions in one request.
pub const MAX_DECISIONS: usize = 50;
/// Stored reports of a review; further ones get the same response and are not stored.
pub const MAX_REPORTS_PER_REVIEW: u64 = 100;
/// Reports of one account, or of one address, in a day.
pub const MAX_DAILY_REPORTS: u64 = 20;
/// Registrations in one request.
pub const MAX_BULK_REGISTRATIONS: usize = 1000;
/// Bytes of a request with several registrations.
pub const MAX_REGISTRATIONS_BODY_BYTES: usize = 1024 * 1024;
/// Entries of each list of reviews, news and domains that wait for an account.
pub const MAX_INBOX_ENTRIES: usize = 50;
/// Labels of an agent.
pub const MAX_LABELS: usize = 20;
/// Characters of a label's key and of its value.
pub const MAX_LABEL_CHARS: usize = 63;
/// Collections of a registry.
pub const MAX_COLLECTIONS: usize = 200;
/// Characters of the name of a collection.
pub const MAX_COLLECTION_NAME: usize = 64;
/// Characters of the description of a collection.
pub const MAX_DESCRIPTION: usize = 2000;
/// Accounts that are responsible for a collection.
pub const MAX_COLLECTION_OWNERS: usize = 20;
/// Characters of a filter.
pub const MAX_FILTER_TEXT: usize = 2000;
/// Terms of a filter.
pub const MAX_FILTER_TERMS: usize = 20;
/// Characters of the name of a group with its origin.
pub const MAX_GROUP_NAME_CHARS: usize = 1000;
/// Hooks of an account.
pub const MAX_HOOKS_PER_ACCOUNT: usize = 20;
/// Values of one condition in the filter of a hook or of events.
pub const MAX_CONDITION_VALUES: usize = 50;
/// Characters of the URL of a hook.
pub const MAX_HOOK_URL_CHARS: usize = 2000;
/// Agents that an account watches.
pub const MAX_WATCHED_AGENTS: usize = 500;
/// Saved searches of an account.
pub const MAX_SAVED_SEARCHES: usize = 50;
/// Characters of the parameters of a saved search.
pub const MAX_SAVED_SEARCH_CHARS: usize = 4000;
/// Collections to whose audience an agent is shown.
pub const MAX_COLLECTIONS_PER_AGENT: usize = 10;
/// Agents that are shown to the audience of one collection because they name it.
pub const MAX_AGENTS_PER_COLLECTION: usize = 1000;
/// Groups in an audience.
pub const MAX_AUDIENCE_GROUPS: usize = 50;
/// Characters of a key's name.
pub const MAX_KID_CHARS: usize = 200;
/// Characters of each part of a credential.
pub const MAX_CREDENTIAL_CHARS: usize = 4096;
/// Characters of a URL that is looked up.
pub const MAX_LOOKUP_URL_CHARS: usize = 2048;
/// Characters of a URN that is looked up.
pub const MAX_LOOKUP_URN_CHARS: usize = 1024;
/// Characters of a digest that is looked up.
pub const MAX_LOOKUP_DIGEST_CHARS: usize = 128;
/// Characters of a name that is looked up.
pub const MAX_LOOKUP_NAME_CHARS: usize = 1024;

/// Types that exist only as schemas.
macro_rules! schemas {
    ($($(#[$meta:meta])* $name:ident = $schema:expr;)+) => {$(
        $(#[$meta])*
        #[derive(Debug)]
        pub struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                $schema.into()
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($name))
            }
        }
    )+};
}

schemas! {
    /// Number of entries on a page.
    PageSize = integer_schema(1, MAX_PAGE_SIZE, Some(DEFAULT_PAGE_SIZE));
    /// Number of similar agents in a response.
    SimilarSize = integer_schema(1, MAX_SIMILAR_AGENTS, Some(DEFAULT_SIMILAR_AGENTS));
    /// Reason for an action.
    Reason = text_schema(1, MAX_REASON).pattern(Some(r"\S"));
    /// The name of an account or a token.
    Name = name_schema();
    /// The name of an account, or empty.
    OptionalName = text_schema(0, MAX_NAME).pattern(Some("^[A-Za-z0-9 ._@-]*$"));
    /// Days until a token expires.
    TokenDays = integer_schema(1, MAX_TOKEN_DAYS, Some(DEFAULT_TOKEN_DAYS));
    /// Days until an owner vouch expires.
    VouchDays = integer_schema(1, MAX_VOUCH_DAYS, Some(DEFAULT_VOUCH_DAYS));
    /// Days until a waiver expires.
    WaiverDays = integer_schema(1, MAX_WAIVER_DAYS, None);
    /// The roles of an account.
    RoleSet = ArrayBuilder::new()
        .items(enum_schema(Role::ALL.iter().map(|role| role.as_str())))
        .min_items(Some(1));
    /// The scopes of a token.
    ScopeSet = ArrayBuilder::new()
        .items(enum_schema(Scope::ALL.iter().map(|scope| scope.as_str())))
        .min_items(Some(1));
    /// The names of the groups of an account.
    GroupNames = ArrayBuilder::new()
        .items(name_schema())
        .max_items(Some(MAX_GROUPS_PER_ACCOUNT));
    /// The names of the accounts in a group.
    MemberNames = ArrayBuilder::new()
        .items(name_schema())
        .max_items(Some(MAX_GROUP_MEMBERS));
    /// The identifier of a policy.
    PolicyId = text_schema(1, 64).pattern(Some(r"^[a-z0-9][a-z0-9._-]*$"));
    /// What a collection is for.
    CollectionDescription = text_schema(0, MAX_DESCRIPTION);
    /// The filter of a collection.
    FilterText = text_schema(1, MAX_FILTER_TEXT);
    /// The URL of a hook.
    HookUrl = text_schema(1, MAX_HOOK_URL_CHARS);
    /// The ids of agents in the filter of a hook.
    HookAgents = ArrayBuilder::new()
        .items(
            ObjectBuilder::new()
                .schema_type(Type::String)
                .format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid))),
        )
        .max_items(Some(MAX_CONDITION_VALUES));
    /// Domains or collections in the filter of a hook.
    HookTexts = ArrayBuilder::new()
        .items(text_schema(1, MAX_NAME))
        .max_items(Some(MAX_CONDITION_VALUES));
    /// The parameters of a search.
    SearchText = text_schema(0, MAX_SAVED_SEARCH_CHARS);
    /// The names of the responsible accounts.
    OwnerNames = ArrayBuilder::new()
        .items(name_schema())
        .max_items(Some(MAX_COLLECTION_OWNERS));
    /// The names of the groups in an audience.
    Audience = ArrayBuilder::new()
        .items(text_schema(1, MAX_GROUP_NAME_CHARS))
        .max_items(Some(MAX_AUDIENCE_GROUPS));
    /// The names of the collections to whose audience an agent is shown.
    NamedCollections = ArrayBuilder::new()
        .items(text_schema(1, MAX_COLLECTION_NAME))
        .max_items(Some(MAX_COLLECTIONS_PER_AGENT));
    /// A `mailto:` or `https:` URL, or empty.
    Contact = text_schema(0, MAX_CONTACT_CHARS);
    /// An agent's labels.
    Labels = ObjectBuilder::new()
        .schema_type(Type::Object)
        .max_properties(Some(MAX_LABELS))
        .property_names(Some(label_text_schema().build()))
        .additional_properties(Some(label_text_schema()));
    /// A time in RFC 3339, or empty.
    OptionalTime = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(r"^([0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9:.]+([Zz]|[+-][0-9]{2}:[0-9]{2}))?$"));
    /// Text of a comment.
    CommentText = text_schema(1, MAX_COMMENT).pattern(Some(r"\S"));
    /// How to reach the reporter, or empty.
    ReportContact = text_schema(0, MAX_CONTACT_CHARS);
    /// Name of a key in signatures.
    KeyName = text_schema(1, MAX_KID_CHARS);
    /// A part of a credential.
    CredentialText = text_schema(1, MAX_CREDENTIAL_CHARS);
    /// A card URL, an endpoint URL or a host.
    LookupUrl = text_schema(0, MAX_LOOKUP_URL_CHARS);
    /// A URN.
    LookupUrn = text_schema(0, MAX_LOOKUP_URN_CHARS);
    /// The digest of a card.
    LookupDigest = text_schema(0, MAX_LOOKUP_DIGEST_CHARS);
    /// The full name of an agent.
    LookupName = text_schema(0, MAX_LOOKUP_NAME_CHARS);
    /// The protocol versions that cards are converted to.
    CardForm = enum_schema(["1.0", "0.3"]);
    /// SHA-256 digest of a card.
    Digest = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some("^sha256:[0-9a-f]{64}$"));
    /// A public key as a JWK (RFC 7517): Ed25519, P-256, P-384, or RSA of 2048 bits at least, without private members.
    PublicJwk = ObjectBuilder::new()
        .schema_type(Type::Object)
        .property("kty", enum_schema(["OKP", "EC", "RSA"]))
        .required("kty")
        .additional_properties(Some(AdditionalProperties::FreeForm(true)));
    /// An agent card of any protocol version.
    Card = ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(AdditionalProperties::FreeForm(true)));
}

/// A name of an account, a group or a token.
fn name_schema() -> ObjectBuilder {
    text_schema(1, MAX_NAME).pattern(Some("^[A-Za-z0-9 ._@-]+$"))
}

fn text_schema(min_chars: usize, max_chars: usize) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length((min_chars > 0).then_some(min_chars))
        .max_length(Some(max_chars))
}

fn label_text_schema() -> ObjectBuilder {
    text_schema(1, MAX_LABEL_CHARS).pattern(Some("^[A-Za-z0-9_./-]+$"))
}

fn integer_schema(min: u32, max: u32, default: Option<u32>) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(min))
        .maximum(Some(max))
        .default(default.map(Into::into))
}

/// The schema of a text that is one of these values.
pub fn enum_schema<T: AsRef<str>>(values: impl IntoIterator<Item = T>) -> ObjectBuilder {
    let values: Vec<String> = values
        .into_iter()
        .map(|value| value.as_ref().to_owned())
        .collect();
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(values))
}
