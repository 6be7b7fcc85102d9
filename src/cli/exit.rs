//! How a command ends: a code for scripts, a line for people.

use std::{
    fmt, io,
    process::{ExitCode, Termination},
};

use crate::config::ConfigError;

use super::output;

/// The exit codes. They are public: scripts depend on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// 0.
    Done,
    /// 1: it did not work, or the answer is "no".
    Failed,
    /// 2: the command line makes no sense (clap says it itself).
    Usage,
    /// 3: the relay was not reached.
    Unreachable,
    /// 4: the relay was reached and refused.
    Refused,
}

impl Exit {
    /// As a number.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Unreachable => 3,
            Self::Refused => 4,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        self.into()
    }
}

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) struct CommandError {
    exit: Exit,
    message: String,
}

impl CommandError {
    /// It did not work.
    pub(crate) fn failed(why: impl fmt::Display) -> Self {
        Self {
            exit: Exit::Failed,
            message: why.to_string(),
        }
    }

    /// Nothing answered.
    pub(crate) fn unreachable(why: impl fmt::Display) -> Self {
        Self {
            exit: Exit::Unreachable,
            message: why.to_string(),
        }
    }

    /// The relay said no.
    pub(crate) fn refused(why: impl fmt::Display) -> Self {
        Self {
            exit: Exit::Refused,
            message: why.to_string(),
        }
    }

    /// Says it on standard error and gives the code.
    pub(crate) fn report(self) -> Exit {
        output::complain(&self.message);
        self.exit
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<ConfigError> for CommandError {
    fn from(error: ConfigError) -> Self {
        Self {
            exit: if error.is_usage() {
                Exit::Usage
            } else {
                Exit::Failed
            },
            message: error.to_string(),
        }
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        Self::failed(error)
    }
}
