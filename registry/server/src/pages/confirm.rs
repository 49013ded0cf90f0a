//! The page that asks before something is lost: it names what, and its form sends the same form again, confirmed.
//!
//! A form that destroys has a field [`Confirmation`] named `confirm`. Its handler answers with [`ConfirmPage`] until that
//! is given, and acts then. The API acts at once: a program has read what it asks for.

use askama::Template;
use serde::Deserialize;

use crate::pages::frame::Frame;

/// The field `confirm` of a form: whether the person has read what will be lost, and goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Confirmation(String);

impl Confirmation {
    /// Whether it is given.
    pub(crate) fn is_given(&self) -> bool {
        self.0 == "yes"
    }
}

/// The page. Its texts come from [`text`](crate::pages::text), as those of every page.
#[derive(Template)]
#[template(path = "confirm.html")]
pub(crate) struct ConfirmPage {
    pub frame: Frame,
    /// What is about to be done to what, such as "Revoke the token ci".
    pub title: String,
    /// What will be lost, a sentence each.
    pub losses: Vec<String>,
    /// Where the form is sent.
    pub action: String,
    /// The fields of the form that asked; it is sent again with them.
    pub fields: Vec<(&'static str, String)>,
    /// The words of the button that goes on.
    pub button: &'static str,
    /// Where one goes who does not confirm.
    pub back: String,
}
