//! Who pushes to which device: from the number of a push.

/// Instances that push side by side, each within its own limit of 600 a minute and burst 600: enough for 1.2 million
/// pushes.
pub(super) const INSTANCES: u64 = 2000;
/// Devices that are pushed to in turn, so that no device's limit is met.
pub(super) const DEVICES: u64 = 500_000;

/// Instances of [`hang_ups`](super::hang_ups) with devices of their own.
pub(super) const ORDINARY: u64 = 1000;
/// Devices of each of those.
pub(super) const DEVICES_EACH: u64 = 50;
/// Instances of [`hang_ups`](super::hang_ups) whose every push is to a new device.
pub(super) const LARGE: u64 = 2;

/// One push.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Target {
    /// Which instance pushes.
    pub(super) instance: u64,
    /// To which device.
    pub(super) device: u64,
}

/// All instances and all devices in turn.
pub(super) fn in_turn(number: u64) -> Target {
    Target {
        instance: number % INSTANCES,
        device: number % DEVICES,
    }
}

/// Every second push is of a large instance to a device that nobody has pushed to before, the others are of ordinary
/// instances to their own devices in turn. The relay remembers for a day to which tokens an instance has pushed, up to
/// 16,384 of each instance. A thousand instances with ever new tokens would fill that all day long, which looks like a
/// leak and isn't one; two have filled theirs after some 33,000 pushes, and an ordinary one's is full when it has
/// pushed to each of its devices.
pub(super) fn of_two_kinds(number: u64) -> Target {
    let (half, is_large) = (number / 2, number % 2 == 1);
    let device = half % (ORDINARY * DEVICES_EACH);
    match is_large {
        true => Target {
            instance: ORDINARY + half % LARGE,
            device: ORDINARY * DEVICES_EACH + half,
        },
        false => Target {
            instance: device % ORDINARY,
            device,
        },
    }
}

/// The device's address at APNs.
pub(super) fn apple_token(device: u64) -> String {
    format!("{device:064x}")
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    #[test]
    fn ordinary_instances_keep_their_devices_and_large_ones_never_push_to_one_twice() {
        let mut devices: HashMap<u64, HashSet<u64>> = HashMap::new();
        for number in 0..4 * ORDINARY * DEVICES_EACH {
            let Target { instance, device } = of_two_kinds(number);
            let is_new = devices.entry(instance).or_default().insert(device);
            assert!(is_new || instance < ORDINARY);
        }
        assert_eq!(devices.len() as u64, ORDINARY + LARGE);
        for (instance, devices) in devices {
            let most = if instance < ORDINARY {
                DEVICES_EACH
            } else {
                ORDINARY * DEVICES_EACH
            };
            assert_eq!(devices.len() as u64, most);
        }
    }
}
