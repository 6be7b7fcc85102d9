//! `REDIS_URL`: where Redis is, and of which shape.
//!
//! | URL | meaning |
//! |---|---|
//! | `redis://[user:password@]host[:port][/database]` | one server |
//! | `redis+sentinel://[user:password@]host[:port],.../master[/database][?...]` | the master that Sentinels name |
//! | `redis+cluster://[user:password@]host[:port],...` | a Cluster, found through any of its nodes |
//!
//! `rediss` in place of `redis` means TLS. User and password are percent-encoded (RFC 3986), and are Redis's. Sentinels
//! are asked without, or with what `?sentinel_username=...&sentinel_password=...` says, the former being optional.

#[cfg(test)]
use std::time::Duration;
use std::{fmt, sync::Arc};

use redis::{
    ConnectionInfo, IntoConnectionInfo as _, ProtocolVersion, TlsCertificates, io::tcp::TcpSettings,
};
use sovereign_relay_protocol::redacted::Redacted;
use url::form_urlencoded;

use super::{
    connection::Patience,
    sentinel::{Login, Sentinels},
    trust,
};

/// Where Sentinels listen unless the URL says otherwise.
const SENTINEL_PORT: u16 = 26379;
const FORMS: &str = "must be redis://host:port, redis+sentinel://host:port,host:port/master or \
                     redis+cluster://host:port,host:port; rediss for TLS";

/// A parsed `REDIS_URL`. Holds a password, so its debug form says nothing.
#[derive(Clone)]
pub struct RedisUrl {
    text: Redacted,
    pub(super) shape: Shape,
    is_tls: bool,
    extra_ca: Option<Arc<str>>,
    pub(super) patience: Patience,
}

#[derive(Clone)]
pub(super) enum Shape {
    /// One server.
    Single(ConnectionInfo),
    /// The master of this name.
    Sentinel(Sentinels),
    /// Some of its nodes.
    Cluster(Vec<ConnectionInfo>),
}

impl RedisUrl {
    /// Parses it. The error quotes nothing.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts = Parts::split(text.trim()).ok_or(FORMS)?;
        let shape = match parts.kind {
            None => match (parts.hosts.as_slice(), parts.path.as_slice()) {
                ([host], [] | [_]) => Shape::Single(parts.info(host, 6379, parts.path.first().copied())?),
                _ => return Err(FORMS.to_owned()),
            },
            Some("sentinel") => parts.sentinel()?,
            Some("cluster") if parts.path.is_empty() => Shape::Cluster(parts.infos(6379, None)?),
            Some(_) => return Err(FORMS.to_owned()),
        };
        Ok(Self {
            text: Redacted::new(text),
            shape,
            is_tls: parts.is_tls(),
            extra_ca: None,
            patience: Patience::USUAL,
        })
    }

    /// The same, where certificates (PEM) are trusted besides the system's.
    #[must_use]
    pub fn trusting(self, extra_ca: Option<&str>) -> Self {
        Self {
            extra_ca: extra_ca.map(Arc::from),
            ..self
        }
    }

    /// The same for a test that is not about a Redis that is slow, on a machine that may be.
    #[cfg(test)]
    pub(crate) fn patient(self) -> Self {
        const LONG: Duration = Duration::from_secs(60);
        let patience = Patience {
            call: LONG,
            connect: LONG,
            silence: LONG,
        };
        Self { patience, ..self }
    }

    /// What to trust, if that is not the system's roots alone.
    pub(super) fn certificates(&self) -> Option<TlsCertificates> {
        let extra_ca = self.extra_ca.as_deref().filter(|_| self.is_tls);
        extra_ca.map(trust::certificates)
    }
}

impl PartialEq for RedisUrl {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, &self.extra_ca) == (&other.text, &other.extra_ca)
    }
}

impl Eq for RedisUrl {}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedisUrl(REDACTED)")
    }
}

/// A URL with several hosts, which RFC 3986 does not know.
struct Parts<'a> {
    scheme: &'a str,
    kind: Option<&'a str>,
    login: Option<&'a str>,
    hosts: Vec<&'a str>,
    path: Vec<&'a str>,
    query: Option<&'a str>,
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let (scheme, kind) = match scheme.split_once('+') {
            Some((scheme, kind)) => (scheme, Some(kind)),
            None => (scheme, None),
        };
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        let is_known = matches!(scheme, "redis" | "rediss" | "valkey" | "valkeys");
        if !is_known || rest.contains('#') || (query.is_some() && kind != Some("sentinel")) {
            return None;
        }
        let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = match place.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, place),
        };
        Some(Self {
            scheme,
            kind,
            login,
            hosts: hosts.split(',').collect(),
            path: path.split('/').filter(|part| !part.is_empty()).collect(),
            query,
        })
    }

    fn is_tls(&self) -> bool {
        matches!(self.scheme, "rediss" | "valkeys")
    }

    /// How Sentinels are to be asked. A `+` in it is one.
    fn sentinel_login(&self) -> Result<Login, String> {
        let mut login = Login::default();
        let query = self.query.unwrap_or_default().replace('+', "%2B");
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = Some(Redacted::new(value));
            match name.as_ref() {
                "sentinel_username" => login.username = value,
                "sentinel_password" => login.password = value,
                _ => return Err(FORMS.to_owned()),
            }
        }
        Ok(login)
    }

    fn info(&self, host: &str, port: u16, database: Option<&str>) -> Result<ConnectionInfo, String> {
        let login = self.login.map_or(String::new(), |login| format!("{login}@"));
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        let port = if has_port {
            String::new()
        } else {
            format!(":{port}")
        };
        let database = database.map_or(String::new(), |database| format!("/{database}"));
        let url = format!("{}://{login}{host}{port}{database}", self.scheme);
        let info = url.into_connection_info().map_err(|_| FORMS.to_owned())?;
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        Ok(info.set_redis_settings(settings).set_tcp_settings(tcp()))
    }

    fn infos(&self, port: u16, database: Option<&str>) -> Result<Vec<ConnectionInfo>, String> {
        self.hosts
            .iter()
            .map(|host| self.info(host, port, database))
            .collect()
    }

    fn sentinel(&self) -> Result<Shape, String> {
        let (master, database) = match self.path.as_slice() {
            [master] => (*master, None),
            [master, database] => (*master, Some(*database)),
            _ => return Err(FORMS.to_owned()),
        };
        let infos = self.infos(SENTINEL_PORT, database)?;
        let settings = infos.first().ok_or(FORMS)?.redis_settings().clone();
        Ok(Shape::Sentinel(Sentinels {
            places: infos.iter().map(|info| info.addr().clone()).collect(),
            master: master.to_owned(),
            settings,
            login: self.sentinel_login()?,
            tls: self.is_tls(),
        }))
    }
}

/// How every connection is set up: small commands must not wait for each other's acknowledgement.
pub(super) fn tcp() -> TcpSettings {
    TcpSettings::default().set_nodelay(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(url: &RedisUrl) -> Vec<String> {
        match &url.shape {
            Shape::Single(info) => vec![info.addr().to_string()],
            Shape::Sentinel(sentinels) => sentinels.places.iter().map(ToString::to_string).collect(),
            Shape::Cluster(infos) => infos.iter().map(|info| info.addr().to_string()).collect(),
        }
    }

    #[test]
    fn each_shape_is_told_by_its_scheme() {
        let single = RedisUrl::parse("redis://:p%40ss@redis.example/3").unwrap();
        assert_eq!(addresses(&single), ["redis.example:6379"]);
        let Shape::Single(info) = &single.shape else {
            panic!("one server")
        };
        assert_eq!(
            (info.redis_settings().password(), info.redis_settings().db()),
            (Some("p@ss"), 3)
        );
        assert!(info.tcp_settings().nodelay());

        let sentinel = RedisUrl::parse("rediss+sentinel://me:secret@one,two:5,[::1]:6/main/2").unwrap();
        assert_eq!(addresses(&sentinel), ["one:26379", "two:5", "::1:6"]);
        let Shape::Sentinel(Sentinels {
            master,
            settings,
            tls,
            ..
        }) = &sentinel.shape
        else {
            panic!("sentinels")
        };
        assert_eq!(
            (master.as_str(), settings.username(), settings.db(), *tls),
            ("main", Some("me"), 2, true)
        );

        let cluster = RedisUrl::parse("valkey+cluster://one:7000,two").unwrap();
        assert_eq!(addresses(&cluster), ["one:7000", "two:6379"]);
    }

    #[test]
    fn sentinels_have_a_login_of_their_own() {
        let url = RedisUrl::parse(
            "redis+sentinel://me:secret@one/main?sentinel_username=asker&sentinel_password=a+b%26c",
        );
        let Shape::Sentinel(Sentinels { settings, login, .. }) = url.unwrap().shape else {
            panic!("sentinels")
        };
        assert_eq!(
            (settings.username(), settings.password()),
            (Some("me"), Some("secret"))
        );
        let [username, password] = [login.username, login.password].map(|word| word.unwrap());
        assert_eq!((username.expose(), password.expose()), ("asker", "a+b&c"));
    }

    #[test]
    fn what_is_wrong_is_refused_without_quoting_it() {
        for text in [
            "",
            "http://secret@host",
            "redis://",
            "redis://secret@one,two",
            "redis://host/secret",
            "redis://host/1/2",
            "redis://host?protocol=resp2",
            "redis://host?sentinel_password=secret",
            "redis+sentinel://host/main?password=secret",
            "rediss://host#insecure",
            "redis+sentinel://host",
            "redis+sentinel://host/a/b/c",
            "redis+cluster://host/1",
            "redis+magic://host",
            "unix:///secret",
        ] {
            let refused = RedisUrl::parse(text).unwrap_err();
            assert_eq!(refused, FORMS, "{text}");
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let url = RedisUrl::parse("redis://:secret@host").unwrap();
        assert_eq!(format!("{url:?}"), "RedisUrl(REDACTED)");
    }
}
