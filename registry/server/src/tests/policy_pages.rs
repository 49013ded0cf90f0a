//! Tests of the policy and waiver pages: who sees them, and how the editor handles input.

use a2a_registry_api::limits::MAX_POLICIES_BODY_BYTES;
use a2a_registry_core::policies::preview_jobs::start_preview_job;
use a2a_registry_domain::role::Role;
use a2a_registry_http::requests::visitor::form_token;
use actix_web::test::TestRequest;
use tokio_util::sync::CancellationToken;

use crate::tests::sessions::{form, near, sign_in, text, with};
use crate::tests::{ADMIN, Registry, TestResponse};

const OPEN: &str = "permit (principal, action, resource);";
/// A policy whose second line uses an attribute that does not exist.
const FAULTY: &str =
    "forbid (principal, action == Action::\"discover\", resource)\r\nwhen { resource.nothing };";

/// Pages and their forms, each with whether only admins have access.
const PAGES: [(&str, bool); 6] = [
    ("/policies", false),
    ("/policies?number=0", false),
    ("/policies/history", false),
    ("/waivers", false),
    ("/waivers?ended=true&policy=p", false),
    ("/policies/edit?template=deny-tag", true),
];
const FORMS: [(&str, &[Role]); 4] = [
    ("/policies/edit", &[Role::Admin]),
    ("/policies/history", &[Role::Admin]),
    ("/waivers", &[Role::Curator]),
    ("/waivers/end", &[Role::Curator, Role::Admin]),
];

struct Signed<'a> {
    registry: &'a Registry,
    secret: String,
}

impl<'a> Signed<'a> {
    async fn in_with(registry: &'a Registry, token: &str) -> Self {
        let secret = sign_in(registry, token).await;
        start_preview_job(&registry.state.context, CancellationToken::new());
        Self { registry, secret }
    }

    async fn get(&self, path: &str) -> TestResponse {
        let request = near(TestRequest::get().uri(path));
        self.registry.ask(with(request, &self.secret)).await
    }

    /// Submits a form like a program, which gets problem documents.
    async fn post(&self, path: &str, fields: &[(&str, &str)]) -> TestResponse {
        self.registry.ask(self.form(path, fields)).await
    }

    /// Submits a form like a browser, which gets pages.
    async fn browse(&self, path: &str, fields: &[(&str, &str)]) -> TestResponse {
        let form = self.form(path, fields);
        let browser = form.insert_header(("accept", "text/html"));
        self.registry.ask(browser).await
    }

    fn form(&self, path: &str, fields: &[(&str, &str)]) -> TestRequest {
        let token = form_token(&self.secret);
        let mut all = fields.to_vec();
        all.push(("form_token", &token));
        with(form(path, &all), &self.secret)
    }

    /// Presses a button of the editor with these policies, based on this set.
    async fn edit(&self, act: &str, seen: &str, policies: &[(&str, &str)]) -> TestResponse {
        let mut fields = vec![("act", act), ("seen", seen)];
        for (id, text) in policies {
            fields.extend([("id", *id), ("text", *text)]);
        }
        fields.push(("template", "deny-tag"));
        if let Some(token) = act.strip_prefix("confirm ") {
            fields[0].1 = "confirm";
            fields.push(("preview", token));
        }
        if act == "apply" || act.starts_with("confirm ") {
            fields.push(("reason", "as <b>agreed</b>"));
        }
        self.browse("/policies/edit", &fields).await
    }
}

/// Preview token on a confirmation page.
#[track_caller]
fn token(page: &TestResponse) -> String {
    let html = text(page);
    let begin = html.split("name=\"preview\" value=\"").nth(1);
    let token = begin.and_then(|rest| rest.split('"').next());
    token.unwrap_or_else(|| panic!("{html}")).to_owned()
}

#[track_caller]
fn assert_shows(page: &TestResponse, status: u16, wanted: &[&str]) {
    let html = text(page);
    assert_eq!(page.status.as_u16(), status, "{html}");
    for one in wanted {
        assert!(html.contains(one), "{one}: {html}");
    }
}

#[actix_web::test]
async fn pages_of_policies_are_for_whom_the_api_would_answer() {
    let registry = Registry::new().await;
    let (read, all) = (
        [Role::Reader, Role::Publisher],
        [Role::Curator, Role::Auditor],
    );
    for (path, _) in PAGES {
        let shown = registry.ask(near(TestRequest::get().uri(path))).await;
        assert_eq!(shown.status, 303, "{path}");
        assert!(
            shown.header("location").starts_with("/sign-in?next="),
            "{path}"
        );
    }
    let mut people = vec![(Role::Admin, registry.admin_alone().await)];
    for role in read.into_iter().chain(all) {
        people.push((role, registry.token(role).await));
    }
    for (role, token) in people {
        let signed = Signed::in_with(&registry, &token).await;
        let sees_all = role == Role::Admin || all.contains(&role);
        for (path, for_admins) in PAGES {
            let page = signed.get(path).await;
            match sees_all && (!for_admins || role == Role::Admin) {
                true => assert_eq!(page.status, 200, "{role} {path}: {page:?}"),
                false => drop(page.problem(403, "forbidden")),
            }
        }
        let links = text(&signed.get("/account").await).contains("href=\"/policies\"");
        assert_eq!(links, sees_all, "{role}");
        for (path, roles) in FORMS {
            let sent = signed.post(path, &[("act", "nothing")]).await;
            match roles.contains(&role) {
                true => assert!(sent.status == 400, "{role} {path}: {sent:?}"),
                false => drop(sent.problem(403, "forbidden")),
            }
        }
        let missing = signed.get("/policies/nothing/dry-run").await;
        match sees_all {
            true => drop(missing.problem(404, "not-found")),
            false => drop(missing.problem(403, "forbidden")),
        }
    }
}

#[actix_web::test]
async fn forms_of_policies_need_the_session_the_form_token_and_this_registry() {
    let registry = Registry::new().await;
    let signed = Signed::in_with(&registry, ADMIN).await;
    let fields = [("act", "check"), ("seen", "0")];
    for (path, _) in FORMS {
        let nobody = registry.ask(form(path, &fields)).await;
        nobody.problem(401, "unauthenticated");
        let by_token = registry.as_with(ADMIN, form(path, &fields)).await;
        by_token.problem(401, "unauthenticated");
        let without = registry
            .ask(with(form(path, &fields), &signed.secret))
            .await;
        without.problem(403, "form-refused");
        let token = form_token(&signed.secret);
        let all = [fields[0], fields[1], ("form_token", token.as_str())];
        let foreign = form(path, &all).insert_header(("sec-fetch-site", "cross-site"));
        let foreign = registry.ask(with(foreign, &signed.secret)).await;
        foreign.problem(403, "form-refused");
    }
    // A form that is too large is not read for a caller without permission.
    let large = "a".repeat(16 * 1024 * 1024);
    let nobody = registry
        .ask(form("/policies/edit", &[("text", &large)]))
        .await;
    nobody.problem(401, "unauthenticated");
    let admin = signed.post("/policies/edit", &[("text", &large)]).await;
    admin.problem(413, "too-large");
    let nul = signed.edit("check", "0", &[("open", "// \0\r\n")]).await;
    assert_shows(&nul, 400, &["U+0000"]);
}

#[actix_web::test]
async fn the_editor_shows_faults_with_their_line_and_changes_nothing_by_itself() {
    let registry = Registry::new().await;
    let admin = Signed::in_with(&registry, ADMIN).await;
    let begun = admin.get("/policies/edit").await;
    assert_shows(
        &begun,
        200,
        &["name=\"seen\" value=\"0\"", "everybody", "deny-tag:"],
    );
    let faulty = [("open", OPEN), ("hide", FAULTY)];
    let told = [
        "Line 2, column",
        "<code class=\"address\">when { resource.nothing };</code>",
        "aria-describedby=\"faults-1\"",
        "href=\"#policy-1\"",
        "when { resource.nothing };</textarea>",
    ];
    assert_shows(&admin.edit("check", "0", &faulty).await, 200, &told);
    assert_shows(&admin.edit("preview", "0", &faulty).await, 400, &told);
    assert_shows(&admin.edit("apply", "0", &faulty).await, 400, &told);
    let twice = admin.edit("check", "0", &[("a", OPEN), ("a", OPEN)]).await;
    assert_shows(&twice, 200, &["another policy has this identifier"]);
    let sound = admin.edit("check", "0", &[("open", OPEN)]).await;
    assert_shows(&sound, 200, &["No policy has an error."]);
    let added = admin.edit("add", "0", &[("open", OPEN)]).await;
    assert_shows(
        &added,
        200,
        &["value=\"deny-tag\"", "autofocus", "experimental"],
    );
    let removed = admin.edit("remove 0", "0", &faulty).await;
    assert!(!text(&removed).contains("value=\"open\""), "{removed:?}");
    assert_shows(&removed, 200, &["value=\"hide\""]);
    let formatted = [("open", "permit(principal,action,resource);"), ("b", "no")];
    let formatted = admin.edit("format", "0", &formatted).await;
    assert_shows(
        &formatted,
        200,
        &[
            "\npermit (principal, action, resource);",
            "\nno</textarea>",
            "Line 1",
        ],
    );
    let mark = "// </textarea><script>alert(1)</script>\r\n";
    let hostile = admin
        .edit("check", "0", &[("\"><i>", &format!("{mark}{OPEN}"))])
        .await;
    let html = text(&hostile);
    assert!(
        !html.contains("<script>alert") && !html.contains("\"><i>"),
        "{html}"
    );
    for nothing in ["", "remove", "drop 1"] {
        let refused = admin.edit(nothing, "0", &[("open", OPEN)]).await;
        assert_shows(&refused, 400, &["This form has no valid action"]);
    }
    let none = admin.get("/policies").await;
    assert_shows(&none, 200, &["Policy set 0", "This is the shipped set"]);
}

#[actix_web::test]
async fn a_set_is_previewed_applied_and_put_in_force_again_and_a_lost_race_keeps_what_was_typed() {
    let registry = Registry::new().await;
    let admin = Signed::in_with(&registry, ADMIN).await;
    let closed = [(
        "hide",
        "@mode(\"dry_run\")\r\nforbid (principal, action == Action::\"discover\", resource);",
    )];
    let preview = admin.edit("preview", "0", &closed).await;
    let told = [
        "Compared with set 0",
        "add <code>hide</code>",
        "remove <code>everybody</code>",
        "No policy permits <code>discover</code>",
    ];
    assert_shows(&preview, 200, &told);
    let asked = admin.edit("apply", "0", &closed).await;
    let told = [
        "id=\"asked\"",
        "is removed: <code>everybody</code>",
        "Nothing was changed yet",
        "No policy permits <code>discover</code>",
        "value=\"as &#60;b&#62;agreed",
    ];
    assert_shows(&asked, 200, &told);
    assert_shows(&admin.get("/policies").await, 200, &["Policy set 0"]);
    // Enter in a field presses the first button of the form.
    let html = text(&asked);
    assert!(html.find("value=\"check\"") < html.find("value=\"confirm\""));
    let confirm = format!("confirm {}", token(&asked));
    for other in ["confirm ", "confirm made.up"] {
        let again = admin.edit(other, "0", &closed).await;
        assert_shows(&again, 200, &["id=\"asked\""]);
    }
    let edited = [("hide", closed[0].1), ("more", closed[0].1)];
    let again = admin.edit(&confirm, "0", &edited).await;
    assert_shows(&again, 200, &["id=\"asked\"", "add <code>more</code>"]);
    let applied = admin.edit(&confirm, "0", &closed).await;
    assert_eq!(applied.status, 303, "{applied:?}");
    assert_eq!(applied.header("location"), "/policies");
    let told = [
        "Policy set 1",
        "being evaluated",
        "as &#60;b&#62;agreed",
        "href=\"/policies/hide/dry-run\"",
    ];
    assert_shows(&admin.get("/policies").await, 200, &told);
    assert_shows(
        &admin.get("/policies?number=0").await,
        200,
        &["Policy set 0", "in force"],
    );
    admin
        .get("/policies?number=7")
        .await
        .problem(404, "not-found");
    let empty = admin.get("/policies/hide/dry-run").await;
    assert_shows(
        &empty,
        200,
        &["on a dry run", "Nothing since its text last changed"],
    );

    let mine = [("mine", OPEN)];
    let lost = admin.edit("apply", "0", &mine).await;
    let told = [
        "The policies were changed by someone else",
        "Set 1 was made by <bdi>admin",
        "value=\"mine\"",
        "value=\"as &#60;b&#62;agreed",
        "value=\"go-on 1\"",
        "name=\"seen\" value=\"0\"",
    ];
    assert_shows(&lost, 412, &told);
    // Enter in a text field presses the first button, which has no action.
    let html = text(&lost);
    let first = html.split("name=\"act\" value=\"").nth(1).unwrap();
    assert!(first.starts_with("check\""), "{html}");
    let goes_on = admin.edit("go-on 1", "0", &mine).await;
    let told = [
        "name=\"seen\" value=\"1\"",
        "Compared with set 1",
        "remove <code>hide",
    ];
    assert_shows(&goes_on, 200, &told);
    let fields = [
        ("act", "apply"),
        ("seen", "1"),
        ("id", "mine"),
        ("text", OPEN),
    ];
    let silent = admin.browse("/policies/edit", &fields).await;
    assert_shows(&silent, 400, &["A reason must have 1 to", "value=\"mine\""]);
    let asked = admin.edit("apply", "1", &mine).await;
    assert_shows(&asked, 200, &["is removed: <code>hide</code>"]);
    let confirm = format!("confirm {}", token(&asked));
    assert_eq!(admin.edit(&confirm, "1", &mine).await.status, 303);

    let history = admin.get("/policies/history").await;
    assert_shows(
        &history,
        200,
        &["Set 2", "Set 1", "The shipped set", "Put in force"],
    );
    let again = |seen| [("number", "1"), ("seen", seen), ("reason", "back again")];
    let late = admin.browse("/policies/history", &again("1")).await;
    assert_shows(
        &late,
        412,
        &["Set 2 was created meanwhile", "value=\"back again\""],
    );
    // Removed policies need a confirmation here too, on the page that shows the set.
    let asked = admin.browse("/policies/history", &again("2")).await;
    let told = [
        "id=\"asked\"",
        "is removed: <code>mine</code>",
        "value=\"back again\"",
        "action=\"/policies/edit\"",
    ];
    assert_shows(&asked, 200, &told);
    let confirm = format!("confirm {}", token(&asked));
    assert_eq!(admin.edit(&confirm, "2", &closed).await.status, 303);
    assert_shows(
        &admin.get("/policies").await,
        200,
        &["Policy set 3", "id=\"policy-hide\""],
    );
    let both = [closed[0], mine[0]];
    assert_eq!(admin.edit("apply", "3", &both).await.status, 303);
    let twice = [("number", "4"), ("seen", "4"), ("reason", "as before")];
    assert_eq!(admin.browse("/policies/history", &twice).await.status, 303);
    assert_shows(
        &admin.get("/policies").await,
        200,
        &["Policy set 5", "as before", "id=\"policy-mine\""],
    );
    let missing = [("number", "9"), ("seen", "5"), ("reason", "nothing")];
    let missing = admin.browse("/policies/history", &missing).await;
    assert_shows(&missing, 404, &["There is no policy set 9"]);
}

/// A set that fits into an API request fits into the form.
#[actix_web::test]
async fn the_editor_takes_as_much_as_the_api() {
    let registry = Registry::new().await;
    let admin = Signed::in_with(&registry, ADMIN).await;
    // A line feed has two bytes in JSON, and six in a form.
    let lines = 60_000;
    let long = format!("{OPEN}{}", "\r\n".repeat(lines));
    let most = MAX_POLICIES_BODY_BYTES / (2 * lines + 200);
    let ids: Vec<String> = (0..most).map(|number| format!("p{number}")).collect();
    let policies: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), long.as_str())).collect();
    let checked = admin.edit("check", "0", &policies).await;
    assert_eq!(checked.status, 200);
    assert!(text(&checked).contains("No policy has an error."));
    let many: Vec<(&str, &str)> = vec![("p", OPEN); 1_001];
    let many = admin.edit("check", "0", &many).await;
    assert_shows(&many, 400, &["at most 1000 policies"]);
}
