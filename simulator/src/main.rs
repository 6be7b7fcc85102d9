//! The simulators as a program: prints the relay's environment and runs until it is told to end.

use std::{io::Write, path::PathBuf, process::ExitCode, sync::Arc};

use anyhow::Context;
use clap::Parser;
use sovereign_relay_simulator::{
    SimulatorOptions, Simulators,
    control::{Control, ROUTES},
};

/// Stand-ins for APNs, FCM and WNS on this machine.
///
/// Starts four TLS servers on loopback that behave as the vendors document, and a control API to make devices, read
/// what they got, and have the providers misbehave. Nothing leaves this machine.
#[derive(Debug, Parser)]
#[command(version, after_help = after_help())]
struct Arguments {
    /// Port of the control API on 127.0.0.1; 0 lets the system choose
    #[arg(long, default_value_t = 4110, env = "SIMULATOR_CONTROL_PORT")]
    control_port: u16,
    /// First of four ports in a row (APNs, APNs sandbox, FCM, WNS); 0 lets the system choose each
    #[arg(long, default_value_t = 0, env = "SIMULATOR_FIRST_PORT")]
    first_port: u16,
    /// Folder for simulator-ca.pem, which the relay has to trust; of several simulators, each needs its own [default: the
    /// system's temporary folder]
    #[arg(long, env = "SIMULATOR_CA_DIR")]
    ca_dir: Option<PathBuf>,
    /// Print the relay's environment as lines for a shell (this is the default)
    #[arg(long, conflicts_with = "json")]
    print_env: bool,
    /// Print the relay's environment as JSON instead
    #[arg(long)]
    json: bool,
    /// Give the relay Entra credentials for WNS instead of a Package SID
    #[arg(long)]
    entra: bool,
    /// Know only devices that were made here; others are BadDeviceToken, UNREGISTERED or 404
    #[arg(long)]
    strict: bool,
}

const EXAMPLES: &str = "\
Examples:
  # The relay's environment into a file, then a relay that uses the simulators
  rm -f simulators.env; sovereign-relay-simulator > simulators.env &
  until grep -qs WNS_TOKEN_ENDPOINT simulators.env; do sleep 0.1; done
  set -a; . ./simulators.env; set +a; sovereign-relay

  # A device, and what it got
  curl -X POST http://127.0.0.1:4110/apns/devices
  curl http://127.0.0.1:4110/apns/inbox

  # The next FCM request gets 503
  curl -d '{\"times\":1,\"behaviour\":{\"ending\":{\"kind\":\"answer\",\"status\":503}}}' \\
    http://127.0.0.1:4110/fcm/script

  # APNs falls silent on all open connections, and comes back
  curl -d '{\"open\":true}' http://127.0.0.1:4110/apns/blackhole
  curl -d '{\"open\":false}' http://127.0.0.1:4110/apns/blackhole

Ends on Ctrl-C or SIGTERM.";

fn after_help() -> String {
    let routes: String = ROUTES.iter().map(|route| format!("  {route}\n")).collect();
    format!("The control API ({{provider}}: apns, apns-sandbox, fcm, wns):\n{routes}\n{EXAMPLES}")
}

#[tokio::main]
async fn main() -> ExitCode {
    let error = match run(Arguments::parse()).await {
        Ok(()) => return ExitCode::SUCCESS,
        Err(error) if nobody_reads(&error) => return ExitCode::SUCCESS,
        Err(error) => error,
    };
    // When standard error is gone there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "sovereign-relay-simulator: {error:#}");
    ExitCode::FAILURE
}

/// As with `| head`.
fn nobody_reads(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let options = SimulatorOptions {
        strict: arguments.strict,
        first_port: arguments.first_port,
        ..SimulatorOptions::default()
    };
    let simulators = Arc::new(
        Simulators::start(options)
            .await
            .context("the simulators did not start")?,
    );
    // Absolute, since the relay need not run where this does.
    let ca_dir = std::path::absolute(arguments.ca_dir.clone().unwrap_or_else(std::env::temp_dir))?;
    let ca_file = simulators.write_ca(&ca_dir)?;
    let environment = if arguments.entra {
        simulators.relay_environment_entra(&ca_file)
    } else {
        simulators.relay_environment(&ca_file)
    };
    let control = Control::start(
        arguments.control_port,
        Arc::clone(&simulators),
        environment.clone(),
    )
    .await
    .context("the control API did not start; try another --control-port")?;
    print(&arguments, &environment, control.port())?;
    wait_for_end().await?;
    control.stop().await;
    if let Some(simulators) = Arc::into_inner(simulators) {
        simulators.stop().await;
    }
    Ok(())
}

/// Standard output is the environment alone, so that it can be redirected; the rest goes to standard error.
fn print(arguments: &Arguments, environment: &[(String, String)], control_port: u16) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    if arguments.json {
        let environment: serde_json::Map<_, _> = environment
            .iter()
            .map(|(name, value)| (name.clone(), value.clone().into()))
            .collect();
        writeln!(stdout, "{}", serde_json::Value::Object(environment))?;
    } else {
        for (name, value) in environment {
            writeln!(stdout, "{name}={}", shell_quoted(value))?;
        }
    }
    stdout.flush()?;
    writeln!(
        std::io::stderr(),
        "simulators are running, control API at http://127.0.0.1:{control_port}"
    )?;
    Ok(())
}

/// In single quotes, in which nothing but a single quote has a meaning.
fn shell_quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

async fn wait_for_end() -> anyhow::Result<()> {
    #[cfg(unix)]
    {
        let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted?,
            _ = terminate.recv() => {}
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn values_survive_a_shell() {
        let value = "line 1\nit's $HOME `x` \"y\" \\";
        let script = format!("printf %s {}", shell_quoted(value));
        let output = std::process::Command::new("sh")
            .args(["-c", &script])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), value);
    }
}
