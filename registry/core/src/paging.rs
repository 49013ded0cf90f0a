//! Pages of lists: page sizes, and signed tokens with the start of the next page.

use a2a_registry_api::deserialize_nonempty_parameter;
use a2a_registry_api::limits::{DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, PageSize};
use data_encoding::BASE64URL_NOPAD;
use ring::hmac;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use crate::error::{AppError, ErrorKind, Result};
use crate::visibility::caller::Caller;

/// The page of a list that a request selects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct PageRequest {
    /// Entries on the page, at most 100; by default 20.
    #[serde(default, deserialize_with = "deserialize_nonempty_parameter")]
    #[param(value_type = Option<PageSize>, inline)]
    pub page_size: Option<u32>,
    /// `next_page_token` of the previous page.
    #[serde(default)]
    pub page_token: Option<String>,
}

pub fn resolve_page_size(requested: Option<u32>) -> Result<usize> {
    match requested {
        None => Ok(DEFAULT_PAGE_SIZE as usize),
        Some(size) if (1..=MAX_PAGE_SIZE).contains(&size) => Ok(size as usize),
        Some(_) => Err(AppError::invalid(
            "/page_size",
            "page_size must be between 1 and 100",
        )),
    }
}

/// Signs page tokens with a key from the database, so that every replica accepts them and no caller can forge one.
#[derive(Debug)]
pub struct PageTokenSigner(hmac::Key);

impl PageTokenSigner {
    pub fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// Hashes these texts, with the same result in every replica.
    pub fn hash_texts(&self, texts: &[&str]) -> u64 {
        let mut context = hmac::Context::with_key(&self.0);
        for text in texts {
            context.update(&(text.len() as u64).to_be_bytes());
            context.update(text.as_bytes());
        }
        let tag = context.sign();
        let first = tag.as_ref().first_chunk();
        first.copied().map_or(0, u64::from_be_bytes)
    }

    /// Makes a page token for a position in the list that `query` and the caller define.
    pub fn sign_position(
        &self,
        query: &str,
        caller: &Caller,
        position: &impl Serialize,
    ) -> Option<String> {
        let position = serde_json::to_vec(position).ok()?;
        let tag = self.position_tag(query, caller, &position);
        let encode = |bytes: &[u8]| BASE64URL_NOPAD.encode(bytes);
        Some(format!(
            "{}.{}",
            encode(&position),
            encode(&tag.as_ref()[..16])
        ))
    }

    /// The position in a page token.
    pub fn decode_position<T: DeserializeOwned>(
        &self,
        query: &str,
        caller: &Caller,
        token: &str,
    ) -> Result<T> {
        self.try_decode_position(query, caller, token).ok_or_else(|| AppError {
            members: vec![("/page_token".into(), "not a token of this list".into())],
            ..AppError::new(
                ErrorKind::Invalid,
                "The page token does not belong to this query and caller. Start again without a token.",
            )
        })
    }

    /// Decodes a token; `None` if it is malformed, or was made for another query or caller.
    pub fn try_decode_position<T: DeserializeOwned>(
        &self,
        query: &str,
        caller: &Caller,
        token: &str,
    ) -> Option<T> {
        let (position, tag) = token.split_once('.')?;
        let position = BASE64URL_NOPAD.decode(position.as_bytes()).ok()?;
        let tag = BASE64URL_NOPAD.decode(tag.as_bytes()).ok()?;
        let expected = self.position_tag(query, caller, &position);
        // Verifying under the key compares the tags in constant time.
        let is_same = hmac::sign(&self.0, &tag).as_ref()
            == hmac::sign(&self.0, &expected.as_ref()[..16]).as_ref();
        if !is_same {
            return None;
        }
        serde_json::from_slice(&position).ok()
    }

    fn position_tag(&self, query: &str, caller: &Caller, position: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.0);
        let account = caller
            .account
            .as_ref()
            .map(|account| account.id.to_string());
        for part in [
            query.as_bytes(),
            account.unwrap_or_default().as_bytes(),
            position,
        ] {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        context.sign()
    }
}

/// A page of a list of rows: its start, and the token of the next page.
pub struct ListPage<'a> {
    signer: &'a PageTokenSigner,
    caller: &'a Caller,
    list_name: &'a str,
    size: usize,
    token: Option<&'a str>,
}

impl<'a> ListPage<'a> {
    /// Makes the requested page; its tokens belong to `query` and to the caller.
    ///
    /// # Errors `Invalid` for a page size out of range.
    pub fn new(
        signer: &'a PageTokenSigner,
        caller: &'a Caller,
        list: &'a str,
        page_request: &'a PageRequest,
    ) -> Result<Self> {
        Ok(Self {
            signer,
            caller,
            list_name: list,
            size: resolve_page_size(page_request.page_size)?,
            token: page_request.page_token.as_deref(),
        })
    }

    /// The position of the last row of the previous page; `None` on the first page.
    ///
    /// # Errors
    /// `Invalid` for a token of another list or caller.
    pub fn start_position<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        let position = |token| {
            self.signer
                .decode_position(self.list_name, self.caller, token)
        };
        self.token.map(position).transpose()
    }

    /// The number of rows to read: one more than the page holds, to know whether another page follows.
    pub fn row_limit(&self) -> u64 {
        self.size as u64 + 1
    }

    /// Cuts the rows to the page; returns the token of the next page, if one follows.
    pub fn truncate_rows<R, P: Serialize>(
        &self,
        rows: &mut Vec<R>,
        position: impl FnOnce(&R) -> P,
    ) -> Option<String> {
        let more = rows.len() > self.size;
        rows.truncate(self.size);
        let last = rows.last().filter(|_| more)?;
        self.signer
            .sign_position(self.list_name, self.caller, &position(last))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_token_belongs_to_its_query_and_key() {
        let signer = PageTokenSigner::new(b"0123456789abcdef0123456789abcdef");
        let caller = Caller::default();
        let token = signer
            .sign_position("agents?q=x", &caller, &("name", 7))
            .unwrap();
        let read = |signer: &PageTokenSigner, query: &str, token: &str| {
            signer
                .decode_position::<(String, i64)>(query, &caller, token)
                .ok()
        };
        assert_eq!(
            read(&signer, "agents?q=x", &token),
            Some(("name".into(), 7))
        );
        assert_eq!(read(&signer, "agents?q=y", &token), None);
        assert_eq!(
            read(&PageTokenSigner::new(b"another key"), "agents?q=x", &token),
            None
        );
        for broken in [
            "",
            ".",
            "a.b",
            &token[..token.len() - 2],
            &format!("x{token}"),
        ] {
            assert_eq!(read(&signer, "agents?q=x", broken), None, "{broken}");
        }
    }
}
