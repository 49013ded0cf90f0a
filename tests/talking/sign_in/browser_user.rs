//! A simulated user with a browser: follows redirects, sends the forms of the provider, and stores cookies by host.

use std::collections::BTreeMap;

use reqwest::header::{ACCEPT, COOKIE, LOCATION, SET_COOKIE};
use reqwest::{Client, RequestBuilder, Response};
use url::Url;

use crate::support::http_client;
use crate::support::identity_provider::with_form;

/// Most steps of a sign-in.
const STEPS: usize = 30;

/// A browser without script.
pub struct BrowserUser {
    client: Client,
    cookies: BTreeMap<String, String>,
}

impl BrowserUser {
    pub fn new() -> Self {
        Self {
            client: http_client(),
            cookies: BTreeMap::new(),
        }
    }

    /// The status and the body at an address.
    pub async fn get(&mut self, url: &str) -> (u16, String) {
        let answer = self.send(self.client.get(url)).await;
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    /// Signs in under that name, beginning at an address; returns the page at the end.
    pub async fn signs_in(mut self, begin: &str, name: &str) -> String {
        let mut at: Url = begin.parse().unwrap();
        let mut request = self.client.get(at.clone());
        for _ in 0..STEPS {
            let answer = self.send(request).await;
            if let Some(next) = answer.headers().get(LOCATION) {
                at = at.join(next.to_str().unwrap()).unwrap();
                request = self.client.get(at.clone());
                continue;
            }
            let page = answer.text().await.unwrap();
            let Some(begin) = page.find("<form") else {
                return page;
            };
            let tag = page[begin..].split('>').next().unwrap();
            if let Some(action) = attribute(tag, "action") {
                at = at.join(&action).unwrap();
            }
            let mut fields = hidden(&page);
            if page.contains("name=\"login\"") {
                fields.push(("login".to_owned(), name.to_owned()));
                fields.push(("password".to_owned(), "x".to_owned()));
            }
            let fields: Vec<_> = fields
                .iter()
                .map(|(key, value)| (&**key, &**value))
                .collect();
            request = with_form(self.client.post(at.clone()), &fields);
        }
        panic!("the sign-in has no end; it is at {at}");
    }

    async fn send(&mut self, request: RequestBuilder) -> Response {
        let cookies = self.cookies.iter();
        let cookies: Vec<_> = cookies
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let request = request
            .header(ACCEPT, "text/html")
            .header(COOKIE, cookies.join("; "));
        let answer = request.send().await.unwrap();
        for line in answer.headers().get_all(SET_COOKIE) {
            let pair = line.to_str().unwrap().split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        answer
    }
}

/// The hidden fields of a page.
fn hidden(page: &str) -> Vec<(String, String)> {
    let tags = page.split("<input").skip(1);
    let tags = tags.filter_map(|rest| rest.split('>').next());
    let hidden = tags.filter(|tag| attribute(tag, "type").as_deref() == Some("hidden"));
    hidden
        .filter_map(|tag| Some((attribute(tag, "name")?, attribute(tag, "value")?)))
        .collect()
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let rest = tag.split(&format!("{name}=\"")).nth(1)?;
    let value = rest.split('"').next()?;
    Some(value.replace("&amp;", "&"))
}
