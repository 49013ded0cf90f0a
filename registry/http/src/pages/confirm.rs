//! Confirmation page before data is lost: lists the losses, and submits the same form again with a confirmation.
//!
//! A destructive form has a field `Confirmation` named `confirm`. Its handler responds with `ConfirmPage` until
//! the field is set, and then acts. The API acts immediately, without confirmation.

use askama::Template;
use serde::Deserialize;

use crate::pages::frame::Frame;

/// Form field `confirm`: whether the person has read what will be lost and wants to continue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Confirmation(String);

impl Confirmation {
    pub(crate) fn is_given(&self) -> bool {
        self.0 == "yes"
    }
}

/// Confirmation page. Its texts must come from [`text`](a2a_registry_core::text), as on every page.
#[derive(Template)]
#[template(path = "confirm.html")]
pub(crate) struct ConfirmPage {
    pub frame: Frame,
    /// Action and its subject, such as "Revoke the token ci".
    pub title: String,
    /// What will be lost, one sentence each.
    pub losses: Vec<String>,
    pub action: String,
    /// Fields of the first form, which are submitted again.
    pub fields: Vec<(&'static str, String)>,
    pub button: &'static str,
    /// URL to return to without confirming.
    pub back: String,
}
