//! `[identity]`: identity providers that people sign in with and that issue access tokens to services, and the network
//! rules for requests to them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use a2a_crawler::guard::{GuardError, SsrfGuard};
use a2a_registry_domain::role::Role;
use a2a_registry_domain::timestamp::{DAY, Timestamp};
use ipnet::IpNet;

use crate::config::secret_file::read_secret_file;
use crate::config::section::section;
use crate::config::validate::allow_ports_error;
use crate::config::{AllowPorts, Secret};

const MAX_PROVIDERS: usize = 16;
/// Maximum length of a provider's name, which is part of paths and account names, in bytes.
const MAX_PROVIDER_NAME_BYTES: usize = 30;
/// Maximum length of an issuer URL, in bytes.
const MAX_ISSUER_BYTES: usize = 300;
/// Maximum length of any other text, in bytes.
const MAX_TEXT_BYTES: usize = 300;
const MAX_SELECTED_GROUPS: usize = 200;
const DEFAULT_ABSENCE_DAYS: u16 = 7;
const MAX_ABSENCE_DAYS: u16 = 365;

section! {
    /// `[identity]`: identity providers (OpenID Connect).
    ///
    /// Requests to identity providers pass a guard with the lists of this section. Lists of other sections do not
    /// apply to them, and these lists do not apply to other requests.
    pub struct IdentityConfig {
        /// Networks that may be reached although they are private or loopback, such as `10.0.0.0/8`.
        pub allow_networks: Vec<IpNet>,
        /// Host names that may be reached although they are local, reserved or without a known top-level domain, such
        /// as `login.corp.internal`.
        pub allow_names: Vec<String>,
        /// Networks that are never reached, even if another setting allows them.
        pub deny_networks: Vec<IpNet>,
        /// Whether plain `http:` is allowed.
        pub allow_http: bool,
        /// Ports that are allowed: one such as `443`, a list such as `[443, 8443]`, or `"any"`.
        pub allow_ports: AllowPorts,
        /// PEM files with additional root certificates, each read at start.
        pub extra_ca: Vec<PathBuf>,
        /// Days after which the tokens of a provider's account are suspended until its next sign-in, unless the
        /// provider has issued valid claims about it in the meantime. 0: never. From 0 to 365.
        pub max_absence: u16 = DEFAULT_ABSENCE_DAYS,
        /// Each provider, in a table `[identity.providers.NAME]`; the name is part of paths and account names. At most
        /// 16.
        pub providers: BTreeMap<String, IdentityProviderConfig>,
    }
}

section! {
    /// `[identity.providers.NAME]`: one identity provider, who may sign in, and with which roles.
    pub struct IdentityProviderConfig {
        /// The URL of the issuer, exactly as in its tokens.
        pub issuer: String,
        /// Its name on the sign-in button. Empty: the provider's name.
        pub title: String,
        /// The client id of the registry at the provider. Empty: no one can sign in with it, and it only issues access
        /// tokens.
        pub client_id: String,
        /// The client secret of the registry at the provider. Preferably set in the environment or in
        /// `client_secret_file`. It is never shown.
        pub client_secret: Secret,
        /// A file with the secret, instead of `client_secret`.
        pub client_secret_file: Option<PathBuf>,
        /// The scopes to request.
        pub scopes: Vec<String> = ["openid", "profile", "email"].map(str::to_owned).to_vec(),
        /// The audiences of access tokens that are for this registry. Empty: no access token of this provider is
        /// accepted.
        pub audiences: Vec<String>,
        /// The claim with a person's groups.
        pub groups_claim: String = "groups".to_owned(),
        /// The groups that are used: each an exact name, or a prefix followed by `*`; at most 200. Empty: all.
        pub select_groups: Vec<String>,
        /// The claim with a person's name, from which the name of the account is derived.
        pub name_claim: String = "preferred_username".to_owned(),
        /// The roles of everyone who may sign in: "reader", "publisher", "curator", "auditor" or "admin".
        pub default_roles: Vec<Role> = vec![Role::Reader],
        /// The roles of the members of each group, in addition to the default ones.
        pub roles: BTreeMap<String, Vec<Role>>,
        /// The condition for signing in. Without it no one may sign in.
        pub require: Option<RequiredClaimConfig>,
    }
}

section! {
    /// `require`: a claim, and its permitted values.
    pub struct RequiredClaimConfig {
        /// The name of the claim.
        pub claim: String,
        /// The permitted values of the claim. If the claim is a list, one of its values must be permitted.
        pub values: Vec<String>,
    }
}

impl IdentityProviderConfig {
    /// Whether a group with this name is used.
    pub fn selects_group(&self, name: &str) -> bool {
        let selects = |entry: &String| match entry.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => entry == name,
        };
        self.select_groups.is_empty() || self.select_groups.iter().any(selects)
    }

    fn group_selection_errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        if self.select_groups.len() > MAX_SELECTED_GROUPS {
            errors.push(format!(
                "select_groups must have at most {MAX_SELECTED_GROUPS} entries; use prefixes such as \"a2a-*\""
            ));
        }
        if !self
            .select_groups
            .iter()
            .all(|entry| is_valid_line(entry, ""))
        {
            errors.push(
                "select_groups must be names of groups, or prefixes with * at the end".into(),
            );
        }
        let deselected = self.roles.keys().filter(|name| !self.selects_group(name));
        errors.extend(deselected.map(|name| {
            format!(
                "roles names the group {name:?}, which select_groups excludes: add the group to select_groups, \
                 or remove its roles"
            )
        }));
        errors
    }

    /// Reads the secret from `client_secret` or its file; `None` if neither is set. Errors do not quote the secret.
    pub fn read_client_secret(&self) -> Result<Option<String>, String> {
        match &self.client_secret_file {
            Some(path) => read_secret_file("client_secret_file", path).map(Some),
            None => Ok(self.client_secret.reveal().map(str::to_owned)),
        }
    }

    fn validation_errors(&self, guard: &SsrfGuard) -> Vec<String> {
        let mut errors = Vec::new();
        let mut push_error = |text: String| errors.push(text);
        if let Some(error) = issuer_url_error(&self.issuer, guard) {
            push_error(error);
        }
        let all_single_lines = |list: &[String]| list.iter().all(|text| is_valid_line(text, ""));
        for (key, text) in [
            ("groups_claim", &self.groups_claim),
            ("name_claim", &self.name_claim),
        ] {
            if !is_valid_line(text, "") {
                push_error(format!("{key} must name a claim"));
            }
        }
        if !self.client_id.is_empty() && !is_valid_line(&self.client_id, "") {
            push_error("client_id must be a single line of text".into());
        }
        if !self.title.is_empty() && !is_valid_line(&self.title, "") {
            push_error("title must be a single line of text".into());
        }
        if !all_single_lines(&self.audiences) {
            push_error("audiences must be single lines of text".into());
        }
        let scopes_fit = self
            .scopes
            .iter()
            .all(|scope| is_valid_line(scope, " \"\\"));
        if !scopes_fit || !self.scopes.iter().any(|scope| scope == "openid") {
            push_error("scopes must be single words, and must include openid".into());
        }
        if let Some(require) = &self.require
            && !(is_valid_line(&require.claim, "")
                && !require.values.is_empty()
                && all_single_lines(&require.values))
        {
            push_error("require must have a claim and at least one permitted value".into());
        }
        if self.client_secret_file.is_some() && self.client_secret.reveal().is_some() {
            push_error(
                "client_secret and client_secret_file are alternatives: set only one of them"
                    .into(),
            );
        }
        if self.client_secret.is_placeholder() {
            push_error(
                "client_secret is the placeholder of a printed configuration; set the secret itself, or \
                 client_secret_file"
                    .into(),
            );
        }
        errors.extend(self.group_selection_errors());
        errors
    }
}

impl IdentityConfig {
    /// The end of the permitted absence after a provider last issued valid claims; `None` if absence is not limited.
    pub fn absence_end(&self, claims_valid_at: Timestamp) -> Option<Timestamp> {
        (self.max_absence > 0)
            .then(|| claims_valid_at.plus_micros(i64::from(self.max_absence) * DAY))
    }

    /// An error if a provider's `select_groups` excludes a group, which is named as in policies (`ISSUER#NAME`);
    /// `None` if no provider does.
    pub fn group_deselection_error(&self, group: &str) -> Option<String> {
        let (issuer, name) = group.split_once('#')?;
        let mut providers = self.providers.iter();
        let (key, provider) = providers.find(|(_, provider)| provider.issuer == issuer)?;
        (!provider.selects_group(name)).then(|| {
            format!("identity.providers.{key}.select_groups excludes the group {name:?}; add it there first")
        })
    }

    /// Validation errors, one sentence each. Secret files are not read yet.
    pub fn validation_errors(&self) -> Vec<String> {
        let mut errors: Vec<String> = allow_ports_error("identity", &self.allow_ports)
            .into_iter()
            .collect();
        if self.providers.len() > MAX_PROVIDERS {
            errors.push(format!(
                "identity.providers: there must be at most {MAX_PROVIDERS} providers"
            ));
        }
        if self.max_absence > MAX_ABSENCE_DAYS {
            errors.push(format!(
                "identity.max_absence must be between 1 and {MAX_ABSENCE_DAYS} days, or 0 for no limit"
            ));
        }
        let guard = SsrfGuard::new(self.guard_config());
        let mut issuers = BTreeSet::new();
        for (name, provider) in &self.providers {
            let is_valid_name = (1..=MAX_PROVIDER_NAME_BYTES).contains(&name.len())
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
            if !is_valid_name {
                errors.push(format!(
                    "identity.providers: a name must have 1 to {MAX_PROVIDER_NAME_BYTES} lower-case letters, digits \
                     or hyphens"
                ));
            }
            let provider_errors = provider.validation_errors(&guard).into_iter();
            errors.extend(provider_errors.map(|text| format!("identity.providers.{name}.{text}")));
            if !issuers.insert(&provider.issuer) {
                errors.push(format!(
                    "identity.providers.{name}.issuer is also the issuer of another provider"
                ));
            }
        }
        errors
    }
}

/// The error in the URL of an issuer, if any.
fn issuer_url_error(issuer: &str, guard: &SsrfGuard) -> Option<String> {
    if issuer.len() > MAX_ISSUER_BYTES {
        return Some(format!("issuer must have at most {MAX_ISSUER_BYTES} bytes"));
    }
    match guard.check_url(issuer) {
        // Group names contain the issuer, so an issuer must not contain a number sign (docs/govern/policies.md).
        Ok(url) if url.query().is_none() && !issuer.contains('#') && is_valid_line(issuer, " ") => {
            None
        }
        Ok(_) => Some("issuer must be a URL without query and fragment".into()),
        Err(GuardError::Scheme { .. }) => Some(
            "issuer must begin with https://, or with http:// if identity.allow_http is set".into(),
        ),
        Err(refusal) => Some(format!(
            "issuer is rejected by the lists of [identity]: {refusal}"
        )),
    }
}

/// Whether a text is a single line within the length limit, without any of these characters.
fn is_valid_line(text: &str, forbidden: &str) -> bool {
    !text.trim().is_empty()
        && text.len() <= MAX_TEXT_BYTES
        && !text
            .chars()
            .any(|c| c.is_control() || forbidden.contains(c))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn section() -> IdentityConfig {
        let provider = IdentityProviderConfig {
            issuer: "https://login.example.com/realms/corp".into(),
            client_id: "registry".into(),
            client_secret: "hush".into(),
            require: Some(RequiredClaimConfig {
                claim: "groups".into(),
                values: vec!["staff".into()],
            }),
            ..IdentityProviderConfig::default()
        };
        IdentityConfig {
            providers: [("corp".to_owned(), provider)].into(),
            ..IdentityConfig::default()
        }
    }

    /// Sets one value to an invalid one.
    type Spoil = fn(&mut IdentityProviderConfig);

    #[test]
    fn every_mistake_is_named_and_no_secret_quoted() {
        assert_eq!(IdentityConfig::default().validation_errors(), [""; 0]);
        assert_eq!(section().validation_errors(), [""; 0]);
        let cases: [(&str, Spoil); 18] = [
            ("corp.issuer", |own| own.issuer = String::new()),
            ("corp.issuer", |own| {
                own.issuer = "http://login.example.com/".into()
            }),
            ("corp.issuer", |own| {
                own.issuer = "https://127.0.0.1/".into()
            }),
            ("corp.issuer", |own| own.issuer.push_str("?a=b")),
            ("corp.issuer", |own| own.issuer.push_str("#staff")),
            ("corp.issuer", |own| {
                own.issuer.push_str(&"a".repeat(MAX_ISSUER_BYTES))
            }),
            ("corp.scopes", |own| own.scopes = vec!["profile".into()]),
            ("corp.scopes", |own| own.scopes.push("a b".into())),
            ("corp.groups_claim", |own| own.groups_claim = " ".into()),
            ("corp.audiences", |own| own.audiences = vec![String::new()]),
            ("corp.require", |own| {
                own.require.as_mut().unwrap().values.clear();
            }),
            ("corp.client_secret", |own| {
                own.client_secret = "(hidden)".into()
            }),
            ("corp.client_secret", |own| {
                own.client_secret_file = Some("secret".into());
            }),
            ("corp.title", |own| own.title = "a\nb".into()),
            ("corp.select_groups", |own| {
                own.select_groups = vec!["a2a-*".into(), " ".into()];
            }),
            ("corp.select_groups", |own| {
                own.select_groups = vec!["a\nb".into()];
            }),
            ("corp.select_groups", |own| {
                own.select_groups = vec!["a2a-*".into(); MAX_SELECTED_GROUPS + 1];
            }),
            ("corp.roles names the group \"leads\"", |own| {
                own.roles = [("leads".to_owned(), vec![Role::Curator])].into();
                own.select_groups = vec!["lead".into(), "a2a-*".into()];
            }),
        ];
        for (named, spoil) in cases {
            let mut own = section();
            spoil(own.providers.get_mut("corp").unwrap());
            let mistakes = own.validation_errors();
            assert_eq!(mistakes.len(), 1, "{named}: {mistakes:?}");
            assert!(mistakes[0].contains(named), "{mistakes:?}");
            assert!(!mistakes[0].contains("hush"), "{mistakes:?}");
        }
    }

    #[test]
    fn providers_are_few_named_plainly_and_each_for_one_issuer() {
        let corp = section().providers["corp"].clone();
        for name in [
            "",
            "Corp",
            "a b",
            "a/b",
            "a@b",
            &"a".repeat(MAX_PROVIDER_NAME_BYTES + 1),
        ] {
            let mut own = section();
            own.providers = [(name.to_owned(), corp.clone())].into();
            assert_eq!(own.validation_errors().len(), 1, "{name}");
        }
        let mut own = section();
        own.providers.insert("twin".into(), corp.clone());
        assert!(own.validation_errors()[0].contains("another provider"));
        let mut own = section();
        for number in 0..MAX_PROVIDERS {
            let issuer = format!("https://login{number}.example.com");
            let provider = IdentityProviderConfig {
                issuer,
                ..corp.clone()
            };
            own.providers.insert(format!("p{number}"), provider);
        }
        assert_eq!(own.validation_errors().len(), 1);
    }

    #[test]
    fn groups_are_selected_by_name_and_by_prefix() {
        let mut own = section();
        let corp = own.providers.get_mut("corp").unwrap();
        assert!(corp.selects_group("anything"));
        corp.select_groups = vec!["a2a-*".into(), "staff".into(), "x*y".into()];
        for (group, counts) in [
            ("a2a-", true),
            ("a2a-x", true),
            ("a2a", false),
            ("staff", true),
            ("Staff", false),
            ("staff2", false),
            ("x*y", true),
            ("xzy", false),
        ] {
            assert_eq!(corp.selects_group(group), counts, "{group}");
        }
        corp.select_groups = vec!["*".into()];
        assert!(corp.selects_group("anything"));
        corp.select_groups = vec!["staff".into(); MAX_SELECTED_GROUPS];
        assert_eq!(own.validation_errors(), [""; 0]);
        let issuer = own.providers["corp"].issuer.clone();
        let deselected = own
            .group_deselection_error(&format!("{issuer}#leads"))
            .unwrap();
        assert!(
            deselected.contains("providers.corp.select_groups"),
            "{deselected}"
        );
        // Selected groups, groups of admins, and groups that are not configured.
        for other in [
            "leads",
            "https://other.example#leads",
            &format!("{issuer}#staff"),
        ] {
            assert_eq!(own.group_deselection_error(other), None, "{other}");
        }
    }

    #[test]
    fn absence_has_an_end_unless_it_is_off() {
        let mut own = section();
        let begin = Timestamp(1_000);
        assert_eq!(own.absence_end(begin), Some(begin.plus_micros(7 * DAY)));
        for (days, mistakes) in [
            (0, 0),
            (1, 0),
            (MAX_ABSENCE_DAYS, 0),
            (MAX_ABSENCE_DAYS + 1, 1),
        ] {
            own.max_absence = days;
            assert_eq!(own.validation_errors().len(), mistakes, "{days}");
        }
        own.max_absence = 0;
        assert_eq!(own.absence_end(begin), None);
    }

    #[test]
    fn the_secret_is_read_from_where_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let mut own = section().providers["corp"].clone();
        assert_eq!(own.read_client_secret().unwrap().as_deref(), Some("hush"));
        assert!(!format!("{own:?}").contains("hush"));
        own.client_secret_file = Some(path.clone());
        assert!(
            own.read_client_secret()
                .unwrap_err()
                .contains("cannot be read")
        );
        std::fs::write(&path, "hush-7\n").unwrap();
        assert_eq!(own.read_client_secret().unwrap().as_deref(), Some("hush-7"));
        std::fs::write(&path, "\n").unwrap();
        assert!(own.read_client_secret().unwrap_err().contains("empty"));
    }

    #[test]
    fn a_provider_is_read_from_a_file_and_printed_without_its_secret() {
        let text = "[identity.providers.corp]\nissuer = \"https://login.example.com\"\nclient_secret = \"hush\"\n\
            roles = { leads = [\"curator\", \"publisher\"] }\nrequire = { claim = \"groups\", values = [\"staff\"] }\n";
        let config: crate::config::Config = toml::from_str(text).unwrap();
        let corp = &config.identity.providers["corp"];
        assert_eq!(corp.roles["leads"], [Role::Curator, Role::Publisher]);
        assert_eq!(corp.default_roles, [Role::Reader]);
        let printed = config.to_toml().unwrap();
        assert!(!printed.contains("hush"), "{printed}");
        let again: crate::config::Config = toml::from_str(&printed).unwrap();
        assert_eq!(again.to_toml().unwrap(), printed);
    }
}
