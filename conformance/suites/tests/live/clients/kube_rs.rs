//! A controller of kube-rs' runtime through the aggregator: its reconciler sees each state that it is to act
//! on, and its finalizer is placed and taken off by the patches that the runtime makes.

use std::convert::Infallible;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use drydock_testkit::kinds::{node_maintenance, node_maintenance_resource, node_maintenances};
use drydock_testkit::wait::until;
use futures::StreamExt;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{self, finalizer};
use kube::runtime::{Controller, watcher};
use serde_json::json;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_util::task::AbortOnDropHandle;

use crate::shared::{LIMIT, shared};

const FINALIZER: &str = "test.example.com/controlled";

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_acts_on_every_state_and_on_the_end() -> Result<()> {
    let api = node_maintenances(&shared().await?.drydock.host.client().await?);
    create(&api, "controlled-before").await?;
    let (calls, mut received) = channel(64);
    let config = watcher::Config::default().labels("suite=controlled");
    let controller = Controller::new_with(api.clone(), config, node_maintenance_resource());
    let context = Arc::new((api.clone(), calls));
    let reconciling = controller.run(reconcile, |_, _, _| Action::requeue(LIMIT), context);
    let _running = AbortOnDropHandle::new(tokio::spawn(reconciling.for_each(async |_| {})));

    receives(&mut received, "apply controlled-before 1").await?;
    create(&api, "controlled-new").await?;
    receives(&mut received, "apply controlled-new 1").await?;
    let step = Patch::Merge(json!({"metadata": {"labels": {"step": "2"}}}));
    api.patch("controlled-new", &PatchParams::default(), &step).await?;
    receives(&mut received, "apply controlled-new 2").await?;
    for name in ["controlled-new", "controlled-before"] {
        api.delete(name, &DeleteParams::default()).await?;
        receives(&mut received, &format!("cleanup {name}")).await?;
        let gone = |object: Option<&DynamicObject>| object.is_none();
        until(api.clone(), name, LIMIT, "gone", gone).await?;
    }
    Ok(())
}

async fn reconcile(
    object: Arc<DynamicObject>,
    context: Arc<(Api<DynamicObject>, Sender<String>)>,
) -> Result<Action, finalizer::Error<Infallible>> {
    let (api, calls) = &*context;
    finalizer(api, FINALIZER, object, async |event| {
        let what = match event {
            finalizer::Event::Apply(object) => {
                format!("apply {} {}", object.name_any(), object.labels()["step"])
            }
            finalizer::Event::Cleanup(object) => format!("cleanup {}", object.name_any()),
        };
        let _ = calls.send(what).await;
        Ok(Action::await_change())
    })
    .await
}

/// Reads up to the expected call. A state may be reconciled more than once.
async fn receives(received: &mut Receiver<String>, expected: &str) -> Result<()> {
    let mut others = Vec::new();
    let receiving = async {
        while let Some(call) = received.recv().await {
            if call == expected {
                return Ok(());
            }
            others.push(call);
        }
        bail!("the controller ended")
    };
    let received = tokio::time::timeout(LIMIT, receiving).await;
    received.unwrap_or_else(|_| bail!("not in time")).with_context(|| format!("no {expected:?}: {others:?}"))
}

async fn create(api: &Api<DynamicObject>, name: &str) -> Result<()> {
    let mut object = node_maintenance(name, "Idle", &["nowhere"]);
    object["metadata"]["labels"] = json!({"suite": "controlled", "step": "1"});
    api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
    Ok(())
}
