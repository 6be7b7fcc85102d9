//! A handshake that lasts as long as it is told to, and what must hold of it whatever dies meanwhile.
//!
//! ```text
//! a: offer, candidates ..., no more        b: (the offer) answer, candidates ..., no more
//! ```
//!
//! Both peers are sessions of the client library: sealed, and dialled again by themselves. Each message carries its
//! number, so a message that is lost, doubled or out of order is an error here and now. A peer is done when the relay
//! has acknowledged all that it said and it has heard all that the other one said.

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use sovereign_relay_client::{
    protocol::signal::frame::Mood,
    signal::{
        connection::Receipt,
        message::{Candidate, Message},
        session::{Event, Session, SessionSender},
    },
};
use tokio::{
    sync::{
        mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
        oneshot, watch,
    },
    time::Instant,
};

/// What the handshakes of a run have in common.
#[derive(Clone)]
pub(super) struct Course {
    /// Between two messages of a peer.
    pub(super) every: Duration,
    /// Until when the peers find candidates.
    pub(super) is_over: watch::Receiver<bool>,
    /// Delays count from here.
    pub(super) began: Instant,
}

/// What one peer saw.
#[derive(Default)]
pub(super) struct Seen {
    /// Messages that the relay acknowledged.
    pub(super) acknowledged: u64,
    /// Messages of the other peer.
    pub(super) delivered: u64,
    /// From each loss of the connection to the next welcome.
    pub(super) until_welcome: Vec<Duration>,
    /// From each loss of the connection to the next message of the other peer.
    pub(super) until_message: Vec<Duration>,
    /// How long each message of the other peer was under way.
    pub(super) delays: Vec<Duration>,
}

/// Who says what first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Offers,
    Answers,
}

/// Shakes hands to the end. An error is a violation.
pub(super) async fn shake(mut peers: [Session; 2], course: &Course) -> anyhow::Result<[Seen; 2]> {
    let [a, b] = &mut peers;
    let (offers, answers) = tokio::try_join!(
        converse(a, Role::Offers, course),
        converse(b, Role::Answers, course)
    )?;
    for (said, heard) in [(&offers, &answers), (&answers, &offers)] {
        ensure!(
            said.acknowledged == heard.delivered,
            "{} acknowledged and {} delivered",
            said.acknowledged,
            heard.delivered
        );
    }
    let [a, b] = peers;
    tokio::join!(a.close(Mood::Direct), b.close(Mood::Direct));
    Ok([offers, answers])
}

async fn converse(session: &mut Session, role: Role, course: &Course) -> anyhow::Result<Seen> {
    let sender = session.sender();
    let (first, heard_first) = oneshot::channel();
    let (receipts, to_come) = unbounded_channel();
    let (all, heard_all) = oneshot::channel();
    let saying = async {
        if role == Role::Answers {
            heard_first.await?;
        }
        say(&sender, role, course, receipts).await
    };
    let done = async {
        let ((), acknowledged) = tokio::try_join!(saying, all_stored(to_come))?;
        let seen = heard_all.await?;
        Ok(Seen { acknowledged, ..seen })
    };
    let hearing = async {
        // Nobody asks any more when the other half has failed.
        let _ = all.send(hear(session, first, course).await?);
        hear_no_more(session).await
    };
    tokio::select! {
        seen = done => seen,
        violation = hearing => Err(violation.err().unwrap_or_else(|| anyhow!("the session ended"))),
    }
}

async fn say(
    sender: &SessionSender,
    role: Role,
    course: &Course,
    receipts: UnboundedSender<Receipt>,
) -> anyhow::Result<()> {
    let (negotiation, mut is_over) = ("the only one".to_owned(), course.is_over.clone());
    for number in 1_u64.. {
        let sdp = mark(number, course);
        let negotiation = negotiation.clone();
        let message = match (number, role) {
            (1, Role::Offers) => Message::Offer { negotiation, sdp },
            (1, Role::Answers) => Message::Answer { negotiation, sdp },
            _ => candidate(negotiation, Some(sdp)),
        };
        receipts.send(sender.send(&message).await?)?;
        let wait = tokio::time::timeout(course.every, is_over.wait_for(|is_over| *is_over));
        if wait.await.is_ok() {
            break;
        }
    }
    receipts.send(sender.send(&candidate(negotiation, None)).await?)?;
    Ok(())
}

async fn all_stored(mut receipts: UnboundedReceiver<Receipt>) -> anyhow::Result<u64> {
    let mut count = 0;
    while let Some(receipt) = receipts.recv().await {
        receipt
            .stored()
            .await
            .with_context(|| format!("message {}", count + 1))?;
        count += 1;
    }
    Ok(count)
}

/// Hears until the other peer has no more to say.
async fn hear(session: &mut Session, first: oneshot::Sender<()>, course: &Course) -> anyhow::Result<Seen> {
    let (mut seen, mut first) = (Seen::default(), Some(first));
    let (mut lost, mut silent): (Option<Instant>, Option<Instant>) = (None, None);
    loop {
        match session.next().await.context("nothing more comes")? {
            Event::Message(message) => {
                seen.delivered += 1;
                seen.until_message
                    .extend(silent.take().map(|lost| lost.elapsed()));
                if let Some(first) = first.take() {
                    // Who offers doesn't wait for it.
                    let _ = first.send(());
                }
                match read(&message, seen.delivered)? {
                    Some(due) => seen.delays.push(course.began.elapsed().saturating_sub(due)),
                    None => return Ok(seen),
                }
            }
            Event::Interrupted { .. } => {
                // Dials that fail are part of the same loss.
                let at = *lost.get_or_insert_with(now);
                silent.get_or_insert(at);
            }
            Event::Connected(_) => seen.until_welcome.extend(lost.take().map(|lost| lost.elapsed())),
            Event::Missing(count) => bail!("{count} messages are missing after {}", seen.delivered),
            Event::Rejected(rejection) => bail!("after {} came {rejection:?}", seen.delivered),
            Event::Ended(ended) => bail!("after {}: {ended}", seen.delivered),
            Event::Peer(_) | Event::Delayed { .. } | Event::IceServers { .. } => {}
        }
    }
}

/// The last message was heard; acknowledgements of this side's own may still come.
async fn hear_no_more(session: &mut Session) -> anyhow::Result<()> {
    while let Some(event) = session.next().await {
        match event {
            Event::Message(_) | Event::Missing(_) | Event::Rejected(_) => {
                bail!("after the last message came {event:?}")
            }
            Event::Ended(ended) => bail!("after the last message: {ended}"),
            Event::Interrupted { .. }
            | Event::Connected(_)
            | Event::Peer(_)
            | Event::Delayed { .. }
            | Event::IceServers { .. } => {}
        }
    }
    Ok(())
}

/// When the message was said; `None` is the last one.
fn read(message: &Message, expected: u64) -> anyhow::Result<Option<Duration>> {
    let marked = match message {
        Message::Offer { sdp, .. } | Message::Answer { sdp, .. } if expected == 1 => sdp,
        Message::Candidate {
            candidate: Some(candidate),
            ..
        } if expected > 1 => &candidate.candidate,
        Message::Candidate { candidate: None, .. } if expected > 1 => return Ok(None),
        other => bail!("message {expected} is {other:?}"),
    };
    let (number, due) = marked.split_once(' ').context("a message that nobody said")?;
    ensure!(
        number.parse() == Ok(expected),
        "message {number} came instead of {expected}"
    );
    Ok(Some(Duration::from_nanos(due.parse()?)))
}

fn mark(number: u64, course: &Course) -> String {
    format!("{number} {}", course.began.elapsed().as_nanos())
}

fn candidate(negotiation: String, candidate: Option<String>) -> Message {
    Message::Candidate {
        negotiation,
        candidate: candidate.map(|candidate| Candidate {
            candidate,
            sdp_mid: Some("0".to_owned()),
            sdp_m_line_index: Some(0),
            username_fragment: None,
        }),
    }
}

#[allow(clippy::disallowed_methods, reason = "measuring time is what this is for")]
pub(super) fn now() -> Instant {
    Instant::now()
}
