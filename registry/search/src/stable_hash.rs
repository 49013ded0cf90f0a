//! Hashes that are equal in every process, whatever it was compiled with. Replicas compare them, and the hasher of the
//! standard library may change with its version.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;

/// The hash of a list of byte strings, in their order.
pub(super) fn stable_hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let mut hasher = SipHasher13::new();
    for part in parts {
        // With their lengths, other parts of the same text have another hash.
        hasher.write(&(part.len() as u64).to_le_bytes());
        hasher.write(part);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_never_change() {
        let expected: [(&[&str], u64); 3] = [
            (&[], 0xd1fb_a762_150c_532c),
            (&["agent", "vectors"], 0xf60b_83f8_18c6_35cd),
            (&["agentv", "ectors"], 0x327e_6ab0_4810_a202),
        ];
        for (parts, hash) in expected {
            let bytes = parts.iter().map(|part| part.as_bytes());
            assert_eq!(stable_hash(bytes), hash, "{parts:?}");
        }
    }
}
