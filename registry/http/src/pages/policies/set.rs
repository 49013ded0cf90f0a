//! Policy set page: the policies as written, their author and reason, and templates to start with.

use a2a_registry_api::{Policies, PolicyView};
use a2a_registry_core::policies::sets::{PolicySetQuery, policies_show};
use a2a_registry_core::text::{self, BLOCK, LINE};
use a2a_registry_domain::role::Permission;
use a2a_registry_domain::timestamp::Timestamp;
use a2a_registry_policy::{MAX_POLICY_BYTES, TEMPLATES};
use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use askama::Template;

use crate::answers::response::HandlerResult;
use crate::pages::frame::Frame;
use crate::pages::moment;
use crate::pages::trust::Badge;
use crate::requests::auth::SeeAll;
use crate::requests::query;
use crate::requests::visitor::PermittedVisitor;

#[derive(Template)]
#[template(path = "policies.html")]
struct PolicySetPage {
    frame: Frame,
    now: Timestamp,
    set: Policies,
    newest: u64,
    standing: Badge,
    templates: Vec<PolicyTemplateView>,
    edits: bool,
}

pub(super) struct PolicyTemplateView {
    pub name: &'static str,
    pub about: &'static str,
}

/// Shows a policy set.
pub(crate) async fn show_policy_set(
    visitor: PermittedVisitor<SeeAll>,
    request: HttpRequest,
) -> HandlerResult {
    let requested: PolicySetQuery = query::parse_query(request.query_string())?;
    let newest = policies_show(
        &visitor.context,
        &visitor.caller,
        &PolicySetQuery::default(),
    )
    .await?;
    let number = newest.number;
    let set = match requested.number {
        None => newest,
        Some(_) => policies_show(&visitor.context, &visitor.caller, &requested).await?,
    };
    let edits = visitor.caller.has_permission(Permission::Administer);
    let frame = Frame::for_visitor(&visitor.context.config(), "policies", &visitor);
    let page = PolicySetPage {
        frame,
        now: visitor.context.now(),
        standing: policy_set_status_badge(&set, number),
        set,
        newest: number,
        templates: policy_template_views(),
        edits,
    };
    Ok(crate::pages::render_page(StatusCode::OK, &page))
}

pub(super) fn policy_template_views() -> Vec<PolicyTemplateView> {
    let view = |(name, text): &(&'static str, &'static str)| {
        let first = text.lines().next().unwrap_or_default();
        PolicyTemplateView {
            name,
            about: first.trim_start_matches('/').trim_start(),
        }
    };
    TEMPLATES.iter().map(view).collect()
}

impl PolicySetPage {
    /// Shipped policies, or written ones.
    fn policies(&self, are_shipped: bool) -> Vec<&PolicyView> {
        let policies = self.set.policies.iter();
        policies.filter(|one| one.shipped == are_shipped).collect()
    }

    /// Badge for the mode of a policy.
    fn mode_badge(mode: &str) -> Badge {
        let (label, tone, meaning) = match mode {
            "enforce" => ("enforced", "good", "It decides."),
            "dry_run" => (
                "dry run",
                "warn",
                "The policy does not decide. The changes that it would have made are counted.",
            ),
            "off" => ("off", "plain", "The policy is stored but not evaluated."),
            other => (
                other,
                "plain",
                "This version of the registry does not know this mode.",
            ),
        };
        Badge {
            label: text::single_line(label, LINE),
            meaning: meaning.to_owned(),
            tone,
            link: None,
        }
    }

    fn effect_badge(effect: &str) -> Badge {
        let (tone, meaning) = match effect {
            "forbid" => ("bad", "It forbids, whatever permits."),
            _ => (
                "accent",
                "The policy permits, unless another policy forbids.",
            ),
        };
        Badge {
            label: text::single_line(effect, LINE),
            meaning: meaning.to_owned(),
            tone,
            link: None,
        }
    }
}

/// Badge for the status of a set.
fn policy_set_status_badge(set: &Policies, newest: u64) -> Badge {
    let badge = |label: &str, tone, meaning: String| Badge {
        label: label.to_owned(),
        meaning,
        tone,
        link: None,
    };
    let in_force = set.in_force;
    if set.number == in_force {
        return badge(
            "in force",
            "good",
            "This set is used for decisions.".to_owned(),
        );
    }
    if set.number == newest {
        let meaning =
            format!("Set {in_force} is used until all agents have been evaluated under this one.");
        return badge("being evaluated", "warn", meaning);
    }
    let meaning = format!("Set {in_force} decides.");
    badge("not in force", "plain", meaning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::tests::api_samples::{admin_frame, policies, read};
    use crate::pages::tests::hostile::assert_harmless;
    use crate::pages::tests::samples::NOW;

    #[test]
    fn what_others_have_written_stays_text() {
        assert_harmless(|text| {
            let set: Policies = read(policies(text));
            PolicySetPage {
                frame: admin_frame("policies"),
                now: NOW,
                standing: policy_set_status_badge(&set, 3),
                set,
                newest: 3,
                templates: policy_template_views(),
                edits: true,
            }
        });
    }
}
