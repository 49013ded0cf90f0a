//! Reports agents that a search leaves out because they have no URN, which identifies catalog entries.

/// Hint about the number of agents without a URN; `None` if there are none.
pub(crate) fn without_urn_hint(agents: u64) -> Option<String> {
    match agents {
        0 => None,
        1 => Some(
            "1 matching agent is left out because it has no URN: its domain is not proved. /v1/agents finds it."
                .to_owned(),
        ),
        count => Some(format!(
            "{count} matching agents are left out because they have no URN: their domains are not proved. \
            /v1/agents finds them."
        )),
    }
}
