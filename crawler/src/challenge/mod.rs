//! Proofs that a domain is somebody's: what is placed where, and whether it is there.
//!
//! Three formats, each bound to an account's URI, so that nobody profits from another's proof:
//!
//! | format | placed at | holds |
//! |---|---|---|
//! | [`DnsOneOff`](Format::DnsOneOff) | TXT at `_a2a-registry-challenge.<host>`, or with the account's label before it | `token=<dns_token> expiry=<RFC 3339>` |
//! | [`DnsStanding`](Format::DnsStanding) | TXT at `_a2a-registry.<host>` | `<registry>; accounturi=<account>; policy=exact; persistuntil=<unix>` |
//! | [`HttpsFile`](Format::HttpsFile) | `/.well-known/a2a-registry-challenge/<nonce>` | `<nonce>.<thumbprint>` |
//!
//! [`Expected`] computes what an owner is told to place, [`one_off`] and [`standing`] read and judge
//! records without any input or output, and [`Fetcher`](crate::fetch::Fetcher) looks for them in the
//! network: [`check_dns_one_off`](crate::fetch::Fetcher::check_dns_one_off),
//! [`check_dns_standing`](crate::fetch::Fetcher::check_dns_standing),
//! [`check_https_file`](crate::fetch::Fetcher::check_https_file). Accounts, attempts and what a proof is
//! worth belong to the caller.

mod check;
mod expected;
mod file;
mod network;
pub mod one_off_record;
pub mod standing_record;

pub use check::{Check, CheckVerdict, Format, MAX_FOUND, Reach};
pub use expected::{
    CHALLENGE_LABEL, CHALLENGE_PATH, Expected, InvalidNonce, Nonce, STANDING_LABEL, account_label,
    standing_name, standing_record,
};
pub use file::{FileAnswer, MAX_FILE_BYTES};
