//! The command line as a whole: what parses, what it prints, how it ends.

use clap::{CommandFactory as _, Parser as _, error::ErrorKind};

use super::{Cli, Command, check_config::Report, exit::Exit};
use crate::config::{Config, setting};

fn parse(words: &[&str]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(["sovereign-relay"].iter().chain(words))
}

fn flags_of(cli: &Cli) -> String {
    format!("{:?}", cli.flags.flags)
}

#[test]
fn the_definitions_are_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn without_a_command_it_serves_and_takes_every_setting() {
    let cli = parse(&["--relay-listen", "127.0.0.1:0", "--apns-use-sandbox"]).unwrap();
    assert!(cli.command.is_none());
    assert_eq!(flags_of(&cli), "Flags([\"APNS_USE_SANDBOX\", \"RELAY_LISTEN\"])");
}

#[test]
fn every_setting_is_a_flag_of_serve_and_every_secret_also_one_for_a_file() {
    for setting in setting::ALL {
        let given = format!("--{}=x", setting.flag());
        assert!(parse(&["serve", &given]).is_ok(), "{given}");
        assert!(parse(&["check-config", &given]).is_ok(), "{given}");
        if let Some(name) = setting.file_name() {
            let given = format!("--{}=/run/secrets/x", setting::flag_of(&name));
            assert!(parse(&["serve", &given]).is_ok(), "{given}");
        }
    }
}

#[test]
fn a_switch_needs_no_value_and_does_not_swallow_the_next_word() {
    let Some(Command::Serve(flags)) = parse(&["serve", "--apns-use-sandbox", "--port", "1"])
        .unwrap()
        .command
    else {
        panic!("not serve")
    };
    let config = Config::load(&flags.flags, &|name| {
        (name == "HOME").then(|| "/home/relay".to_owned())
    })
    .unwrap();
    assert_eq!(config.apns.default_environment.as_str(), "sandbox");
    assert_eq!(config.listen.address.port(), 1);
}

#[test]
fn wrong_usage_ends_with_code_2() {
    for words in [
        &["no-such-command"][..],
        &["--no-such-flag"],
        &["instances"],
        &["instances", "show", "not-a-uuid"],
        &["instances", "suspend", "6f1c2f0e-6f1c-4f0e-8f1c-6f1c2f0e6f1c"],
        &["instances", "limit", "6f1c2f0e-6f1c-4f0e-8f1c-6f1c2f0e6f1c", "0"],
        &["invite", "create", "--ttl", "soon"],
        &["keygen", "horse"],
    ] {
        let error = parse(words).unwrap_err();
        assert_eq!(
            error.exit_code(),
            i32::from(Exit::Usage.code()),
            "{words:?}: {error}"
        );
    }
}

#[test]
fn the_commands_of_the_operator_parse() {
    let instance = "6f1c2f0e-6f1c-4f0e-8f1c-6f1c2f0e6f1c";
    for words in [
        &["invite", "create", "--ttl", "24h", "--json"][..],
        &["invite", "list", "--relay-admin-listen", "127.0.0.1:1"],
        &["instances", "list", "--json"],
        &[
            "instances",
            "suspend",
            instance,
            "--reason",
            "dead tokens",
            "--for",
            "2d",
        ],
        &["instances", "limit", instance, "default"],
        &["revocations", "export", "--output", "list.json"],
        &["revocations", "import", "-"],
        &["healthcheck", "--port", "4002"],
        &["keygen", "device", "--json"],
    ] {
        let parsed = parse(words);
        assert!(
            parsed.is_ok(),
            "{words:?}: {}",
            parsed.err().map(|error| error.to_string()).unwrap_or_default()
        );
    }
    assert!(
        parse(&["instances", "limit", "1200", instance]).is_err(),
        "the instance comes first"
    );
}

#[test]
fn help_is_help_and_teaches_the_exit_codes() {
    let error = parse(&["--help"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DisplayHelp);
    let help = error.to_string();
    assert!(help.contains("3 the relay was not reached"));
    for half in ["push notifications", "signaling sessions", "two browser tabs"] {
        assert!(help.contains(half), "{half} in {help}");
    }
    let serve = parse(&["serve", "--help"]).unwrap_err().to_string();
    for setting in setting::ALL {
        assert!(serve.contains(&setting.flag()), "{}", setting.name);
    }
    assert!(
        !serve.contains("--apns-key <"),
        "a secret on the command line is not taught"
    );
}

#[test]
fn check_config_prints_no_secret() {
    let (config, marks) = crate::config::tests::everything_secret();
    let report = Report::of(&config);
    let printed = format!("{}{}", report.to_text(), serde_json::to_string(&report).unwrap());
    for mark in marks {
        assert!(!printed.contains(&mark), "{mark} is printed");
    }
    assert!(printed.contains("topic fs.sovereign.mobile"), "{printed}");
    assert!(
        printed.contains("through the proxy that HTTPS_PROXY names"),
        "{printed}"
    );
}

#[test]
fn check_config_says_what_is_off_and_why() {
    let config = Config::load(&Default::default(), &|name| {
        (name == "HOME").then(|| "/home/relay".to_owned())
    })
    .unwrap();
    let text = Report::of(&config).to_text();
    assert!(
        text.contains("android     off  FCM_SERVICE_ACCOUNT_JSON is not set"),
        "{text}"
    );
    assert!(
        text.contains("signaling   on   sessions in memory, which a restart ends; pages of any origin"),
        "{text}"
    );
    assert!(
        text.contains("turn        off  TURN_URIS, TURN_SECRET are not set"),
        "{text}"
    );
}
