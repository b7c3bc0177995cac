//! Interceptors of others that are silent, or say that they are blocked: each is a blocker, with an event for
//! the pod's owner.

use super::*;
use crate::actions::EventSubject;

#[test]
fn an_interceptor_that_works_is_no_blocker_and_one_that_is_silent_says_when_it_is_passed_over() {
    let mut sim = Sim::new(&["a"]);
    sim.pod("a", "p", &json!({}));
    sim.maintenance("m", "Drain", &["a"]);
    sim.settle();
    let begun = sim.now;
    sim.request("p", |r| {
        r.status.active_interceptors = vec!["a.b".into()];
        r.status.activation_time = Some(begun);
        r.status.interceptors = serde_json::from_value(json!([{ "name": "a.b", "message": "" }])).unwrap();
    });
    let blocked = |sim: &mut Sim, second: i64| {
        sim.now = begun + jiff::SignedDuration::from_secs(second);
        sim.settle();
        sim.status("m").node_statuses[0].blockers.iter().map(|b| b.message.clone()).collect::<Vec<_>>()
    };
    let said = |told: Vec<String>| told.iter().map(|told| bare(told)).collect::<Vec<_>>();
    assert!(blocked(&mut sim, 9).is_empty());
    let never = "Waiting for interceptor a.b, which has never reported; it is passed over at 2026-01-01T12:20:00Z; whoever has the \
                 ClusterRole drydock:skip-interceptors may end its turn (see Interceptor in controllers/README.md). To go on now: kubectl patch evictionrequest uid-p -n ns --subresource=status -p 'status: {interceptors: [{name: a.b, \
                 completionTime: '$(date -u +%FT%TZ)'}]}'";
    assert_eq!(blocked(&mut sim, 10), [never]);
    let to_owner = |sim: &Sim| {
        let about = EventSubject::Eviction("ns".into(), "uid-p".into());
        let told = sim.events.iter().filter(|note| note.about == about && note.reason == "EvictionBlocked");
        told.map(|note| note.message.clone()).collect::<Vec<_>>()
    };
    let owner_never =
        "Waiting for interceptor a.b, which has never reported; it is passed over at 2026-01-01T12:20:00Z";
    assert_eq!(to_owner(&sim), [owner_never]);
    sim.memory = MachineMemory::default();
    assert_eq!(blocked(&mut sim, 20), [never]);
    assert_eq!(to_owner(&sim), [owner_never], "not again by another leader");
    sim.request("p", |r| {
        let heard = begun + jiff::SignedDuration::from_secs(20);
        let entry = r.status.interceptors.iter_mut().next().unwrap();
        (entry.start_time, entry.heartbeat_time) = (Some(heard), Some(heard));
        entry.message = "copying".into();
    });
    assert!(blocked(&mut sim, 20 + 359).is_empty());
    let silent = "Waiting for a.b, which has not reported since 2026-01-01T12:00:20Z and is passed over at 2026-01-01T12:20:20Z: \
                  \"copying\"";
    assert_eq!(said(blocked(&mut sim, 20 + 360)), [silent]);
    let say_blocked = |sim: &mut Sim, second: i64, is: bool| {
        let at = begun + jiff::SignedDuration::from_secs(second);
        sim.request("p", |r| {
            let entry = r.status.interceptors.iter_mut().next().unwrap();
            (entry.heartbeat_time, entry.message) = (Some(at), "no room".into());
            let blocked = json!({ "reason": "NoRoom", "name": "x", "sinceTime": at });
            entry.blocked = is.then(|| serde_json::from_value(blocked).unwrap());
        });
        blocked(sim, second)
    };
    assert_eq!(said(say_blocked(&mut sim, 400, true)), ["a.b says: \"no room\""]);
    say_blocked(&mut sim, 410, true);
    assert_eq!(to_owner(&sim), [owner_never, "a.b says: \"no room\""], "once");
    assert!(say_blocked(&mut sim, 420, false).is_empty());
}
