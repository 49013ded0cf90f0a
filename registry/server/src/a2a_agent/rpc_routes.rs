//! The interface for JSON-RPC: 1.0 and 0.3 at one address, told apart by the header `A2A-Version`.

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::{Map, Value};

use super::fault::{Fault, FaultKind};
use super::stream::{Form, follow, place};
use super::version::{Version, version};
use super::{incoming, listing, rpc, sending, tasks, v0_3, wire};
use crate::caller::Caller;
use crate::error::AppError;
use crate::http::auth::Anyone;
use crate::http::body::UnreadBody;
use crate::http::problem::Problem;
use crate::http::state::State;

/// Characters of a method that an error repeats.
const SHOWN: usize = 60;
/// Methods of 1.0.
const METHODS_V1: [&str; 11] = [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "GetExtendedAgentCard",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
];
/// Methods of 0.3, but for those of push notifications.
const METHODS_V03: [&str; 6] = [
    "message/send",
    "message/stream",
    "tasks/get",
    "tasks/cancel",
    "tasks/resubscribe",
    "agent/getAuthenticatedExtendedCard",
];
/// The beginning of methods of 0.3 about push notifications.
const PUSH_V03: &str = "tasks/pushNotificationConfig/";
/// Methods of 0.3 that stream: where the client takes events, their errors are one.
const STREAMS_V03: [&str; 2] = ["message/stream", "tasks/resubscribe"];

/// Takes one call.
pub(crate) async fn rpc_call(
    request: HttpRequest,
    caller: Anyone,
    body: UnreadBody,
    state: web::Data<State>,
) -> Result<HttpResponse, Problem> {
    answer(&request, &caller.0, body, &state).await
}

async fn answer(
    request: &HttpRequest,
    caller: &Caller,
    body: UnreadBody,
    state: &web::Data<State>,
) -> Result<HttpResponse, Problem> {
    if !state.context.config().a2a.enabled {
        return Err(AppError::no_address().into());
    }
    if !body.is_json() {
        let fault = Fault::new(FaultKind::ContentType, "Send JSON as `application/json`.");
        return Ok(fault.rpc(&Value::Null));
    }
    let bytes = body.read(state.context.config().limits.json_bytes).await?;
    let call = match rpc::read(&bytes) {
        Ok(call) => call,
        Err((id, fault)) => return Ok(fault.rpc(&id)),
    };
    let door = Door {
        request,
        caller,
        state,
    };
    let spoken = spoken(request, state);
    let is_stream = STREAMS_V03.contains(&call.method.as_str()) && wants_stream(request);
    let streams = matches!(spoken, Ok(Version::V03)) && is_stream;
    let answered = match spoken {
        Ok(Version::V1) => door.call_v1(&call.id, &call.method, &call.params).await,
        Ok(Version::V03) => door.call_v03(&call.id, &call.method, &call.params).await,
        Err(fault) => Err(fault),
    };
    Ok(answered.unwrap_or_else(|fault| match streams {
        true => fault.rpc_stream(&call.id),
        false => fault.rpc(&call.id),
    }))
}

fn wants_stream(request: &HttpRequest) -> bool {
    let accept = request.headers().get(header::ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/event-stream"))
}

/// The version of a call, if it is served.
fn spoken(request: &HttpRequest, state: &State) -> Result<Version, Fault> {
    match version(request)? {
        Version::V03 if !state.context.config().a2a.serve_0_3 => Err(Fault::new(
            FaultKind::Version,
            "Only 1.0 is spoken here: send `A2A-Version: 1.0`.",
        )),
        spoken => Ok(spoken),
    }
}

/// What every method needs.
struct Door<'a> {
    request: &'a HttpRequest,
    caller: &'a Caller,
    state: &'a web::Data<State>,
}

impl Door<'_> {
    async fn call_v1(
        &self,
        id: &Value,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<HttpResponse, Fault> {
        let context = &self.state.context;
        let result = match method {
            "SendMessage" => wire::object([("task", self.send(params, Version::V1).await?)]),
            "SendStreamingMessage" => return self.send_streamed(id, params, Version::V1).await,
            "GetTask" => self.get(params).await?,
            "ListTasks" => listing::list(context, self.caller, params).await?,
            "CancelTask" => self.cancel(params).await?,
            "SubscribeToTask" => return self.subscribe(id, params, Version::V1).await,
            "GetExtendedAgentCard" => {
                return Err(Fault::new(
                    FaultKind::Unsupported,
                    "This agent has no extended card.",
                ));
            }
            "CreateTaskPushNotificationConfig"
            | "GetTaskPushNotificationConfig"
            | "ListTaskPushNotificationConfigs"
            | "DeleteTaskPushNotificationConfig" => return Err(no_push()),
            method if self.state.context.config().a2a.serve_0_3 && is_v03(method) => {
                return Err(of_version(method, "0.3"));
            }
            _ => return Err(unknown(method)),
        };
        Ok(rpc::result(id, &result))
    }

    async fn call_v03(
        &self,
        id: &Value,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<HttpResponse, Fault> {
        let task = match method {
            "message/send" => self.send(params, Version::V03).await?,
            "message/stream" => return self.send_streamed(id, params, Version::V03).await,
            "tasks/get" => self.get(params).await?,
            "tasks/cancel" => self.cancel(params).await?,
            "tasks/resubscribe" => return self.subscribe(id, params, Version::V03).await,
            "agent/getAuthenticatedExtendedCard" => {
                return Err(Fault::new(
                    FaultKind::NoExtendedCard,
                    "This agent has no extended card.",
                ));
            }
            method if method.starts_with(PUSH_V03) => return Err(no_push()),
            method if METHODS_V1.contains(&method) => return Err(of_version(method, "1.0")),
            _ => return Err(unknown(method)),
        };
        Ok(rpc::result(id, &v0_3::task(&task)))
    }

    async fn send(&self, params: &Map<String, Value>, version: Version) -> Result<Value, Fault> {
        let incoming = incoming::read(params, version)?;
        let history = incoming.wants.history;
        let task = sending::send(&self.state.context, self.caller, incoming).await?;
        Ok(wire::task(task, history, true))
    }

    async fn send_streamed(
        &self,
        id: &Value,
        params: &Map<String, Value>,
        version: Version,
    ) -> Result<HttpResponse, Fault> {
        let incoming = incoming::read(params, version)?;
        let history = incoming.wants.history;
        let place = place(self.state, self.caller)?;
        let task = sending::begin(&self.state.context, self.caller, incoming).await?;
        let form = Form::Rpc(id.clone(), version);
        Ok(follow(
            self.request,
            self.state,
            self.caller,
            task,
            history,
            form,
            place,
        ))
    }

    async fn get(&self, params: &Map<String, Value>) -> Result<Value, Fault> {
        let history = incoming::history_length(params)?;
        let task = tasks::load(&self.state.context, self.caller, named(params)?).await?;
        Ok(wire::task(task, history, true))
    }

    async fn cancel(&self, params: &Map<String, Value>) -> Result<Value, Fault> {
        let task = tasks::cancel(&self.state.context, self.caller, named(params)?).await?;
        Ok(wire::task(task, None, true))
    }

    async fn subscribe(
        &self,
        id: &Value,
        params: &Map<String, Value>,
        version: Version,
    ) -> Result<HttpResponse, Fault> {
        let task = tasks::open(&self.state.context, self.caller, named(params)?).await?;
        let place = place(self.state, self.caller)?;
        let form = Form::Rpc(id.clone(), version);
        Ok(follow(
            self.request,
            self.state,
            self.caller,
            task,
            None,
            form,
            place,
        ))
    }
}

/// The identifier of a task.
fn named(params: &Map<String, Value>) -> Result<&str, Fault> {
    incoming::text(params, "id")?.ok_or_else(|| Fault::params("`id` is missing."))
}

/// There are no push notifications.
pub(super) fn no_push() -> Fault {
    Fault::new(
        FaultKind::PushNotSupported,
        "This agent sends no push notifications.",
    )
}

/// Whether a method is one of 0.3.
fn is_v03(method: &str) -> bool {
    METHODS_V03.contains(&method) || method.starts_with(PUSH_V03)
}

/// A method of another version than the request's.
fn of_version(method: &str, version: &str) -> Fault {
    let shown: String = method.chars().take(SHOWN).collect();
    Fault::new(
        FaultKind::UnknownMethod,
        format!(
            "{shown:?} is a method of A2A {version}: send it with the header `A2A-Version: {version}`."
        ),
    )
}

fn unknown(method: &str) -> Fault {
    let shown: String = method.chars().take(SHOWN).collect();
    Fault::new(
        FaultKind::UnknownMethod,
        format!("There is no method {shown:?} in this version of A2A."),
    )
}
