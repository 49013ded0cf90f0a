//! Why a token of a provider is refused.

use a2a_card::{SignatureFault, TokenError};

use crate::error::AppError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRejection {
    /// Its form, header or signature has this fault.
    Signature(SignatureFault),
    /// The provider has no key with the token's key name.
    UnknownKey,
    Type,
    /// Its issuer is another one.
    Issuer,
    Audience,
    /// It was issued to another client, or does not say to which.
    AuthorizedParty,
    /// It has expired, or has no expiry.
    Expired,
    /// It is not valid yet.
    NotYetValid,
    /// It does not say when it was issued, or at an impossible time.
    IssuedAt,
    Nonce,
    /// It does not say whom it is about.
    Subject,
    KeyBound,
}

impl TokenRejection {
    /// The fault, as the end of a sentence.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Signature(SignatureFault::Mismatch) => "its signature is wrong",
            Self::Signature(SignatureFault::Algorithm) => {
                "it is not signed by one of the algorithms EdDSA, ES256, ES384, PS256 and RS256"
            }
            Self::Signature(SignatureFault::KeyAlgorithm) => {
                "the key that it names is for another algorithm"
            }
            Self::Signature(SignatureFault::KeyUse) => {
                "the key that it names is not for verifying signatures"
            }
            Self::Signature(_) => "its form or its header is wrong",
            Self::UnknownKey => "its issuer publishes no key of the name that it gives",
            Self::Type => "its header says that it is a token of another type",
            Self::Issuer => "its issuer is another one",
            Self::Audience => "it is for another audience",
            Self::AuthorizedParty => "it was issued to another client, or does not say to which",
            Self::Expired => "it has expired",
            Self::NotYetValid => "it is not valid yet",
            Self::IssuedAt => "it does not say when it was issued, or at a time that cannot be",
            Self::Nonce => "it was made for another attempt to sign in",
            Self::Subject => "it does not say whom it is about",
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

/// The error that a token of this kind is refused.
pub fn rejection_error(kind: &str, rejection: TokenRejection) -> AppError {
    let reason = rejection.reason();
    AppError::unauthenticated(format!("This {kind} is refused: {reason}."))
}
