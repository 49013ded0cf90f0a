//! The environment variables with which PostgreSQL's own programs connect to a database.

use percent_encoding::percent_decode_str;
use url::Url;

use crate::config::DatabaseUrl;

impl DatabaseUrl {
    /// The variables for the parts of this URL, so that no argument of such a program has the password. Parts that are
    /// missing here come from the environment, as they do for the registry itself; `None` if this is not a URL.
    pub fn postgres_environment(&self) -> Option<Vec<(&'static str, String)>> {
        let url = Url::parse(self.reveal()).ok()?;
        let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let mut variables = Vec::new();
        let mut set = |name: &'static str, value: String| {
            variables.retain(|(known, _)| *known != name);
            if !value.is_empty() {
                variables.push((name, value));
            }
        };
        // An address of IPv6 is in brackets in a URL only.
        let host = decode(url.host_str().unwrap_or_default());
        set("PGHOST", host.trim_matches(['[', ']']).to_owned());
        set(
            "PGPORT",
            url.port().map_or_else(String::new, |port| port.to_string()),
        );
        set("PGUSER", decode(url.username()));
        set("PGPASSWORD", decode(url.password().unwrap_or_default()));
        set("PGDATABASE", decode(url.path().trim_start_matches('/')));
        let mut options = String::new();
        for (name, value) in url.query_pairs() {
            let variable = match &*name {
                "host" | "hostaddr" => "PGHOST",
                "port" => "PGPORT",
                "user" => "PGUSER",
                "password" => "PGPASSWORD",
                "dbname" => "PGDATABASE",
                "application_name" => "PGAPPNAME",
                "sslmode" | "ssl-mode" => "PGSSLMODE",
                "sslrootcert" | "ssl-root-cert" | "ssl-ca" => "PGSSLROOTCERT",
                "sslcert" | "ssl-cert" => "PGSSLCERT",
                "sslkey" | "ssl-key" => "PGSSLKEY",
                "options" => {
                    options.push_str(&format!(" {value}"));
                    continue;
                }
                other => {
                    let option = other.strip_prefix("options[");
                    if let Some(option) = option.and_then(|option| option.strip_suffix(']')) {
                        options.push_str(&format!(" -c {option}={value}"));
                    }
                    continue;
                }
            };
            set(variable, value.into_owned());
        }
        set("PGOPTIONS", options.trim().to_owned());
        Some(variables)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn variables(url: &str) -> Vec<String> {
        let variables = DatabaseUrl::from(url).postgres_environment().unwrap();
        let lines = variables
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        lines.collect()
    }

    #[test]
    fn every_part_of_a_url_is_a_variable() {
        assert_eq!(
            variables("postgres://ann:p%40ss@db.example:5433/a%20b?sslmode=require"),
            [
                "PGHOST=db.example",
                "PGPORT=5433",
                "PGUSER=ann",
                "PGPASSWORD=p@ss",
                "PGDATABASE=a b",
                "PGSSLMODE=require",
            ]
        );
        assert_eq!(
            variables("postgres://[::1]/a"),
            ["PGHOST=::1", "PGDATABASE=a"]
        );
        assert_eq!(
            variables("postgres://%2Fvar%2Frun/a?user=ann"),
            ["PGHOST=/var/run", "PGDATABASE=a", "PGUSER=ann"]
        );
        assert_eq!(
            variables("postgres:///?host=/run/pg&dbname=a&options=-c%20x%3D1&options[y]=2"),
            ["PGHOST=/run/pg", "PGDATABASE=a", "PGOPTIONS=-c x=1 -c y=2"]
        );
        assert_eq!(variables("postgres://"), [""; 0]);
    }

    #[test]
    fn a_parameter_replaces_a_part_of_the_url() {
        let url = "postgres://ann:one@db.example/a?password=two&host=other.example&ssl-ca=/ca.pem";
        assert_eq!(
            variables(url),
            [
                "PGUSER=ann",
                "PGDATABASE=a",
                "PGPASSWORD=two",
                "PGHOST=other.example",
                "PGSSLROOTCERT=/ca.pem",
            ]
        );
    }
}
