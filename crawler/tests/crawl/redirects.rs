//! Redirects over the wire: the target of each hop is checked like the first URL.

use std::net::IpAddr;

use a2a_crawler::AttemptOutcome::{BadRedirect, Refused};
use a2a_crawler::fetch::{BearerToken, FetchError, FetchLimits, GetOptions};

use crate::support::{
    Canary, FORBIDDEN, OPEN, ScriptedReply, Server, config, fetcher, fetcher_with, resolver,
};

async fn redirected(reply: ScriptedReply) -> FetchError {
    let server = Server::always(reply).await;
    let fetched = fetcher()
        .get(&server.url("/"), &GetOptions::default())
        .await;
    fetched
        .result
        .expect_err("the redirect should not have been followed")
}

#[tokio::test]
async fn three_hops_are_followed_and_a_fourth_is_not() {
    for (hops, outcome) in [(3, None), (4, Some(BadRedirect))] {
        let server = Server::start(move |request| {
            let at: usize = request.path[1..].parse().unwrap();
            if at == hops {
                ScriptedReply::json("{}")
            } else {
                ScriptedReply::redirect(&format!("/{}", at + 1))
            }
        })
        .await;
        let fetched = fetcher()
            .get(&server.url("/0"), &GetOptions::default())
            .await;
        assert_eq!(fetched.result.err().map(|error| error.outcome), outcome);
        assert_eq!(server.requests().len(), 4);
    }
}

#[tokio::test]
async fn a_purpose_may_follow_none() {
    let server = Server::always(ScriptedReply::redirect("/other")).await;
    let options = GetOptions {
        max_redirects: 0,
        ..GetOptions::default()
    };
    let error = fetcher()
        .get(&server.url("/"), &options)
        .await
        .result
        .unwrap_err();
    assert_eq!(error.outcome, BadRedirect);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_token_goes_to_the_first_url_only() {
    let server = Server::start(|request| match request.path.as_str() {
        "/" => ScriptedReply::redirect("/other"),
        _ => ScriptedReply::json("{}"),
    })
    .await;
    let bearer = BearerToken::new("hush-0123456789").unwrap();
    let options = GetOptions {
        bearer: Some(&bearer),
        ..GetOptions::default()
    };
    let fetched = fetcher().get(&server.url("/"), &options).await;
    assert!(fetched.result.is_ok());
    let requests = server.requests();
    let sent = requests.iter().map(|one| one.header("authorization"));
    let sent: Vec<Option<&str>> = sent.collect();
    assert_eq!(sent, [Some("Bearer hush-0123456789"), None]);
}

#[tokio::test]
async fn every_following_status_is_followed_and_no_other() {
    for (status, followed) in [
        (301, true),
        (302, true),
        (307, true),
        (308, true),
        (300, false),
        (303, false),
        (305, false),
    ] {
        let server = Server::start(move |request| match request.path.as_str() {
            "/" => ScriptedReply::new(status, "location: /card\r\n", ""),
            _ => ScriptedReply::json("{}"),
        })
        .await;
        let fetched = fetcher()
            .get(&server.url("/"), &GetOptions::default())
            .await;
        assert_eq!(fetched.result.is_ok(), followed, "{status}");
        if let Err(error) = fetched.result {
            assert_eq!((error.outcome, error.status), (BadRedirect, Some(status)));
        }
    }
}

/// Inputs 95 to 104.
#[tokio::test]
async fn redirects_to_forbidden_places_send_nothing_there() {
    let canary = Canary::new();
    let port = canary.at.port();
    for (location, outcome) in [
        (format!("http://127.0.0.2:{port}/"), Refused),
        (format!("//127.0.0.2:{port}/"), Refused),
        (format!("http://2130706434:{port}/"), Refused),
        (format!("http://[::ffff:127.0.0.2]:{port}/"), Refused),
        (format!("http://user@127.0.0.2:{port}/"), Refused),
        ("//169.254.169.254/latest/meta-data/".to_owned(), Refused),
        ("file:///etc/passwd".to_owned(), Refused),
        ("http://localhost/".to_owned(), Refused),
        ("http://example.org/".to_owned(), BadRedirect),
        ("/".to_owned(), BadRedirect),
        (String::new(), BadRedirect),
    ] {
        let error = redirected(ScriptedReply::redirect(&location)).await;
        assert_eq!(error.outcome, outcome, "{location}: {error}");
        assert_eq!(error.status, Some(302));
    }
    for headers in [
        "",
        "location: /a\r\nlocation: /b\r\n",
        "refresh: 0; url=/a\r\n",
    ] {
        assert_eq!(
            redirected(ScriptedReply::new(302, headers, ""))
                .await
                .outcome,
            BadRedirect
        );
    }
    canary.assert_untouched();
}

/// Input 89: the name of the second hop resolves to a forbidden address.
#[tokio::test]
async fn the_second_hop_is_resolved_and_checked_like_the_first() {
    let canary = Canary::new();
    let resolver = resolver();
    resolver.set("internal.example.com", [IpAddr::V4(FORBIDDEN)]);
    let location = format!("http://internal.example.com:{}/", canary.at.port());
    let server = Server::always(ScriptedReply::redirect(&location)).await;
    let fetcher = fetcher_with(config(FetchLimits::default()), resolver);
    let error = fetcher
        .get(&server.url("/"), &GetOptions::default())
        .await
        .result
        .unwrap_err();
    assert_eq!(error.outcome, Refused, "{error}");
    canary.assert_untouched();
}

#[tokio::test]
async fn another_host_of_the_same_site_is_followed() {
    let resolver = resolver();
    resolver.set("cards.example.com", [IpAddr::V4(OPEN)]);
    let target = Server::always(ScriptedReply::json("{}")).await;
    let location = target.url_of("cards.example.com", "/card#top");
    let server = Server::always(ScriptedReply::redirect(location.as_str())).await;
    let fetcher = fetcher_with(config(FetchLimits::default()), resolver);
    let answer = fetcher
        .get(&server.url("/"), &GetOptions::default())
        .await
        .result
        .unwrap();
    assert_eq!(answer.url, target.url_of("cards.example.com", "/card"));
}

#[tokio::test]
async fn the_text_of_a_location_is_made_fit_to_read() {
    let location = format!("http://example.org/{}", "x".repeat(1500));
    let error = redirected(ScriptedReply::redirect(&location)).await;
    assert!(error.detail.chars().count() <= 300, "{}", error.detail);
}
