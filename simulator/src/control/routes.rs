//! The routes of the control API.

use std::{collections::BTreeMap, time::Duration};

use http::{Method, StatusCode, request::Parts};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{Answer, Context, ROUTES, failure};
use crate::{ApnsSimulator, FcmSimulator, Inbox, Provider, Rule, Script, Simulator, WnsSimulator};

const DONE: StatusCode = StatusCode::NO_CONTENT;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Advance {
    advance_seconds: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Blackhole {
    #[serde(default)]
    open: Option<bool>,
    #[serde(default)]
    new: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refuse {
    refuse: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GoAway {
    reason: String,
    #[serde(default)]
    last_stream_id: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamLimit {
    limit: u32,
}

/// A request, cut to what the routes look at.
struct Command<'a> {
    method: &'a Method,
    action: &'a str,
    body: &'a [u8],
}

pub(super) async fn route(context: &Context, head: &Parts, body: &[u8]) -> Answer {
    let path = head.uri.path().trim_start_matches('/');
    let (provider, action) = path.split_once('/').unwrap_or((path, ""));
    let command = Command {
        method: &head.method,
        action,
        body,
    };
    let simulators = &context.simulators;
    let answer = match (command.method, provider) {
        (&Method::GET, "environment") => Some(environment(context)),
        (&Method::POST, "clock") => Some(with(body, |advance: Advance| {
            simulators
                .clock()
                .advance(Duration::from_secs(advance.advance_seconds));
        })),
        (_, "apns") => apns(&simulators.apns, &command).await,
        (_, "apns-sandbox") => apns(&simulators.apns_sandbox, &command).await,
        (_, "fcm") => fcm(&simulators.fcm, &command).await,
        (_, "wns") => wns(&simulators.wns, &command).await,
        (_, _) => None,
    };
    answer.unwrap_or_else(|| {
        (
            StatusCode::NOT_FOUND,
            json!({ "error": "no such route", "routes": ROUTES }),
        )
    })
}

fn environment(context: &Context) -> Answer {
    let environment: BTreeMap<_, _> = context.environment.iter().cloned().collect();
    (StatusCode::OK, json!(environment))
}

async fn apns(simulator: &ApnsSimulator, command: &Command<'_>) -> Option<Answer> {
    match (command.method, command.action) {
        (&Method::POST, "devices") => Some(device(simulator.new_token())),
        (&Method::POST, "goaway") => Some(with(command.body, |goaway: GoAway| match goaway.last_stream_id {
            Some(last) => simulator.goaway_at(&goaway.reason, last),
            None => simulator.goaway(&goaway.reason),
        })),
        (&Method::POST, "stream-limit") => Some(with(command.body, |limit: StreamLimit| {
            simulator.set_stream_limit(limit.limit)
        })),
        (&Method::GET, "stats") => {
            let mut stats = stats(simulator);
            merge(
                &mut stats,
                json!({ "wire": simulator.stats(), "jwts": simulator.jwts().len() }),
            );
            Some((StatusCode::OK, stats))
        }
        (_, _) => common(simulator, command).await,
    }
}

async fn fcm(simulator: &FcmSimulator, command: &Command<'_>) -> Option<Answer> {
    match (command.method, command.action) {
        (&Method::POST, "devices") => Some(device(simulator.new_token())),
        (&Method::POST, "expire-tokens") => {
            simulator.expire_tokens();
            Some((DONE, Value::Null))
        }
        (&Method::GET, "stats") => Some(oauth_stats(simulator, simulator.oauth_requests())),
        (_, "oauth-script") => script(simulator.oauth_script(), command),
        (_, _) => common(simulator, command).await,
    }
}

async fn wns(simulator: &WnsSimulator, command: &Command<'_>) -> Option<Answer> {
    match (command.method, command.action) {
        (&Method::POST, "devices") => Some(device(simulator.new_channel())),
        (&Method::POST, "expire-tokens") => {
            simulator.expire_tokens();
            Some((DONE, Value::Null))
        }
        (&Method::GET, "stats") => Some(oauth_stats(simulator, simulator.oauth_requests())),
        (_, "oauth-script") => script(simulator.oauth_script(), command),
        (_, _) => common(simulator, command).await,
    }
}

/// What all providers have.
async fn common<P: Provider>(simulator: &Simulator<P>, command: &Command<'_>) -> Option<Answer> {
    match (command.method, command.action) {
        (_, "inbox") => inbox(simulator.inbox(), command.method),
        (_, "requests") => inbox(simulator.requests(), command.method),
        (_, "script") => script(simulator.script(), command),
        (&Method::POST, "blackhole") => Some(with(command.body, |blackhole: Blackhole| {
            // New ones first, so that none slips through thawed.
            if let Some(frozen) = blackhole.new {
                simulator.blackhole_new_connections(frozen);
            }
            if let Some(frozen) = blackhole.open {
                simulator.blackhole(frozen);
            }
        })),
        (&Method::POST, "kill") => {
            simulator.kill_connections();
            Some((DONE, Value::Null))
        }
        (&Method::POST, "refuse") => Some(match parse::<Refuse>(command.body) {
            Ok(refuse) => match simulator.refuse_connections(refuse.refuse).await {
                Ok(()) => (DONE, Value::Null),
                Err(error) => failure(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
            },
            Err(answer) => answer,
        }),
        (_, _) => None,
    }
}

fn inbox<T: Clone + Serialize>(inbox: &Inbox<T>, method: &Method) -> Option<Answer> {
    match *method {
        Method::GET => Some((
            StatusCode::OK,
            json!({ "total": inbox.total(), "dropped": inbox.dropped(), "items": inbox.all() }),
        )),
        Method::DELETE => {
            inbox.clear();
            Some((DONE, Value::Null))
        }
        _ => None,
    }
}

fn script(script: &Script, command: &Command<'_>) -> Option<Answer> {
    match *command.method {
        Method::POST => Some(with(command.body, |rule: Rule| script.add(rule))),
        Method::DELETE => {
            script.clear();
            Some((DONE, Value::Null))
        }
        _ => None,
    }
}

fn oauth_stats<P: Provider>(simulator: &Simulator<P>, oauth_requests: u64) -> Answer {
    let mut stats = stats(simulator);
    merge(&mut stats, json!({ "oauthRequests": oauth_requests }));
    (StatusCode::OK, stats)
}

fn stats<P: Provider>(simulator: &Simulator<P>) -> Value {
    let statuses: BTreeMap<String, u64> = simulator
        .statuses()
        .into_iter()
        .map(|(status, count)| (status.to_string(), count))
        .collect();
    json!({
        "requests": simulator.requests().total(),
        "delivered": simulator.inbox().total(),
        "statuses": statuses,
        "requestsUnderWay": simulator.requests_under_way(),
        "mostRequestsUnderWay": simulator.most_requests_under_way(),
        "connectionsAccepted": simulator.connections_accepted(),
        "connectionsOpen": simulator.connections_open(),
    })
}

fn merge(stats: &mut Value, more: Value) {
    if let (Value::Object(stats), Value::Object(more)) = (stats, more) {
        stats.extend(more);
    }
}

fn device(device: String) -> Answer {
    (StatusCode::OK, json!({ "device": device }))
}

/// Carries out a command that can't fail once it is understood.
fn with<T: DeserializeOwned>(body: &[u8], act: impl FnOnce(T)) -> Answer {
    match parse(body) {
        Ok(command) => {
            act(command);
            (DONE, Value::Null)
        }
        Err(answer) => answer,
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Answer> {
    serde_json::from_slice(body).map_err(|error| failure(StatusCode::BAD_REQUEST, &error.to_string()))
}
