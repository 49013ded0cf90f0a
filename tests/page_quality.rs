//! Quality of every page: accessible in both themes, no layout shift, no horizontal scrolling, no errors in the log,
//! small, and unaffected by hostile cards. Screenshots of all pages are left in `target/screenshots` to be looked at.

use std::path::{Path, PathBuf};

use a2a_registry_api::AgentList;
use reqwest::Method;
use serde_json::{Value, json};
use thirtyfour::extensions::query::ElementWaitable as _;

use crate::pages::{DemoRegistry, DemoVisitor, demo};
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::eventually;
use crate::support::{http_client, required_variable};

/// Screens on which each page is looked at.
pub(crate) const SCREENS: [(u32, u32); 3] = [(390, 844), (768, 1024), (1280, 800)];
/// The same with the theme. Colours are the same on all screens, and layouts in both themes.
pub(crate) const LOOKS: [(u32, u32, &str); 4] = [
    (390, 844, "light"),
    (768, 1024, "light"),
    (1280, 800, "light"),
    (1280, 800, "dark"),
];

/// Bytes of the first view with a page full of hits: page, style sheet and script, as they are sent.
const FIRST_VIEW: usize = 50 * 1024;
/// Agents of that page.
const HITS: usize = 20;

/// Text that would do something in one place or another if it were not text.
const PAYLOADS: [&str; 8] = [
    "<script>window.ran='script'</script>",
    "\"><img src=x onerror=\"window.ran='image'\">",
    "'><svg/onload=window.ran='svg'>",
    "javascript:window.ran='link'",
    "</title></textarea></style><script>alert('element')</script>",
    "{{constructor.constructor('window.ran=1')()}} ${window.ran=1} <%= 1 %>",
    "\u{202e}txet desrever\u{202c} \u{0}\u{1b}[31m\u{2028} \u{200b}hidden",
    "Wunderbaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaar",
];

/// Sums up the layout shifts since the page began to load.
const SHIFTS: &str = "
    const done = arguments[arguments.length - 1];
    let total = 0;
    const add = (entries) => entries.forEach((entry) => { total += entry.value; });
    const observer = new PerformanceObserver((list) => add(list.getEntries()));
    observer.observe({type: 'layout-shift', buffered: true});
    requestAnimationFrame(() => requestAnimationFrame(() => {
        add(observer.takeRecords());
        done(total);
    }));";

/// The time of the largest paint so far, in milliseconds since the page was asked for.
const PAINT: &str = "
    const done = arguments[arguments.length - 1];
    new PerformanceObserver((list) => done(list.getEntries().at(-1).startTime))
        .observe({type: 'largest-contentful-paint', buffered: true});";

/// Runs axe-core over the page; returns what it objects to.
pub(crate) const AXE: &str = "
    const done = arguments[arguments.length - 1];
    axe.run().then(({violations}) => done(violations.map(
        ({id, help, nodes}) => `${id}: ${help}: ${nodes.slice(0, 3).map((node) => node.html).join(' | ')}`)));";

/// A card with the same text in every member that takes one.
fn hostile_card(text: &str) -> String {
    json!({
        "name": text, "description": text, "version": text,
        "provider": {"organization": text, "url": text},
        "documentationUrl": text, "iconUrl": text,
        "supportedInterfaces": [
            {"url": "https://agent.example/", "protocolBinding": text, "protocolVersion": text, "tenant": text},
            {"url": "https://agent.example/?a='\"<b>", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        ],
        "capabilities": {"streaming": true, "extensions": [{"uri": text, "description": text}]},
        "securitySchemes": {
            text: {"apiKeySecurityScheme": {"location": "header", "name": text, "description": text}},
        },
        "securityRequirements": [{"schemes": {text: {"list": [text]}}}],
        "defaultInputModes": [text], "defaultOutputModes": [text],
        "skills": [{
            "id": text, "name": text, "description": text, "tags": [text, text.repeat(3)], "examples": [text],
            "inputModes": [text], "outputModes": [text],
        }],
        "signatures": [{"protected": text, "signature": text}],
        text: {"tools": [text], "keywords": [text]},
    })
    .to_string()
}

/// Registers the cards of an origin with a demonstration, which approves them, and waits until all are listed.
async fn publish(demo: &DemoRegistry, origin: &Origin, cards: &[String]) -> AgentList {
    let address = format!("{}/v1/domains", demo.url);
    for (number, card) in cards.iter().enumerate() {
        let path = format!("/{number}.json");
        origin.set_reply(&path, OriginReply::json(card.clone()));
        let card_url = json!({"card_url": origin.url(&path)});
        let request = http_client().post(&address).bearer_auth(&demo.token);
        let answer = request.json(&card_url).send().await.unwrap();
        assert_eq!(answer.status(), 202, "{}", answer.text().await.unwrap());
    }
    let domain = origin.address().to_string();
    eventually("every card is listed", || async {
        let path = format!("/v1/agents?domain={domain}&page_size=100");
        let found = http_client()
            .get(format!("{}{path}", demo.url))
            .send()
            .await;
        let list: AgentList = found.unwrap().json().await.unwrap();
        (list.total == cards.len() as u64).then_some(list)
    })
    .await
}

/// Changes the card of a listed agent, and returns the path of the page with what is different.
async fn changed(demo: &DemoRegistry, origin: &Origin) -> String {
    let before = card_json("Moving Agent", "move");
    let list = publish(demo, origin, std::slice::from_ref(&before)).await;
    let after = before.replace(
        "https://echo.agents.dev/a2a",
        "https://moved.agents.dev/a2a",
    );
    origin.set_reply("/0.json", OriginReply::json(after));
    let recrawl = format!("{}/v1/domains/{}:recrawl", demo.url, origin.address());
    let recrawled = http_client()
        .post(recrawl)
        .bearer_auth(&demo.token)
        .json(&json!({}));
    assert_eq!(recrawled.send().await.unwrap().status(), 202);
    let agent = list.agents[0].summary.id;
    eventually("a second version is known", || async {
        let versions = format!("{}/v1/agents/{agent}/versions", demo.url);
        let list: Value = http_client()
            .get(versions)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        let digest = |place: usize| list["versions"][place]["digest"].as_str();
        let (newest, oldest) = (digest(0)?, digest(1)?);
        Some(format!("/agents/{agent}/diff?from={oldest}&to={newest}"))
    })
    .await
}

/// Reports an agent, and returns the path of the page of the review that this opens.
async fn reported(demo: &DemoRegistry, agent: &str) -> String {
    let id = agent.trim_start_matches("/agents/").trim_end_matches('/');
    let report = format!("{}/v1/agents/{id}:report", demo.url);
    let reason = json!({"reason": "It answers with somebody else's bookings"});
    let answer = http_client()
        .post(report)
        .json(&reason)
        .send()
        .await
        .unwrap();
    assert!(
        answer.status().is_success(),
        "{}",
        answer.text().await.unwrap()
    );
    let reviews = http_client().get(format!("{}/v1/reviews", demo.url));
    let reviews = reviews.bearer_auth(&demo.token).send().await.unwrap();
    let reviews: Value = reviews.json().await.unwrap();
    format!("/reviews/{}", reviews["reviews"][0]["id"].as_str().unwrap())
}

/// Makes the collection `trips`.
async fn collected(demo: &DemoRegistry) {
    let content = json!({"filter": "tag:travel", "description": "Whatever plans a journey", "owners": ["admin"]});
    let put = http_client().put(format!("{}/v1/collections/trips", demo.url));
    let answer = put.bearer_auth(&demo.token).json(&content).send().await;
    assert_eq!(answer.unwrap().status(), 200);
}

/// Makes a policy set with one policy on a dry run and one that forbids, and waives that for an agent.
async fn governed(demo: &DemoRegistry, agent: &str) {
    let id = agent.trim_start_matches("/agents/").trim_end_matches('/');
    let ask = async |method: Method, path: &str, body: Value| {
        let request = http_client().request(method, format!("{}{path}", demo.url));
        let answer = request.bearer_auth(&demo.token).json(&body).send();
        let answer = answer.await.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{path}: {text}");
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let texts = [
        ("everybody", "permit (principal, action, resource);"),
        (
            "unsponsored",
            "// Find no agent for which nobody answers.\n@mode(\"dry_run\")\nforbid (principal, action == Action::\"discover\", resource)\nwhen { !resource.sponsor_present };",
        ),
        (
            "no-calls",
            "forbid (principal in Group::\"contractors\", action == Action::\"invoke\", resource);",
        ),
        (
            "no-agents-of-nobody",
            "forbid (principal in Group::\"nobody\", action == Action::\"invoke\", resource);",
        ),
    ];
    let policies: Vec<Value> = texts
        .iter()
        .map(|(id, text)| json!({"id": id, "text": text}))
        .collect();
    let set = json!({"policies": policies, "reason": "As the security board asked in its meeting"});
    ask(Method::PUT, "/v1/policies", set.clone()).await;
    ask(Method::PUT, "/v1/policies", set).await;
    let path = format!("/v1/agents/{id}");
    let shown = ask(Method::GET, &path, json!({})).await;
    let waiver = json!({
        "policy": "no-calls", "agent": id, "digest": shown["card_digest"],
        "reason": "They audit it until the end of the quarter", "expires_in_days": 30,
    });
    ask(Method::POST, "/v1/waivers", waiver).await;
}

/// The path of the page of an account that may be disabled.
async fn account_page(demo: &DemoRegistry) -> String {
    let account = http_client().get(format!("{}/v1/accounts/reader", demo.url));
    let account = account.bearer_auth(&demo.token).send().await.unwrap();
    let account: Value = account.json().await.unwrap();
    format!("/admin/accounts/{}", account["id"].as_str().unwrap())
}

/// The script of axe-core, which the preparation of the tests installs.
pub(crate) fn axe() -> String {
    let modules = PathBuf::from(required_variable("A2A_REGISTRY_TEST_NODE"));
    std::fs::read_to_string(modules.join("axe-core/axe.min.js")).unwrap()
}

/// Where the pictures go, beside the program; git ignores the folder.
pub(crate) fn pictures() -> PathBuf {
    let program = PathBuf::from(required_variable("A2A_REGISTRY_BIN"));
    let target = program.ancestors().nth(2).unwrap_or(Path::new("."));
    target.join("screenshots")
}

impl DemoVisitor<'_> {
    /// The result of a script.
    async fn run_script(&self, script: &str) -> Value {
        let page = self.browser.page();
        let answer = page.execute_async(script, Vec::new()).await.unwrap();
        answer.json().clone()
    }

    /// Checks the page that is open, and takes its picture.
    async fn is_sound(&self, name: &str, (width, theme): (u32, &str), axe: Option<&str>) {
        let screen = format!("{name} at {width} pixels, {theme}");
        // Swagger UI draws the reference by itself, as it sees fit.
        if name != "reference" {
            self.assert_fits(width).await;
            // A busy machine paints a page before it has come whole, so a little is accepted. A tenth still counts as good.
            let shift = self.run_script(SHIFTS).await.as_f64().unwrap();
            assert!(shift < 0.01, "layout shift: {screen}: {shift}");
        }
        if let Some(axe) = axe {
            let page = self.browser.page();
            page.execute(axe, Vec::new()).await.unwrap();
            assert_eq!(self.run_script(AXE).await, json!([]), "{screen}");
        }
        let file = pictures().join(format!("{name}-{width}-{theme}.png"));
        self.browser.capture_full_page(&file).await;
    }

    /// Opens a page; the one with the findings of a card is the answer to a form, and those from the account on need signing in.
    async fn open_page(&self, name: &str, path: &str) {
        if name == "home" {
            self.browser.page().delete_all_cookies().await.unwrap();
        }
        self.visit(path).await;
        if name == "account" {
            let token = self.find("#token").await;
            token.send_keys(&self.demo.token).await.unwrap();
            self.find("#sign-in button").await.click().await.unwrap();
            self.find("#sessions").await;
        }
        if name == "linted" {
            let field = self.find("#card").await;
            let pasted = "{\"name\": \"Echo\", \"url\": \"http://localhost:9000\"}";
            field.send_keys(pasted).await.unwrap();
            self.find("#lint button").await.click().await.unwrap();
            self.find("#linted").await;
        }
        if name == "policy-faults" {
            let field = self.find("#text-1").await;
            field.send_keys("nothing\n").await.unwrap();
            self.find("button[value=check]")
                .await
                .click()
                .await
                .unwrap();
            self.find("#faults").await;
        }
        if name == "policy-preview" {
            let field = self.find("#text-0").await;
            field.clear().await.unwrap();
            let closed = "forbid (principal, action, resource);";
            field.send_keys(closed).await.unwrap();
            let preview = self.find("button[value=preview]").await;
            preview.click().await.unwrap();
            self.find("#preview").await;
        }
        if name == "policy-asked" {
            let remove = self.find("button[value='remove 0']").await;
            remove.click().await.unwrap();
            // The page before has a field for the reason, too.
            remove.wait_until().stale().await.unwrap();
            let reason = self.find("#reason").await;
            reason.send_keys("As agreed").await.unwrap();
            let apply = self.find("button[value=apply]").await;
            apply.click().await.unwrap();
            self.find("#asked").await;
        }
        if name == "agent-governed" {
            self.find("#waive summary").await.click().await.unwrap();
        }
        if name == "reported" {
            self.find("#report summary").await.click().await.unwrap();
            let reason = self.find("#report-reason").await;
            reason.send_keys("It books nothing").await.unwrap();
        }
        // Pages that the form of another one leads to: its button, and what only the page behind it has.
        let form = match name {
            "reported" => Some(("#report button", ".lead[role=status]")),
            "withdrawal" => Some(("form[action$='/withdraw'] button", "#losses")),
            "admin-account-end" => Some(("#end button", "#losses")),
            "collection-preview" => Some(("button[value=preview]", "#preview")),
            _ => None,
        };
        if let Some((button, behind)) = form {
            self.find(button).await.click().await.unwrap();
            self.find(behind).await;
        }
        self.find("a[href='/']").await;
    }

    /// Checks that the header leaves room to type a search beside an admin's navigation, where it first shows the field.
    async fn has_a_search_box(&self) {
        self.browser.emulate_screen_size(840, 800).await;
        self.visit("/account").await;
        self.assert_fits(840).await;
        let width = "arguments[0](document.querySelector('.find').clientWidth)";
        let width = self.run_script(width).await.as_u64().unwrap();
        assert!(width >= 192, "{width} pixels");
    }

    /// What the browser complains of, but for failures that a page is asked for.
    async fn is_quiet(&self, name: &str) {
        let mut complaints = self.browser.take_log_messages().await;
        complaints.retain(|line| !line.contains("status of 404"));
        assert_eq!(complaints, Vec::<String>::new(), "{name}");
    }
}

/// Every page, on a phone, a tablet and a desktop, in light and in dark: axe-core objects to nothing, nothing moves while the
/// page loads, nothing is cut off at the side, and the browser has nothing to complain of.
#[tokio::test]
async fn every_page_is_accessible_steady_and_quiet_on_every_screen() {
    let demo = demo().await;
    let visitor = DemoVisitor::open(&demo).await;
    let axe = axe();
    let agent = demo.agent("Trip Planner").await;
    visitor.visit(&agent).await;
    let domain = visitor.find("a[href^='/domains/']").await;
    let domain = domain.attr("href").await.unwrap().unwrap();
    let origin = Origin::start();
    let diff = changed(&demo, &origin).await;
    let review = reported(&demo, &agent).await;
    collected(&demo).await;
    governed(&demo, &agent).await;
    let [act, final_act, visibility] =
        ["deprecate", "retire", "visibility"].map(|act| format!("{agent}acts/{act}"));
    let own_domain = format!("/domains/{}", origin.address());
    let account = account_page(&demo).await;
    let random = "A".repeat(43);
    let login = format!("/login?port=1&state={random}&challenge={random}&days=30&scope=read");
    let pages = [
        ("home", "/"),
        ("results", "/?q=book+a+trip"),
        ("list", "/?q=&sort=name"),
        ("weak", "/?q=find+me+an+agent+that+can+mend+a+bicycle"),
        (
            "weaker",
            "/?q=find+me+an+agent+that+can+mend+a+bicycle&fitting=false",
        ),
        ("nothing", "/?q=zzz&tag=nothing&auth=oauth2"),
        ("agent", agent.as_str()),
        ("diff", diff.as_str()),
        ("domain", domain.as_str()),
        ("register", "/register"),
        ("linted", "/register"),
        ("about", "/about"),
        ("missing", "/nowhere"),
        ("domain-unknown", "/domains/nowhere.example.org"),
        ("manual", "/manual/reference/problems"),
        ("reference", "/docs/"),
        ("sign-in", "/sign-in"),
        ("account", "/account"),
        ("hooks", "/account/hooks"),
        ("login", login.as_str()),
        ("results-signed-in", "/?q=book+a+trip"),
        ("domain-signed-in", own_domain.as_str()),
        ("withdrawal", own_domain.as_str()),
        ("register-signed-in", "/register"),
        ("reviews", "/reviews"),
        ("review", review.as_str()),
        ("reviews-chosen", "/reviews?choose=matching"),
        ("waiting", "/waiting"),
        ("events", "/events"),
        ("admin", "/admin"),
        ("admin-accounts", "/admin/accounts"),
        ("admin-account", account.as_str()),
        ("admin-account-end", account.as_str()),
        ("admin-groups", "/admin/groups"),
        ("admin-tokens", "/admin/tokens"),
        ("admin-sessions", "/admin/sessions"),
        ("agent-act", act.as_str()),
        ("agent-act-final", final_act.as_str()),
        ("agent-act-visibility", visibility.as_str()),
        ("reported", agent.as_str()),
        ("collections", "/collections"),
        ("collection", "/collections/trips"),
        ("collection-preview", "/collections/trips"),
        ("policies", "/policies"),
        ("policy-edit", "/policies/edit?template=deny-tag"),
        ("policy-faults", "/policies/edit"),
        ("policy-preview", "/policies/edit"),
        ("policy-asked", "/policies/edit"),
        ("policy-history", "/policies/history"),
        ("policy-dry-run", "/policies/unsponsored/dry-run"),
        ("policy-dry-run-empty", "/policies/no-calls/dry-run"),
        ("waivers", "/waivers"),
        ("agent-governed", agent.as_str()),
    ];
    for (width, height, theme) in LOOKS {
        visitor.browser.set_color_scheme(theme).await;
        visitor.browser.emulate_screen_size(width, height).await;
        for (name, path) in pages {
            visitor.open_page(name, path).await;
            // The rules are the same on all screens but for what each one hides; a tablet hides what a phone does.
            let checked = Some(axe.as_str()).filter(|_| width != 768 && name != "reference");
            visitor.is_sound(name, (width, theme), checked).await;
            visitor.is_quiet(name).await;
        }
    }
    visitor.has_a_search_box().await;
    visitor.finish().await;
}

/// Prints when the largest paint of each page was made, the median of some visits: a bench, because it depends on the
/// machine. `cargo t --test registry -- --ignored --nocapture largest_paint`
#[tokio::test]
#[ignore = "a bench, which prints figures"]
async fn largest_paint_of_each_page() {
    let demo = demo().await;
    let visitor = DemoVisitor::open(&demo).await;
    let agent = demo.agent("Trip Planner").await;
    for path in [
        "/",
        "/?q=book+a+trip",
        agent.as_str(),
        "/register",
        "/about",
    ] {
        let mut paints = Vec::new();
        for _ in 0..9 {
            visitor.visit(path).await;
            paints.push(visitor.run_script(PAINT).await.as_f64().unwrap());
        }
        paints.sort_by(f64::total_cmp);
        println!(
            "{path}: {:.0} ms ({:.0} to {:.0})",
            paints[4], paints[0], paints[8]
        );
    }
    visitor.finish().await;
}

/// Whatever a card says in whichever member is text: nothing of it runs, nothing breaks the page.
#[tokio::test]
async fn no_text_of_a_card_does_anything_to_a_page() {
    let origin = Origin::start();
    let demo = demo().await;
    let cards: Vec<String> = PAYLOADS.iter().copied().map(hostile_card).collect();
    let agents = publish(&demo, &origin, &cards).await.agents;
    let visitor = DemoVisitor::open(&demo).await;
    let axe = axe();
    let domain = format!("/domains/{}", origin.address());
    let mut pages = vec![
        ("hostile-home".to_owned(), "/".to_owned()),
        ("hostile-list".to_owned(), "/?q=".to_owned()),
        (
            "hostile-results".to_owned(),
            "/?q=script+window+ran+wunderbar&explain=true&fitting=false".to_owned(),
        ),
        ("hostile-domain".to_owned(), domain),
    ];
    pages.extend(agents.iter().enumerate().map(|(number, hit)| {
        let path = format!("/agents/{}/", hit.summary.id);
        (format!("hostile-agent-{number}"), path)
    }));
    for (width, height, theme) in [LOOKS[0], LOOKS[3]] {
        visitor.browser.set_color_scheme(theme).await;
        visitor.browser.emulate_screen_size(width, height).await;
        // The rules are the same in both themes but for the contrast, and on all screens.
        let checked = Some(axe.as_str()).filter(|_| theme == "dark");
        for (name, path) in &pages {
            visitor.visit(path).await;
            // A dialog would fail every command that follows it.
            visitor.find("footer a[href='/about']").await;
            let ran = visitor.run_script("arguments[0](window.ran ?? null)").await;
            assert_eq!(ran, Value::Null, "{name}");
            visitor.is_sound(name, (width, theme), checked).await;
            visitor.is_quiet(name).await;
        }
    }
    visitor.finish().await;
}

/// The first view of a page full of hits is small, however many agents match: page, style sheet and script together.
#[tokio::test]
async fn the_first_view_of_a_full_page_of_hits_is_small() {
    let origin = Origin::start();
    let demo = demo().await;
    let words = "translates contracts and invoices between languages, checks their terms, and explains each change";
    let cards: Vec<String> = (0..HITS + 2)
        .map(|number| {
            let mut card: Value = serde_json::from_str(&card_json(&format!("Agent {number}"), "translate")).unwrap();
            let skills = (0..8).map(|skill| {
                json!({
                    "id": format!("skill-{number}-{skill}"), "name": format!("Translate {words} {skill}"),
                    "description": format!("{skill} {number}: {words}. {words}."),
                    "tags": [format!("tag-{number}-{skill}"), "translate", format!("area-{skill}")],
                    "examples": [format!("Please translate contract {number} into language {skill}")],
                })
            });
            card["skills"] = skills.collect();
            card["description"] = json!(format!("Agent {number} {words}. {words}. {words}."));
            card["provider"] = json!({"organization": format!("Company {number} of {words}"), "url": "https://x.example/"});
            card.to_string()
        })
        .collect();
    publish(&demo, &origin, &cards).await;

    let client = http_client();
    let fetch = |path: String, coding: &'static str| {
        let request = client.get(format!("{}{path}", demo.url));
        async move {
            let answer = request
                .header("accept-encoding", coding)
                .send()
                .await
                .unwrap();
            let used = answer.headers().get("content-encoding").cloned();
            (answer.bytes().await.unwrap(), used)
        }
    };
    let path = "/?q=translate+contract".to_owned();
    let (plain, _) = fetch(path.clone(), "identity").await;
    let html = String::from_utf8(plain.to_vec()).unwrap();
    assert_eq!(html.matches("<li class=\"hit\">").count(), HITS);
    let address = |before: &str| {
        let (_, rest) = html.split_once(before).unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    for coding in ["br", "gzip"] {
        let mut sizes = Vec::new();
        for path in [
            path.clone(),
            address("<link rel=\"stylesheet\" href=\""),
            address("<script src=\""),
        ] {
            let (bytes, used) = fetch(path, coding).await;
            assert_eq!(used.unwrap(), coding);
            sizes.push(bytes.len());
        }
        let whole: usize = sizes.iter().sum();
        assert!(whole <= FIRST_VIEW, "{coding}: {sizes:?} bytes");
    }
}
