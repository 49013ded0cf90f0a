//! Progress of a domain: what is listed, the steps from registration to listing, and the next step.

use a2a_registry_api::{DomainView, SourceView};
use a2a_registry_core::text::{self, ADDRESS, BLOCK, LINE};
use a2a_registry_domain::lifecycle::ShownLifecycle;
use a2a_registry_domain::ownership::DomainState;
use a2a_registry_domain::source::{SourceKind, SourceState};

use crate::pages::domains::{DomainAgentRow, NEW};

pub(crate) struct DomainProgressView {
    /// Tone of the status: `good`, `warn`, `bad` or `plain`.
    pub tone: &'static str,
    pub sentence: String,
    /// Steps to a listed agent, for callers who manage the domain; empty for others.
    pub steps: Vec<ProgressStepView>,
}

pub(crate) struct ProgressStepView {
    pub done: bool,
    /// Whether this is the first step that is not done and is possible.
    pub next: bool,
    /// Whether the step is impossible for this domain; agents are listed without it.
    pub impossible: bool,
    pub title: &'static str,
    /// What is to do; empty if the step is done, because the page shows the fact elsewhere.
    pub text: String,
    /// Whether the step links to the records to publish, which are below.
    pub to_records: bool,
    /// URL of the next step, and its label.
    pub link: Option<(String, &'static str)>,
}

impl ProgressStepView {
    /// Whether the step is possible and not done.
    const fn is_open(&self) -> bool {
        !self.done && !self.impossible
    }

    fn new(done: bool, title: &'static str, text: String) -> Self {
        Self {
            done,
            next: false,
            impossible: false,
            title,
            text,
            to_records: false,
            link: None,
        }
    }
}

impl DomainProgressView {
    /// Progress of a domain with these agents, from the caller's view of the domain.
    pub fn new(view: &DomainView, agents: &[DomainAgentRow]) -> Self {
        let (tone, sentence) = domain_tone_and_sentence(view, agents);
        let is_manager =
            view.complete || !view.challenges.is_empty() || view.sources.iter().any(|one| one.own);
        Self {
            tone,
            sentence,
            steps: if is_manager {
                domain_progress_steps(view, agents)
            } else {
                Vec::new()
            },
        }
    }
}

fn is_agent_listed(agent: &DomainAgentRow) -> bool {
    matches!(
        agent.lifecycle,
        Some(ShownLifecycle::Approved | ShownLifecycle::Deprecated)
    )
}

fn is_agent_pending(agent: &DomainAgentRow) -> bool {
    agent.lifecycle == Some(ShownLifecycle::Pending)
}

fn is_catalog_source(source: &SourceView) -> bool {
    let kind = source.kind.known_value();
    matches!(kind, Some(SourceKind::Ard | SourceKind::AiCatalog))
}

/// "1 agent", "2 agents".
fn agent_count_text(count: usize) -> String {
    match count {
        1 => "1 agent".to_owned(),
        _ => format!("{count} agents"),
    }
}

fn domain_tone_and_sentence(
    view: &DomainView,
    agents: &[DomainAgentRow],
) -> (&'static str, String) {
    let listed = agents.iter().filter(|agent| is_agent_listed(agent)).count();
    let waiting = agents
        .iter()
        .filter(|agent| is_agent_pending(agent))
        .count();
    match view.state.known_value() {
        Some(DomainState::OptedOut) => {
            return (
                "warn",
                "The domain has opted out. None of its agents is listed.".to_owned(),
            );
        }
        Some(DomainState::Disputed) => {
            return (
                "bad",
                "Two accounts claim this domain. It cannot be changed until the dispute is settled."
                    .to_owned(),
            );
        }
        _ => {}
    }
    match (listed, waiting) {
        (0, 0) if is_domain_unfetched(view) => {
            ("plain", "The first crawl has not finished.".to_owned())
        }
        (0, 0) => ("plain", "No agent of this domain is listed.".to_owned()),
        (0, 1) => ("warn", "Its agent is waiting for review.".to_owned()),
        (0, _) => (
            "warn",
            format!("{} are waiting for review.", agent_count_text(waiting)),
        ),
        (1, 0) => ("good", "1 agent is listed.".to_owned()),
        (_, 0) => ("good", format!("{} are listed.", agent_count_text(listed))),
        _ => (
            "good",
            format!(
                "{} listed, {waiting} waiting for review.",
                agent_count_text(listed)
            ),
        ),
    }
}

fn is_domain_unfetched(view: &DomainView) -> bool {
    view.sources.iter().all(|source| source.state == NEW)
}

/// Whether the caller sees only the registration of a source.
fn is_registration_only(source: &SourceView) -> bool {
    source.state == SourceState::Recorded
}

fn domain_progress_steps(view: &DomainView, agents: &[DomainAgentRow]) -> Vec<ProgressStepView> {
    let mut steps = vec![
        ProgressStepView::new(true, "Registered", String::new()),
        fetch_progress_step(view),
        proof_progress_step(view),
        approval_progress_step(agents),
    ];
    if let Some(next) = steps.iter_mut().find(|step| step.is_open()) {
        next.next = true;
    }
    steps
}

fn fetch_progress_step(view: &DomainView) -> ProgressStepView {
    let has_card = |source: &SourceView| source.agent.is_some();
    let done = !view.agents.is_empty() || view.sources.iter().any(has_card);
    let text = match done {
        true => String::new(),
        false if is_domain_unfetched(view) => "This takes a moment.".to_owned(),
        false if view.sources.iter().any(is_registration_only) => {
            "The result is shown once an agent that you may see is listed.".to_owned()
        }
        false => {
            let urls: Vec<String> = view
                .sources
                .iter()
                .filter(|source| !is_catalog_source(source) && source.state != SourceState::New)
                .take(3)
                .map(|source| text::single_line(&source.url, ADDRESS / 4))
                .collect();
            match urls.is_empty() {
                true => "No card has been found yet.".to_owned(),
                false => format!(
                    "No card was found at {}. Publish the card there, or register its URL.",
                    urls.join(", ")
                ),
            }
        }
    };
    ProgressStepView::new(done, "Card fetched", text)
}

fn proof_progress_step(view: &DomainView) -> ProgressStepView {
    let done = view.state == DomainState::Verified;
    let text = match (view.state.known_value(), &view.no_challenge) {
        (Some(DomainState::Verified | DomainState::OptedOut), _) => String::new(),
        (_, Some(_)) if view.owner_vouch.is_some() => {
            "The domain cannot be proved; an admin vouches for its owner.".to_owned()
        }
        (_, Some(reason)) => text::single_line(reason, ADDRESS),
        (Some(DomainState::Lapsed), _) => {
            "The proof is no longer valid. Publish one of the records again.".to_owned()
        }
        (Some(DomainState::Disputed), _) => "More than one account has proved the domain. Remove every record or \
            file that is not yours, or ask an admin to decide.".to_owned(),
        _ if view.challenges.is_empty() => "The domain has not been proved yet.".to_owned(),
        _ => "Publish one of the records: a proof shows that the agents are yours, so that the rules can approve them."
            .to_owned(),
    };
    ProgressStepView {
        impossible: !done && view.no_challenge.is_some(),
        to_records: !done && !view.challenges.is_empty(),
        ..ProgressStepView::new(done, "Domain proved", text)
    }
}

fn approval_progress_step(agents: &[DomainAgentRow]) -> ProgressStepView {
    let listed = agents.iter().filter(|agent| is_agent_listed(agent)).count();
    let pending_agents: Vec<&DomainAgentRow> = agents
        .iter()
        .filter(|agent| is_agent_pending(agent))
        .collect();
    let is_rejected = |agent: &&DomainAgentRow| agent.lifecycle == Some(ShownLifecycle::Rejected);
    let rejected = agents.iter().find(is_rejected);
    let text = match pending_agents.as_slice() {
        _ if listed > 0 => String::new(),
        [] if rejected.is_some() => {
            let name = rejected.map_or("", |agent| agent.name.as_str());
            format!(
                "{} was rejected. Its submitter and owner can see the reason. Publish a changed card to get a new \
                 decision.",
                text::single_line(name, LINE)
            )
        }
        [] => {
            "An agent is listed once its card has been fetched and a rule or a curator has approved it."
                .to_owned()
        }
        [one] => format!(
            "{} is waiting for review: a rule or a curator must decide.",
            text::single_line(&one.name, LINE)
        ),
        _ => "A rule or a curator must decide.".to_owned(),
    };
    let review = pending_agents.iter().find_map(|agent| agent.review.clone());
    let listed_agent = agents.iter().find(|agent| is_agent_listed(agent));
    let link = match (listed_agent, review) {
        (Some(shown), _) => Some((format!("/agents/{}/", shown.id), "To the agent")),
        (None, Some(review)) => Some((review, "To the review")),
        (None, None) => rejected.map(|_| ("/waiting".to_owned(), "Inbox")),
    };
    ProgressStepView {
        link,
        ..ProgressStepView::new(
            listed > 0,
            "Reviewed and listed",
            text::single_line(&text, BLOCK),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::tests::samples::domain;

    fn agent(lifecycle: ShownLifecycle) -> DomainAgentRow {
        DomainAgentRow {
            id: "7".into(),
            name: "Echo <b>".into(),
            description: String::new(),
            review: None,
            lifecycle: Some(lifecycle),
        }
    }

    /// The status sentence of a domain, and its next step.
    fn next(view: &DomainView, agents: &[DomainAgentRow]) -> (String, Option<&'static str>) {
        let standing = DomainProgressView::new(view, agents);
        let next = standing.steps.iter().find(|step| step.next);
        (standing.sentence, next.map(|step| step.title))
    }

    #[test]
    fn the_first_step_that_is_not_done_is_the_next_one() {
        let mut view = domain("x");
        let id = view.agents.remove(0);
        for source in &mut view.sources {
            source.state = NEW.into();
        }
        view.state = DomainState::Unverified.into();
        let first = (
            "The first crawl has not finished.".to_owned(),
            Some("Card fetched"),
        );
        assert_eq!(next(&view, &[]), first);
        view.sources[0].state = SourceState::Absent.into();
        let none = (
            "No agent of this domain is listed.".to_owned(),
            Some("Card fetched"),
        );
        assert_eq!(next(&view, &[]), none);
        view.sources[0].state = SourceState::Fresh.into();
        view.sources[0].agent = Some(id);
        let pending = [agent(ShownLifecycle::Pending)];
        let unproved = (
            "Its agent is waiting for review.".to_owned(),
            Some("Domain proved"),
        );
        assert_eq!(next(&view, &pending), unproved);
        view.state = DomainState::Verified.into();
        assert_eq!(next(&view, &pending).1, Some("Reviewed and listed"));
        let listed = [agent(ShownLifecycle::Approved)];
        assert_eq!(
            next(&view, &listed),
            ("1 agent is listed.".to_owned(), None)
        );
        view.state = DomainState::OptedOut.into();
        assert!(next(&view, &listed).0.contains("opted out"));
    }

    /// A host that cannot be proved is listed by a decision alone, and an impossible step is never the next one.
    #[test]
    fn a_step_that_is_impossible_is_never_the_next_one() {
        let mut view = domain("x");
        view.state = DomainState::Unverified.into();
        view.proofs.clear();
        view.challenges.clear();
        let pending = [agent(ShownLifecycle::Pending)];
        let listed = [agent(ShownLifecycle::Approved)];
        assert_eq!(next(&view, &pending).1, Some("Domain proved"));
        view.no_challenge = Some("127.0.0.1:9 cannot be proved".to_owned());
        assert_eq!(next(&view, &pending).1, Some("Reviewed and listed"));
        assert_eq!(next(&view, &listed).1, None);
        let standing = DomainProgressView::new(&view, &listed);
        let proved = &standing.steps[2];
        assert!(proved.impossible && !proved.done && proved.text.contains("cannot be proved"));
        // An admin's vouch counts as a proof.
        view.state = DomainState::Verified.into();
        let standing = DomainProgressView::new(&view, &listed);
        assert!(standing.steps[2].done && !standing.steps[2].impossible);
    }

    #[test]
    fn steps_are_for_those_who_look_after_the_domain() {
        let mut view = domain("x");
        view.complete = false;
        view.challenges.clear();
        for source in &mut view.sources {
            source.own = false;
        }
        assert!(DomainProgressView::new(&view, &[]).steps.is_empty());
        view.sources[1].own = true;
        assert_eq!(DomainProgressView::new(&view, &[]).steps.len(), 4);
    }
}
