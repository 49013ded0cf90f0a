//! The registry under a service manager, such as systemd, which it tells when it is ready and when it stops.

use std::fs;

use tokio::net::UnixDatagram;
use tokio::time::timeout;

use crate::support::DEADLINE;
use crate::support::api::RegistryClient;
use crate::support::serving_registry::start_serving;
use crate::support::setup::RegistrySetup;

/// The next state that the registry reports.
async fn next_state(socket: &UnixDatagram) -> String {
    let mut buffer = [0; 4096];
    let received = timeout(DEADLINE, socket.recv(&mut buffer)).await;
    let length = received.expect("no state was reported").unwrap();
    String::from_utf8(buffer[..length].to_vec()).unwrap()
}

/// Skips states until one that begins with this text.
async fn wait_for_state(socket: &UnixDatagram, text: &str) {
    loop {
        let state = next_state(socket).await;
        if state.starts_with(text) {
            return;
        }
        assert!(
            state.starts_with("STATUS=not ready: "),
            "expected {text:?}: {state:?}"
        );
    }
}

#[tokio::test]
async fn readiness_and_the_end_are_reported_to_the_service_manager() {
    let setup = RegistrySetup::new();
    // A folder in the place of the file of the disk check: the registry serves, but is not ready.
    let obstacle = setup.data_folder().join("ready");
    fs::create_dir_all(&obstacle).unwrap();
    let socket_path = setup.scratch_folder().join("notify");
    let socket = UnixDatagram::bind(&socket_path).unwrap();
    let mut command = setup.serve_command();
    command.env("NOTIFY_SOCKET", &socket_path);
    let (program, status_line) = start_serving(command).await;
    let api = RegistryClient::new(status_line.url());

    wait_for_state(&socket, "STATUS=not ready: disk").await;
    assert_eq!(api.get("/readyz").await.status, 503);
    fs::remove_dir(&obstacle).unwrap();
    wait_for_state(&socket, "READY=1\n").await;
    assert_eq!(api.get("/readyz").await.status, 200);

    let ended = program.terminate().await;
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(next_state(&socket).await, "STOPPING=1\nSTATUS=stopping");
}

/// A registry that is told to stop before it was ready ends at once.
#[tokio::test]
async fn a_registry_that_is_not_ready_can_be_stopped() {
    let setup = RegistrySetup::new();
    fs::create_dir_all(setup.data_folder().join("ready")).unwrap();
    let socket_path = setup.scratch_folder().join("notify");
    let socket = UnixDatagram::bind(&socket_path).unwrap();
    let mut command = setup.serve_command();
    command.env("NOTIFY_SOCKET", &socket_path);
    let (program, _) = start_serving(command).await;
    wait_for_state(&socket, "STATUS=not ready: disk").await;
    let ended = program.terminate().await;
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    assert_eq!(next_state(&socket).await, "STOPPING=1\nSTATUS=stopping");
}

/// A socket that nobody reads from is no reason not to serve.
#[tokio::test]
async fn a_missing_service_manager_does_no_harm() {
    let setup = RegistrySetup::new();
    let mut command = setup.serve_command();
    command.env("NOTIFY_SOCKET", setup.scratch_folder().join("no-socket"));
    let (program, status_line) = start_serving(command).await;
    program.wait_for_line("was not notified").await;
    let api = RegistryClient::new(status_line.url());
    assert_eq!(api.get("/livez").await.status, 200);
    let ended = program.terminate().await;
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}
