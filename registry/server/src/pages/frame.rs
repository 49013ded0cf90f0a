//! What every page has around its subject.

use crate::config::Config;
use crate::pages::assets;

/// The parts of a page that do not depend on its subject.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    /// `--approve-all` is in force, which every page says.
    pub approve_all: bool,
    /// The sheet's address.
    pub style: String,
    /// The script's address.
    pub script: String,
    /// The icon's address.
    pub icon: String,
    /// Which entry of the navigation is the present one.
    pub here: &'static str,
    /// Reload after two seconds from this address of ours.
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
            refresh: None,
        }
    }
}
