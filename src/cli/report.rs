//! An instance in words: a row, a page, a letter to its operator.

use super::{instances::time_or_dash, output::visible};
use crate::auth::{InstanceView, SuspensionView};

/// Headings of [`instance_row`].
pub(crate) const INSTANCE_HEADINGS: [&str; 8] = [
    "INSTANCE",
    "NAME",
    "ENROLLED",
    "LAST USED",
    "SENT",
    "LIMIT",
    "TURN",
    "STATE",
];

/// One line of a list.
pub(crate) fn instance_row(view: &InstanceView) -> Vec<String> {
    vec![
        view.instance_id.to_string(),
        view.name.clone().unwrap_or_default(),
        time_or_dash(view.enrolled_at),
        time_or_dash(view.last_used_at),
        view.sent.to_string(),
        view.per_minute
            .map_or_else(|| "default".to_owned(), |limit| limit.to_string()),
        turn(view).to_owned(),
        state(view),
    ]
}

/// Why a change may be without effect, as far as the relay knows.
pub(crate) fn doubt(view: &InstanceView) -> Option<String> {
    let ended = view.ended.as_ref().map(|cause| {
        let text =
            format!("the instance has ended ({cause:?}): its keys are refused, whatever else is said of it");
        text.to_lowercase()
    });
    ended.or_else(|| no_record(view).map(str::to_owned))
}

/// It may be a wrong id, and need not: what was said holds as well for an instance whose record was lost while its key
/// lives, or which enrolled at the earlier relay.
pub(crate) fn no_record(view: &InstanceView) -> Option<&'static str> {
    view.enrolled_at.is_none().then_some(
        "no enrollment is on record under this id: compare it with what you meant. What you said is kept, and holds for \
         whoever has a key of this instance",
    )
}

/// All that is known.
pub(crate) fn instance(view: &InstanceView) -> String {
    let limit = view
        .per_minute
        .map_or_else(|| "default".to_owned(), |limit| format!("{limit} a minute"));
    let lines = [
        ("instance", view.instance_id.to_string()),
        ("name", text_or_dash(view.name.as_deref())),
        ("contact", text_or_dash(view.contact.as_deref())),
        ("enrolled", time_or_dash(view.enrolled_at)),
        ("last used", time_or_dash(view.last_used_at)),
        ("sent", view.sent.to_string()),
        ("limit", limit),
        ("turn", turn(view).to_owned()),
        ("state", state(view)),
    ];
    lines
        .iter()
        .map(|(name, value)| format!("{name:<10} {value}\n"))
        .collect()
}

/// What the operator may mail to the instance's contact. The relay sends nothing by itself.
pub(crate) fn letter(view: &InstanceView) -> Option<String> {
    let contact = view.contact.as_deref()?;
    let suspension = view.suspension.as_ref()?;
    Some(format!(
        "\nA text for {}, which the relay does not send:\n\n\
         Your instance {} is suspended at this relay{}. Reason: {}\n\
         Pushes are answered with 403 `suspended` meanwhile; nothing has to be changed on devices.\n",
        visible(contact),
        view.instance_id,
        suspension_end(suspension),
        visible(&suspension.reason),
    ))
}

/// The operator's word on TURN; `default`: RELAY_TURN_FOR decides.
fn turn(view: &InstanceView) -> &'static str {
    match view.turn {
        Some(true) => "allowed",
        Some(false) => "denied",
        None => "default",
    }
}

fn state(view: &InstanceView) -> String {
    if let Some(cause) = &view.ended {
        return format!("ended ({cause:?})").to_lowercase();
    }
    match &view.suspension {
        Some(suspension) => format!(
            "suspended{}: {}",
            suspension_end(suspension),
            visible(&suspension.reason)
        ),
        None => "active".to_owned(),
    }
}

fn suspension_end(suspension: &SuspensionView) -> String {
    suspension
        .until
        .map(|until| format!(" until {}", until.to_rfc3339()))
        .unwrap_or_default()
}

fn text_or_dash(text: Option<&str>) -> String {
    text.map_or_else(|| "-".to_owned(), visible)
}

#[cfg(test)]
mod tests {
    use sovereign_relay_protocol::{id::InstanceId, time::UnixMillis};

    use super::*;
    use crate::store::revocation::Cause;

    fn suspended() -> InstanceView {
        InstanceView {
            instance_id: InstanceId::parse("6f1c2f0e-6f1c-4f0e-8f1c-6f1c2f0e6f1c").unwrap(),
            name: Some("Chess club\u{1b}[2J".to_owned()),
            contact: Some("admin@chess.example".to_owned()),
            enrolled_at: Some(UnixMillis(0)),
            sent: 7,
            last_used_at: None,
            per_minute: None,
            turn: None,
            suspension: Some(SuspensionView {
                until: Some(UnixMillis(86_400_000)),
                reason: "dead tokens".to_owned(),
            }),
            ended: None,
            generation: None,
        }
    }

    #[test]
    fn a_suspension_is_told_with_its_end_and_reason() {
        let page = instance(&suspended());
        assert!(
            page.contains("suspended until 1970-01-02T00:00:00Z: dead tokens"),
            "{page}"
        );
        assert!(!page.contains('\u{1b}'), "a name must not drive the terminal");
    }

    #[test]
    fn a_row_has_a_cell_for_each_heading_and_says_who_may_use_turn() {
        for (turn, word) in [
            (Some(true), "allowed"),
            (Some(false), "denied"),
            (None, "default"),
        ] {
            let row = instance_row(&InstanceView { turn, ..suspended() });
            assert_eq!(row.len(), INSTANCE_HEADINGS.len());
            let column = INSTANCE_HEADINGS
                .iter()
                .position(|heading| *heading == "TURN")
                .unwrap();
            assert_eq!(row[column], word);
        }
    }

    #[test]
    fn a_change_of_an_instance_that_has_ended_or_has_no_record_is_doubted() {
        assert_eq!(doubt(&suspended()), None);
        let unknown = InstanceView {
            enrolled_at: None,
            ..suspended()
        };
        assert!(doubt(&unknown).unwrap().contains("no enrollment is on record"));
        let ended = InstanceView {
            ended: Some(Cause::Revoked),
            ..suspended()
        };
        assert!(doubt(&ended).unwrap().contains("has ended (revoked)"));
        assert_eq!(no_record(&ended), None);
    }

    #[test]
    fn the_letter_is_only_written_when_there_is_somebody_to_send_it_to() {
        assert!(letter(&suspended()).unwrap().contains("admin@chess.example"));
        assert!(
            letter(&InstanceView {
                contact: None,
                ..suspended()
            })
            .is_none()
        );
        assert!(
            letter(&InstanceView {
                suspension: None,
                ..suspended()
            })
            .is_none()
        );
    }
}
