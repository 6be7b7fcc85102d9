//! How many files and sockets the process may have open, and how many of them public connections may take.
//!
//! Called by [`crate::app`] before the public listener is bound. Systems start processes with a low soft limit (1024 is
//! common) for the sake of `select`, which the relay doesn't use, and leave it to the process to raise it to the hard
//! one (getrlimit(2)). Where that is little too, public connections are bounded, so that clients who hold theirs
//! open leave enough for the providers, the store and the operator.

use tracing::warn;

/// Kept for connections to providers, the resolver, the store, log files, threads' own descriptors and the admin
/// listener's 64 connections.
const RESERVE: u64 = 512;

/// How many public connections there may be, of the `wanted` ones. Raises the process's limit where it can.
pub(crate) fn public_connections(wanted: usize) -> usize {
    let Some(descriptors) = limit() else {
        return wanted;
    };
    let connections = share(descriptors, wanted);
    if connections < wanted {
        warn!(
            descriptors,
            connections,
            wanted,
            "few file descriptors: public connections are bounded, raise the hard limit (ulimit -Hn)"
        );
    }
    connections
}

/// What is left of the descriptors after the reserve; of very few, half.
fn share(descriptors: u64, wanted: usize) -> usize {
    let left = descriptors - RESERVE.min(descriptors / 2);
    usize::try_from(left).map_or(wanted, |left| left.min(wanted))
}

/// Descriptors of this process, the soft limit raised to the hard one. `None`: no limit is known.
#[cfg(unix)]
fn limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(error) => {
            warn!(%error, "the limit of file descriptors could not be raised");
            limit.current
        }
    }
}

#[cfg(not(unix))]
fn limit() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_connections_leave_a_reserve_and_never_more_than_half() {
        assert_eq!(share(1_048_576, 20_000), 20_000);
        assert_eq!(share(20_512, 20_000), 20_000);
        assert_eq!(share(20_511, 20_000), 19_999);
        assert_eq!(share(1024, 20_000), 512);
        assert_eq!(share(256, 20_000), 128);
        assert_eq!(share(256, 10), 10);
    }

    #[cfg(unix)]
    #[test]
    fn the_soft_limit_is_raised_to_the_hard_one() {
        use rustix::process::{Resource, getrlimit};

        public_connections(1);
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
