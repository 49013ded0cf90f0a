//! Results of TXT record look-ups.

/// Maximum number of records read from one answer.
pub const MAX_TXT_RECORDS: usize = 50;
/// Maximum size in bytes of a record that is read, with its strings joined.
pub const MAX_TXT_BYTES: usize = 2048;

/// Result of a TXT record look-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TxtLookup {
    /// The name has records.
    Records(TxtRecords),
    /// The name has none: NXDOMAIN, or a name without TXT records. This is a definite answer.
    Absent,
    /// No answer for now: SERVFAIL, REFUSED, a timeout, a truncated answer. This does not mean absence.
    Failed(String),
    /// A validating resolver reports that the answer is forged or broken (DNSSEC).
    ///
    /// A name server that validates DNSSEC itself, as the system's often does, responds with SERVFAIL to such a query.
    /// Therefore this variant comes only from name servers that report the reason (RFC 8914) and from scripted
    /// resolvers; with all others a forged answer is [`Failed`](Self::Failed).
    Bogus(String),
}

/// TXT records, in no particular order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TxtRecords {
    /// The strings of each record joined without a separator (as in RFC 7208 section 3.3); at most [`MAX_TXT_RECORDS`]
    /// of at most [`MAX_TXT_BYTES`] each. Bytes that are not UTF-8 become U+FFFD.
    pub records: Vec<String>,
    /// Number of records that were not read, because there were too many or they were too long.
    pub skipped_count: usize,
    /// Whether a CNAME led to the records, so that they are in another zone.
    pub aliased: bool,
}

impl TxtRecords {
    /// Adds a record, given as its strings, within the limits.
    pub fn push<S: AsRef<[u8]>>(&mut self, strings: impl IntoIterator<Item = S>) {
        let mut bytes = Vec::new();
        for string in strings {
            bytes.extend_from_slice(string.as_ref());
            if bytes.len() > MAX_TXT_BYTES {
                self.skipped_count += 1;
                return;
            }
        }
        if self.records.len() == MAX_TXT_RECORDS {
            self.skipped_count += 1;
        } else {
            self.records
                .push(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_joined_and_bounds_hold_to_the_record_and_the_byte() {
        let mut records = TxtRecords::default();
        records.push(["token=", "a b"]);
        records.push([b"\xff\x1b"]);
        records.push([vec![b'x'; MAX_TXT_BYTES]]);
        records.push([vec![b'x'; MAX_TXT_BYTES], vec![b'x'; 1]]);
        assert_eq!(records.records[..2], ["token=a b", "\u{fffd}\u{1b}"]);
        assert_eq!((records.records.len(), records.skipped_count), (3, 1));
        for _ in 3..=MAX_TXT_RECORDS {
            records.push(["x"]);
        }
        assert_eq!(
            (records.records.len(), records.skipped_count),
            (MAX_TXT_RECORDS, 2)
        );
    }
}
