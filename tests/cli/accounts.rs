//! Accounts, groups and tokens by the command line.

use serde_json::Value;

use super::client::assert_printed;
use crate::support::program::{Program, assert_exit, join_lines};
use crate::support::setup::RegistrySetup;

#[tokio::test]
async fn people_are_managed_by_commands() {
    let registry = RegistrySetup::new().start().await;
    let run = async |line: &str| {
        let arguments: Vec<&str> = line.split(' ').collect();
        registry.run_admin_command(&arguments).await
    };
    let created = run("account create ann --role publisher --role auditor").await;
    assert_printed(&created, "publisher, auditor");
    assert_exit(&run("account create ann --role reader").await, 2, "ann");
    assert_exit(&run("account create bob").await, 2, "--role");
    assert_exit(&run("account create bob --role king").await, 2, "king");
    assert_exit(&run("account show nobody").await, 1, "nobody");
    assert_exit(&run("group set travel unheard").await, 2, "unheard");
    assert_printed(&run("group set travel ann").await, "member   ann");
    assert_printed(&run("group list").await, "travel");
    assert_printed(&run("group show travel").await, "set by admin");
    assert_exit(&run("group show nothing").await, 1, "nothing");
    assert_printed(&run("account show ann").await, "travel (set by admin)");

    let made = run("token create --account ann --role auditor --scope read --expires 7").await;
    let secret = made.stdout[0].clone();
    let as_ann = async |line: &str| {
        let mut command = registry.anonymous_command(&line.split(' ').collect::<Vec<_>>());
        command.args(["--token", &secret]);
        Program::run(command).await
    };
    assert_printed(&as_ann("whoami").await, "scopes   read");
    let me = join_lines(&as_ann("whoami --json").await.stdout);
    let me: Value = serde_json::from_str(&me).unwrap();
    assert_eq!(me["name"], "ann");
    assert_exit(&as_ann("account list").await, 2, "may not");
    assert_exit(
        &as_ann("token create --account bob --role reader").await,
        2,
        "admin",
    );
    assert_exit(
        &run("token create --account ann --role auditor --expires 366").await,
        2,
        "366",
    );
    assert_exit(
        &run("token create --account ann --role auditor --scope admin").await,
        2,
        "scope admin",
    );
    assert_printed(&run("token list").await, "ann");
    assert_printed(
        &run("account set-roles ann reader").await,
        "roles    reader",
    );
    assert_printed(&run("account list").await, "reader");
    assert_printed(&run("account disable ann").await, "disabled since");
    assert_exit(&as_ann("whoami").await, 2, "token");
    assert_exit(&run("account disable admin").await, 2, "last enabled admin");
    assert_printed(&run("account enable ann").await, "account  ann");
    assert_exit(&as_ann("whoami").await, 2, "token");
    for line in [
        "account list",
        "account show ann",
        "group list",
        "group show travel",
    ] {
        let json = join_lines(&run(&format!("{line} --json")).await.stdout);
        let json: Value = serde_json::from_str(&json).unwrap();
        assert!(json.is_object(), "{line}");
    }
    assert_printed(&run("group rm travel").await, "is deleted");
    assert_exit(&run("group rm travel").await, 1, "travel");
}
