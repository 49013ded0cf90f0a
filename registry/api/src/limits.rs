//! Limits of request members: one constant each, which the code checks and the `OpenAPI` document shows.
//!
//! `utoipa` takes only literals in its attributes, so that a member with a limit names one of these types as the type
//! of its schema.

use std::borrow::Cow;

use a2a_registry_domain::role::{Role, Scope};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Entries on a page by default.
pub const DEFAULT_PAGE: u32 = 20;
/// Entries on a page at most.
pub const MAX_PAGE: u32 = 100;
/// Similar agents that are shown of an agent, where no number is asked for.
pub const DEFAULT_SIMILAR: u32 = 5;
/// The most similar agents that are shown of an agent.
pub const MAX_SIMILAR: u32 = 20;
/// Characters of a reason.
pub const MAX_REASON: usize = 1000;
/// Characters of the token of a preview, at most.
pub const MAX_PREVIEW_TOKEN: usize = 1024;
/// Characters of the name of an account or a token.
pub const MAX_NAME: usize = 100;
/// Days after which a token expires at the latest.
pub const MAX_TOKEN_DAYS: u32 = 365;
/// Days after which a token expires, where no number is asked for.
pub const DEFAULT_TOKEN_DAYS: u32 = 90;
/// Days after which an owner vouch expires at the latest.
pub const MAX_VOUCH_DAYS: u32 = 365;
/// Days after which an owner vouch expires, where no number is asked for.
pub const DEFAULT_VOUCH_DAYS: u32 = 180;
/// Tokens of an account that have not ended.
pub const MAX_TOKENS: u64 = 100;
/// Sessions of an account that have not ended.
pub const MAX_SESSIONS: usize = 20;
/// Groups that admins have made.
pub const MAX_GROUPS: u64 = 1000;
/// Accounts in a group.
pub const MAX_MEMBERS: usize = 1000;
/// Groups of an account that an admin has set.
pub const MAX_GROUPS_OF_ACCOUNT: usize = 100;
/// Bytes of the text of a policy.
pub const MAX_POLICY_TEXT: usize = 64 * 1024;
/// Bytes of a request with a policy set.
pub const MAX_POLICIES_BODY: usize = 4 * 1024 * 1024;
/// Characters of a contact.
pub const MAX_CONTACT: usize = 300;
/// Characters of a comment.
pub const MAX_COMMENT: usize = 2000;
/// Comments on a review.
pub const MAX_COMMENTS: u64 = 200;
/// Decisions in one request.
pub const MAX_DECISIONS: usize = 50;
/// Reports that a review keeps; further ones are answered alike and not kept.
pub const MAX_REPORTS: u64 = 100;
/// Reports of one account, or of one address, in a day.
pub const MAX_REPORTS_A_DAY: u64 = 20;
/// Registrations in one request.
pub const MAX_REGISTRATIONS: usize = 1000;
/// Bytes of a request with several registrations.
pub const MAX_REGISTRATIONS_BODY: usize = 1024 * 1024;
/// Entries of each list of what waits for an account.
pub const MAX_WAITING: usize = 50;
/// Labels of an agent.
pub const MAX_LABELS: usize = 20;
/// Characters of a label's key and of its value.
pub const MAX_LABEL: usize = 63;
/// Collections of a registry.
pub const MAX_COLLECTIONS: usize = 200;
/// Characters of the name of a collection.
pub const MAX_COLLECTION_NAME: usize = 64;
/// Characters of the description of a collection.
pub const MAX_DESCRIPTION: usize = 2000;
/// Accounts that answer for a collection.
pub const MAX_OWNERS: usize = 20;
/// Characters of a filter.
pub const MAX_FILTER_TEXT: usize = 2000;
/// Terms of a filter.
pub const MAX_FILTER_TERMS: usize = 20;
/// Characters of the name of a group with its origin.
pub const MAX_GROUP: usize = 1000;
/// Saved searches of an account.
pub const MAX_SAVED_SEARCHES: usize = 50;
/// Characters of the parameters of a saved search.
pub const MAX_SEARCH_TEXT: usize = 4000;
/// Collections to whose audience an agent is shown.
pub const MAX_COLLECTIONS_OF_AGENT: usize = 10;
/// Agents that are shown to the audience of one collection because they name it.
pub const MAX_AGENTS_OF_COLLECTION: usize = 1000;
/// Groups that something is shown to.
pub const MAX_AUDIENCE: usize = 50;
/// Characters of the name of a key.
pub const MAX_KID: usize = 200;
/// Characters of a URL that is looked up.
pub const MAX_LOOKUP_URL: usize = 2048;
/// Characters of a URN that is looked up.
pub const MAX_LOOKUP_URN: usize = 1024;
/// Characters of a digest that is looked up.
pub const MAX_LOOKUP_DIGEST: usize = 128;
/// Characters of a name that is looked up.
pub const MAX_LOOKUP_NAME: usize = 1024;

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
    /// How many entries a page holds.
    PageSize = whole(1, MAX_PAGE, Some(DEFAULT_PAGE));
    /// How many similar agents are shown.
    SimilarSize = whole(1, MAX_SIMILAR, Some(DEFAULT_SIMILAR));
    /// Reason for an action.
    Reason = text(1, MAX_REASON).pattern(Some(r"\S"));
    /// The name of an account or a token.
    Name = name();
    /// The name of an account, or nothing.
    OptionalName = text(0, MAX_NAME).pattern(Some("^[A-Za-z0-9 ._@-]*$"));
    /// Days until a token expires.
    TokenDays = whole(1, MAX_TOKEN_DAYS, Some(DEFAULT_TOKEN_DAYS));
    /// Days until an owner vouch expires.
    VouchDays = whole(1, MAX_VOUCH_DAYS, Some(DEFAULT_VOUCH_DAYS));
    /// The roles of an account.
    RoleSet = ArrayBuilder::new()
        .items(one_of(Role::ALL.iter().map(|role| role.as_str())))
        .min_items(Some(1));
    /// The scopes of a token.
    ScopeSet = ArrayBuilder::new()
        .items(one_of(Scope::ALL.iter().map(|scope| scope.as_str())))
        .min_items(Some(1));
    /// The names of the groups of an account.
    GroupNames = ArrayBuilder::new()
        .items(name())
        .max_items(Some(MAX_GROUPS_OF_ACCOUNT));
    /// The names of the accounts in a group.
    MemberNames = ArrayBuilder::new()
        .items(name())
        .max_items(Some(MAX_MEMBERS));
    /// The identifier of a policy.
    PolicyId = text(1, 64).pattern(Some(r"^[a-z0-9][a-z0-9._-]*$"));
    /// What a collection is for.
    CollectionDescription = text(0, MAX_DESCRIPTION);
    /// The filter of a collection.
    FilterText = text(1, MAX_FILTER_TEXT);
    /// The parameters of a search.
    SearchText = text(0, MAX_SEARCH_TEXT);
    /// The names of the accounts that answer for something.
    OwnerNames = ArrayBuilder::new()
        .items(name())
        .max_items(Some(MAX_OWNERS));
    /// The names of the groups that something is shown to.
    Audience = ArrayBuilder::new()
        .items(text(1, MAX_GROUP))
        .max_items(Some(MAX_AUDIENCE));
    /// The names of the collections to whose audience an agent is shown.
    NamedCollections = ArrayBuilder::new()
        .items(text(1, MAX_COLLECTION_NAME))
        .max_items(Some(MAX_COLLECTIONS_OF_AGENT));
    /// A `mailto:` or `https:` URL, or nothing.
    Contact = text(0, MAX_CONTACT);
    /// An agent's labels.
    Labels = ObjectBuilder::new()
        .schema_type(Type::Object)
        .max_properties(Some(MAX_LABELS))
        .property_names(Some(label_word().build()))
        .additional_properties(Some(label_word()));
    /// A time in RFC 3339, or nothing.
    OptionalTime = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some(r"^([0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9:.]+([Zz]|[+-][0-9]{2}:[0-9]{2}))?$"));
    /// Text of a comment.
    CommentText = text(1, MAX_COMMENT).pattern(Some(r"\S"));
    /// How to reach who reports, or nothing.
    ReportContact = text(0, MAX_CONTACT);
    /// Name of a key in signatures.
    KeyName = text(1, MAX_KID);
    /// A card URL, an endpoint URL or a host.
    LookupUrl = text(0, MAX_LOOKUP_URL);
    /// A URN.
    LookupUrn = text(0, MAX_LOOKUP_URN);
    /// The digest of a card.
    LookupDigest = text(0, MAX_LOOKUP_DIGEST);
    /// The whole name of an agent.
    LookupName = text(0, MAX_LOOKUP_NAME);
    /// The protocol versions that cards are converted to.
    CardForm = one_of(["1.0", "0.3"]);
    /// SHA-256 digest of a card.
    Digest = ObjectBuilder::new()
        .schema_type(Type::String)
        .pattern(Some("^sha256:[0-9a-f]{64}$"));
    /// A public key as a JWK (RFC 7517): Ed25519, P-256, P-384, or RSA of 2048 bits at least, without private members.
    PublicJwk = ObjectBuilder::new()
        .schema_type(Type::Object)
        .property("kty", one_of(["OKP", "EC", "RSA"]))
        .required("kty")
        .additional_properties(Some(AdditionalProperties::FreeForm(true)));
    /// An agent card of any protocol version.
    Card = ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(AdditionalProperties::FreeForm(true)));
}

/// A name of an account, a group or a token.
fn name() -> ObjectBuilder {
    text(1, MAX_NAME).pattern(Some("^[A-Za-z0-9 ._@-]+$"))
}

fn text(least: usize, most: usize) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length((least > 0).then_some(least))
        .max_length(Some(most))
}

fn label_word() -> ObjectBuilder {
    text(1, MAX_LABEL).pattern(Some("^[A-Za-z0-9_./-]+$"))
}

fn whole(least: u32, most: u32, default: Option<u32>) -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(least))
        .maximum(Some(most))
        .default(default.map(Into::into))
}

/// A text that is one of these.
pub fn one_of<T: AsRef<str>>(values: impl IntoIterator<Item = T>) -> ObjectBuilder {
    let values: Vec<String> = values
        .into_iter()
        .map(|value| value.as_ref().to_owned())
        .collect();
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(values))
}
