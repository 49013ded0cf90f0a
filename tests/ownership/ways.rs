//! Ways to add a source, row by row, and the results for its card (docs/publish/prove.md#what-a-proof-covers).

use a2a_registry_domain::coverage::Coverage;
use a2a_registry_domain::coverage::Coverage::{Covered, Nomination};

pub(super) const URL: &str = "/cards/x.json";
pub(super) const WELL_KNOWN: &str = "/.well-known/agent-card.json";

/// Actors of a step.
#[derive(Debug, Clone, Copy)]
pub(super) enum Actor {
    Owner,
    Heir,
    Stranger,
    Partner,
    Curator,
    Anyone,
    AdminApproving,
}

/// Steps of a row, one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// An account registers the domain, or a card of it by its path.
    Domain(Actor),
    Card(Actor, &'static str),
    /// An account places a record with that policy, and requests a check.
    Prove(Actor, &'static str),
    /// The owner proves another host.
    ProveOther(&'static str),
    /// An admin declares a new owner of the other host, or its owner deletes it.
    OtherIsAnothers(&'static str),
    DeleteOther(&'static str),
    /// The record is missing until the proof ends.
    Lapse,
    /// The domain is transferred to the heir.
    Transfer,
    /// An admin vouches for the domain, and for the sources of an account if one is named.
    Vouch(Option<&'static str>),
    /// The domain's catalog, or one that another host serves, names the card from now on, or no longer does.
    Catalog(bool),
    CatalogOfAnotherHost,
    /// The card is on that host, and every registration and catalog names it there.
    LiesAt(&'static str),
    /// The card's path redirects to that URL.
    Redirect(&'static str),
    /// All due visits are made.
    Visit,
    /// All sources are fetched in full.
    Look,
}
use Actor::{AdminApproving, Anyone, Curator, Heir, Owner, Partner, Stranger};
use Step::{
    Card, Catalog, CatalogOfAnotherHost, DeleteOther, Domain, Lapse, LiesAt, Look, OtherIsAnothers,
    Prove, ProveOther, Redirect, Transfer as Give, Visit, Vouch as Word,
};

/// Results for the card: coverage, lifecycle, the rule that decided, level, and whether it has a URN.
pub(super) type CardResult = (Coverage, &'static str, &'static str, &'static str, bool);

pub(super) const OWN: CardResult = (Covered, "approved", "verified_domain", "L1", true);
pub(super) const WAITS: CardResult = (Nomination, "pending", "no_rule", "L0", false);

/// A row: its name, the path of the card, the steps, and the results.
pub(super) type CoverageRow = (&'static str, &'static str, &'static [Step], CardResult);

pub(super) const EXACT: Step = Prove(Owner, "exact");

pub(super) const WAYS: &[CoverageRow] = &[
    (
        "bare domain by a stranger, then proved",
        WELL_KNOWN,
        &[Domain(Stranger), Visit, EXACT],
        OWN,
    ),
    (
        "bare domain by the owner, then by a stranger",
        WELL_KNOWN,
        &[EXACT, Domain(Stranger), Visit],
        OWN,
    ),
    (
        "well-known path by a stranger, then proved",
        WELL_KNOWN,
        &[Card(Stranger, WELL_KNOWN), Visit, EXACT],
        OWN,
    ),
    (
        "well-known path of an unproved domain",
        WELL_KNOWN,
        &[Card(Stranger, WELL_KNOWN), Visit],
        (Covered, "pending", "no_rule", "L0", false),
    ),
    (
        "card URL by a stranger, proved before",
        URL,
        &[EXACT, Card(Stranger, URL), Visit],
        WAITS,
    ),
    (
        "card URL by a stranger, proved afterwards",
        URL,
        &[Card(Stranger, URL), Visit, EXACT],
        WAITS,
    ),
    (
        "card URL by the owner before proving",
        URL,
        &[Card(Owner, URL), Visit, EXACT],
        OWN,
    ),
    (
        "card URL by the owner after proving",
        URL,
        &[EXACT, Card(Owner, URL), Visit],
        OWN,
    ),
    (
        "the same URL by both, the stranger first",
        URL,
        &[EXACT, Card(Stranger, URL), Visit, Card(Owner, URL)],
        OWN,
    ),
    (
        "the same URL by both, the owner first",
        URL,
        &[EXACT, Card(Owner, URL), Visit, Card(Stranger, URL), Look],
        OWN,
    ),
    (
        "by a curator",
        URL,
        &[EXACT, Card(Curator, URL), Visit],
        (Nomination, "approved", "verified_domain", "L0", false),
    ),
    (
        "by a curator, then by the owner",
        URL,
        &[EXACT, Card(Curator, URL), Visit, Card(Owner, URL)],
        OWN,
    ),
    (
        "by an account vouched for",
        URL,
        &[
            Domain(Stranger),
            Word(Some("partner")),
            Card(Partner, URL),
            Visit,
        ],
        (Nomination, "approved", "verified_domain", "L0", false),
    ),
    (
        "by an account vouched for afterwards",
        URL,
        &[Card(Partner, URL), Visit, Word(Some("partner"))],
        (Nomination, "approved", "verified_domain", "L0", false),
    ),
    (
        "by another account than the one vouched for",
        URL,
        &[
            Domain(Stranger),
            Word(Some("partner")),
            Card(Stranger, URL),
            Visit,
        ],
        WAITS,
    ),
    (
        "under a vouch that names nobody",
        URL,
        &[Domain(Partner), Word(None), Card(Partner, URL), Visit],
        WAITS,
    ),
    (
        "well-known path under a vouch",
        WELL_KNOWN,
        &[Domain(Stranger), Word(None), Visit],
        (Covered, "approved", "verified_domain", "L0", false),
    ),
    (
        "named by the catalog before",
        URL,
        &[EXACT, Catalog(true), Visit, Card(Stranger, URL), Look, Look],
        OWN,
    ),
    (
        "named by the catalog afterwards",
        URL,
        &[
            EXACT,
            Visit,
            Card(Stranger, URL),
            Visit,
            Catalog(true),
            Look,
        ],
        OWN,
    ),
    (
        "named by the catalog and dropped again",
        URL,
        &[
            EXACT,
            Visit,
            Card(Stranger, URL),
            Visit,
            Catalog(true),
            Look,
            Catalog(false),
            Look,
        ],
        (Nomination, "pending", "verified_domain", "L0", true),
    ),
    (
        "named by a catalog of another host",
        URL,
        &[
            EXACT,
            CatalogOfAnotherHost,
            Visit,
            Card(Stranger, URL),
            Look,
            Look,
        ],
        WAITS,
    ),
    (
        "catalog entry on another host",
        URL,
        &[LiesAt("other-{}"), EXACT, Catalog(true), Visit, Look, Look],
        WAITS,
    ),
    (
        "catalog entry on another host of the same account",
        URL,
        &[
            LiesAt("other-{}"),
            EXACT,
            ProveOther("other-{}"),
            Catalog(true),
            Visit,
            Look,
            Look,
        ],
        WAITS,
    ),
    (
        "redirect within the host",
        URL,
        &[EXACT, Redirect("/elsewhere.json"), Card(Owner, URL), Visit],
        OWN,
    ),
    (
        "redirect to www",
        URL,
        &[
            EXACT,
            Redirect("https://www.{}/x.json"),
            Card(Owner, URL),
            Visit,
        ],
        WAITS,
    ),
    (
        "redirect to www under a record for subdomains",
        URL,
        &[
            Prove(Owner, "subdomains"),
            Redirect("https://www.{}/x.json"),
            Card(Owner, URL),
            Visit,
        ],
        OWN,
    ),
    (
        "redirect to www, the record for subdomains later",
        URL,
        &[
            EXACT,
            Redirect("https://www.{}/x.json"),
            Card(Owner, URL),
            Visit,
            Prove(Owner, "subdomains"),
        ],
        OWN,
    ),
    (
        "redirect to a port of the host",
        URL,
        &[
            Prove(Owner, "subdomains"),
            Redirect("https://{}:8443/x.json"),
            Card(Owner, URL),
            Visit,
        ],
        WAITS,
    ),
    (
        "redirect to plain http",
        URL,
        &[EXACT, Redirect("http://{}/x.json"), Card(Owner, URL), Visit],
        WAITS,
    ),
    (
        "redirect to a host of the same account",
        URL,
        &[
            EXACT,
            ProveOther("other-{}"),
            Redirect("https://other-{}/x.json"),
            Card(Owner, URL),
            Visit,
        ],
        OWN,
    ),
    (
        "redirect to a host that the account proves later",
        URL,
        &[
            EXACT,
            Redirect("https://other-{}/x.json"),
            Card(Owner, URL),
            Visit,
            ProveOther("other-{}"),
        ],
        OWN,
    ),
    (
        "redirect to a host of the same account that gets another owner",
        URL,
        &[
            EXACT,
            ProveOther("other-{}"),
            Redirect("https://other-{}/x.json"),
            Card(Owner, URL),
            Visit,
            OtherIsAnothers("other-{}"),
        ],
        (Nomination, "pending", "verified_domain", "L0", true),
    ),
    (
        "redirect to a host of the same account that is deleted",
        URL,
        &[
            EXACT,
            ProveOther("other-{}"),
            Redirect("https://other-{}/x.json"),
            Card(Owner, URL),
            Visit,
            DeleteOther("other-{}"),
        ],
        (Nomination, "pending", "verified_domain", "L0", true),
    ),
    (
        "redirect to a stranger's host",
        URL,
        &[
            EXACT,
            Redirect("https://evil.agents-elsewhere.com/x.json"),
            Card(Owner, URL),
            Visit,
        ],
        WAITS,
    ),
    (
        "redirect of the well-known path to a stranger's host",
        WELL_KNOWN,
        &[
            Redirect("https://evil.agents-elsewhere.com/x.json"),
            EXACT,
            Visit,
        ],
        WAITS,
    ),
    (
        "a stranger's URL that redirects to a stranger's host",
        URL,
        &[
            EXACT,
            Redirect("https://evil.agents-elsewhere.com/x.json"),
            Card(Stranger, URL),
            Visit,
        ],
        WAITS,
    ),
    (
        "a card that begins to redirect to a stranger's host",
        URL,
        &[
            EXACT,
            Card(Owner, URL),
            Visit,
            Redirect("https://evil.agents-elsewhere.com/x.json"),
            Look,
        ],
        (Nomination, "pending", "verified_domain", "L0", true),
    ),
    (
        "approved with the registration",
        URL,
        &[EXACT, Card(AdminApproving, URL), Visit],
        (Nomination, "approved", "person", "L0", false),
    ),
    (
        "transfer to another account",
        URL,
        &[EXACT, Card(Owner, URL), Visit, Give, Prove(Heir, "exact")],
        (Nomination, "pending", "verified_domain", "L0", true),
    ),
    (
        "transfer, and the heir registers it too",
        URL,
        &[
            EXACT,
            Card(Owner, URL),
            Visit,
            Give,
            Prove(Heir, "exact"),
            Card(Heir, URL),
        ],
        OWN,
    ),
    (
        "transfer of the well-known path",
        WELL_KNOWN,
        &[EXACT, Visit, Give, Prove(Heir, "exact")],
        OWN,
    ),
    (
        "lapse",
        URL,
        &[EXACT, Card(Owner, URL), Visit, Lapse],
        (Nomination, "approved", "verified_domain", "L0", true),
    ),
    (
        "lapse, and proved again",
        URL,
        &[EXACT, Card(Owner, URL), Visit, Lapse, EXACT],
        OWN,
    ),
    (
        "lapse, and proved by somebody else",
        URL,
        &[EXACT, Card(Owner, URL), Visit, Lapse, Prove(Heir, "exact")],
        (Nomination, "pending", "verified_domain", "L0", true),
    ),
];

/// The same where anyone may register.
pub(super) const OPEN: &[CoverageRow] = &[
    (
        "card URL by anyone",
        URL,
        &[EXACT, Card(Anyone, URL), Visit],
        WAITS,
    ),
    (
        "bare domain by anyone, then proved",
        WELL_KNOWN,
        &[Domain(Anyone), Visit, EXACT],
        OWN,
    ),
];

/// The same where everything is approved.
pub(super) const APPROVE_ALL: &[CoverageRow] = &[(
    "card URL by a stranger",
    URL,
    &[EXACT, Card(Stranger, URL), Visit],
    (Nomination, "approved", "approve_all", "L0", false),
)];

/// The same where the domain is on `allow_domains`.
pub(super) const ALLOWED: &[CoverageRow] = &[
    (
        "card URL by a stranger",
        URL,
        &[Card(Stranger, URL), Visit],
        WAITS,
    ),
    (
        "card URL by a curator",
        URL,
        &[Card(Curator, URL), Visit],
        (Nomination, "approved", "allow_domains", "L0", false),
    ),
    (
        "well-known path by a stranger",
        WELL_KNOWN,
        &[Domain(Stranger), Visit],
        (Covered, "approved", "allow_domains", "L0", false),
    ),
    (
        "named by the catalog",
        URL,
        &[Catalog(true), Domain(Stranger), Visit, Look],
        (Covered, "approved", "allow_domains", "L0", false),
    ),
];
