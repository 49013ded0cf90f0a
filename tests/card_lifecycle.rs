//! Lifecycle of a card: registered, fetched, approved, found, served, changed, lost.

use a2a_crawler::{Clock as _, SystemClock};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use time::Duration;

use crate::support::api::RegistryClient;
use crate::support::both_databases;
use crate::support::clock::ManualClock;
use crate::support::event_stream::{EventStream, event_seq};
use crate::support::in_process_server::InProcessServer;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::serving_registry::{StatusLine, start_serving};
use crate::support::setup::RegistrySetup;

const CARD: &str = "/.well-known/agent-card.json";

/// A card whose bytes no serializer would write: odd spacing, order and escapes, unknown members, numbers that change
/// when they are parsed. Two signatures differ in their bytes only.
fn card(skill: &str, signature: &str) -> String {
    format!(
        "\r\n{{ \"name\"\t: \"Fern\\u0077eh \u{2708}\",\n  \"x-unknown\": {{\"n\": 1.50e1, \"z\":[ ]}},\
         \"version\":\"1.0\", \"description\":\"Books flights \\/ trains\",\n\
         \"capabilities\":{{}}, \"defaultInputModes\":[\"text/plain\"],\"defaultOutputModes\":[\"text/plain\"],\
         \"supportedInterfaces\":[{{\"url\":\"https://agent.example/rpc\",\"protocolBinding\":\"JSONRPC\",\
         \"protocolVersion\":\"1.0\"}}],\
         \"skills\":[{{\"id\":\"{skill}\",\"name\":\"Skill {skill}\",\"description\":\"does it\",\
         \"tags\":[\"travel\"]}}],\n\
         \"signatures\":[{{\"protected\":\"eyJhbGciOiJFUzI1NiIsImtpZCI6ImsxIiwidHlwIjoiSk9TRSJ9\",\
         \"signature\":\"{signature}\"}}] }}  \n"
    )
}

/// The same content as [`card`] with its members in another order and less white space.
fn reordered(card: &str) -> String {
    let Value::Object(members) = serde_json::from_str(card).unwrap() else {
        panic!("a card is an object");
    };
    let members: Vec<String> = members
        .iter()
        .rev()
        .map(|(name, value)| format!("{}:{value}", json!(name)))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// `sha256:` and the hex digits: a digest as the registry writes it.
fn sha256(bytes: &[u8]) -> String {
    let hex: String = digest(&SHA256, bytes)
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("sha256:{hex}")
}

/// A signature like those of ES256: 64 bytes in base64url, whose last character has spare bits.
fn fake_signature(fill: &str) -> String {
    format!("{}A", fill.repeat(85))
}

/// Approves the next review as a curator through the API; returns the event of the approval.
async fn approve(api: &RegistryClient, feed: &mut EventStream, about: &str) -> Value {
    let opened = feed.wait_for("review.opened").await;
    api.wait_until_indexed(event_seq(&opened)).await;
    let open = api
        .get_as_admin("/v1/reviews?state=open")
        .await
        .expect_status(200);
    let [review] = open["reviews"].as_array().unwrap().as_slice() else {
        panic!("expected one review: {open}");
    };
    assert_eq!(review["digest"], about);
    let path = format!("/v1/reviews/{}:approve", review["id"].as_str().unwrap());
    let decision = json!({"digest": about, "reason": "looked at"});
    let decided = api.post_as_admin(&path, &decision).await.expect_status(200);
    assert_eq!(decided["state"], "approved");
    feed.wait_for("agent.approved").await
}

/// Checks that no kind of request shows an agent that waits for its first approval.
async fn assert_hidden(api: &RegistryClient, agent: &str, card_url: &str, skill: &str) {
    for query in [
        "",
        "q=fernweh",
        &format!("skill={skill}"),
        "tag=travel",
        "lifecycle=pending",
        "facets=tag,skill,domain,provider",
    ] {
        let found = api.search(query).await;
        assert_eq!(found["total"], 0, "{query}: {found}");
        assert!(found["agents"].as_array().unwrap().is_empty(), "{query}");
        for (name, facet) in found["facets"].as_object().unwrap() {
            assert_eq!(facet["values"], json!([]), "{name}");
            assert_eq!(facet["other_count"], 0, "{name}");
        }
    }
    let suggested = api.get("/v1/agents:suggest?q=fer").await.expect_status(200);
    assert_eq!(suggested["suggestions"], json!([]));
    for path in [
        format!("/v1/agents:lookup?url={card_url}"),
        format!("/v1/agents/{agent}"),
        format!("/v1/agents/{agent}/card"),
        format!("/v1/agents/{agent}/versions"),
        format!("/v1/agents/{agent}/findings"),
        format!("/agents/{agent}{CARD}"),
        format!("/agents/{agent}/.well-known/agent.json"),
    ] {
        api.get(&path).await.expect_problem(404, "not-found");
    }
    assert_eq!(api.get(&format!("/agents/{agent}/")).await.status, 404);
    let first_page = api.get("/").await.text();
    assert!(
        first_page.contains("Nothing is public here"),
        "{first_page}"
    );
    for told in ["Fernweh", "last crawled", "book-flights"] {
        assert!(!first_page.contains(told), "{told}: {first_page}");
    }
}

async fn assert_served(api: &RegistryClient, agent: &str, bytes: &str) {
    for path in [
        format!("/v1/agents/{agent}/card"),
        format!("/agents/{agent}{CARD}"),
        format!("/agents/{agent}/.well-known/agent.json"),
    ] {
        let card = api.get(&path).await;
        assert_eq!(card.status, 200, "{path}");
        assert_eq!(card.headers["content-type"], "application/json");
        assert_eq!(sha256(&card.body), sha256(bytes.as_bytes()), "{path}");
    }
}

async fn journey(database: &str, approve_all: bool) {
    let origin = Origin::start();
    let mut setup = RegistrySetup::new().with_database(database);
    if approve_all {
        setup = setup.approve_all();
    }
    let registry = setup.start().await;
    let api = &registry.api;
    let mut feed = api.open_event_stream(0).await;

    // The card is registered, fetched, and hidden before it is approved.
    let first = card("book-flights", &fake_signature("A"));
    let first_digest = sha256(first.as_bytes());
    origin.set_reply(CARD, OriginReply::json(first.clone()));
    let card_url = origin.url(CARD);
    let domain = api.register(&card_url).await.domain;
    assert_eq!(domain, origin.address().to_string());
    let discovered = feed.wait_for("agent.discovered").await;
    let agent = discovered["subject"].as_str().unwrap().to_owned();
    if !approve_all {
        api.wait_until_indexed(event_seq(&discovered)).await;
        assert_hidden(api, &agent, &card_url, "book-flights").await;
    }
    let approved = if approve_all {
        feed.wait_for("agent.approved").await
    } else {
        approve(api, &mut feed, &first_digest).await
    };
    api.wait_until_indexed(event_seq(&approved)).await;

    // The agent is found by every kind of request, and its card is served byte for byte.
    let fields = "fields=name,card_digest&fields=liveness";
    let found = api
        .search(&format!("q=book+flights&tag=travel&facets=tag&{fields}"))
        .await;
    assert_eq!(found["total"], 1, "{found}");
    let hit = &found["agents"][0];
    assert_eq!(hit["id"], agent.as_str());
    assert_eq!(hit["name"], "Fernweh \u{2708}");
    assert_eq!(hit["card_digest"], first_digest.as_str());
    assert_eq!(hit["liveness"]["state"], "fresh");
    let tags = json!([{"value": "travel", "count": 1}]);
    assert_eq!(found["facets"]["tag"]["values"], tags);
    for key in [
        format!("url={card_url}"),
        "url=https://agent.example/rpc".to_owned(),
        format!("digest={first_digest}"),
    ] {
        let path = format!("/v1/agents:lookup?{key}");
        let looked_up = api.get(&path).await.expect_status(200);
        assert_eq!(looked_up["agents"][0]["id"], agent.as_str(), "{key}");
    }
    assert_served(api, &agent, &first).await;
    let first_page = api.get("/").await.text();
    for told in ["Fernweh", ">1 agent</a> from 1 domain, last crawled"] {
        assert!(first_page.contains(told), "{told}: {first_page}");
    }

    // A restarted agent, with a new signature and its members in another order, has the same card: no version, no
    // review, and the approved bytes are still served.
    for again in [
        card("book-flights", &fake_signature("B")),
        reordered(&card("book-flights", &fake_signature("C"))),
    ] {
        assert_ne!(again, first);
        origin.set_reply(CARD, OriginReply::json(again));
        let visited = api.recrawl_and_wait(&domain).await;
        assert_eq!(visited["sources"][0]["last_attempt"]["outcome"], "card");
        assert_served(api, &agent, &first).await;
    }
    let versions = format!("/v1/agents/{agent}/versions");
    let kept = api.get_as_admin(&versions).await.expect_status(200);
    assert_eq!(kept["versions"].as_array().unwrap().len(), 1, "{kept}");
    let reviews = api
        .get_as_admin("/v1/reviews?state=open")
        .await
        .expect_status(200);
    assert_eq!(reviews["reviews"], json!([]));

    // A change is a new version and a new decision; until then the old version is served.
    let second = card("book-trains", &fake_signature("D"));
    let second_digest = sha256(second.as_bytes());
    origin.set_reply(CARD, OriginReply::json(second.clone()));
    api.recrawl_and_wait(&domain).await;
    let changed = feed.wait_for("agent.changed").await;
    let approved = if approve_all {
        feed.wait_for("agent.approved").await
    } else {
        api.wait_until_indexed(event_seq(&changed)).await;
        assert_served(api, &agent, &first).await;
        let list = api.get(&versions).await.expect_status(200);
        assert_eq!(list["versions"].as_array().unwrap().len(), 1, "{list}");
        let early = format!("/v1/agents/{agent}/card?version={second_digest}");
        api.get(&early).await.expect_problem(404, "not-found");
        assert_eq!(api.search("skill=book-trains").await["total"], 0);
        assert_eq!(api.search("skill=book-flights").await["total"], 1);
        approve(api, &mut feed, &second_digest).await
    };
    api.wait_until_indexed(event_seq(&approved)).await;
    assert_served(api, &agent, &second).await;
    assert_eq!(api.search("skill=book-flights").await["total"], 0);
    assert_eq!(api.search("skill=book-trains").await["total"], 1);
    let history = api.get(&versions).await.expect_status(200);
    let kept: Vec<_> = history["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["digest"].as_str().unwrap(), one["served"].clone()))
        .collect();
    let expected = [
        (second_digest.as_str(), json!(true)),
        (first_digest.as_str(), json!(false)),
    ];
    assert_eq!(kept, expected);
    for (digest, bytes) in [(&first_digest, &first), (&second_digest, &second)] {
        let old = format!("/v1/agents/{agent}/card?version={digest}");
        let old = api.get(&old).await;
        assert_eq!(
            old.headers["content-type"],
            "application/a2a-agent-card+json"
        );
        assert_eq!(old.text(), *bytes);
    }

    // The origin loses the card: the agent is stale with the reason, still found and served.
    origin.set_reply(CARD, OriginReply::status(404));
    api.recrawl_and_wait(&domain).await;
    let lost = feed
        .wait_for_match("agent.liveness", |event| event["data"]["state"] == "stale")
        .await;
    api.wait_until_indexed(event_seq(&lost)).await;
    let found = api.search("q=trains").await;
    let liveness = &found["agents"][0]["liveness"];
    assert_eq!(liveness["state"], "stale", "{found}");
    let reason = liveness["reason"].as_str().unwrap();
    assert!(reason.contains("404"), "{reason}");
    assert_eq!(lost["data"]["reason"], reason);
    assert_served(api, &agent, &second).await;
    registry.stop().await;
}

both_databases!(journey_under_approve_all, journey_with_reviews);

/// Life of a card when everything is approved automatically.
async fn journey_under_approve_all(url: &str) {
    journey(url, true).await;
}

/// Life of a card when a curator approves both versions, which are hidden before.
async fn journey_with_reviews(url: &str) {
    journey(url, false).await;
}

both_databases!(journey_to_gone_and_back);

/// 404 for a whole day makes an agent gone: only searches that include gone agents find it, its card is kept, and it is
/// back as soon as the origin is.
async fn journey_to_gone_and_back(url: &str) {
    let origin = Origin::start();
    let bytes = card("book-flights", &fake_signature("A"));
    origin.set_reply(CARD, OriginReply::json(bytes.clone()));
    let clock = ManualClock::new(SystemClock.now());
    let setup = RegistrySetup::new().approve_all().with_database(url);
    let registry = InProcessServer::start(&setup, &clock).await;
    let api = &registry.api;
    let mut feed = api.open_event_stream(0).await;
    let domain = api.register(&origin.url(CARD)).await.domain;
    let approved = feed.wait_for("agent.approved").await;
    let agent = approved["subject"].as_str().unwrap().to_owned();
    api.wait_until_indexed(event_seq(&approved)).await;
    assert_eq!(api.search("").await["total"], 1);

    origin.set_reply(CARD, OriginReply::status(404));
    api.recrawl_and_wait(&domain).await;
    feed.wait_for_match("agent.liveness", |event| event["data"]["state"] == "stale")
        .await;
    // Three attempts and more, and one second less than a day: still only stale.
    for step in [Duration::hours(12), Duration::hours(12) - Duration::SECOND] {
        clock.advance(step);
        api.recrawl_and_wait(&domain).await;
    }
    api.recrawl_and_wait(&domain).await;
    // The database has responded after the clock jump, and the index has applied the events of the visits.
    let found = eventually("the agent is found", || async {
        let answer = api.get("/v1/agents").await;
        let found = (answer.status == 200).then(|| answer.expect_status(200));
        found.filter(|found| found["total"] == 1)
    })
    .await;
    assert_eq!(found["agents"][0]["liveness"]["state"], "stale");

    clock.advance(Duration::seconds(2));
    api.recrawl_and_wait(&domain).await;
    let gone = feed
        .wait_for_match("agent.liveness", |event| event["data"]["state"] == "gone")
        .await;
    api.wait_until_indexed(event_seq(&gone)).await;
    assert_eq!(api.search("").await["total"], 0);
    assert_eq!(api.search("q=flights").await["total"], 0);
    let asked_for = api.search("q=flights&liveness=gone").await;
    assert_eq!(asked_for["total"], 1);
    assert_eq!(asked_for["agents"][0]["id"], agent.as_str());
    assert_eq!(asked_for["agents"][0]["liveness"]["state"], "gone");
    assert_served(api, &agent, &bytes).await;

    origin.set_reply(CARD, OriginReply::json(bytes.clone()));
    api.recrawl_and_wait(&domain).await;
    let back = feed
        .wait_for_match("agent.liveness", |event| event["data"]["state"] == "fresh")
        .await;
    api.wait_until_indexed(event_seq(&back)).await;
    let found = api.search("q=flights").await;
    assert_eq!(found["agents"][0]["id"], agent.as_str());
    assert_eq!(found["agents"][0]["liveness"]["state"], "fresh");
    registry.stop().await;
}

/// Two processes on one PostgreSQL, one that only serves and one that also crawls: an approval at one shows at the
/// other, and a suspension at one hides the agent at both.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn journey_over_two_processes() {
    let database = crate::support::database::Database::postgres().await;
    let setup = |roles: &str| {
        RegistrySetup::new()
            .with_database(database.url())
            .with_argument("--roles")
            .with_argument(roles)
    };
    let first = setup("api").start().await;
    let second = setup("api").start().await;
    // This process serves no requests, so it has no URL.
    let crawling = setup("crawler");
    let (crawler, status_line) = start_serving(crawling.serve_command()).await;
    assert!(
        matches!(status_line, StatusLine::Serving { url: None, .. }),
        "{status_line:?}"
    );
    let origin = Origin::start();
    let bytes = card("book-flights", &fake_signature("A"));
    origin.set_reply(CARD, OriginReply::json(bytes.clone()));

    // Registered and approved at one process, crawled by another, followed by the third.
    let mut far = second.api.open_event_stream(0).await;
    let mut near = first.api.open_event_stream(0).await;
    first.api.register(&origin.url(CARD)).await;
    let approved = approve(&first.api, &mut near, &sha256(bytes.as_bytes())).await;
    let agent = approved["subject"].as_str().unwrap().to_owned();
    far.wait_for("agent.approved").await;
    for api in [&first.api, &second.api] {
        api.wait_until_indexed(event_seq(&approved)).await;
        let found = api.search("q=flights").await;
        assert_eq!(found["agents"][0]["id"], agent.as_str());
        assert_served(api, &agent, &bytes).await;
    }

    // Suspended at the other process: hidden there at once, here as soon as the event has arrived.
    let act = json!({"reason": "looked wrong"});
    let path = format!("/v1/agents/{agent}:suspend");
    second
        .api
        .post_as_admin(&path, &act)
        .await
        .expect_status(200);
    let card_path = format!("/v1/agents/{agent}/card");
    second
        .api
        .get(&card_path)
        .await
        .expect_problem(404, "not-found");
    assert_eq!(second.api.search("q=flights").await["total"], 0);
    let held = near.wait_for("agent.held").await;
    first.api.wait_until_indexed(event_seq(&held)).await;
    first
        .api
        .get(&card_path)
        .await
        .expect_problem(404, "not-found");
    assert_eq!(first.api.search("q=flights").await["total"], 0);

    for server in [first, second] {
        server.stop().await;
    }
    assert_eq!(crawler.terminate().await.status.code(), Some(0));
}
