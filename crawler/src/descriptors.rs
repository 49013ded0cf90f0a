//! File descriptors: how many a visit uses, and how to tell that there are none left.

use std::io;

/// Most file descriptors that a visit uses at a time, with an ordinary name server: the connection to its host, and
/// either one to another host, which may be attempted at two of its addresses, or the look-ups before it.
pub const DESCRIPTORS_PER_VISIT: usize = 4;

/// Whether the system refused because this process, or the whole machine, has no file descriptors left.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    // The same numbers on Linux, macOS and the BSDs.
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
