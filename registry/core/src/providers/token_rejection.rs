//! The reasons for rejecting a token of a provider.

use a2a_card::{SignatureFault, TokenError};

use crate::error::AppError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRejection {
    /// The form, header or signature has this fault.
    Signature(SignatureFault),
    /// The provider has no key with the key ID (`kid`) of the token.
    UnknownKey,
    Type,
    /// The issuer is another one.
    Issuer,
    Audience,
    /// The token was issued to another client, or does not name the client.
    AuthorizedParty,
    /// The token has expired, or has no expiry.
    Expired,
    /// The token is not valid yet.
    NotYetValid,
    /// The token has no issue time, or an impossible one.
    IssuedAt,
    Nonce,
    /// The token names no subject.
    Subject,
    KeyBound,
}

impl TokenRejection {
    /// The reason, as the end of a sentence.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Signature(SignatureFault::Mismatch) => "its signature is invalid",
            Self::Signature(SignatureFault::Algorithm) => {
                "it is not signed by one of the algorithms EdDSA, ES256, ES384, PS256 and RS256"
            }
            Self::Signature(SignatureFault::KeyAlgorithm) => {
                "the key that it names is for another algorithm"
            }
            Self::Signature(SignatureFault::KeyUse) => {
                "the key that it names is not for verifying signatures"
            }
            Self::Signature(_) => "its form or its header is invalid",
            Self::UnknownKey => "its issuer publishes no key with its key ID (`kid`)",
            Self::Type => "its header says that it is a token of another type",
            Self::Issuer => "its issuer is another one",
            Self::Audience => "it is for another audience",
            Self::AuthorizedParty => "it was issued to another client, or does not name the client",
            Self::Expired => "it has expired",
            Self::NotYetValid => "it is not valid yet",
            Self::IssuedAt => "it has no issue time, or an impossible one",
            Self::Nonce => "it was made for another attempt to sign in",
            Self::Subject => "it names no subject",
            Self::KeyBound => "it is bound to a key of its holder, which is not supported",
        }
    }
}

impl From<TokenError> for TokenRejection {
    fn from(fault: TokenError) -> Self {
        match fault {
            TokenError::Rejected(fault) => Self::Signature(fault),
            TokenError::KeyUnknown => Self::UnknownKey,
        }
    }
}

/// The error for a rejected token of this kind.
pub fn token_rejection_error(kind: &str, rejection: TokenRejection) -> AppError {
    let reason = rejection.reason();
    AppError::unauthenticated(format!("This {kind} is rejected: {reason}."))
}
