//! `sign`: signs a card with a key of one's own, without a registry.

use std::path::{Path, PathBuf};

use a2a_card::{
    CanonicalForm, KeySet, MAX_KEY_FILE_BYTES, ProtectedHeader, SigningKey, UncoveredSubject,
    VerificationResult, uncovered_members, verify_signatures,
};
use clap::Args;
use ring::rand::{SecureRandom, SystemRandom};
use url::Url;

use super::command_error::{CommandError, CommandOutcome, CommandResult};
use super::console::Console;
use super::{lint, terminal};

/// Arguments of `sign`.
#[derive(Args, Debug, Clone)]
pub struct SignArgs {
    /// A file, a URL, or `-` for standard input
    #[arg(value_name = "CARD")]
    card: String,
    /// The private key: PKCS#8 as PEM or DER, or a JWK; Ed25519, P-256, P-384, or RSA from 2048 bits
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Identifier of the key in its key set [default: that of the JWK, or its RFC 7638 thumbprint]
    #[arg(long, value_name = "ID")]
    kid: Option<String>,
    /// Where the key set is published; registries fetch it from the card's own origin only
    #[arg(long, value_name = "URL")]
    jku: Option<Url>,
    /// Write the signed card to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the public key set to a file, for publication at the URL of --jku
    #[arg(long, value_name = "FILE")]
    jwks: Option<PathBuf>,
}

pub async fn run_sign(arguments: &SignArgs, console: &Console) -> CommandResult {
    let bytes = lint::load_card(&arguments.card).await?.bytes;
    let random = SystemRandom::new();
    let key = read_signing_key(&arguments.key, &random)?;
    let kid = arguments.kid.clone();
    let kid = kid.or_else(|| key.kid().map(str::to_owned));
    let header = ProtectedHeader {
        kid: kid.unwrap_or_else(|| key.thumbprint()),
        jku: arguments.jku.as_ref().map(Url::to_string),
    };
    let signing_error = |error: &dyn std::fmt::Display| {
        CommandError::new(format!("{} is not signed: {error}", arguments.card))
    };
    let signed = a2a_card::sign_card(&bytes, &key, &header, &random)
        .map_err(|error| signing_error(&error))?;
    let jwks = key.public_jwks(&header.kid);
    let canonical_form = verified_canonical_form(&signed, jwks.as_bytes()).ok_or_else(|| {
        signing_error(&"the signature does not verify; please report this, with the card")
    })?;
    for member in uncovered_members(&signed, canonical_form) {
        if member.subject == UncoveredSubject::Security {
            terminal::eprint_note(&format!(
                "warning: {} is not covered by the signature, so anyone can change it",
                member.pointer
            ));
        }
    }
    match &arguments.out {
        Some(path) => write_file(path, &signed)?,
        None => console.write_bytes(&signed)?,
    }
    if let Some(path) = &arguments.jwks {
        write_file(path, jwks.as_bytes())?;
    }
    terminal::eprint_note(&format!(
        "signed with {} as {} in the form {}",
        key.algorithm().as_str(),
        header.kid,
        canonical_form.as_str()
    ));
    Ok(CommandOutcome::Done)
}

fn read_signing_key(path: &Path, random: &dyn SecureRandom) -> Result<SigningKey, CommandError> {
    let key_error = |error: &dyn std::fmt::Display| {
        CommandError::new(format!(
            "the key {} cannot be used: {error}",
            path.display()
        ))
    };
    let bytes = lint::read_one_past_limit(
        std::fs::File::open(path).map_err(|error| key_error(&error))?,
        MAX_KEY_FILE_BYTES,
    )
    .map_err(|error| key_error(&error))?;
    SigningKey::from_bytes(&bytes, random).map_err(|error| key_error(&error))
}

/// Canonical form in which the new signature, the last one, verifies.
fn verified_canonical_form(signed: &[u8], jwks: &[u8]) -> Option<CanonicalForm> {
    let keys = KeySet::from_jwks(jwks).ok()?;
    let parsed = a2a_card::parse_card(signed).ok()?;
    match verify_signatures(&parsed, signed, &keys).pop()?.result {
        VerificationResult::Valid { form, .. } => Some(form),
        _ => None,
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    std::fs::write(path, bytes).map_err(|error| {
        CommandError::new(format!("{} cannot be written: {error}", path.display()))
    })
}
