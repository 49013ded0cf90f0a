//! Owner fingerprint: properties of a domain that together detect a change of owner
//! (docs/publish/prove.md#a-domain-changes-hands).

use std::collections::BTreeSet;

/// The owner fingerprint of a domain. An empty part was not observed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnerFingerprint {
    /// Name servers of the registrable domain.
    pub name_servers: BTreeSet<String>,
    /// Digest of the TLS certificate's key.
    pub tls_key: Option<String>,
    pub card_keys: BTreeSet<String>,
}

impl OwnerFingerprint {
    /// Whether the change from this fingerprint to `current` indicates a new owner: all three parts are known in both,
    /// and all three differ. A part that is unchanged or was not observed is evidence against a new owner, so a domain
    /// with unsigned cards never gets one this way.
    ///
    /// Any difference in the name servers counts, because owners add some and keep others; the card keys must have
    /// none in common.
    pub fn indicates_new_owner(&self, current: &Self) -> bool {
        let seen = |fingerprint: &Self| {
            !fingerprint.name_servers.is_empty()
                && fingerprint.tls_key.is_some()
                && !fingerprint.card_keys.is_empty()
        };
        seen(self)
            && seen(current)
            && self.name_servers != current.name_servers
            && self.tls_key != current.tls_key
            && self.card_keys.is_disjoint(&current.card_keys)
    }

    /// The fingerprint after one more check; parts that were not observed keep their value.
    #[must_use]
    pub fn merge(self, current: Self) -> Self {
        let or = |now: BTreeSet<String>, before| if now.is_empty() { before } else { now };
        Self {
            name_servers: or(current.name_servers, self.name_servers),
            tls_key: current.tls_key.or(self.tls_key),
            card_keys: or(current.card_keys, self.card_keys),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(name_servers: &[&str], tls_key: &str, card_keys: &[&str]) -> OwnerFingerprint {
        let set = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        OwnerFingerprint {
            name_servers: set(name_servers),
            tls_key: (!tls_key.is_empty()).then(|| tls_key.to_owned()),
            card_keys: set(card_keys),
        }
    }

    #[test]
    fn only_where_all_three_have_changed_is_there_another_owner() {
        let before = marks(&["ns1", "ns2"], "t", &["a", "b"]);
        let another = marks(&["ns1", "ns3"], "u", &["c"]);
        assert!(before.indicates_new_owner(&another));
        let cases = [
            ("nothing changed", before.clone()),
            (
                "the name servers stayed",
                marks(&["ns2", "ns1"], "u", &["c"]),
            ),
            ("the TLS key stayed", marks(&["ns3"], "t", &["c"])),
            ("a card key stayed", marks(&["ns3"], "u", &["b", "c"])),
            ("no name servers were seen", marks(&[], "u", &["c"])),
            ("no TLS key was seen", marks(&["ns3"], "", &["c"])),
            ("no card is signed", marks(&["ns3"], "u", &[])),
        ];
        for (why, now) in cases {
            assert!(!before.indicates_new_owner(&now), "{why}");
            assert!(!now.indicates_new_owner(&before), "{why}, reversed");
        }
    }

    #[test]
    fn marks_that_are_not_observed_stay() {
        let before = marks(&["ns1"], "t", &["a"]);
        assert_eq!(before.clone().merge(OwnerFingerprint::default()), before);
        let now = marks(&["ns2"], "", &["b"]);
        assert_eq!(before.merge(now), marks(&["ns2"], "t", &["b"]));
    }
}
