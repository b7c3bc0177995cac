//! Urgent writes do not wait for many others.

#![allow(clippy::unwrap_used)]

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::*;
use crate::actions::RequestChange;

fn ask(maintenance: &str, node: usize, pod: usize) -> Action {
    let pod = format!("{maintenance}-{node}-{pod}");
    Action::Request {
        namespace: "ns".into(),
        pod: pod.clone(),
        change: RequestChange::Ask { pod, request: None, maintenances: "".into(), asked_again: None },
        lane: RequestLane { maintenance: maintenance.to_owned(), within: node.to_string() },
    }
}

fn cordon(name: &str) -> Action {
    let node = drydock_runtime::Node { name: name.into(), ..Default::default() };
    Action::Cordon { node: Arc::new(node), unschedulable: Some(true), annotation: None }
}

fn status(name: &str) -> Action {
    let mut maintenance = drydock_api::node_maintenance::NodeMaintenance::default();
    maintenance.metadata.name = name.into();
    Action::Status {
        maintenance: Arc::new(maintenance),
        status: Box::default(),
        confirm: Default::default(),
        events: Vec::new(),
    }
}

/// Runs the workers, `requests` of them for requests, until they begin `expected`. A request ends only if
/// `end` is set. Returns the tasks that were begun, in order.
async fn begun_until(queues: &WriteQueues, expected: &Task, requests: usize, end: bool) -> Vec<Task> {
    let (begun, found) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
    let context = drydock_runtime::testing::context(|_, _, _| unreachable!());
    let (log, publish, wanted) = (begun.clone(), found.clone(), expected.clone());
    let work = move |job: WriteJob| {
        let (log, publish, wanted) = (log.clone(), publish.clone(), wanted.clone());
        async move {
            log.lock().push(job.task.clone());
            if job.task == wanted {
                publish.notify_one();
            } else if matches!(job.task, Task::Request(..)) && !end {
                futures::future::pending::<()>().await;
            }
            Ok(Requeue::Never)
        }
        .boxed()
    };
    let wait = tokio::time::timeout(Duration::from_secs(5), found.notified());
    tokio::select! {
        () = queues.run(requests, &context, work) => {}
        waited = wait => waited.unwrap(),
    }
    std::mem::take(&mut *begun.lock())
}

/// A node that joined was cordoned, and a status written, after the requests for every pod that had been
/// found before: one queue held them all, and a host that is slow to answer made that minutes.
#[tokio::test(start_paused = true)]
async fn a_cordon_and_a_status_do_not_wait_for_requests() {
    for urgent in [cordon("n"), status("m")] {
        let queues = WriteQueues::new(&Metrics::new());
        for pod in 0..30_000 {
            queues.add_after(WriteJob::of(&ask("m", pod % 1000, pod)), Duration::ZERO);
        }
        // It comes when each worker has a request.
        queues.add_after(WriteJob::of(&urgent), Duration::from_secs(1));
        let begun = begun_until(&queues, &urgent.task(), 32, false).await;
        assert!(begun.len() <= 33, "{} were begun before", begun.len() - 1);
    }
}

/// A maintenance of one node waited for the thousands of pods of another one.
#[tokio::test(start_paused = true)]
async fn maintenances_take_turns_and_their_nodes_within() {
    let queues = WriteQueues::new(&Metrics::new());
    for pod in 0..30_000 {
        queues.add_after(WriteJob::of(&ask("many", pod % 1000, pod)), Duration::ZERO);
    }
    for pod in 0..3 {
        queues.add_after(WriteJob::of(&ask("one", 0, pod)), Duration::ZERO);
    }
    let begun = begun_until(&queues, &ask("one", 0, 2).task(), 1, true).await;
    assert!(begun.len() <= 7, "{begun:?}");
}
