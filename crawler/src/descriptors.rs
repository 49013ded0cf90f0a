//! File descriptors: how many a visit uses, and how to detect that none are left.

use std::io;

/// Maximum number of file descriptors that a visit uses at a time, with an ordinary name server: the connection to its
/// host, plus either a connection to another host, which may be attempted at two of its addresses, or the preceding
/// look-ups.
pub const DESCRIPTORS_PER_VISIT: usize = 4;

/// Whether the error means that this process, or the whole machine, has no file descriptors left.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    // These numbers are the same on Linux, macOS and the BSDs.
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    cfg!(unix) && matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_shortage_of_descriptors_is_one() {
        for (code, expected) in [(23, true), (24, true), (13, false), (111, false)] {
            let error = io::Error::from_raw_os_error(code);
            assert_eq!(is_out_of_descriptors(&error), expected, "{error}");
        }
        assert!(!is_out_of_descriptors(&io::Error::other(
            "Too many open files"
        )));
    }
}
