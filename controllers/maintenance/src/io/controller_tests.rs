//! When writes that failed are tried again.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use drydock_runtime::testing::{context, failure};

use super::*;

fn cordon() -> Action {
    let node = Node { name: "n".into(), uid: "u".into(), resource_version: "1".into(), ..Node::default() };
    Action::Cordon { node: Arc::new(node), unschedulable: Some(true), annotation: None }
}

/// A controller with this action to carry out, on a host that answers like this.
fn controller(action: Action, code: u16, reason: &'static str) -> MaintenanceController {
    let context = context(move |_, _, _| failure(code, reason));
    let controller = MaintenanceController::new(&context, Config::default());
    let actions = BTreeMap::from([(action.task(), action)]);
    controller.pending.lock().replace(actions, |_| 0, Instant::now());
    controller
}

/// It was written again after 5, 10 and 20 ms, on the same version, until a planning had seen the newer one.
#[tokio::test(start_paused = true)]
async fn a_write_on_an_old_version_waits_for_the_next_planning() {
    let controller = controller(cordon(), 409, "Conflict");
    let outcome = controller.work(&cordon().task()).await.unwrap();
    assert_eq!(outcome, Requeue::After(Duration::from_secs(10)));
}

/// The planning knew nothing of it, and held every pod of the maintenance back.
#[tokio::test(start_paused = true)]
async fn the_words_of_a_refused_cordon_reach_the_next_planning_which_comes_at_once() {
    let refusing = controller(cordon(), 403, "denied by a webhook");
    assert!(refusing.work(&cordon().task()).await.is_err());
    refusing.wake.notified().await;
    assert_eq!(refusing.observed.refusals.of("n").as_deref(), Some("denied by a webhook"));
    refusing.observed.refusals.retain(|_| false);
    assert!(refusing.observed.refusals.all().is_empty(), "nobody wants to cordon it any more");
    for (code, reason) in [(409, "Conflict"), (404, "NotFound"), (429, "TooManyRequests")] {
        let busy = controller(cordon(), code, reason);
        let _ = busy.work(&cordon().task()).await;
        assert!(busy.observed.refusals.all().is_empty(), "{code}");
    }
}
