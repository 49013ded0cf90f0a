//! The HTML pages in a real browser: on a desktop and on a phone, with script and without.

use std::path::{Path, PathBuf};
use std::time::Duration;

use a2a_registry_api::AgentList;
use tempfile::TempDir;
use thirtyfour::extensions::query::ElementQueryable as _;
use thirtyfour::{By, Key, WebElement};

use crate::support::browser::Browser;
use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::polling::poll_until_deadline;
use crate::support::program::{Program, registry_command};
use crate::support::serving_registry::start_serving;
use crate::support::{DEADLINE, http_client};

/// Pause between two polls of a browser, which sends no events.
const POLL_PAUSE: Duration = Duration::from_millis(50);

/// A running demonstration, and the folder of its temporary files.
pub(crate) struct DemoRegistry {
    pub(crate) url: String,
    pub(crate) token: String,
    _program: Program,
    _folder: TempDir,
}

pub(crate) async fn demo() -> DemoRegistry {
    let folder = TempDir::new().unwrap();
    // The tests of pages publish further agents, which nobody is to approve.
    let mut command = registry_command(["demo", "--listen", "127.0.0.1:0", "--approve-all"]);
    command.env("TMPDIR", folder.path());
    let (program, status_line) = start_serving(command).await;
    DemoRegistry {
        url: status_line.url().to_owned(),
        token: status_line.admin_token().unwrap().to_owned(),
        _program: program,
        _folder: folder,
    }
}

impl DemoRegistry {
    /// The path of the page of the agent with that name.
    pub(crate) async fn agent(&self, name: &str) -> String {
        let found = http_client()
            .get(format!("{}/v1/agents", self.url))
            .send()
            .await;
        let list: AgentList = found.unwrap().json().await.unwrap();
        let mut hits = list.agents.into_iter();
        let hit = hits.find(|hit| hit.summary.name == name).unwrap();
        format!("/agents/{}/", hit.summary.id)
    }
}

/// A browser on a demonstration's pages.
pub(crate) struct DemoVisitor<'a> {
    pub(crate) demo: &'a DemoRegistry,
    pub(crate) browser: Browser,
}

impl<'a> DemoVisitor<'a> {
    pub(crate) async fn open(demo: &'a DemoRegistry) -> Self {
        Self {
            demo,
            browser: Browser::open().await,
        }
    }

    pub(crate) async fn visit(&self, path: &str) {
        let url = format!("{}{path}", self.demo.url);
        self.browser.page().goto(url).await.unwrap();
    }

    /// The first matching element, once it exists: a click returns before the next page is loaded.
    pub(crate) async fn find(&self, selector: &str) -> WebElement {
        let found = self.browser.page().query(By::Css(selector));
        match found.wait(DEADLINE, POLL_PAUSE).first().await {
            Ok(found) => found,
            Err(error) => panic!("{selector}: {error}\n{}", self.visible_text().await),
        }
    }

    /// Searches with the form.
    async fn search(&self, words: &str) {
        self.find("#q").await.send_keys(words).await.unwrap();
        let button = self.find("form.search button").await;
        button.click().await.unwrap();
    }

    /// Waits until the page's path begins with this text, and returns the path.
    pub(crate) async fn wait_for_path(&self, beginning: &str) -> String {
        let arrived = poll_until_deadline(async || {
            Some(self.path().await).filter(|path| path.starts_with(beginning))
        });
        match arrived.await {
            Some(path) => path,
            None => panic!(
                "{beginning} was not reached:\n{}",
                self.visible_text().await
            ),
        }
    }

    /// The browser's URL, and the visible text there.
    async fn visible_text(&self) -> String {
        let body = self.browser.page().find(By::Css("body")).await;
        let text = match body {
            Ok(body) => body.text().await.unwrap_or_default(),
            Err(error) => error.to_string(),
        };
        format!("{}\n{text}", self.path().await)
    }

    /// The visible text of the first matching element.
    pub(crate) async fn element_text(&self, selector: &str) -> String {
        self.find(selector).await.text().await.unwrap()
    }

    /// The visible texts of all matching elements.
    pub(crate) async fn element_texts(&self, selector: &str) -> Vec<String> {
        let mut texts = Vec::new();
        for element in self
            .browser
            .page()
            .find_all(By::Css(selector))
            .await
            .unwrap()
        {
            texts.push(element.text().await.unwrap());
        }
        texts
    }

    /// Waits until all of these words are visible.
    pub(crate) async fn wait_for_texts(&self, words: &[&str]) {
        let found = poll_until_deadline(async || {
            let text = self.visible_text().await;
            words.iter().all(|word| text.contains(word)).then_some(())
        });
        if found.await.is_none() {
            panic!(
                "not all of {words:?} are visible in:\n{}",
                self.visible_text().await
            );
        }
    }

    pub(crate) async fn path(&self) -> String {
        let url = self.browser.page().current_url().await.unwrap();
        let query = url.query().map(|query| format!("?{query}"));
        format!("{}{}", url.path(), query.unwrap_or_default())
    }

    /// Checks that the page needs no horizontal scrolling.
    pub(crate) async fn assert_fits(&self, width: u32) {
        let script = "return document.documentElement.scrollWidth";
        let page = self.browser.page().execute(script, Vec::new()).await;
        let needed: u32 = page.unwrap().convert().unwrap();
        assert!(
            needed <= width,
            "{} needs {needed} pixels",
            self.path().await
        );
    }

    /// Ends the visit, without any complaint of the browser.
    pub(crate) async fn finish(self) {
        assert_eq!(self.browser.take_log_messages().await, Vec::<String>::new());
        self.browser.close().await;
    }
}

#[tokio::test]
async fn a_person_finds_and_reads_an_agent() {
    let demo = demo().await;
    let visitor = DemoVisitor::open(&demo).await;
    a_person_finds_an_agent(&visitor).await;
    a_search_is_completed_as_it_is_typed(&visitor).await;
    an_agents_page_shows_everything(&visitor).await;
    visitor.finish().await;
}

/// From the first page by a question and a filter to an agent.
async fn a_person_finds_an_agent(visitor: &DemoVisitor<'_>) {
    visitor.visit("/").await;
    let first = [
        "Find an agent for the job",
        "Everything is approved here.",
        "5 agents",
        "Popular tags",
        "Newest agents",
        "Recipe Scaler",
    ];
    visitor.wait_for_texts(&first).await;
    visitor.search("book a trip").await;
    visitor.wait_for_path("/?q=book+a+trip").await;
    assert_eq!(visitor.element_texts(".hit h2").await[0], "Trip Planner");
    let typed = visitor.find("#q").await.value().await.unwrap();
    assert_eq!(typed.as_deref(), Some("book a trip"));
    assert!(
        !visitor.element_texts("mark").await.is_empty(),
        "no word is highlighted"
    );
    let hit = visitor.element_text(".hit").await;
    for word in ["owner proved", "card fetched"] {
        assert!(hit.contains(word), "{word}: {hit}");
    }

    visitor.visit("/?q=").await;
    assert_eq!(visitor.element_text(".count").await, "5 agents");
    let mut names = visitor.element_texts(".hit h2").await;
    names.sort();
    assert_eq!(
        names,
        [
            "Invoice Reader",
            "Ledger Converter",
            "Menu Translator",
            "Recipe Scaler",
            "Trip Planner"
        ]
    );
    // On a phone the filters are a disclosure above the agents.
    visitor.browser.emulate_screen_size(390, 844).await;
    visitor
        .find("#filters > summary")
        .await
        .click()
        .await
        .unwrap();
    visitor
        .find("#facet-protocol_version > summary")
        .await
        .click()
        .await
        .unwrap();
    let facet = "a.value[href*='protocol_version=0.3']";
    assert!(
        visitor.element_text(facet).await.ends_with('1'),
        "one agent speaks 0.3"
    );
    visitor.find(facet).await.click().await.unwrap();
    assert!(visitor.element_text(".chip").await.contains("0.3"));
    assert_eq!(visitor.element_texts(".hit h2").await, ["Recipe Scaler"]);
    visitor.find(".chip").await.click().await.unwrap();
    visitor.wait_for_texts(&["5 agents"]).await;
    visitor.browser.emulate_screen_size(1280, 800).await;

    visitor.visit("/?q=zzzznothing").await;
    visitor
        .wait_for_texts(&["Nothing was found", "List every agent"])
        .await;

    visitor.visit("/?q=trip").await;
    visitor.find(".hit h2 a").await.click().await.unwrap();
    let agent = visitor.demo.agent("Trip Planner").await;
    visitor.wait_for_path(&agent).await;
}

/// The search field completes as its words are typed, by pointer and by keyboard.
async fn a_search_is_completed_as_it_is_typed(visitor: &DemoVisitor<'_>) {
    visitor.visit("/").await;
    let field = visitor.find("#q").await;
    field.send_keys("itin").await.unwrap();
    let completion = visitor.find(".completions:not([hidden]) li").await;
    let said = completion.text().await.unwrap();
    assert!(said.to_lowercase().contains("itinerary"), "{said}");
    let expanded = field.attr("aria-expanded").await.unwrap();
    assert_eq!(expanded.as_deref(), Some("true"));
    field.send_keys(Key::Escape + "").await.unwrap();
    let expanded = field.attr("aria-expanded").await.unwrap();
    assert_eq!(expanded.as_deref(), Some("false"));
    field.send_keys("e").await.unwrap();
    visitor.find(".completions:not([hidden]) li").await;
    field.send_keys(Key::Down + "").await.unwrap();
    let active = field.attr("aria-activedescendant").await.unwrap();
    assert_eq!(active.as_deref(), Some("q-completions-0"));
    field.send_keys(Key::Enter + "").await.unwrap();
    let path = visitor.wait_for_path("/?q=").await;
    assert!(path.to_lowercase().contains("itinerary"), "{path}");
    assert_eq!(visitor.element_texts(".hit h2").await[0], "Trip Planner");
}

/// Everything about an agent on one page, with snippets that can be unfolded and copied.
async fn an_agents_page_shows_everything(visitor: &DemoVisitor<'_>) {
    let agent = visitor.demo.agent("Trip Planner").await;
    visitor.visit(&agent).await;
    visitor
        .wait_for_texts(&[
            "Trip Planner",
            "Sample Travel",
            "Book flights",
            "Plan an itinerary",
            "JSONRPC 1.0",
            "HTTP+JSON 1.0",
            "Versions of the card",
            "sha256:",
            "Link for SDKs",
            "Copy",
        ])
        .await;
    assert_eq!(visitor.element_texts("#versions tbody tr").await.len(), 1);
    assert!(
        visitor
            .element_text("#versions tbody tr")
            .await
            .contains("approved")
    );
    assert!(
        visitor
            .element_text("#liveness")
            .await
            .contains("card fetched")
    );

    let titles = visitor.element_texts(".tabs label").await;
    assert_eq!(titles, ["curl", "Python", "JavaScript", "a2a-registry"]);
    for (title, word) in [
        ("Python", "import"),
        ("JavaScript", "import"),
        // A shell command goes to the agent itself; SDKs get the registry's resolver URL.
        ("curl", "/rpc'"),
    ] {
        let label = format!("//div[@class='tabs']/label[normalize-space()='{title}']");
        let label = visitor.browser.page().find(By::XPath(label.as_str())).await;
        label.unwrap().click().await.unwrap();
        let mut shown = Vec::new();
        for panel in visitor.element_texts(".tabs .panel").await {
            shown.extend((!panel.is_empty()).then_some(panel));
        }
        assert_eq!(shown.len(), 1, "one panel is open: {shown:#?}");
        assert!(shown[0].contains(word), "{title}: {}", shown[0]);
    }
}

/// With the token in the form a domain is registered, and the page shows the result.
#[tokio::test]
async fn a_person_registers_a_card() {
    let origin = Origin::start();
    origin.set_reply(
        "/a.json",
        OriginReply::json(card_json("Echo <b>", "repeat")),
    );
    let demo = demo().await;
    let visitor = DemoVisitor::open(&demo).await;
    visitor.visit("/register").await;
    let target = visitor.find("#target").await;
    target.send_keys(origin.url("/a.json")).await.unwrap();
    let token = visitor.find("#token").await;
    token.send_keys("not the token").await.unwrap();
    visitor
        .find("main form button")
        .await
        .click()
        .await
        .unwrap();
    assert!(visitor.element_text("#problem").await.contains("token"));
    let kept = visitor.find("#target").await.value().await.unwrap();
    assert_eq!(kept, Some(origin.url("/a.json")));
    let kept = visitor.find("#token").await.value().await.unwrap();
    assert_eq!(kept.as_deref(), Some(""), "a token is never sent back");
    // The browser rightly logs the refused request.
    let refusal = visitor.browser.take_log_messages().await;
    assert!(
        refusal.iter().all(|line| line.contains("401")),
        "{refusal:?}"
    );

    visitor
        .find("#token")
        .await
        .send_keys(&demo.token)
        .await
        .unwrap();
    visitor
        .find("main form button")
        .await
        .click()
        .await
        .unwrap();
    let domain = origin.address().to_string();
    // The response is the page itself: no URL leads to data that only the sender may see.
    let command = format!("a2a-registry domain show '{domain}'");
    let words = [
        "Registered",
        &domain,
        "The first crawl has finished",
        &command,
    ];
    visitor.wait_for_texts(&words).await;
    assert_eq!(visitor.path().await, "/register");
    visitor.browser.emulate_screen_size(390, 844).await;
    visitor.assert_fits(390).await;
    visitor.browser.emulate_screen_size(1280, 800).await;
    origin.wait_for_request("/a.json", 1).await;
    visitor
        .find("a[href*='?wait=1']")
        .await
        .click()
        .await
        .unwrap();
    visitor.wait_for_path("/domains/").await;
    visitor.wait_for_texts(&[&domain]).await;
    let agent = visitor.browser.page().query(By::LinkText("Echo <b>"));
    let agent = agent.wait(DEADLINE, POLL_PAUSE);
    let agent = agent.first().await.unwrap();
    visitor.wait_for_texts(&[&domain, "Ownership"]).await;
    // Until the agent was listed its page was a 404 for everyone, and the waiting page polled it.
    let waited = visitor.browser.take_log_messages().await;
    let expected = waited.iter().all(|line| line.contains("404"));
    assert!(expected, "{waited:?}");
    agent.click().await.unwrap();
    visitor.wait_for_texts(&["Echo <b>", "Does repeat"]).await;
    visitor.finish().await;
}

/// The width and height in a PNG file's header.
fn size_of(file: &Path) -> (u32, u32) {
    let bytes = std::fs::read(file).unwrap();
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

/// Scripts are a convenience only: every page works without them, and the page of an agent has its snippets, and nothing of
/// the console.
#[tokio::test]
async fn the_pages_work_without_script() {
    let demo = demo().await;
    let visitor = DemoVisitor::open(&demo).await;
    visitor.browser.disable_scripts().await;
    visitor.visit("/").await;
    visitor.search("recipe").await;
    visitor.wait_for_path("/?q=recipe").await;
    assert_eq!(visitor.element_texts(".hit h2").await[0], "Recipe Scaler");
    visitor.visit("/?q=").await;
    visitor.browser.emulate_screen_size(390, 844).await;
    visitor
        .find("#filters > summary")
        .await
        .click()
        .await
        .unwrap();
    visitor
        .find("#facet-protocol_version > summary")
        .await
        .click()
        .await
        .unwrap();
    let facet = visitor.find("a.value[href*='protocol_version=0.3']").await;
    facet.click().await.unwrap();
    visitor.wait_for_path("/?protocol_version=0.3").await;
    visitor.browser.emulate_screen_size(1280, 800).await;
    visitor.find(".hit h2 a").await.click().await.unwrap();
    visitor.wait_for_texts(&["Recipe Scaler", "Call it"]).await;
    assert_eq!(
        visitor.element_texts("button.copy").await.len(),
        0,
        "a script has run"
    );
    let labels = visitor
        .browser
        .page()
        .find_all(By::Css(".tabs label"))
        .await;
    labels.unwrap()[1].click().await.unwrap();
    assert!(
        visitor
            .element_text("#panel-python")
            .await
            .contains("import")
    );
    let agent = demo.agent("Trip Planner").await;
    visitor.visit(&agent).await;
    visitor.wait_for_texts(&["Call it", "curl"]).await;
    let text = visitor.visible_text().await;
    assert!(!text.contains("Talk to it"), "{text}");
    visitor.finish().await;
}

/// The README's pictures. They are written into the repository only on request (`UPDATE_SCREENSHOT=1`), because their
/// bytes differ between machines.
#[tokio::test]
async fn the_readme_has_its_pictures() {
    let demo = demo().await;
    let visitor = DemoVisitor::open(&demo).await;
    visitor.browser.emulate_screen_size(1280, 800).await;
    let folder = TempDir::new().unwrap();
    let agent = demo.agent("Trip Planner").await;
    for (name, path, theme) in [
        ("search.png", "/?q=plan+a+trip+and+convert+money", "light"),
        ("agent.png", agent.as_str(), "dark"),
    ] {
        visitor.browser.set_color_scheme(theme).await;
        visitor.visit(path).await;
        visitor.wait_for_texts(&["Trip Planner"]).await;
        let fresh = folder.path().join(name);
        visitor.browser.screenshot(&fresh).await;
        let kept = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../web")
            .join(name);
        if std::env::var_os("UPDATE_SCREENSHOT").is_some() {
            std::fs::copy(&fresh, &kept).unwrap();
        }
        for file in [&fresh, &kept] {
            assert!(file.is_file(), "run this test with UPDATE_SCREENSHOT=1");
            assert_eq!(size_of(file), (1280, 800), "{}", file.display());
            let size = std::fs::metadata(file).unwrap().len();
            assert!(size < 200_000, "{} has {size} bytes", file.display());
        }
    }
    visitor.finish().await;
}
