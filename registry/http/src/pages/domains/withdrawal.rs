//! Form that withdraws the visitor's own registration of a source, after confirmation.

use a2a_registry_core::domains::actions::domain_show;
use a2a_registry_core::domains::withdrawal::source_withdraw;
use a2a_registry_core::text::{self, ADDRESS, LINE};
use actix_web::http::StatusCode;
use serde::Deserialize;

use crate::answers::response::HandlerResult;
use crate::pages::confirm::{ConfirmPage, Confirmation};
use crate::pages::frame::Frame;
use crate::requests::auth::Register;
use crate::requests::forms::{FormFields, PermittedForm};
use crate::requests::path_parameters::DomainRef;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WithdrawSourceForm {
    source: String,
    confirm: Confirmation,
}

impl FormFields for WithdrawSourceForm {}

/// Withdraws a registration, which everyone may do who has made one.
pub(crate) async fn submit_source_withdrawal(
    DomainRef(domain): DomainRef,
    form: PermittedForm<Register, WithdrawSourceForm>,
) -> HandlerResult {
    let (context, caller, fields) = (&form.context, &form.visitor.caller, &form.fields);
    let view = domain_show(context, caller, &domain).await?;
    let mut sources = view.sources.iter();
    let own = sources.find(|source| source.own && source.id == fields.source);
    if let Some(source) = own.filter(|_| !fields.confirm.is_given()) {
        let link = format!("/domains/{}", text::path_segment(&view.domain));
        let url = text::single_line(&source.url, ADDRESS);
        let confirmation = ConfirmPage {
            frame: Frame::for_visitor(&context.config(), "domain", &form.visitor),
            title: "Withdraw the registration".to_owned(),
            losses: vec![
                format!("Your registration of {url}."),
                "If no one else has registered it, it is no longer fetched, and an agent that was never approved is \
                 retired with its last source. An approved agent must be retired first."
                    .to_owned(),
            ],
            action: format!("{link}/withdraw"),
            fields: vec![("source", text::single_line(&source.id, LINE))],
            button: "Withdraw the registration",
            back: format!("{link}#sources"),
        };
        return Ok(crate::pages::render_page(StatusCode::OK, &confirmation));
    }
    source_withdraw(context, caller, &domain, &fields.source).await?;
    // With its last registration, the domain may be hidden from the caller.
    Ok(crate::pages::see_other("/account#domains"))
}
