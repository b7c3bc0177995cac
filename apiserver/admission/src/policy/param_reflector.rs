//! Follows the parameters that one binding of a policy refers to, and no other objects of their kind: those that its
//! paramRef names or selects, in the namespace that it names.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use drydock_logging::{WatchFailures, with_causes};
use drydock_serving::tasks::ProgramTasks;
use futures::{FutureExt, StreamExt};
use kube::api::{ApiResource, DynamicObject, ListParams, ObjectMeta};
use kube::core::Selector;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource};
use parking_lot::Mutex;
use serde::{Deserialize, Deserializer};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until};

use super::param_store::{ParamJson, ParamStore};

/// Objects of a page of a list. An object may have 1.5 MiB, and a page is read as a whole.
const PAGE: u32 = 64;
/// Pause before a namespace is read again whose objects had no room.
const REFILL_PAUSE: Duration = Duration::from_secs(10);
/// Pause before a reflector that panicked starts again.
const RESTART_PAUSE: Duration = Duration::from_secs(10);

/// The objects that a binding refers to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ParamScope {
    /// The namespace; all of them if empty.
    pub namespace: String,
    /// The name; any if empty.
    pub name: String,
    /// The label selector, in the form of a query.
    pub selector: String,
}

impl ParamScope {
    /// The objects in `namespace` that have the name, or that the selector selects.
    pub fn new(namespace: &str, name: &str, selector: Option<&Selector>) -> Self {
        let selector = selector.map(ToString::to_string).unwrap_or_default();
        Self { namespace: namespace.to_owned(), name: name.to_owned(), selector }
    }

    fn api(&self, host: &Client, kind: &ApiResource) -> Api<Param> {
        match self.namespace.as_str() {
            "" => Api::all_with(host.clone(), kind),
            namespace => Api::namespaced_with(host.clone(), namespace, kind),
        }
    }

    /// The selectors of labels and fields.
    fn selectors(&self) -> [Option<String>; 2] {
        let labels = (!self.selector.is_empty()).then(|| self.selector.clone());
        [labels, (!self.name.is_empty()).then(|| format!("metadata.name={}", self.name))]
    }
}

/// The reflector of a scope. It ends when it is dropped.
pub struct ParamReflector {
    known: Arc<Mutex<ParamStore>>,
    is_ready: watch::Receiver<bool>,
    task: AbortHandle,
}

impl ParamReflector {
    /// Starts the reflector in a task of its own, with backoff. After a panic it starts again.
    pub fn start(host: Client, kind: ApiResource, scope: ParamScope, tasks: &ProgramTasks) -> Self {
        let known = Arc::new(Mutex::new(ParamStore::default()));
        let (ready, is_ready) = watch::channel(false);
        let name = format!("reflector of params of admission policies, {}", kind.plural);
        let (what, kept, is_known) = (kind.plural.clone(), known.clone(), ready.clone());
        let follow =
            move || follow(host.clone(), kind.clone(), scope.clone(), kept.clone(), is_known.clone());
        let task = tasks.spawn_endless(name, restarted(what, ready, RESTART_PAUSE, follow));
        Self { known, is_ready, task }
    }

    /// Returns when all objects have been listed.
    pub async fn ready(&self) -> bool {
        self.is_ready.clone().wait_for(|ready| *ready).await.is_ok()
    }

    /// Returns the objects of a namespace, by name.
    ///
    /// # Errors
    /// They are too many bytes.
    pub fn of(&self, namespace: &str) -> Result<Vec<ParamJson>, String> {
        self.known.lock().of(namespace)
    }
}

impl Drop for ParamReflector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Runs `follow`, and after a panic again. Tenants write the params: one at which it panics must not end every API server, and
/// again after each start. Nothing is ready until all objects have been listed anew, as after the first start.
async fn restarted<F: Future<Output = ()>>(
    what: String,
    ready: watch::Sender<bool>,
    pause: Duration,
    follow: impl Fn() -> F,
) {
    while AssertUnwindSafe(follow()).catch_unwind().await.is_err() {
        ready.send_replace(false);
        tracing::error!(
            "the reflector of the host's {what} for admission panicked; it starts again after {pause:?}"
        );
        sleep(pause).await;
    }
}

async fn follow(
    host: Client,
    kind: ApiResource,
    scope: ParamScope,
    known: Arc<Mutex<ParamStore>>,
    ready: watch::Sender<bool>,
) {
    let [label_selector, field_selector] = scope.selectors();
    let config =
        watcher::Config { label_selector, field_selector, page_size: Some(PAGE), ..Default::default() };
    let mut events = watcher(scope.api(&host, &kind), config).default_backoff().boxed();
    let mut failures = WatchFailures::default();
    let mut listed = ParamStore::default();
    let mut refill_at = None;
    loop {
        // The time stays through events: whoever writes params without pause would put it off for ever.
        if known.lock().to_refill().is_none() {
            refill_at = None;
        } else if refill_at.is_none() {
            refill_at = Some(Instant::now() + REFILL_PAUSE);
        }
        let event = tokio::select! {
            event = events.next() => event,
            () = sleep_until(refill_at.unwrap_or_else(Instant::now)), if refill_at.is_some() => {
                refill(&host, &kind, &scope, &known).await;
                refill_at = None;
                continue;
            }
        };
        let Some(event) = event else { return };
        if let Some(error) = failures.take_in(&event) {
            let what = &kind.plural;
            tracing::warn!(error, "cannot follow the host's {what} for admission; trying again");
        }
        match event {
            Ok(Event::Init) => listed = ParamStore::default(),
            Ok(Event::InitApply(param)) => put(&mut listed, param),
            Ok(Event::InitDone) => {
                *known.lock() = std::mem::take(&mut listed);
                ready.send_replace(true);
            }
            Ok(Event::Apply(param)) => put(&mut known.lock(), param),
            Ok(Event::Delete(param)) => known.lock().remove(param.namespace(), param.name()),
            Err(_) => {}
        }
    }
}

fn put(store: &mut ParamStore, param: Param) {
    store.put(param.namespace(), param.name(), param.json.clone());
}

/// Reads a namespace again whose objects had no room before. One that cannot be read, or that has grown, is left.
async fn refill(host: &Client, kind: &ApiResource, scope: &ParamScope, known: &Mutex<ParamStore>) {
    let Some(namespace) = known.lock().to_refill() else { return };
    let within = ParamScope { namespace: namespace.clone(), ..scope.clone() };
    let [label_selector, field_selector] = within.selectors();
    let mut wanted =
        ListParams { label_selector, field_selector, limit: Some(PAGE), ..ListParams::default() };
    let (api, mut objects) = (within.api(host, kind), Vec::new());
    loop {
        match api.list(&wanted).await {
            Ok(page) => {
                objects.extend(page.items.into_iter().map(|param| (param.name().to_owned(), param.json)));
                wanted.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            }
            Err(error) => {
                let error = with_causes(&error);
                tracing::warn!(error, namespace, "cannot read the params of a policy again that had no room");
                return;
            }
        }
        if wanted.continue_token.is_none() {
            return known.lock().refill(&namespace, objects);
        }
        if ParamStore::is_too_much(&objects) {
            return;
        }
    }
}

/// An object, as JSON without its managed fields.
#[derive(Clone, Debug)]
struct Param {
    /// Name, namespace, UID and resourceVersion.
    metadata: ObjectMeta,
    json: ParamJson,
}

impl Param {
    fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Param {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = DynamicObject::deserialize(deserializer)?;
        object.metadata.managed_fields = None;
        let json = serde_json::to_vec(&object).map_err(serde::de::Error::custom)?.into();
        let ObjectMeta { name, namespace, uid, resource_version, .. } = object.metadata;
        Ok(Self {
            metadata: ObjectMeta { name, namespace, uid, resource_version, ..Default::default() },
            json,
        })
    }
}

impl Resource for Param {
    type DynamicType = ApiResource;
    type Scope = <DynamicObject as Resource>::Scope;

    fn kind(kind: &ApiResource) -> Cow<'_, str> {
        DynamicObject::kind(kind)
    }
    fn group(kind: &ApiResource) -> Cow<'_, str> {
        DynamicObject::group(kind)
    }
    fn version(kind: &ApiResource) -> Cow<'_, str> {
        DynamicObject::version(kind)
    }
    fn plural(kind: &ApiResource) -> Cow<'_, str> {
        DynamicObject::plural(kind)
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_param_is_kept_without_its_managed_fields() {
        let managed = json!([{ "manager": "m", "operation": "Apply" }]);
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": { "most": "3" },
            "metadata": { "name": "limits", "namespace": "a", "labels": { "x": "y" }, "managedFields": managed },
        });
        let param: Param = serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((param.namespace(), param.name()), ("a", "limits"));
        let mut wanted = object;
        wanted["metadata"].as_object_mut().map(|it| it.remove("managedFields"));
        assert_eq!(serde_json::from_slice::<Value>(&param.json).ok(), Some(wanted));
    }

    /// Every API server ended at an object that a tenant had written, and again after each start.
    #[tokio::test]
    async fn a_reflector_of_params_that_panics_starts_again_and_its_params_are_not_ready_meanwhile() {
        let (ready, is_ready) = watch::channel(true);
        let starts = Mutex::new(Vec::new());
        let follow = || {
            let mut starts = starts.lock();
            starts.push(*is_ready.borrow());
            let is_first = starts.len() == 1;
            async move { assert!(!is_first, "it panics at an object") }
        };
        restarted("configmaps".to_owned(), ready, Duration::ZERO, follow).await;
        assert_eq!(starts.into_inner(), [true, false]);
    }

    #[test]
    fn a_scope_is_asked_for_by_name_or_by_labels() {
        let named = ParamScope { name: "limits".into(), ..ParamScope::default() };
        assert_eq!(named.selectors(), [None, Some("metadata.name=limits".into())]);
        let selected = ParamScope { selector: "x=y".into(), ..ParamScope::default() };
        assert_eq!(selected.selectors(), [Some("x=y".into()), None]);
    }
}
