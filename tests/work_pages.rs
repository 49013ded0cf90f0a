//! The pages of those who work here, with a browser's session but without a browser: the queue of a curator, the acts on
//! an agent, the log of an auditor, and the accounts of an admin.

use a2a_registry_api::{Review, ReviewList};
use serde_json::{Value, json};

use crate::policy_pages::{PageSession, assert_shows};
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::program::{Program, assert_exit, join_lines};
use crate::support::serving_registry::ServingRegistry;
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};

/// One more than a page of the queue holds, and one batch decides.
const MANY: usize = 51;

/// Registers that many cards, which wait for their reviews.
pub(crate) async fn register_waiting(registry: &ServingRegistry, count: usize) -> Origin {
    let origin = Origin::start();
    let registrations: Vec<Value> = (0..count)
        .map(|number| {
            let path = format!("/{number}.json");
            let card = card_json(&format!("Agent {number}"), &format!("skill{number}"));
            origin.set_reply(&path, OriginReply::json(card));
            json!({"card_url": origin.url(&path)})
        })
        .collect();
    let body = json!({"registrations": registrations});
    let registered = registry.post_as_admin("/v1/domains:register", &body).await;
    assert!(registered.status.is_success(), "{}", registered.text());
    eventually("every card waits", || async {
        let list = open_reviews(registry, "").await;
        (list.reviews.len() == count).then_some(())
    })
    .await;
    origin
}

pub(crate) async fn open_reviews(registry: &ServingRegistry, filter: &str) -> ReviewList {
    let path = format!("/v1/reviews?state=open&page_size=100{filter}");
    registry.read_as_admin(&path).await
}

/// The values of the hidden fields or checkboxes with this name.
fn values(page: &str, name: &str) -> Vec<String> {
    let mark = format!("name=\"{name}\"");
    let fields = page.split(mark.as_str()).skip(1);
    let value = |rest: &str| {
        let value = rest.split("value=\"").nth(1)?.split('"').next()?;
        Some(value.to_owned())
    };
    fields.filter_map(value).collect()
}

fn batch<'a>(picks: &'a [String], further: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let picks = picks.iter().map(|pick| ("pick", pick.as_str()));
    picks.chain(further.iter().copied()).collect()
}

#[tokio::test]
async fn every_review_that_matches_is_decided_in_batches() {
    let registry = RegistrySetup::new().start().await;
    let _origin = register_waiting(&registry, MANY).await;
    let curator = PageSession::sign_in(&registry, ADMIN_TOKEN).await;
    let page = curator.get("/reviews").await;
    let counted = format!("Open <span class=\"n\">{MANY}</span>");
    assert_shows(
        &page,
        200,
        &[&counted, "Choose all that match", "Next page"],
    );
    let chosen = curator.get("/reviews?choose=matching").await;
    assert_shows(&chosen, 200, &["51 open reviews match."]);
    let picks = values(&chosen.1, "pick");
    assert_eq!(picks.len(), MANY);

    let decision = [("verdict", "approve"), ("reason", "all known")];
    let first = curator.post("/reviews", &batch(&picks, &decision)).await;
    let words = ["<b>50</b> decided", "<b>1</b> to go", "Decide the next 1"];
    assert_shows(&first, 200, &words);
    let left = values(&first.1, "pick");
    assert_eq!(left, picks[50..]);
    assert_eq!(open_reviews(&registry, "").await.reviews.len(), 1);
    let continued = [decision[0], decision[1], ("decided", "50")];
    let last = curator.post("/reviews", &batch(&left, &continued)).await;
    let words = [
        "50 reviews were decided in earlier batches",
        "<h2>Results</h2>",
    ];
    assert_shows(&last, 200, &words);
    assert!(open_reviews(&registry, "").await.reviews.is_empty());

    // One more than can be chosen is refused as a whole.
    let too_many: Vec<String> = (0..=500).map(|_| picks[0].clone()).collect();
    let refused = curator.post("/reviews", &batch(&too_many, &decision)).await;
    assert_shows(&refused, 400, &["Select at most 500 reviews."]);
    registry.stop().await;
}

#[tokio::test]
async fn reviews_are_found_by_what_their_cards_say_and_lead_to_the_next_one() {
    let registry = RegistrySetup::new().start().await;
    let origin = register_waiting(&registry, 3).await;
    let host = "echo.agents.dev";
    for (filter, count) in [
        ("&tag=SKILL1", 1),
        ("&tag=nothing", 0),
        ("&endpoint_host=echo.agents.dev", 3),
        ("&endpoint_host=agents.dev", 0),
        ("&provider=Nobody", 0),
        ("&submitter=admin", 3),
        ("&submitter=nobody", 0),
        ("&auth=none&tag=skill2", 1),
    ] {
        let list = open_reviews(&registry, filter).await;
        assert_eq!(list.reviews.len(), count, "{filter}");
    }
    // A page goes on after the last card that was read, and not after the last that matched.
    let first: ReviewList = registry
        .read_as_admin(&format!("/v1/reviews?endpoint_host={host}&page_size=2"))
        .await;
    let token = first.next_page_token.unwrap();
    let path = format!("/v1/reviews?endpoint_host={host}&page_size=2&page_token={token}");
    let second: ReviewList = registry.read_as_admin(&path).await;
    let names = |list: &[Review]| list.iter().map(|one| one.name.clone()).collect::<Vec<_>>();
    let mut found = [names(&first.reviews), names(&second.reviews)].concat();
    found.sort_unstable();
    assert_eq!(found, ["Agent 0", "Agent 1", "Agent 2"]);

    let curator = PageSession::sign_in(&registry, ADMIN_TOKEN).await;
    let words = [
        "is good at skill1",
        "by <bdi>admin</bdi>",
        "value=\"skill1\"",
    ];
    let queue = curator.get("/reviews?tag=skill1").await;
    assert_shows(&queue, 200, &words);
    assert!(!queue.1.contains("Agent 2"), "{}", queue.1);
    let review = open_reviews(&registry, "&tag=skill1")
        .await
        .reviews
        .remove(0);
    let decision = [
        ("act", "approve"),
        ("digest", review.digest.as_str()),
        ("reason", "it is fine"),
    ];
    let page = format!("/reviews/{}?endpoint_host={host}", review.id);
    assert_eq!(curator.post(&page, &decision).await.0, 303);
    let next = open_reviews(&registry, "").await.reviews.remove(0);
    let path = format!("/reviews/{}?done={}", next.id, review.id);
    let words = [
        "The card of Agent 1 is approved",
        "it is fine",
        "To that review",
    ];
    assert_shows(&curator.get(&path).await, 200, &words);
    // What changed against the approved card is named.
    let changed = card_json("Agent 1", "juggle");
    origin.set_reply("/1.json", OriginReply::json(changed));
    registry
        .recrawl_and_wait(&origin.address().to_string())
        .await;
    let change = registry
        .wait_for_open_review(|one| one.previous.is_some())
        .await;
    let card = change.card.unwrap();
    assert_eq!(card.changed, ["description", "skills"]);
    registry.stop().await;
}

#[tokio::test]
async fn an_owner_and_a_curator_act_on_the_page_of_an_agent() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    let id = registry.publish(&origin.url("/a.json")).await;
    let page = format!("/agents/{id}/");
    let curator =
        PageSession::sign_in(&registry, &registry.create_token("cora", "curator").await).await;
    let reader =
        PageSession::sign_in(&registry, &registry.create_token("rea", "reader").await).await;
    assert!(!reader.get(&page).await.1.contains("id=\"manage\""));
    let suspend = format!("/agents/{id}/acts/suspend");
    assert_eq!(reader.get(&suspend).await.0, 403);
    let managed = curator.get(&page).await;
    assert_shows(&managed, 200, &["id=\"manage\"", &suspend, "/acts/retire"]);
    assert!(!managed.1.contains("/acts/resume"), "{}", managed.1);
    assert!(!managed.1.contains("id=\"unmanaged\""), "{}", managed.1);

    let shown = curator.get(&suspend).await;
    assert_shows(&shown, 200, &["put on hold", "name=\"reason\""]);
    let blank = curator.post(&suspend, &[("reason", " ")]).await;
    assert_shows(&blank, 400, &["A reason must have 1 to"]);
    let reason = ("reason", "<b>odd</b>");
    assert_eq!(curator.post(&suspend, &[reason]).await.0, 303);
    let held = curator.get(&page).await;
    assert_shows(&held, 200, &["On hold", "&#60;b&#62;odd", "/acts/resume"]);
    let resume = format!("/agents/{id}/acts/resume");
    let hold = [("hold", "operator"), ("reason", "it was nothing")];
    assert_eq!(curator.post(&resume, &hold).await.0, 303);

    let labels = format!("/agents/{id}/acts/labels");
    let wrong = [("labels", "team"), reason];
    let refused = curator.post(&labels, &wrong).await;
    assert_shows(&refused, 400, &["key=value", ">team</textarea>"]);
    let form = seen_tag(&curator.get(&labels).await.1);
    let seen = ("seen", form.as_str());
    let set = [("labels", "team=blue\nstage=test"), reason, seen];
    assert_eq!(curator.post(&labels, &set).await.0, 303);
    // The form that was opened before would undo what was set meanwhile.
    let stale = curator.post(&labels, &[("labels", ""), reason, seen]).await;
    assert_shows(&stale, 412, &["Nothing was changed"]);
    assert_shows(&curator.get(&page).await, 200, &["team=blue", "stage=test"]);
    let run = async |arguments: &[&str]| registry.run_admin_command(arguments).await;
    let labelled = run(&["agent", "label", &id, "stage=", "tier=1"]).await;
    assert_exit(&labelled, 0, "");
    assert!(join_lines(&labelled.stdout).contains("labelled team=blue, tier=1"));

    let visibility = format!("/agents/{id}/acts/visibility");
    let form = seen_tag(&curator.get(&visibility).await.1);
    let seen = ("seen", form.as_str());
    let internal = [
        ("visibility", "internal"),
        ("groups", "nothing"),
        reason,
        seen,
    ];
    assert_eq!(curator.post(&visibility, &internal).await.0, 303);
    let agent: Value = registry.read_as_admin(&format!("/v1/agents/{id}")).await;
    assert_eq!(agent["visibility"], "internal");
    // What cannot be undone needs its own confirmation.
    let retire = format!("/agents/{id}/acts/retire");
    let hasty = curator.post(&retire, &[reason]).await;
    assert_shows(&hasty, 400, &["Confirm that this cannot be undone."]);
    assert_eq!(
        curator.post(&retire, &[reason, ("confirm", "yes")]).await.0,
        303
    );
    let agent: Value = registry.read_as_admin(&format!("/v1/agents/{id}")).await;
    assert_eq!(agent["lifecycle"], "retired");
    assert_eq!(
        curator.get(&format!("/agents/{id}/acts/nothing")).await.0,
        404
    );
    registry.stop().await;
}

#[tokio::test]
async fn an_auditor_finds_who_approved_what_and_keeps_it_as_a_file() {
    let registry = RegistrySetup::new().start().await;
    let origin = register_waiting(&registry, 2).await;
    let curator =
        PageSession::sign_in(&registry, &registry.create_token("cora", "curator").await).await;
    let review = open_reviews(&registry, "").await.reviews.remove(0);
    let decision = [
        ("act", "approve"),
        ("digest", review.digest.as_str()),
        ("reason", "seen and known"),
    ];
    let path = format!("/reviews/{}", review.id);
    assert_eq!(curator.post(&path, &decision).await.0, 303);

    let auditor =
        PageSession::sign_in(&registry, &registry.create_token("audrey", "auditor").await).await;
    let reader =
        PageSession::sign_in(&registry, &registry.create_token("rea", "reader").await).await;
    assert_eq!(reader.get("/events").await.0, 403);
    let agent = review.agent;
    let found = auditor
        .get(&format!("/events?kind=agent.approved&agent={agent}"))
        .await;
    let words = ["by <bdi>cora</bdi>", "seen and known", &review.digest];
    assert_shows(&found, 200, &words);
    let export = auditor
        .get(&format!("/events/export?agent={agent}&account=cora"))
        .await;
    assert_eq!(export.0, 200);
    let kinds: Vec<String> = export
        .1
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|event| event["kind"].as_str().unwrap().to_owned())
        .collect();
    assert!(kinds.contains(&"agent.approved".to_owned()), "{kinds:?}");
    assert!(kinds.contains(&"review.closed".to_owned()), "{kinds:?}");
    let domain = origin.address().to_string();
    let of_domain: Value = registry
        .read_as_admin(&format!(
            "/v1/events?domain={domain}&newest_first=true&page_size=2"
        ))
        .await;
    let events = of_domain["events"].as_array().unwrap();
    assert_eq!(events.len(), 2, "{of_domain}");
    assert!(events[0]["seq"].as_i64() > events[1]["seq"].as_i64());
    assert!(of_domain["next_page_token"].is_string());
    let none: Value = registry
        .read_as_admin("/v1/events?since=2999-01-01T00:00:00Z")
        .await;
    assert_eq!(none, json!({"events": [], "next_page_token": null}));
    for (filter, status) in [
        ("kind=nothing", 400_u16),
        ("since=now", 400),
        ("order=1", 400),
        ("search=mine", 400),
    ] {
        let refused = registry.get_as_admin(&format!("/v1/events?{filter}")).await;
        assert_eq!(refused.status, status, "{filter}");
    }

    let list = ["events", "--kind", "agent.approved", "--account", "cora"];
    let listed = registry.run_admin_command(&list).await;
    assert_exit(&listed, 0, "");
    assert!(
        join_lines(&listed.stdout).contains("seen and known"),
        "{listed:?}"
    );
    let all = [&list[..], &["--all", "--json"]].concat();
    let exported = Program::run(registry.admin_command(&all)).await;
    let event: Value = serde_json::from_str(&exported.stdout[0]).unwrap();
    assert_eq!(
        (exported.stdout.len(), &event["actor"]),
        (1, &json!("cora"))
    );
    let none = ["events", "--domain", "nobody.dev"];
    assert_exit(
        &registry.run_admin_command(&none).await,
        1,
        "no event matches",
    );
    registry.stop().await;
}

#[tokio::test]
async fn an_admin_makes_the_first_publisher_and_ends_a_leaver() {
    let registry = RegistrySetup::new().start().await;
    let admin = PageSession::sign_in(&registry, ADMIN_TOKEN).await;
    let status = admin.get("/admin").await;
    assert_shows(
        &status,
        200,
        &["This process is ready", "database", "Peers"],
    );
    let none = admin.post("/admin/accounts", &[("name", "pia")]).await;
    assert_shows(&none, 400, &["value=\"pia\""]);
    let new = [("name", "pia"), ("role", "publisher")];
    assert_eq!(admin.post("/admin/accounts", &new).await.0, 303);
    let account: Value = registry.read_as_admin("/v1/accounts/pia").await;
    let page = format!("/admin/accounts/{}", account["id"].as_str().unwrap());
    let token = [("act", "token"), ("name", "first sign-in"), ("days", "7")];
    let made = admin.post(&page, &token).await;
    assert_shows(&made, 201, &["Token first sign-in", "a2ar_"]);
    let secret = made.1.split("<code>a2ar_").nth(1).unwrap();
    let secret = format!("a2ar_{}", secret.split('<').next().unwrap());
    let pia = PageSession::sign_in(&registry, &secret).await;
    assert_eq!(pia.get("/admin").await.0, 403);
    assert_eq!(pia.get("/account").await.0, 200);

    let members = [("name", "travel"), ("members", "pia\n"), ("act", "set")];
    assert_eq!(admin.post("/admin/groups", &members).await.0, 303);
    assert_shows(
        &admin.get("/admin/groups").await,
        200,
        &["travel", "1 member<", "pia"],
    );
    assert_shows(
        &admin.get("/admin/tokens").await,
        200,
        &["first sign-in", "Revoke"],
    );
    assert_shows(&admin.get("/admin/sessions").await, 200, &["pia", "Revoke"]);

    let asked = admin.post(&page, &[("act", "disable")]).await;
    assert_shows(
        &asked,
        200,
        &["Disable the account pia?", "What will be lost"],
    );
    assert_eq!(pia.get("/account").await.0, 200);
    let confirmed = [("act", "disable"), ("confirm", "yes")];
    assert_eq!(admin.post(&page, &confirmed).await.0, 303);
    assert_eq!(pia.get("/account").await.0, 303);
    assert_shows(
        &admin.get(&page).await,
        200,
        &["disabled", "Enable the account"],
    );
    registry.stop().await;
}

/// The entity tag in the first form of a page that has one.
fn seen_tag(page: &str) -> String {
    values(page, "seen").remove(0).replace("&#34;", "\"")
}

#[tokio::test]
async fn a_form_changes_no_account_or_group_that_has_changed_meanwhile() {
    let registry = RegistrySetup::new().start().await;
    let admin = PageSession::sign_in(&registry, ADMIN_TOKEN).await;
    registry.create_token("pia", "publisher").await;
    let account: Value = registry.read_as_admin("/v1/accounts/pia").await;
    let page = format!("/admin/accounts/{}", account["id"].as_str().unwrap());
    let seen = seen_tag(&admin.get(&page).await.1);
    let change = |role: &'static str| [("act", "change"), ("role", role), ("seen", seen.as_str())];
    assert_eq!(admin.post(&page, &change("reader")).await.0, 303);
    // The form that was opened before would give back what was taken.
    let stale = admin.post(&page, &change("publisher")).await;
    assert_shows(&stale, 412, &["Nothing was changed"]);
    let account: Value = registry.read_as_admin("/v1/accounts/pia").await;
    assert_eq!(account["roles"], json!(["reader"]));

    let new = [("name", "travel"), ("members", "pia"), ("act", "set")];
    assert_eq!(admin.post("/admin/groups", &new).await.0, 303);
    // An empty field would remove every member.
    let unread = [("name", "travel"), ("members", ""), ("act", "set")];
    let refused = admin.post("/admin/groups", &unread).await;
    assert_shows(&refused, 409, &["The group exists already"]);
    let edit = admin.get("/admin/groups?edit=travel").await;
    assert_shows(&edit, 200, &[">pia</textarea>"]);
    let seen = seen_tag(&edit.1);
    let emptied = [&unread[..], &[("seen", seen.as_str())]].concat();
    assert_eq!(admin.post("/admin/groups", &emptied).await.0, 303);
    let again = admin.post("/admin/groups", &emptied).await;
    assert_shows(&again, 412, &["Nothing was changed"]);

    // An auditor sees no form, and no link that refuses it.
    let auditor =
        PageSession::sign_in(&registry, &registry.create_token("audrey", "auditor").await).await;
    for path in ["/admin", "/admin/accounts", "/admin/groups", &page] {
        let shown = auditor.get(path).await;
        assert_eq!(shown.0, 200, "{path}");
        let offered = shown.1.contains("/admin/tokens") || shown.1.contains("action=\"/admin");
        assert!(!offered, "{path}: {}", shown.1);
    }
    assert_eq!(auditor.get("/admin/sessions").await.0, 403);
    assert_eq!(auditor.post(&page, &[("act", "disable")]).await.0, 403);
    registry.stop().await;
}

#[tokio::test]
async fn forms_do_only_what_the_account_may() {
    let registry = RegistrySetup::new().start().await;
    let origin = register_waiting(&registry, 1).await;
    let curator = PageSession::sign_in(&registry, ADMIN_TOKEN).await;
    let review = open_reviews(&registry, "").await.reviews.remove(0);
    let decision = [
        ("act", "approve"),
        ("digest", review.digest.as_str()),
        ("reason", "it is fine"),
    ];
    // A refused request has decided nothing.
    let page = format!("/reviews/{}", review.id);
    let invalid = format!("{page}?state=nothing");
    assert_eq!(curator.post(&invalid, &decision).await.0, 400);
    assert_eq!(open_reviews(&registry, "").await.reviews.len(), 1);
    assert_eq!(curator.post(&page, &decision).await.0, 303);

    let acts = format!("/agents/{}/acts", review.agent);
    let publisher =
        PageSession::sign_in(&registry, &registry.create_token("pia", "publisher").await).await;
    let suspend = format!("{acts}/suspend");
    assert_eq!(publisher.get(&suspend).await.0, 403);
    let reason = ("reason", "a rival");
    assert_eq!(publisher.post(&suspend, &[reason]).await.0, 403);
    let confirmed = [reason, ("confirm", "yes")];
    for act in ["retire", "deprecate", "sponsor", "labels", "queries"] {
        let refused = publisher.post(&format!("{acts}/{act}"), &confirmed).await;
        assert_eq!(refused.0, 403, "{act}");
    }
    let agent: Value = registry
        .read_as_admin(&format!("/v1/agents/{}", review.agent))
        .await;
    assert_eq!(agent["lifecycle"], "approved");

    // Who has registered a source withdraws it, whoever is responsible for its agent, and only that registration.
    let domain = format!("/domains/{}", origin.address());
    let withdraw = format!("{domain}/withdraw");
    assert!(!publisher.get(&domain).await.1.contains(&withdraw));
    let target = origin.url("/0.json");
    let registered = publisher
        .post("/account/domains", &[("target", target.as_str())])
        .await;
    assert_eq!(registered.0, 303, "{}", registered.1);
    let shown = publisher.get(&domain).await;
    assert_shows(&shown, 200, &["Withdraw the registration"]);
    let source = values(&shown.1, "source").remove(0);
    let source = ("source", source.as_str());
    let asked = publisher.post(&withdraw, &[source]).await;
    assert_shows(&asked, 200, &["What will be lost", &target]);
    let confirmed = [source, ("confirm", "yes")];
    assert_eq!(publisher.post(&withdraw, &confirmed).await.0, 303);
    assert_eq!(publisher.post(&withdraw, &confirmed).await.0, 404);
    let agent: Value = registry
        .read_as_admin(&format!("/v1/agents/{}", review.agent))
        .await;
    assert_eq!(agent["lifecycle"], "approved");
    registry.stop().await;
}

#[tokio::test]
async fn a_collection_is_made_of_a_search_and_seen_before_it_is_saved() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    registry.publish(&origin.url("/a.json")).await;
    let curator =
        PageSession::sign_in(&registry, &registry.create_token("cora", "curator").await).await;
    let reader =
        PageSession::sign_in(&registry, &registry.create_token("rea", "reader").await).await;
    let filter = format!("domain:{}", origin.address());
    let new = format!("/collections?filter={}", filter.replace(':', "%3A"));
    let search = format!("/?domain={}", origin.address());
    assert_shows(&curator.get(&search).await, 200, &[&new]);
    assert!(!reader.get(&search).await.1.contains("/collections?filter"));
    let value = format!("value=\"{filter}\"");
    let shown = curator.get(&new).await;
    let words = [
        &*value,
        "1 agent",
        ">Echo</a>",
        "Nothing is saved yet",
        "<option value=\"cora\">",
    ];
    assert_shows(&shown, 200, &words);

    let fields = [
        ("name", "echoes"),
        ("filter", filter.as_str()),
        ("owners", "cora"),
        ("owners", ""),
        ("everybody", "true"),
    ];
    let wrong = [("name", "echoes"), ("filter", "echo"), ("act", "preview")];
    let refused = curator.post("/collections", &wrong).await;
    assert_shows(&refused, 400, &["value=\"echoes\"", "and no words"]);
    let preview = [&fields[..], &[("act", "preview")]].concat();
    let previewed = curator.post("/collections", &preview).await;
    assert_shows(&previewed, 200, &["value=\"echoes\"", ">Echo</a>"]);
    assert_eq!(curator.get("/collections/echoes").await.0, 404);
    assert_eq!(curator.post("/collections", &fields).await.0, 303);
    let made = curator.get("/collections/echoes").await;
    assert_shows(&made, 200, &["1 agent", ">Echo</a>", "value=\"cora\""]);

    // A narrower filter is looked at before it is saved.
    let seen = seen_tag(&made.1);
    let narrower = [
        ("filter", "tag:nothing"),
        ("seen", seen.as_str()),
        ("act", "preview"),
    ];
    let looked = curator.post("/collections/echoes", &narrower).await;
    assert_shows(&looked, 200, &["0 agents", "value=\"tag:nothing\""]);
    let kept: Value = registry.read_as_admin("/v1/collections/echoes").await;
    assert_eq!(kept["filter"], filter.as_str());
    assert_eq!(kept["owners"], json!(["cora"]));
    registry.stop().await;
}

#[tokio::test]
async fn an_agent_without_a_responsible_account_leads_to_naming_one() {
    let setup = RegistrySetup::new().approve_all();
    let registry = setup
        .with_config_lines("[governance]\nregistration = \"open\"")
        .start()
        .await;
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    let nomination = json!({"card_url": origin.url("/a.json")});
    let nominate = registry.request(reqwest::Method::POST, "/v1/domains");
    let nominated = nominate.json(&nomination).send().await.unwrap();
    assert!(nominated.status().is_success(), "{nominated:?}");
    let agent = registry.wait_for_hit("unmanaged=true").await.summary.id;
    let curator =
        PageSession::sign_in(&registry, &registry.create_token("cora", "curator").await).await;
    let reader =
        PageSession::sign_in(&registry, &registry.create_token("rea", "reader").await).await;
    let (page, act) = (
        format!("/agents/{agent}/"),
        format!("/agents/{agent}/acts/sponsor"),
    );
    for path in ["/?unmanaged=true", page.as_str()] {
        assert_shows(&curator.get(path).await, 200, &["Name a sponsor", &act]);
        assert!(
            !reader.get(path).await.1.contains("Name a sponsor"),
            "{path}"
        );
    }
    let seen = seen_tag(&curator.get(&act).await.1);
    let sponsor = [
        ("sponsor", "cora"),
        ("reason", "it is ours"),
        ("seen", seen.as_str()),
    ];
    assert_eq!(curator.post(&act, &sponsor).await.0, 303);
    let named = curator.get(&page).await;
    assert_shows(&named, 200, &["id=\"sponsor\""]);
    assert!(!named.1.contains("id=\"unmanaged\""), "{}", named.1);
    registry.stop().await;
}
