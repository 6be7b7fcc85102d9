//! What the demo prints: for people, or as one JSON object for programs.

use std::io::{self, Write as _};

use serde_json::json;

use super::{
    devices::Read,
    stage::{Stage, USER},
    steps::Step,
};

/// Prints the tour.
pub(super) struct Report {
    json: bool,
    steps: Vec<Step>,
}

impl Report {
    pub(super) fn new(json: bool) -> Self {
        Self {
            json,
            steps: Vec::new(),
        }
    }

    /// Steps that went wrong.
    pub(super) fn faults(&self) -> usize {
        self.steps.iter().filter(|step| step.fault.is_some()).count()
    }

    /// Where everything is.
    pub(super) fn opening(&self, stage: &Stage) -> io::Result<()> {
        self.people(&format!(
            "Sovereign instance demo\n\n  instance      {}\n  relay         {}\n  push service  {}\n  APNs          {}\n  FCM           {}\n  WNS           {}\n",
            stage.instance.url,
            stage.relay_url(),
            stage.push_service.origin(),
            stage.simulators.apns.endpoint(),
            stage.simulators.fcm.endpoint(),
            stage.simulators.wns.endpoint(),
        ))
    }

    /// One step, once it is over.
    pub(super) fn step(&mut self, step: Step) -> io::Result<()> {
        let mut lines = vec![step.title.to_owned()];
        let count = |name: &str| {
            step.told
                .get(name)
                .and_then(serde_json::Value::as_u64)
                .filter(|count| *count > 0)
        };
        let counts =
            ["sent", "pruned", "waiting", "failed"].map(|name| Some(format!("{} {name}", count(name)?)));
        let counts: Vec<_> = counts.into_iter().flatten().collect();
        lines.push(format!("  instance reports  {}", counts.join(", ")));
        lines.extend(
            step.opened
                .iter()
                .map(|opened| format!("  {:<8} opened   {}", opened.by, words(&opened.read))),
        );
        lines.extend(step.says.iter().map(|said| format!("  instance says     {said}")));
        lines.extend(
            step.fault
                .iter()
                .map(|fault| format!("  NOT AS IT SHOULD BE: {fault}")),
        );
        self.people(&format!("{}\n", lines.join("\n")))?;
        self.steps.push(step);
        Ok(())
    }

    /// The result.
    pub(super) fn closing(&self, stage: &Stage) -> io::Result<()> {
        if self.json {
            let result = json!({
                "instanceUrl": stage.instance.url,
                "relayUrl": stage.relay_url(),
                "user": USER,
                "token": stage.session.expose(),
                "ok": self.faults() == 0,
                "steps": self.steps,
            });
            return print(&result.to_string());
        }
        self.people(&format!(
            "{} of {} steps went as they should.",
            self.steps.len() - self.faults(),
            self.steps.len()
        ))
    }

    /// What to try next while everything is there.
    pub(super) fn invitation(&self, stage: &Stage) -> io::Result<()> {
        let (url, token) = (&stage.instance.url, stage.session.expose());
        self.people(&format!(
            "\nThe instance is enrolled again. Send something yourself; what arrives is opened here (Ctrl-C ends all of this).\n\n  \
             curl {url}/api/me/notifications -H 'authorization: Bearer {token}' \\\n    \
             -H 'content-type: application/json' -d '{{\"title\":\"Hello\",\"body\":\"from curl\"}}'\n  \
             curl {url}/api/me/log -H 'authorization: Bearer {token}'\n  \
             curl {url}/api/account/push-device-token -H 'authorization: Bearer {token}'\n\n\
             Or in a browser, with the token {token}\n\n  {url}/\n"
        ))
    }

    /// Something that a person sent.
    pub(super) fn arrival(&self, by: &str, read: &Read) -> io::Result<()> {
        if self.json {
            return print(&json!({ "by": by, "read": read }).to_string());
        }
        self.people(&format!("{by} opened {}", words(read)))
    }

    fn people(&self, text: &str) -> io::Result<()> {
        if self.json { Ok(()) } else { print(text) }
    }
}

fn words(read: &Read) -> String {
    format!("{}: {}", read.title, read.body)
}

fn print(text: &str) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{text}")
}
