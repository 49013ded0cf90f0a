//! Headless Chromium, driven through Debian's chromedriver.

use std::path::Path;

use data_encoding::BASE64;
use serde_json::{Value, json};
use tempfile::TempDir;
use thirtyfour::{
    ChromiumLikeCapabilities as _, DesiredCapabilities, LoggingPrefsLogLevel, WebDriver,
};
use tokio::process::Command;

use super::program::Program;
use super::{http_client, install_tls};

/// A browser with an empty profile of its own. [`Browser::close`] ends it; dropping it, as when a test panics, ends it
/// too, but without waiting.
pub struct Browser {
    // Dropped in this order: the page ends its session through the driver, and with it the browser. If the driver were
    // killed first it would leave the browser running.
    page: WebDriver,
    driver: Program,
    address: String,
    /// A client of the driver, for commands that `page` does not have.
    client: reqwest::Client,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser, with a window of 1280 by 900 pixels.
    ///
    /// # Panics
    ///
    /// When `chromium` or `chromedriver` is missing or does not start.
    pub async fn open() -> Self {
        Self::open_sized(1280, 900).await
    }

    /// Starts a browser with a window of that many pixels, for example a phone's.
    ///
    /// # Panics
    ///
    /// As [`Browser::open`].
    pub async fn open_sized(width: u32, height: u32) -> Self {
        Self::open_with(width, height, &[]).await
    }

    /// Starts a browser with a window of that many pixels, and further arguments.
    ///
    /// # Panics
    ///
    /// As [`Browser::open`].
    pub async fn open_with(width: u32, height: u32, arguments: &[&str]) -> Self {
        install_tls();
        let profile = TempDir::new().unwrap();
        let (driver, port) = start_driver().await;

        let mut capabilities = DesiredCapabilities::chrome();
        for argument in [
            "--headless=new",
            // The sandbox does not run as root and needs rights that containers seldom have; only our own pages are
            // visited.
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--no-first-run",
            // Only the tests may send requests or resolve names.
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-proxy-server",
            "--hide-scrollbars",
        ]
        .iter()
        .chain(arguments)
        {
            capabilities.add_arg(argument).unwrap();
        }
        capabilities
            .add_arg(&format!("--user-data-dir={}", profile.path().display()))
            .unwrap();
        capabilities
            .add_arg(&format!("--window-size={width},{height}"))
            .unwrap();
        capabilities
            .set_browser_log_level(LoggingPrefsLogLevel::All)
            .unwrap();
        let address = format!("http://127.0.0.1:{port}");
        let page = WebDriver::new(address.as_str(), capabilities)
            .await
            .expect("chromium must start");
        Self {
            page,
            driver,
            address,
            client: http_client(),
            _profile: profile,
        }
    }

    /// The page, for navigation and for finding elements.
    pub fn page(&self) -> &WebDriver {
        &self.page
    }

    /// New messages in the log of the browser: script errors, missing files, violations of the content security
    /// policy. Each message is returned once.
    pub async fn take_log_messages(&self) -> Vec<String> {
        let log = self.page.browser_log().await.unwrap();
        log.into_iter().map(|entry| entry.message).collect()
    }

    /// Emulates a screen of that many pixels, which may be narrower than the narrowest window.
    pub async fn emulate_screen_size(&self, width: u32, height: u32) {
        let screen = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600,
        });
        self.run_devtools_command("Emulation.setDeviceMetricsOverride", screen)
            .await;
    }

    /// Disables scripts on all pages from now on.
    pub async fn disable_scripts(&self) {
        self.run_devtools_command(
            "Emulation.setScriptExecutionDisabled",
            json!({"value": true}),
        )
        .await;
    }

    /// Runs this script in every page from now on, before the scripts of the page.
    pub async fn run_before_page_scripts(&self, script: &str) {
        self.run_devtools_command(
            "Page.addScriptToEvaluateOnNewDocument",
            json!({"source": script}),
        )
        .await;
    }

    /// Allows pages to read and write the clipboard without asking.
    pub async fn allow_clipboard(&self) {
        let permissions = json!(["clipboardReadWrite", "clipboardSanitizedWrite"]);
        self.run_devtools_command(
            "Browser.grantPermissions",
            json!({"permissions": permissions}),
        )
        .await;
    }

    /// Sets the preferred colour scheme, `light` or `dark`, from now on.
    pub async fn set_color_scheme(&self, name: &str) {
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": name}]});
        self.run_devtools_command("Emulation.setEmulatedMedia", media)
            .await;
    }

    /// Writes a picture of the whole page, however long it is, to a PNG file, whose folder is created if it is missing.
    pub async fn capture_full_page(&self, file: &Path) {
        let whole = json!({"format": "png", "captureBeyondViewport": true});
        let taken = self
            .run_devtools_command("Page.captureScreenshot", whole)
            .await;
        let bytes = BASE64.decode(taken["data"].as_str().unwrap().as_bytes());
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, bytes.unwrap()).unwrap();
    }

    /// Sets a permission for all pages from now on: `granted` or `denied`.
    pub async fn set_permission(&self, permission: &str, setting: &str) {
        let setting = json!({"permission": {"name": permission}, "setting": setting});
        self.run_devtools_command("Browser.setPermission", setting)
            .await;
    }

    async fn run_devtools_command(&self, command: &str, parameters: Value) -> Value {
        let address = format!(
            "{}/session/{}/goog/cdp/execute",
            self.address,
            self.page.session_id()
        );
        let body = json!({"cmd": command, "params": parameters});
        let answer = self.client.post(address).json(&body).send().await;
        let answer = answer.unwrap();
        let status = answer.status();
        let text = answer.text().await.unwrap();
        assert!(status.is_success(), "{command}: {text}");
        let mut answer: Value = serde_json::from_str(&text).unwrap();
        answer["value"].take()
    }

    /// Writes a screenshot to a PNG file, whose folder is created if it is missing.
    pub async fn screenshot(&self, file: &Path) {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        self.page().screenshot(file).await.unwrap();
    }

    /// Ends browser and driver, and waits until they are gone.
    pub async fn close(self) {
        self.page.quit().await.unwrap();
        self.driver.terminate().await;
    }
}

/// Maximum number of attempts to start a driver whose port is already taken.
const MAX_DRIVER_STARTS: usize = 10;

/// Starts a driver, and reads its port from the sentence that it prints. The driver chooses a port that is free for
/// IPv6 and then binds the same port for IPv4, which another test may have taken.
async fn start_driver() -> (Program, u16) {
    for _ in 0..MAX_DRIVER_STARTS {
        let mut command = Command::new("chromedriver");
        command.arg("--port=0");
        let driver = Program::start(command);
        let port = driver
            .wait_for_match(|line| {
                if line.contains("port not available") {
                    return Some(None);
                }
                let (_, port) = line.split_once("started successfully on port ")?;
                Some(port.trim_end_matches('.').parse::<u16>().ok())
            })
            .await;
        if let Some(port) = port {
            return (driver, port);
        }
    }
    panic!("chromedriver has found no free port {MAX_DRIVER_STARTS} times");
}
