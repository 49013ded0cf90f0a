//! Proofs of control over a domain: the records and files that an owner publishes, and the checks for them.
//!
//! There are three formats. Each names the URI of one account, so that no account can use another account's proof:
//!
//! | format | placed at | content |
//! |---|---|---|
//! | [`DnsOneOff`](ProofFormat::DnsOneOff) | TXT at `_a2a-registry-challenge.<host>`, or with the account's label before it | `token=<dns_token> expiry=<RFC 3339>` |
//! | [`DnsPersistent`](ProofFormat::DnsPersistent) | TXT at `_a2a-registry.<host>` | `<registry>; accounturi=<account>; policy=exact; persistuntil=<unix>` |
//! | [`HttpsFile`](ProofFormat::HttpsFile) | `/.well-known/a2a-registry-challenge/<nonce>` | `<nonce>.<thumbprint>` |
//!
//! [`ExpectedProof`] computes the values that an owner has to publish. [`dns_one_off`] and [`dns_persistent`] parse
//! and evaluate records without any input or output. [`Fetcher`](crate::fetch::Fetcher) fetches them from the network:
//! [`check_dns_one_off`](crate::fetch::Fetcher::check_dns_one_off),
//! [`check_dns_persistent`](crate::fetch::Fetcher::check_dns_persistent),
//! [`check_https_file`](crate::fetch::Fetcher::check_https_file). Accounts, schedules and permissions are the caller's
//! responsibility.

mod check_result;
pub mod dns_one_off;
pub mod dns_persistent;
mod expected_proof;
mod network_checks;
mod proof_file;

pub use check_result::{ChallengeCheck, ChallengeResult, MAX_FOUND_TEXTS, ProofFormat, ProofScope};
pub use expected_proof::{
    CHALLENGE_LABEL, CHALLENGE_PATH, ExpectedProof, InvalidNonce, Nonce, PERSISTENT_LABEL,
    account_dns_label, format_persistent_dns_record, persistent_record_dns_name,
};
pub use proof_file::{MAX_FILE_BYTES, ProofFileResult};
