//! The page that asks before something is lost: it names the losses, and its form sends the same form again, confirmed.
//!
//! A form that destroys has a field [`Confirmation`] named `confirm`. Its handler answers with [`ConfirmPage`] until
//! that is given, and then acts. The API acts at once: a program has read what it asks for.

use askama::Template;
use serde::Deserialize;

use crate::pages::frame::Frame;

/// The field `confirm` of a form: whether the person has read what will be lost, and continues.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Confirmation(String);

impl Confirmation {
    pub(crate) fn is_given(&self) -> bool {
        self.0 == "yes"
    }
}

/// Its texts come from [`text`](a2a_registry_core::text), as those of every page.
#[derive(Template)]
#[template(path = "confirm.html")]
pub(crate) struct ConfirmPage {
    pub frame: Frame,
    /// The act and its subject, such as "Revoke the token ci".
    pub title: String,
    /// What will be lost, a sentence each.
    pub losses: Vec<String>,
    pub action: String,
    /// The fields of the first form, which are sent again.
    pub fields: Vec<(&'static str, String)>,
    pub button: &'static str,
    /// The address for someone who does not confirm.
    pub back: String,
}
