//! A client that a third-party generator made from the document.

use tokio::process::Command;

use crate::support::cards::card_json;
use crate::support::origin::{Origin, OriginReply};
use crate::support::program::{Program, join_lines};
use crate::support::required_variable;
use crate::support::setup::{ADMIN_TOKEN, RegistrySetup};

/// A client generated from the served document registers, approves, lists, searches and reads.
#[tokio::test]
async fn a_generated_client_registers_approves_and_finds() {
    let registry = RegistrySetup::new().start().await;
    let origin = Origin::start();
    origin.set_reply("/a.json", OriginReply::json(card_json("Echo", "repeat")));
    let python = required_variable("A2A_REGISTRY_TEST_GENERATOR");
    let mut generator = Command::new(&python);
    generator
        .current_dir(registry.setup.scratch_folder())
        .args(["-m", "openapi_python_client", "generate", "--meta", "none"])
        .args(["--url", &format!("{}/openapi.json", registry.url)])
        .args(["--output-path", "registry_client"]);
    let generated = Program::run(generator).await;
    assert!(generated.status.success(), "{generated:#?}");
    // The generator lists what it leaves out: `OpenMetrics` is not a type it knows.
    let omitted: Vec<&String> = [&generated.stdout, &generated.stderr]
        .into_iter()
        .flatten()
        .filter(|line| line.contains("WARNING parsing") || line.contains("ERROR parsing"))
        .collect();
    assert_eq!(omitted.len(), 1, "{generated:#?}");
    assert!(omitted[0].contains("/metrics"), "{generated:#?}");
    let mut client = Command::new(&python);
    client
        .current_dir(registry.setup.scratch_folder())
        .env("PYTHONPATH", registry.setup.scratch_folder())
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/interop/generated_client.py"
        ))
        .args([&registry.url, ADMIN_TOKEN, &origin.url("/a.json")]);
    let used = Program::run(client).await;
    assert!(used.status.success(), "{used:#?}");
    let output = join_lines(&used.stdout);
    for line in [
        "registered 127.0.0.1",
        "review open",
        "approved",
        "listed Echo approved",
        "found Echo repeat",
        "shown Echo public",
        "refused invalid-request /page_size",
        "missing not-found",
    ] {
        assert!(
            output
                .lines()
                .any(|output_line| output_line.starts_with(line)),
            "{line}: {output}"
        );
    }
}
