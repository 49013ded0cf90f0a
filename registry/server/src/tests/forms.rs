//! Tests of page forms that act for a session: collections, the feed, saved searches and reports.

use a2a_registry_api::limits::MAX_AUDIENCE_GROUPS;
use a2a_registry_core::accounts::identity::resolve_subject_account;
use a2a_registry_core::providers::{AccountGrant, TokenSubject};
use a2a_registry_domain::role::Role;
use a2a_registry_http::requests::visitor::form_token;
use actix_web::test::TestRequest;
use serde_json::{Value, json};

use crate::tests::sessions::{near, sign_in, with};
use crate::tests::{ADMIN, Registry, TestResponse};

fn text(answer: &TestResponse) -> String {
    String::from_utf8(answer.body.to_vec()).unwrap()
}

/// Sends a form of a session, with its form token.
async fn send(
    registry: &Registry,
    secret: &str,
    path: &str,
    fields: &[(&str, &str)],
) -> TestResponse {
    let token = form_token(secret);
    let mut all = fields.to_vec();
    all.push(("form_token", &token));
    let request = near(TestRequest::post().uri(path)).set_form(all);
    let request = request.insert_header(("accept", "text/html"));
    registry.ask(with(request, secret)).await
}

async fn read(registry: &Registry, secret: &str, path: &str) -> String {
    let request = near(TestRequest::get().uri(path)).insert_header(("accept", "text/html"));
    text(&registry.ask(with(request, secret)).await)
}

/// The value of a hidden field.
fn field(page: &str, name: &str) -> String {
    let start = format!("name=\"{name}\" value=\"");
    let rest = page.split_once(&start).unwrap().1;
    let value = rest.split_once('"').unwrap().0;
    value.replace("&#34;", "\"").replace("&quot;", "\"")
}

#[actix_web::test]
async fn a_curator_makes_changes_and_deletes_a_collection() {
    let registry = Registry::new().await;
    let curator = sign_in(&registry, &registry.token(Role::Curator).await).await;
    let reader = sign_in(&registry, &registry.token(Role::Reader).await).await;
    let content = [
        ("name", "tax"),
        ("filter", "tag:tax"),
        ("everybody", "true"),
        ("description", "<b>Duties</b>"),
    ];
    let refused = send(&registry, &reader, "/collections", &content).await;
    assert_eq!(refused.status, 403);
    assert!(
        !read(&registry, &reader, "/collections")
            .await
            .contains("id=\"new\"")
    );
    let wrong = [("name", "tax"), ("filter", "only words")];
    let wrong = send(&registry, &curator, "/collections", &wrong).await;
    assert_eq!(wrong.status, 400);
    let page = text(&wrong);
    assert!(
        page.contains("no words") && page.contains("only words"),
        "{page}"
    );
    let made = send(&registry, &curator, "/collections", &content).await;
    assert_eq!(
        (made.status.as_u16(), made.header("location")),
        (303, "/collections/tax")
    );
    let again = send(&registry, &curator, "/collections", &content).await;
    assert_eq!(again.status, 400, "one of this name is there");
    let page = read(&registry, &curator, "/collections/tax").await;
    assert!(
        page.contains("&#60;b&#62;Duties") && !page.contains("<b>Duties"),
        "{page}"
    );
    let seen = field(&page, "seen");
    let path = "/collections/tax";
    let narrowed = [("act", "save"), ("filter", "tag:duty"), ("seen", &seen)];
    let saved = send(&registry, &curator, path, &narrowed).await;
    assert_eq!(saved.status, 303, "{saved:?}");
    assert_eq!(
        registry.get("/v1/collections/tax").await.status,
        404,
        "for curators"
    );
    let late = send(
        &registry,
        &curator,
        path,
        &[("act", "delete"), ("seen", &seen), ("confirm", "yes")],
    )
    .await;
    assert_eq!(late.status, 412);
    assert!(text(&late).contains("someone else has changed this meanwhile"));
    let seen = field(&read(&registry, &curator, path).await, "seen");
    let gone = send(
        &registry,
        &curator,
        path,
        &[("act", "delete"), ("seen", &seen), ("confirm", "yes")],
    )
    .await;
    assert_eq!(
        (gone.status.as_u16(), gone.header("location")),
        (303, "/collections")
    );
    let request = TestRequest::get().uri("/v1/collections/tax");
    assert_eq!(registry.as_with(ADMIN, request).await.status, 404);
}

/// Value of a field on a page, as a browser sends it.
fn sent_back(page: &str, name: &str) -> String {
    let field = page.split_once(&format!("name=\"{name}\"")).unwrap().1;
    let text = match field.split_once("value=\"") {
        Some((attributes, rest)) if !attributes.contains('>') => rest.split_once('"').unwrap().0,
        _ => {
            let rest = field.split_once(">\n").unwrap().1;
            rest.split_once("</textarea>").unwrap().0
        }
    };
    let text = text.replace("&#34;", "\"").replace("&#39;", "'");
    let text = text.replace("&#60;", "<").replace("&#62;", ">");
    text.replace("&#38;", "&").replace('\n', "\r\n")
}

/// Values of the filled text fields with this name.
fn all_sent_back(page: &str, name: &str) -> Vec<String> {
    let mark = format!("name=\"{name}\"");
    let fields = page.match_indices(&mark).map(|(at, _)| &page[at..]);
    let is_filled = |field: &&str| field.split('>').next().unwrap().contains("value=\"");
    fields
        .filter(is_filled)
        .map(|field| sent_back(field, name))
        .collect()
}

/// The page shows and saves every value that the API accepts, without changing it.
#[actix_web::test]
async fn a_collection_is_saved_as_its_page_shows_it() {
    let registry = Registry::new().await;
    let curator = sign_in(&registry, &registry.token(Role::Curator).await).await;
    let issuer = "https://idp.example";
    let mut groups: Vec<String> = (0..MAX_AUDIENCE_GROUPS - 2)
        .map(|number| format!("CN=staff,OU={number} {}", "x".repeat(150)))
        .collect();
    groups.extend([" <b>&\u{202e}".to_owned(), "ü, ö".to_owned()]);
    let holder = TokenSubject {
        issuer: issuer.into(),
        subject: "1".into(),
        issued_at: 1,
        grant: Ok(AccountGrant {
            account_name: "ann@corp".into(),
            groups: Some(groups.clone()),
            roles: [Role::Reader].into_iter().collect(),
        }),
    };
    resolve_subject_account(registry.context(), &holder)
        .await
        .unwrap();
    let audience = groups.iter().map(|name| format!("{issuer}#{name}"));
    let content = json!({
        "filter": "label:\"team=a\u{a0}b\" tag:\"x\u{200b}<y\"",
        "description": "\n One & two\n\u{202e}three\u{a0}",
        "audience": audience.collect::<Vec<_>>(),
        "owners": ["admin", "ann@corp"],
    });
    let path = "/v1/collections/odd";
    let request = TestRequest::put().uri(path).set_json(&content);
    let made = registry.as_with(ADMIN, request).await;
    assert!(made.status.is_success(), "{made:?}");
    let before = registry
        .as_with(ADMIN, TestRequest::get().uri(path))
        .await
        .json();
    let page = read(&registry, &curator, "/collections/odd").await;
    let fields = ["filter", "description", "seen"].map(|name| (name, sent_back(&page, name)));
    let names = ["audience", "owners"].map(|name| (name, all_sent_back(&page, name)));
    let mut sent: Vec<(&str, &str)> = vec![("act", "save"), ("owners", " ")];
    for (name, values) in &names {
        sent.extend(values.iter().map(|value| (*name, value.as_str())));
    }
    sent.extend(fields.iter().map(|(name, text)| (*name, text.as_str())));
    let saved = send(&registry, &curator, "/collections/odd", &sent).await;
    assert_eq!(saved.status, 303, "{}", text(&saved));
    let after = registry
        .as_with(ADMIN, TestRequest::get().uri(path))
        .await
        .json();
    for name in ["filter", "description", "audience", "owners"] {
        assert_eq!(after[name], before[name], "{name}");
    }
    assert_eq!(
        after["audience"].as_array().unwrap().len(),
        MAX_AUDIENCE_GROUPS
    );
}

#[actix_web::test]
async fn an_account_makes_its_feed_and_saves_searches_on_pages() {
    let registry = Registry::new().await;
    let secret = sign_in(&registry, &registry.token(Role::Reader).await).await;
    let made = send(&registry, &secret, "/account/feed", &[]).await;
    assert_eq!(made.status, 201);
    let page = text(&made);
    let address = page.split_once("/feeds/").unwrap().1;
    let address = format!("/feeds/{}", address.split_once('<').unwrap().0);
    assert_eq!(registry.get(&address).await.status, 200);
    let again = read(&registry, &secret, "/account").await;
    assert!(
        !again.contains(&address) && again.contains("Change the feed's address"),
        "{again}"
    );
    let sure = [("confirm", "yes")];
    let ended = send(&registry, &secret, "/account/feed/end", &sure).await;
    assert_eq!(ended.status, 303);
    assert_eq!(registry.get(&address).await.status, 404);

    let results = read(&registry, &secret, "/?tag=travel").await;
    let query = field(&results, "query");
    let save = [("name", "trips, 2027"), ("query", query.as_str())];
    let refused = send(&registry, &secret, "/account/searches", &save).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    let page = text(&refused);
    for kept in [
        "a name must have 1 to",
        "id=\"save\" open",
        "value=\"trips, 2027\"",
        "value=\"tag=travel",
    ] {
        assert!(page.contains(kept), "{kept}: {page}");
    }
    let save = [("name", "trips"), ("query", query.as_str())];
    let saved = send(&registry, &secret, "/account/searches", &save).await;
    assert_eq!(saved.status, 303, "{saved:?}");
    let page = read(&registry, &secret, "/account").await;
    assert!(page.contains("href=\"/?tag=travel\""), "{page}");
    let anybody = registry.get("/?tag=travel").await;
    assert!(!text(&anybody).contains("id=\"save\""));
    let section = page.split_once("id=\"searches\"").unwrap().1;
    let forget = [("id", field(section, "id"))];
    let mut forget: Vec<_> = forget
        .iter()
        .map(|(name, id)| (*name, id.as_str()))
        .collect();
    forget.push(("confirm", "yes"));
    let gone = send(&registry, &secret, "/account/searches/delete", &forget).await;
    assert_eq!(gone.status, 303);
    assert!(
        !read(&registry, &secret, "/account")
            .await
            .contains("/?tag=travel")
    );
}

#[actix_web::test]
async fn no_form_acts_without_the_form_token_of_its_session() {
    let registry = Registry::new().await;
    let secret = sign_in(&registry, &registry.token(Role::Curator).await).await;
    for path in [
        "/account/reports",
        "/account/feed",
        "/account/feed/end",
        "/account/searches",
        "/account/searches/delete",
        "/collections",
        "/collections/tax",
    ] {
        let fields = [("form_token", form_token("of-another-session"))];
        let request = near(TestRequest::post().uri(path)).set_form(fields);
        let answer = registry.ask(with(request, &secret)).await;
        answer.problem(403, "form-refused");
    }
    let answer = registry
        .as_with(ADMIN, TestRequest::get().uri("/v1/searches"))
        .await;
    assert_eq!(answer.json(), json!({"searches": Value::Array(Vec::new())}));
}
