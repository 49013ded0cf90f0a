//! Sample agents, responses and domains to render.

use std::collections::BTreeMap;

use a2a_card::AgentCard;
use a2a_registry_api::*;
use a2a_registry_core::config::Config;
use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::lifecycle::{Hold, LivenessState, ShownLifecycle, Visibility};
use a2a_registry_domain::open_enum::OpenEnum;
use a2a_registry_domain::ownership::{DomainState, Method, ProofOutcome};
use a2a_registry_domain::review::{ChangeClass, VersionState};
use a2a_registry_domain::signature::SignatureState;
use a2a_registry_domain::source::{CredentialKind, SourceKind, SourceState};
use a2a_registry_domain::timestamp::{DAY, HOUR, MINUTE, Timestamp};
use a2a_registry_domain::trust::TrustLevel;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::pages::agent::diff::DiffPageData;
use crate::pages::agent::page_extras::{AgentPageExtras, DailyFetches};
use crate::pages::search::provider_names::hit_provider_names;
use crate::pages::search::{AgentListWithFilterNames, FilterValueNames};

pub const NOW: Timestamp = Timestamp(1_767_225_600_000_000);
pub const REGISTRY: &str = "https://registry.example.com";

/// Text that is an attack in every language that it may be inserted into.
pub const HOSTILE: &str = "'; $(id) `id` <script>alert(1)</script> \"><img src=x onerror=alert(1)> {{7*7}} %s \
    \u{1b}[2J\u{1b}]0;owned\u{7} \u{202e}gnp\u{202c} zero\u{200b}width \u{feff}\u{0}\u{2028}\\ ${x} !! javascript:alert(1) é 東京\n--";

/// List as input for the search page.
pub fn found(list: AgentList) -> AgentListWithFilterNames {
    AgentListWithFilterNames {
        names: FilterValueNames {
            providers: hit_provider_names(&list.agents),
            ..FilterValueNames::default()
        },
        list,
    }
}

pub fn card(document: &Value) -> AgentCard {
    a2a_card::parse_card(&serde_json::to_vec(document).unwrap())
        .unwrap()
        .card
}

/// Benign 1.0 card.
pub fn travel() -> Value {
    json!({
        "name": "Northwind Travel Desk",
        "description": "Plans trips from the first idea to the boarding pass: finds and books flights, hotels and trains, and keeps the itinerary up to date when something changes on the way.\n\nAnswers in English, German and Spanish.",
        "version": "4.2.0",
        "provider": {"organization": "Northwind Travel", "url": "https://northwind.example"},
        "documentationUrl": "https://docs.northwind.example/travel-desk",
        "supportedInterfaces": [
            {"url": "https://agents.northwind.example/travel/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": "https://agents.northwind.example/travel/rest", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
            {"url": "grpc.northwind.example:443", "protocolBinding": "GRPC", "protocolVersion": "1.0"}
        ],
        "capabilities": {"streaming": true, "pushNotifications": true,
            "extensions": [{"uri": "https://northwind.example/ext/loyalty/v1", "description": "Collects and spends miles", "required": false}]},
        "securitySchemes": {
            "token": {"httpAuthSecurityScheme": {"scheme": "Bearer", "bearerFormat": "JWT"}},
            "key": {"apiKeySecurityScheme": {"location": "header", "name": "X-Api-Key"}}},
        "securityRequirements": [{"schemes": {"token": {}}}, {"schemes": {"key": {}}}],
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain"],
        "skills": [
            {"id": "book-flight", "name": "Book flights", "description": "Searches fares over 400 airlines, holds a seat for 24 hours and books it when told to.", "tags": ["flights", "booking", "travel"], "examples": ["Find me a flight from Berlin to Lisbon on Friday", "Book the 9:40 one and add a bag"]},
            {"id": "find-hotel", "name": "Find a hotel", "description": "Compares hotels by price, distance and reviews.", "tags": ["hotels", "travel"], "examples": ["A quiet place near the old town, under 120 € a night"]},
            {"id": "rebook", "name": "Rebook after a delay", "description": "Watches a booked trip and proposes another way when a connection is lost.", "tags": ["flights", "trains", "support"]},
            {"id": "expenses", "name": "Expense report", "description": "Turns receipts into an expense report.", "tags": ["finance"], "inputModes": ["image/png", "application/pdf"], "outputModes": ["application/pdf"]}
        ]
    })
}

/// 0.3 card that requires no credentials.
pub fn weather() -> Value {
    json!({
        "protocolVersion": "0.3.0", "name": "Weather", "version": "1.0",
        "description": "Tells the weather of any place for the next ten days.",
        "url": "https://weather.example.org/a2a", "preferredTransport": "JSONRPC",
        "provider": {"organization": "Met Office of Nowhere", "url": "https://weather.example.org"},
        "capabilities": {"streaming": false},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "forecast", "name": "Forecast", "description": "The next ten days, hour by hour.", "tags": ["weather", "travel"], "examples": ["Will it rain in Lisbon on Friday?"]}]
    })
}

/// Card with the same text in every text member.
pub fn hostile(text: &str) -> Value {
    json!({
        "name": text, "description": text, "version": text,
        "provider": {"organization": text, "url": "javascript:alert(1)"},
        "documentationUrl": format!("javascript://x/%0a{text}"), "iconUrl": text,
        "supportedInterfaces": [
            {"url": text, "protocolBinding": text, "protocolVersion": text, "tenant": text},
            {"url": "https://evil.example/a'b\"c$(id)`id`?x=[1-9]{a,b}&y='; echo", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": text.chars().take(40).collect::<String>()}
        ],
        "capabilities": {"streaming": true, "extensions": [{"uri": text, "description": text, "required": true}, {"uri": "javascript:alert(2)"}]},
        "securitySchemes": {text: {"apiKeySecurityScheme": {"location": "query", "name": text.chars().take(60).collect::<String>(), "description": text}}},
        "securityRequirements": [{"schemes": {text: {"list": [text]}}}],
        "defaultInputModes": [text], "defaultOutputModes": [text],
        "skills": [{"id": text, "name": text, "description": text, "tags": [text], "examples": [text.chars().filter(|c| *c != '\n').take(120).collect::<String>(), text], "inputModes": [text], "outputModes": [text]}],
        "signatures": [{"protected": text, "signature": text}],
    })
}

pub fn summary(card: &AgentCard, number: u128) -> Summary {
    let id = Uuid::from_u128((0x0193_f00d_7000_8000 << 64) | number);
    Summary {
        id,
        urn: None,
        name: card.name.clone(),
        description: card.description.clone(),
        version: card.version.clone(),
        provider: card.provider.as_ref().map(|provider| Provider {
            organization: provider.organization.clone(),
            url: provider.url.clone(),
        }),
        domain: "agents.northwind.example".into(),
        interfaces: card
            .interfaces
            .iter()
            .map(|interface| Interface {
                url: interface.url.clone(),
                binding: interface.binding.clone(),
                protocol_version: interface.protocol_version.clone(),
                tenant: interface.tenant.clone(),
            })
            .collect(),
        capabilities: Capabilities {
            streaming: card.capabilities.streaming,
            push_notifications: card.capabilities.push_notifications,
            extended_agent_card: card.capabilities.extended_agent_card,
            extensions: card
                .capabilities
                .extensions
                .iter()
                .map(|e| e.uri.clone())
                .collect(),
        },
        skills: card
            .skills
            .iter()
            .map(|skill| HitSkill {
                id: skill.id.clone(),
                name: skill.name.clone(),
                description: skill.description.clone(),
                tags: skill.tags.clone(),
            })
            .collect(),
        skills_total: card.skills.len() as u64,
        shortened: false,
        tags: a2a_card::skill_tags(card),
        auth: a2a_card::auth_labels(card),
        labels: BTreeMap::from([("tier".into(), "gold".into())]),
        trust: Trust {
            level: Some(TrustLevel::L1.into()),
            domain: DomainState::Verified.into(),
            signature: SignatureState::Unsigned.into(),
        },
        lifecycle: ShownLifecycle::Approved.into(),
        visibility: Visibility::Public.into(),
        liveness: Liveness {
            state: LivenessState::Fresh.into(),
            reason: None,
            last_seen: Some(NOW.plus_micros(-4 * MINUTE)),
            last_changed: Some(NOW.plus_micros(-9 * DAY)),
            next_due: Some(NOW.plus_micros(26 * MINUTE)),
        },
        endpoint: EndpointSummary::default(),
        deprecation: None,
        card_digest: format!("sha256:{}", "5e".repeat(32)),
        links: Links {
            this: format!("{REGISTRY}/v1/agents/{id}"),
            card: format!("{REGISTRY}/v1/agents/{id}/card"),
            page: format!("{REGISTRY}/agents/{id}/"),
            resolver: format!("{REGISTRY}/agents/{id}/"),
            origin: Some("https://agents.example/.well-known/agent-card.json".to_owned()),
            similar: format!("{REGISTRY}/v1/agents/{id}/similar"),
        },
    }
}

/// Hit whose texts match `word` where they contain it.
pub fn hit(card: &AgentCard, number: u128, word: &str) -> Hit {
    let mut highlights = Vec::new();
    let mut add = |field: &str, skill: Option<&str>, text: &str| {
        let Some(start) = text.find(word).filter(|_| !word.is_empty()) else {
            return;
        };
        let end = start + word.len();
        let fragment = |text: &str, matched| Fragment {
            text: text.into(),
            matched,
        };
        highlights.push(HighlightView {
            field: field.into(),
            skill: skill.map(str::to_owned),
            fragments: vec![
                fragment(&text[..start], false),
                fragment(&text[start..end], true),
                fragment(&text[end..], false),
            ],
        });
    };
    add("name", None, &card.name);
    add(
        "description",
        None,
        card.description.as_deref().unwrap_or_default(),
    );
    for skill in &card.skills {
        add("skill.name", Some(&skill.id), &skill.name);
        add(
            "skill.description",
            Some(&skill.id),
            skill.description.as_deref().unwrap_or_default(),
        );
    }
    let matched_skills: Vec<String> = highlights
        .iter()
        .filter_map(|highlight| highlight.skill.clone())
        .collect();
    Hit {
        summary: summary(card, number),
        matched: Match {
            score: Some(1.0),
            weak: false,
            highlights,
            matched_skills,
            explain: None,
            duplicates: None,
        },
    }
}

pub fn list(hits: Vec<Hit>, total: u64) -> AgentList {
    let facet = |values: &[(&str, u64)]| Facet {
        values: values
            .iter()
            .map(|(value, count)| FacetValue {
                value: (*value).to_owned(),
                count: *count,
            })
            .collect(),
        other_count: if values.len() > 6 { 12 } else { 0 },
    };
    AgentList {
        agents: hits,
        total,
        total_fitting: total,
        groups: None,
        facets: BTreeMap::from([
            (
                "tag".into(),
                facet(&[
                    ("travel", 812),
                    ("flights", 340),
                    ("weather", 201),
                    ("finance", 96),
                    ("support", 88),
                    ("hotels", 61),
                    ("booking", 40),
                    ("trains", 12),
                ]),
            ),
            (
                "capability".into(),
                facet(&[("streaming", 933), ("push_notifications", 120)]),
            ),
            (
                "protocol_version".into(),
                facet(&[("1.0", 640), ("0.3", 590), ("0.2", 17)]),
            ),
            (
                "binding".into(),
                facet(&[("JSONRPC", 1201), ("HTTP+JSON", 310), ("GRPC", 44)]),
            ),
            (
                "auth".into(),
                facet(&[
                    ("http:bearer", 420),
                    ("none", 390),
                    ("oauth2", 201),
                    ("apiKey", 90),
                ]),
            ),
            (
                "trust".into(),
                facet(&[("L0", 700), ("L1", 410), ("L2", 62), ("none", 75)]),
            ),
            ("liveness".into(), facet(&[("fresh", 1199), ("stale", 48)])),
        ]),
        facets_count: "total_fitting".into(),
        order: "relevance".into(),
        mode: "lexical".into(),
        understood: None,
        hints: Vec::new(),
        next_page_token: Some("eyJ2IjoxfQ.c2lnbmF0dXJl".into()),
    }
}

pub fn agent(card: AgentCard, text: &str) -> Agent {
    Agent {
        security: a2a_card::security_sentences(&card),
        hit: Hit {
            summary: summary(&card, 7),
            matched: Match::default(),
        },
        decision: Decision {
            state: VersionState::Approved.into(),
            rules: vec!["person".into()],
            by: "maria".into(),
            at: NOW.plus_micros(-9 * DAY),
            reason: Some(text.into()),
            self_approved: true,
            expires_at: None,
        },
        coverage: Coverage::Covered.into(),
        sponsor: Some(text.into()),
        derived_queries: false,
        groups: vec![text.into()],
        collections: vec![text.into()],
        holds: Vec::new(),
        break_glass: None,
        former_urn: Some(text.into()),
        hidden_from: Some(HiddenFrom {
            callers: 3,
            of_callers: 7,
            truncated: false,
            anonymous: true,
            groups: vec![text.into()],
            policies: vec![text.into()],
        }),
        assumed_url: None,
        signature_verdict: verdict(text),
        card,
    }
}

pub fn similar(document: &Value) -> Similar {
    Similar {
        agents: vec![hit(&card(document), 7, "")],
        mode: "semantic".to_owned(),
        duplicates: Some(Duplicates {
            count: 12,
            agents: (20..30).map(Uuid::from_u128).collect(),
        }),
    }
}

pub fn verdict(text: &str) -> SignatureVerdict {
    SignatureVerdict {
        state: SignatureState::Invalid.into(),
        reason: text.into(),
        signatures: vec![SignatureEntryView {
            kid: Some(text.into()),
            alg: Some(text.into()),
            key_thumbprint: Some(text.into()),
            key_from: Some(text.into()),
            verdict: SignatureState::Invalid.into(),
            reason: text.into(),
        }],
    }
}

pub fn hold(text: &str) -> HoldView {
    HoldView {
        hold: Hold::CriticalChange.into(),
        reason: text.into(),
        since: NOW.plus_micros(-HOUR),
    }
}

pub fn versions(text: &str) -> VersionList {
    let version = |n: u8, state, change_class: Option<ChangeClass>, served| Version {
        digest: format!("sha256:{}", format!("{n:02x}").repeat(32)),
        content_digest: text.into(),
        observed_at: NOW.plus_micros(-i64::from(n) * DAY),
        state: OpenEnum::from(state),
        change_class: change_class.map(OpenEnum::from),
        wire_family: "1.0".into(),
        served,
        signature_verdict: verdict(text),
    };
    VersionList {
        versions: vec![
            version(9, VersionState::Approved, Some(ChangeClass::Low), true),
            version(40, VersionState::Superseded, Some(ChangeClass::High), false),
            version(71, VersionState::Approved, None, false),
        ],
        next_page_token: None,
    }
}

pub fn findings(text: &str) -> FindingList {
    FindingList {
        digest: text.into(),
        findings: vec![FindingView {
            rule: "skill.tags.empty".into(),
            severity: "warning".into(),
            pointer: "/skills/3/tags".into(),
            found: text.into(),
            wanted: text.into(),
            hint: text.into(),
            section: "1.0 4.4.5".into(),
            line: None,
            column: None,
        }],
    }
}

pub fn background(text: &str) -> AgentPageExtras {
    let today = i32::try_from(NOW.0 / DAY).unwrap();
    let day = |ago: i32, fetches, good| DailyFetches {
        day: today - ago,
        fetches,
        successful: good,
    };
    AgentPageExtras {
        collections: vec![text.into()],
        endpoint: None,
        days: vec![day(0, 2, 2), day(1, 2, 1)],
        proofs: vec![Proof {
            method: Method::Dns.into(),
            at: NOW.plus_micros(-9 * DAY),
            seen: NOW.plus_micros(-HOUR),
            missing_since: None,
            reason: None,
        }],
        owner: Some(text.into()).filter(|owner: &String| !owner.is_empty()),
        watched: Some(false),
        ..AgentPageExtras::default()
    }
}

/// Configuration with the public URL of the samples and a contact.
pub fn config() -> Config {
    let mut config = Config::default();
    config.server.public_url = REGISTRY.to_owned();
    config.crawler.contact = "mailto:ops@registry.example.com".to_owned();
    config
}

/// Comparison of the newest two of [`versions`].
pub fn diff(text: &str) -> DiffPageData {
    let versions = versions(text);
    DiffPageData {
        name: "Northwind Travel Desk".into(),
        agent: Uuid::from_u128(7).to_string(),
        diff: Diff {
            from: versions.versions[1].digest.clone(),
            to: versions.versions[0].digest.clone(),
            change_class: ChangeClass::Critical.into(),
            changes: vec![
                Change {
                    pointer: "/supportedInterfaces/0/url".into(),
                    before: Some(json!("https://old.northwind.example/rpc")),
                    after: Some(json!("https://new.northwind.example/rpc")),
                    class: ChangeClass::Critical.into(),
                    reason: text.into(),
                },
                Change {
                    pointer: "/documentationUrl".into(),
                    before: None,
                    after: Some(json!({"href": text})),
                    class: ChangeClass::Low.into(),
                    reason: text.into(),
                },
            ],
            cut: true,
        },
        versions,
    }
}

pub fn linted(text: &str) -> CardLint {
    let mut found = findings(text).findings.remove(0);
    found.rule = "endpoint.private".into();
    found.line = Some(3);
    found.column = Some(10);
    CardLint {
        digest: text.into(),
        name: "Echo".into(),
        wire_family: "0.3".into(),
        reason: "it has a `url`".into(),
        findings: vec![found],
    }
}

pub fn domain(text: &str) -> DomainView {
    let attempt = AttemptView {
        at: NOW.plus_micros(-4 * MINUTE),
        outcome: "not_modified".into(),
        status: Some(304),
        cache: Some("revalidated".into()),
        elapsed_ms: 180,
        address: None,
        detail: text.into(),
        url: "https://agents.northwind.example/.well-known/agent-card.json".into(),
    };
    let earlier = (1..20).map(|number| AttemptView {
        at: NOW.plus_micros(-number * HOUR),
        outcome: "timeout".into(),
        status: None,
        cache: None,
        elapsed_ms: 10_000 + u32::try_from(number).unwrap(),
        ..attempt.clone()
    });
    let earlier: Vec<AttemptView> = earlier.collect();
    DomainView {
        domain: "agents.northwind.example".into(),
        state: DomainState::Verified.into(),
        generation: 1,
        owner: Some(text.into()),
        owner_vouch: Some(OwnerVouch {
            since: NOW.plus_micros(-9 * DAY),
            until: NOW.plus_micros(9 * DAY),
            by: Some(text.into()),
            reason: Some(text.into()),
        }),
        endpoint_vouch: Some(EndpointVouch {
            since: NOW,
            by: text.into(),
            reason: text.into(),
        }),
        endpoint_checks_off: false,
        contact: Some(text.into()),
        checks: vec![ProofCheck {
            at: NOW,
            method: Method::Dns.into(),
            place: text.into(),
            outcome: ProofOutcome::Wrong.into(),
            detail: text.into(),
            wanted: Some(text.into()),
            found: vec![text.into()],
            aliased: true,
        }],
        known_by: Some(OwnerFingerprint {
            name_servers: vec!["ns1.northwind.example".into(), text.into()],
            tls_key: Some(text.into()),
            card_keys: vec![text.into()],
            at: NOW,
        }),
        keys: Vec::new(),
        complete: true,
        not_listed: vec![text.into()],
        next_check: Some(NOW.plus_micros(5 * HOUR)),
        proofs: vec![Proof {
            method: Method::Operator.into(),
            at: NOW.plus_micros(-9 * DAY),
            seen: NOW.plus_micros(-9 * DAY),
            missing_since: Some(NOW.plus_micros(-9 * DAY)),
            reason: Some(text.into()),
        }],
        no_challenge: None,
        challenges: vec![Challenge {
            method: Method::Dns.into(),
            name: Some("_a2a-registry.agents.northwind.example".into()),
            url: None,
            value: Some(text.into()),
            body: None,
            expires: Some(NOW.plus_micros(7 * DAY)),
        }],
        sources: vec![
            SourceView {
                id: "1".into(),
                url: "https://agents.northwind.example/.well-known/agent-card.json".into(),
                kind: SourceKind::WellKnown.into(),
                state: SourceState::Fresh.into(),
                agent: None,
                coverage: Coverage::Covered.into(),
                own: true,
                limit_met: None,
                card_url: None,
                credential: None,
                last_attempt: Some(attempt),
                attempts: earlier,
                next_due: Some(NOW.plus_micros(26 * MINUTE)),
                max_age: None,
                vary: None,
                validators: Some(KnownValidators {
                    etag: true,
                    last_modified: false,
                }),
                days: vec![SourceDay {
                    day: "2025-12-31".into(),
                    looks: 40,
                    good: 39,
                }],
            },
            SourceView {
                id: "2".into(),
                url: "https://agents.northwind.example/cards/expenses.json".into(),
                kind: SourceKind::Url.into(),
                state: SourceState::New.into(),
                agent: None,
                coverage: Coverage::Covered.into(),
                own: true,
                limit_met: None,
                card_url: None,
                credential: Some(SourceCredentialView {
                    kind: CredentialKind::Header.into(),
                    origin: "https://agents.northwind.example".into(),
                    set_at: NOW,
                    set_by: Some(text.into()),
                }),
                last_attempt: None,
                attempts: Vec::new(),
                next_due: Some(NOW),
                max_age: None,
                vary: None,
                validators: None,
                days: Vec::new(),
            },
            SourceView {
                id: "3".into(),
                url: "https://agents.northwind.example/.well-known/ard.json".into(),
                kind: SourceKind::Ard.into(),
                state: SourceState::Absent.into(),
                agent: None,
                coverage: Coverage::Covered.into(),
                own: true,
                limit_met: None,
                card_url: None,
                credential: None,
                last_attempt: None,
                attempts: Vec::new(),
                next_due: Some(NOW),
                max_age: None,
                vary: None,
                validators: None,
                days: Vec::new(),
            },
        ],
        agents: vec![Uuid::from_u128(7)],
        created_at: NOW.plus_micros(-9 * DAY),
    }
}
