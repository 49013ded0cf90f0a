//! The page of a host that cannot be proved: an admin vouches for its owner there, and ends the vouch.

use serde_json::json;

use crate::policy_pages::{PageSession, assert_shows};
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};

#[tokio::test]
async fn an_admin_vouches_for_an_owner_on_the_hosts_page() {
    let registry = RegistrySetup::new().approve_all().start().await;
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    let agent = registry.publish(&origin.url("/a.json")).await;
    let page = format!("/domains/{}", origin.address());
    let form = format!("{page}/owner-vouch");
    let token = registry.create_token("acme", "publisher").await;
    let acme = PageSession::sign_in(&registry, &token).await;
    let admin = PageSession::sign_in(&registry, ADMIN_TOKEN).await;
    assert!(!acme.get(&page).await.1.contains("vouch-for-owner"));
    assert_shows(&admin.get(&page).await, 200, &["id=\"vouch-for-owner\""]);

    let fields = [
        ("account", "acme"),
        ("reason", "<b>ticket 7</b>"),
        ("days", "30"),
    ];
    let shown = admin.get(&page).await;
    let words = [
        "<summary>Vouch for an owner</summary>",
        "<a href=\"#vouch-for-owner\">Vouch for an owner</a>",
    ];
    assert_shows(&shown, 200, &words);
    assert_eq!(
        shown.1.matches("can, by a record or a file").count(),
        1,
        "{}",
        shown.1
    );
    let unconfirmed = admin.post(&form, &fields).await;
    let kept = [
        "Select the checkbox",
        "id=\"vouch-for-owner\" open",
        "value=\"acme\"",
        "value=\"&#60;b&#62;ticket 7&#60;/b&#62;\"",
        "value=\"30\"",
    ];
    assert_shows(&unconfirmed, 400, &kept);
    let other = [
        ("account", "acmee"),
        fields[1],
        fields[2],
        ("confirmed", "yes"),
    ];
    let unknown = admin.post(&form, &other).await;
    let kept = ["No enabled account has the name acmee.", "value=\"acmee\""];
    assert_shows(&unknown, 400, &kept);
    let confirmed = [&fields[..], &[("confirmed", "yes")]].concat();
    assert_eq!(acme.post(&form, &confirmed).await.0, 403);
    for days in ["", "0", "366", "soon", "-1"] {
        let other = [("days", days), fields[0], fields[1], ("confirmed", "yes")];
        let refused = admin.post(&form, &other).await;
        assert_shows(&refused, 400, &["1 to 365 days"]);
    }
    assert_eq!(admin.post(&form, &confirmed).await.0, 303);
    let words = [
        "Owner: <b><bdi>acme</bdi></b>, vouched for by an admin",
        "This does not prove the domain",
        "&#60;b&#62;ticket 7",
        "End the vouch for the owner",
        "<summary>Change or end the vouch</summary>",
        "<h3>End the vouch</h3>",
    ];
    let vouched = admin.get(&page).await;
    assert_shows(&vouched, 200, &words);
    assert!(
        !vouched.1.contains("ask an admin of this registry"),
        "{}",
        vouched.1
    );
    let own = acme.get(&page).await;
    assert_shows(&own, 200, &words[..3]);
    assert!(!own.1.contains(words[3]), "{}", own.1);
    let shown = registry.get(&page).await.text();
    assert!(
        shown.contains("vouched for by an admin") && !shown.contains("acme"),
        "{shown}"
    );
    let sponsored = registry
        .request(reqwest::Method::PATCH, &format!("/v1/agents/{agent}"))
        .bearer_auth(&token)
        .json(&json!({"sponsor": "acme"}));
    assert_eq!(sponsored.send().await.unwrap().status(), 200);

    let end = format!("{form}/end");
    let sure = [("confirmed", "yes")];
    assert_eq!(acme.post(&end, &sure).await.0, 403);
    assert_shows(&admin.post(&end, &[]).await, 400, &["Select the checkbox"]);
    assert_eq!(admin.post(&end, &sure).await.0, 303);
    assert_eq!(admin.post(&end, &sure).await.0, 404);
    let after = admin.get(&page).await;
    assert!(!after.1.contains("vouched for by an admin"), "{}", after.1);
}
