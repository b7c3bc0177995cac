//! Lists objects of the cluster in pages, and keeps the few that matter: what a tenant may store is far more than what is to
//! be removed.

use std::fmt::Debug;

use drydock_runtime::ObjectKey;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, ObjectList, PartialObjectMeta};
use kube::core::GroupVersionKind;
use kube::{Client, Error, Resource};

use crate::host_wait::{is_unserved, wait_for_host};

/// Objects of a page: the host answers with no more at a time, and no more are held. An object may have 1.5 MiB.
const PAGE: u32 = 100;
/// How often a list begins anew, because the host has forgotten where it was.
const MAX_RESTARTS: usize = 3;
/// How often a page is read again, because the host could not serve it.
const MAX_REPEATS: usize = 8;

/// A kind of objects, in one namespace or in the whole cluster.
#[derive(Clone, Debug)]
pub(crate) struct ObjectScope {
    pub(crate) resource: ApiResource,
    namespace: Option<&'static str>,
    selector: Option<&'static str>,
}

impl ObjectScope {
    /// All objects of a kind.
    pub(crate) fn cluster(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        let gvk = GroupVersionKind::gvk(group, version, kind);
        Self { resource: ApiResource::from_gvk_with_plural(&gvk, plural), namespace: None, selector: None }
    }

    /// Those in a namespace.
    pub(crate) fn in_namespace(self, namespace: &'static str) -> Self {
        Self { namespace: Some(namespace), ..self }
    }

    /// Those with these labels.
    pub(crate) fn with_labels(self, selector: &'static str) -> Self {
        Self { selector: Some(selector), ..self }
    }

    /// The objects beside an object: those of its namespace, or all of a kind of the cluster.
    pub(crate) fn api_of(&self, client: &Client, key: &ObjectKey) -> Api<DynamicObject> {
        match &*key.namespace {
            "" => Api::all_with(client.clone(), &self.resource),
            namespace => Api::namespaced_with(client.clone(), namespace, &self.resource),
        }
    }

    /// The object for people: `Deployment shop/ledger`.
    pub(crate) fn name_of(&self, key: &ObjectKey) -> String {
        format!("{} {key}", self.resource.kind)
    }

    /// The keys of the objects that `keep` is true for.
    ///
    /// # Errors
    /// What the host says, if a page cannot be read.
    pub(crate) async fn keys(
        &self,
        client: &Client,
        keep: impl Fn(&DynamicObject) -> bool,
    ) -> Result<Vec<ObjectKey>, Error> {
        let api = self.api(client);
        in_pages(self.params(), async |params| api.list(&params).await, keep).await
    }

    /// The same, where metadata is all that `keep` reads.
    ///
    /// # Errors
    /// What the host says, if a page cannot be read.
    pub(crate) async fn keys_by_metadata(
        &self,
        client: &Client,
        keep: impl Fn(&PartialObjectMeta<DynamicObject>) -> bool,
    ) -> Result<Vec<ObjectKey>, Error> {
        let api = self.api(client);
        in_pages(self.params(), async |params| api.list_metadata(&params).await, keep).await
    }

    fn api(&self, client: &Client) -> Api<DynamicObject> {
        match self.namespace {
            None => Api::all_with(client.clone(), &self.resource),
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &self.resource),
        }
    }

    fn params(&self) -> ListParams {
        ListParams { label_selector: self.selector.map(str::to_owned), ..ListParams::default().limit(PAGE) }
    }
}

/// The keys of what `keep` is true for on all pages. It begins anew when the host has forgotten its place in the list (410),
/// and reads a page again that the host could not serve.
async fn in_pages<K: Clone + Debug + Resource>(
    first: ListParams,
    read: impl AsyncFn(ListParams) -> Result<ObjectList<K>, Error>,
    keep: impl Fn(&K) -> bool,
) -> Result<Vec<ObjectKey>, Error> {
    let (mut kept, mut restarts, mut repeats, mut next) = (Vec::new(), 0, 0, first.clone());
    loop {
        let page = match read(next.clone()).await {
            Err(error) if is_unserved(&error) && repeats < MAX_REPEATS => {
                repeats += 1;
                wait_for_host(&error).await;
                continue;
            }
            Err(Error::Api(status)) if status.code == 410 && restarts < MAX_RESTARTS => {
                restarts += 1;
                kept.clear();
                next = first.clone();
                continue;
            }
            page => page?,
        };
        kept.extend(page.items.iter().filter(|object| keep(object)).map(|object| key_of(object.meta())));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => next = ListParams { continue_token: Some(token), ..first.clone() },
            None => return Ok(kept),
        }
    }
}

fn key_of(meta: &kube::core::ObjectMeta) -> ObjectKey {
    ObjectKey::new(meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use kube::core::Status;
    use serde_json::{Value, json};

    use super::*;

    fn page(names: &[&str], token: Option<&str>) -> Result<ObjectList<DynamicObject>, Error> {
        let items: Vec<Value> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
        let list =
            json!({"apiVersion": "v1", "kind": "NodeList", "metadata": {"continue": token}, "items": items});
        serde_json::from_value(list).map_err(Error::SerdeError)
    }

    fn expired() -> Result<ObjectList<DynamicObject>, Error> {
        Err(Error::Api(Status::failure("expired", "Expired").with_code(410).boxed()))
    }

    /// What is listed from these answers, and the tokens that were asked with.
    async fn listed(
        mut answers: Vec<Result<ObjectList<DynamicObject>, Error>>,
    ) -> (Result<Vec<String>, Error>, Vec<Option<String>>) {
        answers.reverse();
        let (answers, asked) = (RefCell::new(answers), RefCell::new(Vec::new()));
        let read = async |params: ListParams| {
            assert_eq!(params.limit, Some(PAGE));
            asked.borrow_mut().push(params.continue_token);
            answers.borrow_mut().pop().unwrap_or_else(expired)
        };
        let first = ListParams::default().limit(PAGE);
        let keys = in_pages(first, read, |object| object.metadata.name.as_deref() != Some("left")).await;
        let names = keys.map(|keys| keys.iter().map(ToString::to_string).collect());
        (names, asked.into_inner())
    }

    #[tokio::test]
    async fn objects_after_the_first_page_were_left_out() {
        let answers = vec![page(&["a", "left"], Some("t")), page(&["b"], Some("")), page(&["never"], None)];
        let (names, asked) = listed(answers).await;
        assert_eq!(names.unwrap_or_default(), ["a", "b"]);
        assert_eq!(asked, [None, Some("t".to_owned())]);
    }

    #[tokio::test]
    async fn a_list_that_the_host_has_forgotten_named_objects_twice() {
        let answers = vec![page(&["a"], Some("t")), expired(), page(&["a", "b"], None)];
        let (names, asked) = listed(answers).await;
        assert_eq!(names.unwrap_or_default(), ["a", "b"]);
        assert_eq!(asked, [None, Some("t".to_owned()), None]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_that_was_busy_for_a_moment_ended_the_removal() {
        let busy = || Err(Error::Api(Status::failure("busy", "TooManyRequests").with_code(429).boxed()));
        let (names, asked) = listed(vec![page(&["a"], Some("t")), busy(), page(&["b"], None)]).await;
        assert_eq!(names.unwrap_or_default(), ["a", "b"]);
        assert_eq!(asked, [None, Some("t".to_owned()), Some("t".to_owned())]);
        let (names, asked) = listed((0..100).map(|_| busy()).collect()).await;
        assert!(names.is_err());
        assert_eq!(asked.len(), 1 + MAX_REPEATS);
    }

    #[tokio::test]
    async fn a_list_that_is_forgotten_each_time_began_anew_without_end() {
        let (names, asked) = listed(Vec::new()).await;
        assert!(names.is_err());
        assert_eq!(asked.len(), 1 + MAX_RESTARTS);
    }
}
