//! Operations of the sample agents, independent of generation and binding.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Send,
    Stream,
    Get,
    List,
    Cancel,
    /// Streams the further events of a task.
    Subscribe,
    /// Any operation on push notifications.
    Push,
    ExtendedCard,
}
