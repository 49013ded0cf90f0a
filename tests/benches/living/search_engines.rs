//! Groonga and RediSearch over the same cards, each in a process of its own.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::cards::{EngineDocument, FACETS};
use super::searches::SearchServer;
use crate::load::{Load, Protocol};

/// The variable with the folder of the virtual environment of RediSearch.
const REDISEARCH: &str = "A2A_REGISTRY_TEST_REDISEARCH";
/// Values of a facet that a search returns.
const VALUES: usize = 50;
/// How long a rival may take to listen.
const PATIENCE: Duration = Duration::from_secs(60);
/// Documents that are sent to RediSearch before their replies are read.
const BATCH: usize = 500;

/// A running rival; dropping it ends its process.
pub struct SearchEngine {
    /// Its name.
    pub name: &'static str,
    /// What is searched.
    pub server: SearchServer,
    /// How many times its rate the registry should reach, with the number of facets.
    pub target: fn(usize) -> f64,
    process: Child,
    _folder: TempDir,
}

impl Drop for SearchEngine {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts Groonga with these cards; `None`, with a printed line, where it is not installed.
pub fn groonga(cards: usize, card: impl Fn(usize) -> Vec<u8>) -> Option<SearchEngine> {
    if Command::new("groonga")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_err()
    {
        println!(
            "SKIPPED Groonga: there is no program groonga; install it with `sudo apt-get install -y groonga-bin`, or as root with `tests/run --prepare`"
        );
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("cards.db");
    load_groonga(&database, cards, card);
    let address = free_address();
    let mut process = Command::new("groonga")
        .args([
            "-s",
            "--protocol",
            "gqtp",
            "--bind-address",
            "127.0.0.1",
            "-p",
        ])
        .arg(address.port().to_string())
        .arg("--log-path")
        .arg(folder.path().join("groonga.log"))
        .arg(&database)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let listens = listens("Groonga", &mut process, address);
    let rival = SearchEngine {
        name: "Groonga",
        server: SearchServer {
            address,
            process: process.id(),
            protocol: |_| Protocol::Gqtp,
            request: groonga_request,
        },
        target: |_| 1.5,
        process,
        _folder: folder,
    };
    listens.then_some(rival)
}

/// Writes the cards into a new database by the program's own input, and indexes their texts at the end, which is faster.
fn load_groonga(database: &Path, cards: usize, card: impl Fn(usize) -> Vec<u8>) {
    let replies = database.with_extension("replies");
    let mut process = Command::new("groonga")
        .arg("--log-path")
        .arg(database.with_extension("log"))
        .arg("-n")
        .arg(database)
        .stdin(Stdio::piped())
        .stdout(File::create(&replies).unwrap())
        .spawn()
        .unwrap();
    let mut input = BufWriter::new(process.stdin.take().unwrap());
    writeln!(input, "table_create Cards TABLE_HASH_KEY ShortText").unwrap();
    for text in ["name", "description", "provider_name", "body"] {
        writeln!(input, "column_create Cards {text} COLUMN_SCALAR Text").unwrap();
    }
    for facet in FACETS {
        writeln!(input, "table_create Values_{facet} TABLE_PAT_KEY ShortText").unwrap();
        writeln!(
            input,
            "column_create Cards {facet} COLUMN_VECTOR Values_{facet}"
        )
        .unwrap();
    }
    writeln!(input, "load --table Cards\n[").unwrap();
    for key in 0..cards {
        let document = EngineDocument::new(key, &card(key));
        let mut record = serde_json::json!({"_key": key.to_string(), "body": document.body});
        for (name, text) in document.shown {
            record[name] = text.into();
        }
        for (facet, values) in FACETS.iter().zip(document.facets) {
            record[*facet] = values.into();
        }
        let end = if key + 1 == cards { "" } else { "," };
        writeln!(input, "{record}{end}").unwrap();
    }
    writeln!(input, "]").unwrap();
    writeln!(
        input,
        "table_create Terms TABLE_PAT_KEY ShortText --default_tokenizer TokenBigram --normalizer NormalizerAuto"
    )
    .unwrap();
    writeln!(
        input,
        "column_create Terms cards_body COLUMN_INDEX|WITH_POSITION Cards body"
    )
    .unwrap();
    writeln!(input, "select --table Cards --limit 0").unwrap();
    input.flush().unwrap();
    drop(input);
    assert!(process.wait().unwrap().success(), "Groonga failed");
    // Its status says nothing of a command that failed: without the index each search would read all texts.
    let replies = std::fs::read_to_string(&replies).unwrap();
    let has_all = replies.contains(&format!("[[[{cards}],"));
    assert!(
        has_all && !replies.contains("false]"),
        "Groonga did not load the cards: {replies}"
    );
}

fn groonga_request(_: SocketAddr, words: &str, facets: &[&str]) -> Vec<u8> {
    let words: Vec<&str> = words.split(' ').collect();
    let mut command = format!(
        "select --table Cards --match_columns body --query \"{}\" --sort_keys -_score --limit 10 --output_columns _key,_score,name,description,provider_name,tag,skill,binding",
        words.join(" OR ")
    );
    if !facets.is_empty() {
        command.push_str(&format!(
            " --drilldown {} --drilldown_sort_keys -_nsubrecs --drilldown_limit {VALUES} --drilldown_output_columns _key,_nsubrecs",
            facets.join(",")
        ));
    }
    // Protocol, type, length of the key, level, the flag of the last part, status, size, opaque, and check-and-set.
    let mut frame = vec![0xC7, 0, 0, 0, 0, 2, 0, 0];
    frame.extend(u32::try_from(command.len()).unwrap().to_be_bytes());
    frame.extend([0; 12]);
    frame.extend(command.into_bytes());
    frame
}

/// Starts RediSearch with these cards; `None`, with a printed line, where it is not installed.
pub fn redisearch(cards: usize, card: impl Fn(usize) -> Vec<u8>) -> Option<SearchEngine> {
    let installed = std::env::var_os(REDISEARCH).map(PathBuf::from);
    let file = |is_wanted: &dyn Fn(&str) -> bool| {
        let folder = installed.as_ref()?;
        find(folder, is_wanted)
    };
    let program = file(&|name| name == "redis-server");
    let module = file(&|name| name == "redisearch.so");
    let (Some(program), Some(module)) = (program, module) else {
        println!(
            "SKIPPED RediSearch: {REDISEARCH} names no folder with redis-server and redisearch.so; install them with `tests/run --prepare`, and run this bench in `tests/run --shell`"
        );
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    // The program was linked with OpenSSL 1.1, which newer systems do not have; a package beside it brings a copy under names
    // of its own.
    for library in ["libssl", "libcrypto"] {
        let name = format!("{library}.so.1.1");
        if let Some(copy) = file(&|file| file.starts_with(library) && file.ends_with(".so.1.1")) {
            symlink(copy, folder.path().join(name)).unwrap();
        }
    }
    let started = Command::new(program)
        .env("LD_LIBRARY_PATH", folder.path())
        .args([
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--port",
        ])
        .arg(address.port().to_string())
        .arg("--dir")
        .arg(folder.path())
        .arg("--loadmodule")
        .arg(module)
        // Without a limit no count is of a part of the hits.
        .args(["TIMEOUT", "0"])
        .stdout(Stdio::null())
        .spawn();
    let mut process = match started {
        Ok(process) => process,
        Err(error) => {
            println!("SKIPPED RediSearch: the program is installed and does not start ({error})");
            return None;
        }
    };
    let listens = listens("RediSearch", &mut process, address);
    let rival = SearchEngine {
        name: "RediSearch",
        server: SearchServer {
            address,
            process: process.id(),
            protocol: |facets| Protocol::Resp(1 + facets),
            request: redisearch_request,
        },
        target: |facets| if facets == 0 { 0.8 } else { 2.0 },
        process,
        _folder: folder,
    };
    if !listens {
        return None;
    }
    load_redisearch(address, cards, card);
    Some(rival)
}

fn load_redisearch(address: SocketAddr, cards: usize, card: impl Fn(usize) -> Vec<u8>) {
    let send = |commands: Vec<Vec<u8>>| {
        let protocol = Protocol::Resp(commands.len());
        let mut load = Load::speaking(protocol, address, vec![commands.concat()], "");
        load.connections = 1;
        load.most = 1;
        load.time = PATIENCE;
        load.run().unwrap();
    };
    let mut schema = vec![
        "FT.CREATE",
        "cards",
        "ON",
        "HASH",
        "PREFIX",
        "1",
        "c:",
        "SCHEMA",
        "body",
        "TEXT",
    ];
    for facet in FACETS {
        schema.extend([facet, "TAG", "SEPARATOR", ",", "SORTABLE"]);
    }
    send(vec![command(&schema)]);
    let keys: Vec<usize> = (0..cards).collect();
    for keys in keys.chunks(BATCH) {
        let commands = keys.iter().map(|key| {
            let document = EngineDocument::new(*key, &card(*key));
            let key = format!("c:{key}");
            // A search that counts a field fails where a document has none.
            let facets = document.facets.map(|values| match values.is_empty() {
                true => "none".to_owned(),
                false => values.join(","),
            });
            let mut fields = vec!["HSET", key.as_str(), "body", document.body.as_str()];
            for (name, text) in &document.shown {
                fields.extend([*name, text.as_str()]);
            }
            for (facet, values) in FACETS.iter().zip(&facets) {
                fields.extend([*facet, values.as_str()]);
            }
            command(&fields)
        });
        send(commands.collect());
    }
}

fn redisearch_request(_: SocketAddr, words: &str, facets: &[&str]) -> Vec<u8> {
    let query = format!("@body:({})", words.replace(' ', "|"));
    let values = VALUES.to_string();
    let mut bytes = command(&[
        "FT.SEARCH",
        "cards",
        query.as_str(),
        "RETURN",
        "6",
        "name",
        "description",
        "provider_name",
        "tag",
        "skill",
        "binding",
        "LIMIT",
        "0",
        "10",
        "DIALECT",
        "2",
    ]);
    for facet in facets {
        let split = format!("split(@{facet}, \",\")");
        bytes.extend(command(&[
            "FT.AGGREGATE",
            "cards",
            query.as_str(),
            "APPLY",
            split.as_str(),
            "AS",
            "value",
            "GROUPBY",
            "1",
            "@value",
            "REDUCE",
            "COUNT",
            "0",
            "AS",
            "count",
            "SORTBY",
            "2",
            "@count",
            "DESC",
            "MAX",
            values.as_str(),
            "LIMIT",
            "0",
            values.as_str(),
            "DIALECT",
            "2",
        ]));
    }
    bytes
}

/// A command as Redis takes it.
fn command(parts: &[&str]) -> Vec<u8> {
    let mut text = format!("*{}\r\n", parts.len());
    for part in parts {
        text.push_str(&format!("${}\r\n{part}\r\n", part.len()));
    }
    text.into_bytes()
}

/// The first file in a folder or below whose name is wanted.
fn find(folder: &Path, is_wanted: &dyn Fn(&str) -> bool) -> Option<PathBuf> {
    let entries: Vec<_> = std::fs::read_dir(folder).ok()?.flatten().collect();
    let named = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        path.is_file() && name.is_some_and(is_wanted)
    };
    let mut files = entries.iter().map(|entry| entry.path()).filter(named);
    files.next().or_else(|| {
        let folders = entries
            .iter()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders
            .map(|entry| entry.path())
            .find_map(|folder| find(&folder, is_wanted))
    })
}

/// An address whose port was free a moment ago.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.local_addr().unwrap()
}

/// Waits until a program listens, and returns whether it does; one that ends first, or takes too long, is skipped with a
/// printed line.
#[expect(
    clippy::disallowed_methods,
    reason = "the program says nowhere that it listens"
)]
fn listens(name: &str, process: &mut Child, address: SocketAddr) -> bool {
    let began = Instant::now();
    while TcpStream::connect(address).is_err() {
        let ended = process.try_wait().unwrap();
        if ended.is_some() || began.elapsed() > PATIENCE {
            println!("SKIPPED {name}: the program is installed and does not listen ({ended:?})");
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}
