//! A client that a third-party generator made from the document.

use tokio::process::Command;

use crate::support::cards::card;
use crate::support::origin::{Origin, OriginReply};
use crate::support::prepared;
use crate::support::program::{Program, text};
use crate::support::setup::{ADMIN, Setup};

/// A client generated from the served document registers, approves, lists, searches and reads.
#[tokio::test]
async fn a_generated_client_registers_approves_and_finds() {
    let served = Setup::new().start().await;
    let origin = Origin::start();
    origin.answer("/a.json", OriginReply::json(card("Echo", "repeat")));
    let python = prepared("A2A_REGISTRY_TEST_GENERATOR");
    let mut generator = Command::new(&python);
    generator
        .current_dir(served.setup.scratch())
        .args(["-m", "openapi_python_client", "generate", "--meta", "none"])
        .args(["--url", &format!("{}/openapi.json", served.url)])
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
        .current_dir(served.setup.scratch())
        .env("PYTHONPATH", served.setup.scratch())
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/interop/generated_client.py"
        ))
        .args([&served.url, ADMIN, &origin.url("/a.json")]);
    let used = Program::run(client).await;
    assert!(used.status.success(), "{used:#?}");
    let output = text(&used.stdout);
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
