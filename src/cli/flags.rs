//! Flags made from the table of settings, so that flag, variable and file key are one name.
//!
//! Values are taken as text here; [`crate::config`] parses them, so that a bad value is told the same way wherever
//! it came from.

use std::{fmt, marker::PhantomData};

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use crate::config::{
    Flags,
    setting::{self, Kind, Setting, flag_of},
};

/// All settings. With `HIDDEN` the help does not list them.
pub(crate) type AllFlags<const HIDDEN: bool> = SettingFlags<All, HIDDEN>;
/// What is needed to find and enter the admin API.
pub(crate) type AdminFlags = SettingFlags<ForAdmin, false>;
/// What is needed to find the public listener.
pub(crate) type ListenFlags = SettingFlags<ForListen, false>;

/// Some of the settings as flags.
pub(crate) struct SettingFlags<S, const HIDDEN: bool> {
    /// What was given.
    pub(crate) flags: Flags,
    subset: PhantomData<S>,
}

/// Which of the settings.
pub(crate) trait Subset {
    /// These.
    const SETTINGS: &'static [Setting];
}

/// All.
pub(crate) enum All {}
/// For commands that use the admin API.
pub(crate) enum ForAdmin {}
/// For the health check.
pub(crate) enum ForListen {}

impl Subset for All {
    const SETTINGS: &'static [Setting] = setting::ALL;
}

impl Subset for ForAdmin {
    const SETTINGS: &'static [Setting] = &[
        setting::CONFIG,
        setting::ADMIN_LISTEN,
        setting::ADMIN_TOKEN,
        setting::DATA_DIR,
    ];
}

impl Subset for ForListen {
    const SETTINGS: &'static [Setting] = &[setting::CONFIG, setting::LISTEN, setting::PORT];
}

impl<S: Subset, const HIDDEN: bool> Args for SettingFlags<S, HIDDEN> {
    fn augment_args(command: Command) -> Command {
        S::SETTINGS
            .iter()
            .flat_map(|setting| args(setting, HIDDEN))
            .fold(command, Command::arg)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<S: Subset, const HIDDEN: bool> FromArgMatches for SettingFlags<S, HIDDEN> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let names = S::SETTINGS.iter().flat_map(names);
        let given = names.filter_map(|name| {
            let value = matches.get_one::<String>(&name)?.clone();
            Some((name, value))
        });
        Ok(Self {
            flags: given.collect(),
            subset: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<S, const HIDDEN: bool> fmt::Debug for SettingFlags<S, HIDDEN> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.flags.fmt(f)
    }
}

fn names(setting: &Setting) -> Vec<String> {
    [Some(setting.name.to_owned()), setting.file_name()]
        .into_iter()
        .flatten()
        .collect()
}

fn args(setting: &Setting, hidden: bool) -> Vec<Arg> {
    let help = format!("{} [default: {}]", setting.help, setting.default);
    let direct = arg(setting.name, hidden).help(help);
    match setting.kind {
        Kind::Plain => vec![direct.value_name("VALUE")],
        Kind::Switch => {
            vec![
                direct
                    .value_name("BOOL")
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("true"),
            ]
        }
        // On a command line every process of the machine can read a secret, so the help teaches the file.
        Kind::Secret => {
            let by_file = setting.file_name().map(|name| {
                arg(&name, hidden).value_name("PATH").help(format!(
                    "file with: {} [default: {}]",
                    setting.help, setting.default
                ))
            });
            [Some(direct.hide(true).value_name("SECRET")), by_file]
                .into_iter()
                .flatten()
                .collect()
        }
    }
}

fn arg(name: &str, hidden: bool) -> Arg {
    Arg::new(name.to_owned())
        .long(flag_of(name))
        .help_heading("Settings")
        .hide(hidden)
}
