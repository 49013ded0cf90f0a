//! Secrets of the configuration: never printed, and each may stand in a file of its own.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::http_client;
use crate::support::program::{Program, assert_exit, join_lines, registry_command};
use crate::support::serving_registry::start_serving;
use crate::support::setup::RegistrySetup;

/// What stands for every secret.
const MARK: &str = "hush-0123456789-hush-0123456789-hush";

/// A configuration with every secret in it.
fn every_secret() -> String {
    format!(
        "[store]\ndatabase = \"postgres://ann:{MARK}@127.0.0.1:1/x?password={MARK}\"\n\
         [embedding]\nurl = \"https://api.example.com/v1/embeddings\"\nmodel = \"m\"\nkey = \"{MARK}\"\n\
         [identity.providers.corp]\nissuer = \"https://login.example.com\"\nclient_id = \"r\"\nclient_secret = \"{MARK}\"\n"
    )
}

/// What a command prints, on both outputs.
async fn told(setup: &RegistrySetup, arguments: &[&str]) -> String {
    let mut command = setup.serve_command();
    command
        .args(arguments)
        .env("A2A_REGISTRY_BOOTSTRAP_TOKEN", MARK);
    let ended = Program::run(command).await;
    format!(
        "{}\n{}",
        join_lines(&ended.stdout),
        join_lines(&ended.stderr)
    )
}

#[tokio::test]
async fn no_secret_is_printed_when_all_goes_well_and_when_nothing_does() {
    let all = RegistrySetup::with_default_config().with_config_lines(&every_secret());
    let printed = told(&all, &["--print-config"]).await;
    assert!(
        printed.contains("postgres://ann:(hidden)@127.0.0.1:1/x"),
        "{printed}"
    );
    assert_eq!(printed.matches("(hidden)").count(), 4, "{printed}");
    // A database that is away, and logs of every level.
    let away = told(&all, &[]).await;
    assert!(
        away.contains("the database postgres://ann:(hidden)@127.0.0.1:1/x"),
        "{away}"
    );
    let mut command = all.serve_command();
    command
        .env("RUST_LOG", "trace")
        .env("A2A_REGISTRY_BOOTSTRAP_TOKEN", MARK);
    let ended = Program::run(command).await;
    let logged = format!(
        "{}\n{}",
        join_lines(&ended.stdout),
        join_lines(&ended.stderr)
    );
    let mut outputs = vec![printed, away, logged];
    // What cannot be read, or stands where something else belongs.
    for wrong in [
        format!("[store]\ndatabase = \"{MARK}\"\n"),
        format!("[store]\ndatabase = \"postgres://ann:{MARK}@127.0.0.1:1/x\n"),
        format!("[store]\ndatabase = [\"{MARK}\"]\n"),
        format!("store = \"{MARK}\"\n"),
        format!("[identity.providers]\ncorp = \"{MARK}\"\n"),
        format!(
            "[identity.providers.corp]\nclient_secret = \"{MARK}\"\nclient_secret = \"{MARK}\"\n"
        ),
        format!("[embedding]\nurl = \"https://a:{MARK}@api.example.com/\"\nmodel = \"m\"\n"),
        format!("[embedding]\nkey = \"{MARK} {MARK}\"\n"),
        format!("[server]\npublic_url = \"https://a:{MARK}@registry.example\"\n"),
    ] {
        let line = told(
            &RegistrySetup::with_default_config().with_config_lines(&wrong),
            &[],
        )
        .await;
        assert!(line.contains("configuration"), "{line}");
        outputs.push(line);
    }
    let mut command = RegistrySetup::with_default_config().serve_command();
    command.env("A2A_REGISTRY__STORE", MARK);
    let ended = Program::run(command).await;
    assert_exit(&ended, 2, "configuration");
    outputs.push(join_lines(&ended.stderr));
    for output in outputs {
        assert!(!output.contains(MARK), "{output}");
    }
}

#[tokio::test]
async fn the_database_and_the_first_token_may_stand_in_files() {
    let setup = RegistrySetup::new();
    let (url, token) = (
        setup.scratch_folder().join("url"),
        setup.scratch_folder().join("token"),
    );
    let elsewhere = setup.scratch_folder().join("elsewhere.sqlite");
    std::fs::write(&url, format!("sqlite:{}?mode=rwc\n", elsewhere.display())).unwrap();
    std::fs::write(&token, format!("{MARK}\n")).unwrap();
    for file in [&url, &token] {
        // Others could read it, which is a line in the log.
        std::fs::set_permissions(file, Permissions::from_mode(0o600)).unwrap();
    }
    let with_files = |setup: &RegistrySetup| {
        let mut command = setup.serve_command();
        command
            .env("A2A_REGISTRY__STORE__DATABASE_FILE", &url)
            .env_remove("A2A_REGISTRY_BOOTSTRAP_TOKEN")
            .env("A2A_REGISTRY_BOOTSTRAP_TOKEN_FILE", &token);
        command
    };
    let (program, status) = start_serving(with_files(&setup)).await;
    let me = http_client()
        .get(format!("{}/v1/me", status.url()))
        .bearer_auth(MARK);
    assert_eq!(me.send().await.unwrap().status(), 200);
    assert!(elsewhere.exists());
    program.terminate().await;
    // Both forms of one secret, and files that hold none.
    let refused = async |command: tokio::process::Command, words: &str| {
        let ended = Program::run(command).await;
        assert_exit(&ended, 2, words);
        assert!(!join_lines(&ended.stderr).contains(MARK));
    };
    let mut both = with_files(&setup);
    both.env("A2A_REGISTRY_BOOTSTRAP_TOKEN", MARK);
    refused(both, "A2A_REGISTRY_BOOTSTRAP_TOKEN_FILE set the same value").await;
    let mut both = with_files(&setup);
    both.env("A2A_REGISTRY__STORE__DATABASE", "sqlite:x");
    refused(both, "store.database_file are alternatives").await;
    std::fs::write(&token, "\n").unwrap();
    refused(with_files(&setup), "A2A_REGISTRY_BOOTSTRAP_TOKEN_FILE").await;
    std::fs::write(&url, format!("mysql://ann:{MARK}@db.example/x")).unwrap();
    refused(with_files(&setup), "store.database_file must begin with").await;
    std::fs::remove_file(&url).unwrap();
    refused(with_files(&setup), "store.database_file").await;
    // A flag counts more than the environment.
    let mut flag = registry_command(["serve", "--print-config", "--database", "sqlite:flag"]);
    flag.env("A2A_REGISTRY__STORE__DATABASE_FILE", &url);
    let ended = Program::run(flag).await;
    assert_exit(&ended, 0, "");
    let printed = join_lines(&ended.stdout);
    assert!(printed.contains("database = \"sqlite:flag\""), "{printed}");
    assert!(printed.contains("# database_file = (not set)"), "{printed}");
}

/// What others can write is refused, since they could replace the secret; what they can read is used and named.
#[cfg(unix)]
#[tokio::test]
async fn a_secret_file_that_others_can_write_is_refused_and_one_they_can_read_is_named() {
    use std::os::unix::fs::PermissionsExt;

    let setup = RegistrySetup::new();
    let folder = setup.scratch_folder().join("credentials");
    std::fs::create_dir(&folder).unwrap();
    let (url, token) = (folder.join("url"), folder.join("token"));
    let database = setup.scratch_folder().join("elsewhere.sqlite");
    std::fs::write(&url, format!("sqlite:{}?mode=rwc\n", database.display())).unwrap();
    std::fs::write(&token, format!("{MARK}\n")).unwrap();
    let set_mode = |mode: u32| {
        for path in [&url, &token] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        }
    };
    let command = |below: &str| {
        let mut command = setup.serve_command();
        command
            .env("A2A_REGISTRY__STORE__DATABASE_FILE", format!("{below}/url"))
            .env_remove("A2A_REGISTRY_BOOTSTRAP_TOKEN")
            .env(
                "A2A_REGISTRY_BOOTSTRAP_TOKEN_FILE",
                format!("{below}/token"),
            );
        command
    };
    let path = folder.to_str().unwrap();
    for mode in [0o620, 0o602, 0o666] {
        set_mode(mode);
        let ended = Program::run(command(path)).await;
        assert_exit(&ended, 2, "store.database_file");
        let line = &ended.stderr[0];
        assert!(
            line.contains("can be written") && line.contains("chmod go-w"),
            "{line}"
        );
    }
    set_mode(0o444);
    let (program, _) = start_serving(command(path)).await;
    let ended = program.terminate().await;
    for setting in ["store.database_file", "A2A_REGISTRY_BOOTSTRAP_TOKEN_FILE"] {
        let is_warning = |line: &&String| line.contains(setting) && line.contains("mode 0444");
        let warnings = ended.stderr.iter().filter(is_warning).count();
        assert_eq!(warnings, 1, "{setting}: {ended:?}");
    }
    assert!(!join_lines(&ended.stderr).contains(MARK));

    // The credentials of a unit, whose folder nobody else can enter: by the variable, or as `%d` in the unit.
    for below in ["$CREDENTIALS_DIRECTORY", path] {
        let mut unit = command(below);
        unit.env("CREDENTIALS_DIRECTORY", &folder);
        let (program, status) = start_serving(unit).await;
        let me = http_client()
            .get(format!("{}/v1/me", status.url()))
            .bearer_auth(MARK);
        assert_eq!(me.send().await.unwrap().status(), 200);
        let ended = program.terminate().await;
        assert!(
            !join_lines(&ended.stderr).contains("can be read"),
            "{ended:?}"
        );
    }
    let mut outside = command("$CREDENTIALS_DIRECTORY");
    outside.env_remove("CREDENTIALS_DIRECTORY");
    let ended = Program::run(outside).await;
    assert_exit(&ended, 2, "LoadCredential=url:");
}

#[tokio::test]
async fn addresses_that_no_client_could_use_are_refused_at_start() {
    for (text, words) in [
        (
            "[server]\nlisten = \"0.0.0.0:8080\"\n",
            "server.public_url must be set",
        ),
        (
            "[server]\nlisten = \"[::]:8080\"\n",
            "server.public_url must be set",
        ),
        (
            "[server]\npublic_url = \"https://registry.example/registry\"\n",
            "served at the root of its host",
        ),
        (
            "[server]\npublic_url = \"https://registry.example/?a=b\"\n",
            "served at the root of its host",
        ),
        (
            "[server]\nlisten = \"0.0.0.0:8080\"\npublic_url = \"http://0.0.0.0:8080\"\n",
            "must name the host that clients use",
        ),
        (
            "[server]\npublic_url = \"http://[::]:8080\"\n",
            "must name the host that clients use",
        ),
        (
            "[server]\ntrusted_proxies = [\"10.0.0.0/33\"]\n",
            "neither an address nor a network",
        ),
        (
            "[server]\ntrusted_proxies = [\"proxy.example\"]\n",
            "neither an address nor a network",
        ),
    ] {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let path = file.path().to_str().unwrap();
        let ended = Program::run(registry_command(["serve", "--config", path])).await;
        assert_exit(&ended, 2, words);
        let ended = Program::run(registry_command(["demo", "--config", path])).await;
        assert_exit(&ended, 2, words);
    }
    let mut command = registry_command(["serve", "--print-config", "--listen", "0.0.0.0:8080"]);
    command
        .env(
            "A2A_REGISTRY__SERVER__PUBLIC_URL",
            "https://registry.example/",
        )
        .env(
            "A2A_REGISTRY__SERVER__TRUSTED_PROXIES",
            "[10.0.0.0/8, 192.0.2.7, \"2001:db8::1\", \"::ffff:ac10:0/108\"]",
        );
    let ended = Program::run(command).await;
    assert_exit(&ended, 0, "");
    let shown: toml::Table = join_lines(&ended.stdout).parse().unwrap();
    let proxies = shown["server"]["trusted_proxies"].as_array().unwrap();
    let proxies: Vec<&str> = proxies.iter().filter_map(toml::Value::as_str).collect();
    // An address of IPv4 within IPv6 is compared as one of IPv4.
    let expected = [
        "10.0.0.0/8",
        "192.0.2.7/32",
        "2001:db8::1/128",
        "172.16.0.0/12",
    ];
    assert_eq!(proxies, expected);
}
