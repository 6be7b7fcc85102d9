use super::*;

fn keep_alive() -> KeepAlive {
    KeepAlive::new(KeepAliveTiming {
        look_every: Duration::from_secs(3),
        idle_for: Duration::from_secs(60),
        pong_within: Duration::from_secs(3),
    })
}

#[test]
fn a_busy_connection_that_was_not_heard_since_the_last_look_is_asked() {
    let mut keep_alive = keep_alive();
    assert!(!keep_alive.look(10, true));
    assert!(keep_alive.look(10, true));
}

#[test]
fn a_busy_connection_that_is_heard_is_left_alone() {
    let mut keep_alive = keep_alive();
    assert!((1..100).all(|read| !keep_alive.look(read, true)));
}

#[test]
fn an_idle_connection_is_asked_once_a_minute() {
    let mut keep_alive = keep_alive();
    let asked: Vec<_> = (1..=60).filter(|_| keep_alive.look(0, false)).collect();
    assert_eq!(asked, [20, 40, 60]);
}

#[test]
fn its_own_pong_counts_as_heard() {
    let mut keep_alive = keep_alive();
    let asked = (0..20).filter(|_| keep_alive.look(0, false)).count();
    assert_eq!(asked, 1);
    assert!(!keep_alive.look(17, false));
    assert!((0..19).all(|_| !keep_alive.look(17, false)));
}
