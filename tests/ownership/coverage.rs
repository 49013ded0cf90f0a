//! Coverage of a domain's proof, for every way in which a source is added (docs/publish/prove.md#what-a-proof-covers):
//! another account cannot list an agent under the domain, name it after the domain, or give it the domain's trust
//! level.

use std::collections::BTreeMap;

use a2a_crawler::AttemptOutcome::NotFound;
use a2a_registry_api::{
    DomainView, NewGeneration, NewToken, Registration, SourceView, Transfer, Vouch,
};
use a2a_registry_core::accounts::authentication::authenticate_token;
use a2a_registry_core::accounts::tokens::token_create;
use a2a_registry_core::config::{Config, RegistrationAccess as WhoRegisters};
use a2a_registry_core::domains::actions::{domain_show, vouch_for_domain};
use a2a_registry_core::domains::owner_actions::domain_transfer;
use a2a_registry_core::domains::ownership_generation::domain_new_generation;
use a2a_registry_core::domains::register;
use a2a_registry_core::domains::verify::domain_verify;
use a2a_registry_core::domains::withdrawal::domain_delete;
use a2a_registry_core::visibility::caller::Caller;
use a2a_registry_domain::admission_rules::DomainPattern;
use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::role::Role;
use a2a_registry_domain::source::SourceKind;
use a2a_registry_store::entity::source;
use time::Duration;

use super::OwnershipSetup;
use super::ways::Actor::{self, AdminApproving, Anyone, Curator, Heir, Owner, Partner, Stranger};
use super::ways::Step::{
    self, Card, Catalog, CatalogOfAnotherHost, DeleteOther, Domain, Lapse, LiesAt, Look,
    OtherIsAnothers, Prove, ProveOther, Redirect, Transfer as Give, Visit, Vouch as Word,
};
use super::ways::{ALLOWED, APPROVE_ALL, CoverageRow, OPEN, WAYS, WELL_KNOWN};
use crate::support::both_databases;
use crate::support::cached_agent_check::agent_show_checked;
use crate::support::in_process_registry::{CatalogExtent, OriginResponse, card_bytes};

/// The accounts of a setup, and the responses of each row's domain.
struct CoverageScenario<'a> {
    setup: &'a OwnershipSetup,
    accounts: BTreeMap<&'static str, Caller>,
    domain: String,
    path: &'static str,
    named: bool,
    catalog_elsewhere: bool,
    redirect: Option<String>,
    lies_at: &'static str,
}

impl CoverageScenario<'_> {
    fn caller(&self, who: Actor) -> Caller {
        match who {
            Owner => self.accounts["owner"].clone(),
            Heir => self.accounts["heir"].clone(),
            Stranger => self.accounts["stranger"].clone(),
            Partner => self.accounts["partner"].clone(),
            Curator => self.accounts["curator"].clone(),
            AdminApproving => self.setup.registry.admin.clone(),
            Anyone => Caller {
                network: Some([192, 0, 2, 7].into()),
                ..Caller::default()
            },
        }
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.domain)
    }

    /// The URL of the card.
    fn card_url(&self) -> String {
        let host = self.lies_at.replace("{}", &self.domain);
        format!("https://{host}{}", self.path)
    }

    fn answer(&self, source: &source::Model) -> OriginResponse {
        let path = source.url.split_once(&self.domain).unwrap().1;
        let asked = match source.kind.as_str() {
            "well_known" => WELL_KNOWN,
            _ => path,
        };
        let bytes = || card_bytes("Travel", &self.domain);
        let entries = vec![("x".to_owned(), self.card_url())];
        match source.kind.as_str() {
            "ard" if self.catalog_elsewhere => OriginResponse::RedirectedCatalog(
                entries,
                "https://evil.agents-elsewhere.com/ard.json".into(),
            ),
            "ard" if self.named => OriginResponse::Catalog(entries, CatalogExtent::Complete),
            "ard" => OriginResponse::Catalog(Vec::new(), CatalogExtent::Complete),
            "ai_catalog" => OriginResponse::Failure(NotFound),
            _ if asked != self.path => OriginResponse::NotModified,
            _ => match &self.redirect {
                Some(to) => OriginResponse::RedirectedCard(bytes(), to.clone()),
                None => OriginResponse::Card(bytes()),
            },
        }
    }

    async fn register(
        &self,
        who: Actor,
        domain: Option<String>,
        url: Option<String>,
    ) -> DomainView {
        let what = Registration {
            domain,
            card_url: url,
            approve: matches!(who, AdminApproving),
        };
        register::register_domain(&self.setup.registry.app, &self.caller(who), &what)
            .await
            .unwrap()
    }

    async fn prove(&self, who: Actor, domain: &str, policy: &str) {
        let view = self.register(who, Some(domain.to_owned()), None).await;
        let value = view.challenges[0].value.clone().unwrap();
        let value = value.replace("policy=exact", &format!("policy={policy}"));
        self.setup
            .place_record(view.challenges[0].name.as_ref().unwrap(), &value);
        let app = &self.setup.registry.app;
        let found = domain_verify(app, &self.caller(who), domain).await.unwrap();
        assert_eq!(
            found.domain.state.as_str(),
            "verified",
            "{domain}: {:#?}",
            found.checks
        );
    }

    async fn take(&mut self, step: Step) {
        let registry = &self.setup.registry;
        match step {
            Domain(who) => drop(self.register(who, Some(self.domain.clone()), None).await),
            Card(who, path) => drop(self.register(who, None, Some(self.url(path))).await),
            Prove(who, policy) => self.prove(who, &self.domain, policy).await,
            ProveOther(name) => {
                let other = name.replace("{}", &self.domain);
                self.prove(Owner, &other, "exact").await;
            }
            OtherIsAnothers(name) => {
                let other = name.replace("{}", &self.domain);
                let why = NewGeneration {
                    reason: "sold".into(),
                };
                let app = &registry.app;
                domain_new_generation(app, &registry.admin, &other, &why)
                    .await
                    .unwrap();
            }
            Lapse => {
                self.setup.remove(&format!("_a2a-registry.{}", self.domain));
                for _ in 0..5 {
                    registry.advance(Duration::hours(27));
                    self.setup.run_due_checks().await;
                }
                let view = domain_show(&registry.app, &registry.admin, &self.domain)
                    .await
                    .unwrap();
                assert_eq!(view.state.as_str(), "lapsed");
            }
            Give => {
                let to = Transfer {
                    account: "heir".into(),
                };
                domain_transfer(&registry.app, &self.caller(Owner), &self.domain, &to)
                    .await
                    .unwrap();
            }
            Word(account) => {
                let vouch = Vouch {
                    reason: "known".into(),
                    account: account.map(str::to_owned),
                };
                vouch_for_domain(&registry.app, &registry.admin, &self.domain, &vouch)
                    .await
                    .unwrap();
            }
            DeleteOther(name) => {
                let other = name.replace("{}", &self.domain);
                let app = &registry.app;
                domain_delete(app, &self.caller(Owner), &other)
                    .await
                    .unwrap();
            }
            Catalog(named) => self.named = named,
            LiesAt(host) => self.lies_at = host,
            CatalogOfAnotherHost => self.catalog_elsewhere = true,
            Redirect(to) => {
                let to = to.replace("{}", &self.domain);
                let to = if to.starts_with('/') {
                    self.url(&to)
                } else {
                    to
                };
                self.redirect = Some(to);
            }
            Visit => {
                registry.advance(Duration::minutes(2));
                registry
                    .run_due_visits(|source| {
                        if source.url.contains(&self.domain) && !source.url.contains("other-") {
                            self.answer(source)
                        } else {
                            OriginResponse::NotModified
                        }
                    })
                    .await;
            }
            Look => {
                registry
                    .crawl_domain_with(&self.domain, |source| self.answer(source))
                    .await
            }
        }
    }

    /// The results for the card of the row.
    async fn result(&self) -> (Coverage, String, String, String, bool) {
        let registry = &self.setup.registry;
        let view = domain_show(&registry.app, &registry.admin, &self.domain)
            .await
            .unwrap();
        let kinds: &[&str] = if self.path == WELL_KNOWN {
            &["well_known"]
        } else {
            &["url", "entry"]
        };
        let here = |source: &&SourceView| {
            kinds.contains(&source.kind.as_str())
                && (self.path == WELL_KNOWN || source.url == self.card_url())
        };
        let sources: Vec<&SourceView> = view.sources.iter().filter(here).collect();
        let agent = sources.iter().find_map(|source| source.agent);
        let agent = agent
            .unwrap_or_else(|| panic!("{} has no source with an agent: {view:#?}", self.domain));
        let shown = agent_show_checked(&registry.app, &registry.admin, &agent.to_string())
            .await
            .unwrap();
        let row = registry
            .agents()
            .await
            .into_iter()
            .find(|row| row.id == agent)
            .unwrap();
        (
            sources[0].coverage.known_value().unwrap(),
            row.lifecycle.as_str().to_owned(),
            shown.decision.rules.join(" "),
            shown
                .hit
                .summary
                .trust
                .level
                .map(|level| level.to_string())
                .unwrap_or_default(),
            row.urn.is_some(),
        )
    }
}

async fn setup(url: &str, configure: impl FnOnce(&mut Config)) -> OwnershipSetup {
    let registry =
        crate::support::in_process_registry::InProcessRegistry::with_config(url, configure).await;
    OwnershipSetup::with_registry(registry)
}

async fn check_ways(setup: &OwnershipSetup, ways: &[CoverageRow], prefix: &str) {
    let mut accounts = BTreeMap::new();
    for name in ["owner", "heir", "stranger", "partner", "curator"] {
        let role = if name == "curator" {
            Role::Curator
        } else {
            Role::Publisher
        };
        let new = NewToken {
            account: name.into(),
            role: Some(role),
            name: "a test".into(),
            ..NewToken::default()
        };
        let app = &setup.registry.app;
        let made = token_create(app, &setup.registry.admin, &new)
            .await
            .unwrap();
        accounts.insert(name, authenticate_token(app, &made.secret).await.unwrap());
    }
    let mut wrong = Vec::new();
    for (number, (name, path, steps, expected)) in ways.iter().enumerate() {
        let mut scene = CoverageScenario {
            setup,
            accounts: accounts.clone(),
            domain: format!("{prefix}{number}.agents-test.com"),
            path,
            named: false,
            catalog_elsewhere: false,
            redirect: None,
            lies_at: "{}",
        };
        for step in *steps {
            scene.take(*step).await;
        }
        let result = scene.result().await;
        let (coverage, lifecycle, rule, level, urn) = result.clone();
        if (
            coverage,
            lifecycle.as_str(),
            rule.as_str(),
            level.as_str(),
            urn,
        ) != *expected
        {
            wrong.push(format!("{name}: {result:?}, not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    setup.registry.assert_index_matches_database().await;
}

both_databases!(
    only_covered_sources_have_the_domains_trust,
    open_registration_covers_nothing,
    approving_all_covers_nothing,
    an_allowed_domain_approves_only_its_own_sources,
    an_earlier_copy_does_not_affect_the_owners_agent
);

/// All ways in which a source is added, with the results for its card.
async fn only_covered_sources_have_the_domains_trust(url: &str) {
    check_ways(&setup(url, |_| ()).await, WAYS, "way").await;
}

/// The same where anyone may register.
async fn open_registration_covers_nothing(url: &str) {
    let open = |config: &mut Config| config.governance.registration = WhoRegisters::Open;
    check_ways(&setup(url, open).await, OPEN, "open").await;
}

/// The same where everything is approved.
async fn approving_all_covers_nothing(url: &str) {
    let all = |config: &mut Config| config.governance.approve_all = true;
    check_ways(&setup(url, all).await, APPROVE_ALL, "all").await;
}

/// The same where the domains are allowed without a proof.
async fn an_allowed_domain_approves_only_its_own_sources(url: &str) {
    let allow = |config: &mut Config| {
        config.governance.allow_domains = vec![DomainPattern("*.agents-test.com".into())];
    };
    check_ways(&setup(url, allow).await, ALLOWED, "allowed").await;
}

/// A stranger who nominates a copy of the owner's card first keeps an agent of its own, and nothing that happens to it
/// affects the owner's.
async fn an_earlier_copy_does_not_affect_the_owners_agent(url: &str) {
    let setup = setup(url, |_| ()).await;
    let (owner, stranger) = (
        setup.create_publisher("owner").await,
        setup.create_publisher("stranger").await,
    );
    let domain = "copied.agents-test.com";
    let copy = Registration {
        card_url: Some(format!("https://{domain}/uploads/copy.json")),
        ..Registration::default()
    };
    let registry = &setup.registry;
    let own = card_bytes("Travel", "Books flights");
    register::register_domain(&registry.app, &stranger, &copy)
        .await
        .unwrap();
    registry
        .run_due_visits(|_| OriginResponse::Card(own.clone()))
        .await;
    let nominated = registry.agent(domain).await;
    registry.reject_open_review(nominated.id).await;
    let view = setup.register(&owner, domain).await;
    registry.advance(Duration::minutes(2));
    registry
        .run_due_visits(|_| OriginResponse::Card(own.clone()))
        .await;
    setup.place_standing_record(&view);
    domain_verify(&registry.app, &owner, domain).await.unwrap();
    let of_slot = async |slot: &str| {
        let all = registry.agents().await;
        all.into_iter().find(|row| row.slot == slot).unwrap()
    };
    let first = of_slot("well-known").await;
    assert_ne!(first.id, nominated.id);
    assert_eq!(
        (first.lifecycle.as_str(), first.urn.is_some()),
        ("approved", true)
    );
    assert_eq!(
        registry.public_card_bytes(first.id).await,
        Some(own.clone())
    );
    // The copy changes as little as possible.
    let other = card_bytes("Travel", "Books flights of somebody else");
    registry
        .crawl_domain_with(domain, |source| {
            OriginResponse::Card(if source.kind == SourceKind::Url {
                other.clone()
            } else {
                own.clone()
            })
        })
        .await;
    assert_eq!(registry.public_card_bytes(first.id).await, Some(own));
    let copy = registry
        .agents()
        .await
        .into_iter()
        .find(|row| row.id == nominated.id)
        .unwrap();
    assert_eq!((copy.lifecycle.as_str(), copy.urn), ("pending", None));
    registry.assert_index_matches_database().await;
    assert_eq!(registry.publicly_found_ids().await, [first.id].into());
}
