//! An enrollment as the store keeps it, and back.

use sovereign_relay_client::http::InstanceKey;
use sovereign_relay_protocol::{id::InstanceId, redacted::Redacted};

use super::state::{Credential, Enrollment, Phase};
use crate::store::{RelayRow, RelayState};

/// What a row says. A row without a readable name and key is worth as much as none.
pub(crate) fn enrollment(row: Option<&RelayRow>) -> Enrollment {
    let Some(row) = row else {
        return Enrollment::default();
    };
    let phase = match (row.state, credential(row, row.instance_key.as_ref())) {
        (RelayState::Enrolled, Some(current)) => Phase::Enrolled {
            previous: credential(row, row.previous_key.as_ref()),
            current,
        },
        (RelayState::Revoked, Some(current)) => Phase::Revoked(current),
        (RelayState::Enrolled | RelayState::Revoked, None) | (RelayState::Unenrolled, _) => Phase::Unenrolled,
    };
    Enrollment {
        phase,
        attempts: row.attempts,
        next_attempt_at: row.next_attempt_at,
    }
}

/// The row that says `state`, where `read` was.
pub(crate) fn row(
    relay_url: &str,
    read: Option<&RelayRow>,
    state: &Enrollment,
    note: &str,
    now: u64,
) -> RelayRow {
    let (kind, current, previous) = match &state.phase {
        Phase::Unenrolled => (RelayState::Unenrolled, None, None),
        Phase::Enrolled { current, previous } => (RelayState::Enrolled, Some(current), previous.as_ref()),
        Phase::Revoked(current) => (RelayState::Revoked, Some(current), None),
    };
    let key = |credential: &Credential| Redacted::new(credential.key.expose());
    let instance_key = current.map(key);
    let same_key = read.is_some_and(|read| read.instance_key == instance_key);
    RelayRow {
        relay_url: relay_url.to_owned(),
        instance_id: current.map(|current| current.instance_id.to_string()),
        enrolled_at: match (&instance_key, read) {
            (None, _) => None,
            (Some(_), Some(read)) if same_key => read.enrolled_at,
            (Some(_), _) => Some(now),
        },
        instance_key,
        previous_key: previous.map(key),
        state: kind,
        attempts: state.attempts,
        next_attempt_at: state.next_attempt_at,
        note: note.to_owned(),
    }
}

fn credential(row: &RelayRow, key: Option<&Redacted>) -> Option<Credential> {
    Some(Credential {
        instance_id: InstanceId::parse(row.instance_id.as_deref()?)?,
        key: InstanceKey::new(key?.expose()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;
    const RELAY: &str = "https://relay.example";

    fn credential(number: u8) -> Credential {
        Credential {
            instance_id: InstanceId::from_bytes([1; 16]),
            key: InstanceKey::new(format!("key {number}")),
        }
    }

    #[test]
    fn every_state_survives_the_store() {
        let fresh = Enrollment::default();
        let enrolled = fresh.claimed(NOW).enrolled(credential(1));
        let old = credential(1).key;
        for state in [
            fresh.clone(),
            fresh.claimed(NOW),
            enrolled.clone(),
            enrolled.worked(&old),
            enrolled.rotated(&old, credential(2)),
            enrolled.unauthorized(&old, NOW, 0),
            enrolled.revoked(&old),
        ] {
            let row = row(RELAY, None, &state, "", NOW);
            assert_eq!(enrollment(Some(&row)), state);
        }
        assert_eq!(enrollment(None), fresh);
    }

    #[test]
    fn the_time_of_enrollment_is_that_of_the_key() {
        let enrolled = Enrollment::default().claimed(NOW).enrolled(credential(1));
        let first = row(RELAY, None, &enrolled, "", NOW);
        assert_eq!(first.enrolled_at, Some(NOW));
        let old = credential(1).key;
        let proven = row(RELAY, Some(&first), &enrolled.worked(&old), "", NOW + 9);
        assert_eq!(proven.enrolled_at, Some(NOW));
        let rotated = row(
            RELAY,
            Some(&first),
            &enrolled.rotated(&old, credential(2)),
            "",
            NOW + 9,
        );
        assert_eq!(rotated.enrolled_at, Some(NOW + 9));
    }

    #[test]
    fn a_row_that_another_program_spoilt_is_enrolled_anew() {
        let enrolled = Enrollment::default().claimed(NOW).enrolled(credential(1));
        let good = row(RELAY, None, &enrolled, "", NOW);
        let spoilt = [
            RelayRow {
                instance_id: Some("nobody".to_owned()),
                ..good.clone()
            },
            RelayRow {
                instance_key: None,
                ..good.clone()
            },
        ];
        for row in spoilt {
            assert_eq!(enrollment(Some(&row)).phase, Phase::Unenrolled);
        }
    }
}
