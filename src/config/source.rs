//! Where values come from: flag beats environment beats file.
//!
//! ```text
//! flags ---+
//! env -----+-> Sources::get(setting) -> Found { text, origin, name } -> the concern's parser
//! file ----+          (a secret's NAME_FILE is read here)
//! ```
//!
//! Empty values count as unset, everywhere: a container passes `APNS_KEY=` for what its operator left out. Within
//! one source NAME and NAME_FILE exclude each other; a stronger source beats a weaker one whichever form they use.

use std::{
    collections::{HashMap, HashSet},
    fmt, fs,
    path::Path,
};

use url::Url;

use super::{
    endpoint::EndpointRule,
    error::{ConfigError, Origin},
    setting::{self, Kind, Setting},
};

/// What stood on the command line, by variable name (`APNS_KEY_ID`, `APNS_KEY_FILE`).
#[derive(Clone, Default)]
pub struct Flags(HashMap<String, String>);

/// What the TOML file holds, by variable name.
#[derive(Clone, Default)]
pub struct File(HashMap<String, String>);

/// The three sources.
pub struct Sources<'a> {
    flags: &'a Flags,
    environment: &'a dyn Fn(&str) -> Option<String>,
    file: File,
}

/// A value and how to speak of it.
pub(crate) struct Found {
    /// The value. For a secret, wrap it at once.
    pub(crate) text: String,
    origin: Origin,
    name: String,
}

impl FromIterator<(String, String)> for Flags {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}

impl fmt::Debug for Flags {
    /// Names only: a value may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<_> = self.0.keys().collect();
        names.sort();
        f.debug_tuple("Flags").field(&names).finish()
    }
}

impl File {
    /// Parses TOML: a flat table of settings in lower case, values as strings, numbers or booleans.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let table: toml::Table = text.parse().map_err(|error| unparsable(&error, text))?;
        let known = known_names();
        let mut values = HashMap::new();
        for (key, value) in table {
            let name = key.to_ascii_uppercase();
            // One level is enough for anybody.
            if name == setting::CONFIG.name {
                return Err(ConfigError::Value {
                    name: key,
                    origin: Origin::File,
                    problem: "names this file, and a file can't name another".to_owned(),
                });
            }
            if !known.contains(&name) || key != key.to_ascii_lowercase() {
                return Err(ConfigError::UnknownKey {
                    nearest: nearest(&key, &known),
                    key,
                });
            }
            values.insert(name, scalar(&key, value)?);
        }
        Ok(Self(values))
    }
}

/// One line about a file that is no TOML. The parser's own message shows the line, which may hold a secret.
fn unparsable(error: &toml::de::Error, text: &str) -> ConfigError {
    let line = error
        .span()
        .and_then(|span| text.get(..span.start))
        .map(|before| before.lines().count().max(1));
    let place = line.map(|line| format!("line {line} ")).unwrap_or_default();
    ConfigError::Unreadable {
        path: "(TOML)".into(),
        problem: format!("{place}is not valid TOML"),
    }
}

fn scalar(key: &str, value: toml::Value) -> Result<String, ConfigError> {
    match value {
        toml::Value::String(text) => Ok(text),
        toml::Value::Integer(number) => Ok(number.to_string()),
        toml::Value::Boolean(truth) => Ok(truth.to_string()),
        toml::Value::Float(_) | toml::Value::Datetime(_) | toml::Value::Array(_) | toml::Value::Table(_) => {
            Err(ConfigError::Value {
                name: key.to_owned(),
                origin: Origin::File,
                problem: "must be a string, a whole number or a boolean".to_owned(),
            })
        }
    }
}

/// Every spelling that a source may hold.
fn known_names() -> HashSet<String> {
    let plain = setting::ALL.iter().map(|setting| setting.name.to_owned());
    plain
        .chain(setting::ALL.iter().filter_map(Setting::file_name))
        .collect()
}

/// The known key that shares the longest start with `key`, when that is more than half of it. The start that most
/// settings have says nothing.
fn nearest(key: &str, known: &HashSet<String>) -> Option<String> {
    let wanted = key.to_ascii_lowercase();
    let wanted = own_part(&wanted);
    let shared = |name: &String| {
        own_part(name)
            .bytes()
            .zip(wanted.bytes())
            .take_while(|(a, b)| a == b)
            .count()
    };
    let candidates = known.iter().map(|name| name.to_ascii_lowercase());
    let best = candidates.max_by_key(|name| (shared(name), std::cmp::Reverse(name.len()), name.clone()))?;
    (shared(&best) * 2 > wanted.len()).then_some(best)
}

fn own_part(name: &str) -> &str {
    name.strip_prefix("relay_").unwrap_or(name)
}

impl<'a> Sources<'a> {
    /// Puts the three together, the file already parsed.
    pub fn new(flags: &'a Flags, environment: &'a dyn Fn(&str) -> Option<String>, file: File) -> Self {
        Self {
            flags,
            environment,
            file,
        }
    }

    /// Reads the file that `--relay-config` or `RELAY_CONFIG` names, if any.
    pub fn open(
        flags: &'a Flags,
        environment: &'a dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let without = Self::new(flags, environment, File::default());
        let Some(found) = without.get(&setting::CONFIG)? else {
            return Ok(without);
        };
        let path = Path::new(&found.text);
        let text = fs::read_to_string(path).map_err(|error| ConfigError::Unreadable {
            path: path.to_owned(),
            problem: error.to_string(),
        })?;
        let file = File::parse(&text).map_err(|error| at_path(error, path))?;
        Ok(Self { file, ..without })
    }

    /// The value of a setting, or nothing if no source has one.
    pub(crate) fn get(&self, setting: &Setting) -> Result<Option<Found>, ConfigError> {
        for origin in [Origin::Flag, Origin::Environment, Origin::File] {
            if let Some(found) = self.get_from(origin, setting)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The value of a setting through `parse`, whose complaint is told with the setting's name.
    pub(crate) fn parse<T>(
        &self,
        setting: &Setting,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ConfigError> {
        let Some(found) = self.get(setting)? else {
            return Ok(None);
        };
        parse(&found.text)
            .map(Some)
            .map_err(|problem| found.refuse(problem))
    }

    /// A provider's URL, or the built-in one.
    pub(crate) fn endpoint(
        &self,
        setting: &Setting,
        built_in: &str,
        rule: EndpointRule,
    ) -> Result<Url, ConfigError> {
        if let Some(url) = self.parse(setting, |text| rule.parse(text))? {
            return Ok(url);
        }
        rule.parse(built_in).map_err(|problem| ConfigError::BuiltIn {
            name: setting.name,
            problem,
        })
    }

    /// A variable of the environment that is no setting of the relay.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        self.raw(Origin::Environment, name)
    }

    /// Whether some source has a value for a setting.
    pub(crate) fn has(&self, setting: &Setting) -> bool {
        [Origin::Flag, Origin::Environment, Origin::File]
            .into_iter()
            .any(|origin| self.raw(origin, setting.name).is_some())
    }

    /// Whether a setting stands on the command line.
    pub(crate) fn is_flag(&self, setting: &Setting) -> bool {
        self.raw(Origin::Flag, setting.name).is_some()
    }

    /// The names of secrets that stand on the command line, where every process of the machine can read them.
    pub(crate) fn exposed_secrets(&self) -> Vec<&'static str> {
        let secrets = setting::ALL.iter().filter(|setting| setting.kind == Kind::Secret);
        secrets
            .filter(|setting| self.raw(Origin::Flag, setting.name).is_some())
            .map(|setting| setting.name)
            .collect()
    }

    fn get_from(&self, origin: Origin, setting: &Setting) -> Result<Option<Found>, ConfigError> {
        let direct = self.raw(origin, setting.name);
        let by_file = setting
            .file_name()
            .and_then(|name| self.raw(origin, &name).map(|path| (name, path)));
        match (direct, by_file) {
            (None, None) => Ok(None),
            (Some(text), None) => Ok(Some(Found {
                text,
                origin,
                name: setting.name.to_owned(),
            })),
            (None, Some((name, path))) => read_secret(name, origin, &path),
            (Some(_), Some((name, _))) => Err(ConfigError::Conflict {
                first: setting.name.to_owned(),
                second: name,
                problem: "keep one of them",
            }),
        }
    }

    fn raw(&self, origin: Origin, name: &str) -> Option<String> {
        let value = match origin {
            Origin::Flag => self.flags.0.get(name).cloned(),
            Origin::Environment => (self.environment)(name),
            Origin::File => self.file.0.get(name).cloned(),
        };
        value.filter(|text| !text.is_empty())
    }
}

/// A warning for each variable of the environment that looks like a setting and is none. Nothing more: the relay's
/// neighbours may have names of that kind too.
pub(crate) fn unknown_variables(names: impl Iterator<Item = String>) -> Vec<String> {
    let known = known_names();
    let mut unknown: Vec<String> = names
        .filter(|name| name.starts_with("RELAY_") && !known.contains(name))
        .collect();
    unknown.sort();
    unknown
        .iter()
        .map(|name| {
            let meant = nearest(name, &known).map(|key| key.to_ascii_uppercase());
            let hint = meant.map(|name| format!("; did you mean {name}?"));
            format!(
                "{} (environment) is not a setting and is ignored{}",
                name.escape_debug(),
                hint.unwrap_or_default()
            )
        })
        .collect()
}

fn at_path(error: ConfigError, path: &Path) -> ConfigError {
    match error {
        ConfigError::Unreadable { problem, .. } => ConfigError::Unreadable {
            path: path.to_owned(),
            problem,
        },
        other @ (ConfigError::Value { .. }
        | ConfigError::Conflict { .. }
        | ConfigError::Missing { .. }
        | ConfigError::BuiltIn { .. }
        | ConfigError::StopTooLong { .. }
        | ConfigError::DoesNotFit { .. }
        | ConfigError::SameAddress { .. }
        | ConfigError::UnknownKey { .. }) => other,
    }
}

/// Reads a secret's file and drops one newline from its end, which editors and `echo` add.
fn read_secret(name: String, origin: Origin, path: &str) -> Result<Option<Found>, ConfigError> {
    let mut text = fs::read_to_string(path).map_err(|error| ConfigError::Value {
        name: name.clone(),
        origin,
        problem: format!("can't read {path}: {error}"),
    })?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    // A named file that is empty is a mistake, unlike an empty variable: somebody meant there to be a secret.
    if text.is_empty() {
        return Err(ConfigError::Value {
            name,
            origin,
            problem: format!("{path} is empty"),
        });
    }
    Ok(Some(Found { text, origin, name }))
}

impl Found {
    /// The refusal of this value.
    pub(crate) fn refuse(&self, problem: impl Into<String>) -> ConfigError {
        ConfigError::Value {
            name: self.name.clone(),
            origin: self.origin,
            problem: problem.into(),
        }
    }
}
