//! Reports to the service manager that started this process, such as systemd, by `sd_notify`.

use std::time::Duration;

use a2a_registry_core::context::AppContext;
use a2a_registry_core::health::readiness::{Readiness, check_readiness};
use tokio_util::sync::CancellationToken;

/// Variable with the path of the service manager's socket; not set if there is none.
const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";
/// Time between two readiness checks.
const READINESS_INTERVAL: Duration = Duration::from_millis(500);

/// Reports that this process is ready, as soon as `/readyz` would say so, and that it is stopping, as soon as
/// `shutdown` is cancelled.
pub async fn report_service_state(context: &AppContext, shutdown: &CancellationToken) {
    if std::env::var_os(SOCKET_VARIABLE).is_none() {
        return;
    }
    tokio::select! {
        () = report_readiness(context) => {}
        () = shutdown.cancelled() => {}
    }
    shutdown.cancelled().await;
    notify_service_manager("STOPPING=1\nSTATUS=stopping");
}

/// Returns when the process is ready. Until then the status, which `systemctl status` shows, is what it is waiting for.
async fn report_readiness(context: &AppContext) {
    let mut reported = String::new();
    loop {
        let readiness = check_readiness(context).await;
        if readiness.ready {
            notify_service_manager("READY=1\nSTATUS=ready");
            return;
        }
        let status = format!("STATUS=not ready: {}", failing_check_names(&readiness));
        if status != reported {
            notify_service_manager(&status);
            reported = status;
        }
        tokio::time::sleep(READINESS_INTERVAL).await;
    }
}

fn failing_check_names(readiness: &Readiness) -> String {
    let failing = readiness.checks.iter().filter(|check| !check.ok);
    let names: Vec<&str> = failing.map(|check| check.name.as_str()).collect();
    names.join(", ")
}

/// Sends a state such as `RELOADING=1`, one `NAME=value` on each line. Does nothing without a service manager.
#[cfg(unix)]
pub fn notify_service_manager(state: &str) {
    use std::os::unix::net::UnixDatagram;

    let Some(socket_path) = std::env::var_os(SOCKET_VARIABLE) else {
        return;
    };
    let sent =
        UnixDatagram::unbound().and_then(|socket| socket.send_to(state.as_bytes(), &socket_path));
    if let Err(error) = sent {
        tracing::warn!(%error, state, "the service manager in {SOCKET_VARIABLE} was not notified");
    }
}

#[cfg(not(unix))]
pub fn notify_service_manager(_: &str) {}
