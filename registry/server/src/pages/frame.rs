//! The frame of every page: header, navigation and notices.

use crate::config::Config;
use crate::pages::assets;

/// The parts of a page that do not depend on its subject.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    /// Whether `--approve-all` is in force, which every page warns of.
    pub approve_all: bool,
    /// The URL of the style sheet.
    pub style: String,
    /// The URL of the script.
    pub script: String,
    /// The URL of the icon.
    pub icon: String,
    /// The active entry of the navigation.
    pub here: &'static str,
    /// The most characters of a search's text.
    pub query_chars: usize,
    /// The local URL to reload from after two seconds.
    pub refresh: Option<String>,
}

impl Frame {
    /// The frame of a page.
    pub fn new(config: &Config, here: &'static str) -> Self {
        Self {
            approve_all: config.governance.approve_all,
            style: assets::address("style.css"),
            script: assets::address("app.js"),
            icon: assets::address("icon.svg"),
            here,
            query_chars: config.limits.query_chars,
            refresh: None,
        }
    }
}
