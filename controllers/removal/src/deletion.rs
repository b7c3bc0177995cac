//! Deletes objects, each as it was read, and waits until they are gone.

use std::pin::pin;
use std::time::Duration;

use drydock_runtime::{ApiErrorKind, ObjectKey, classify, find};
use futures::StreamExt;
use kube::api::{Api, DeleteParams, DynamicObject};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Error};

use crate::host_wait::{is_unserved, wait_for_host};
use crate::listing::ObjectScope;
use crate::plan::SeenVersion;
use crate::report::{RemovalReport, said};

/// How often an object is read and its deletion is asked for, while others change it.
const MAX_TRIES: usize = 8;

/// Which objects of a kind are deleted, and how.
pub(crate) struct Deletion {
    pub(crate) scope: ObjectScope,
    /// Deleted with what it owns: the object goes last.
    pub(crate) foreground: bool,
    /// Whether an object is one of those that are to be deleted.
    pub(crate) is_meant: fn(&DynamicObject) -> bool,
}

/// An object whose deletion was asked for.
pub(crate) struct DeletedObject {
    api: Api<DynamicObject>,
    key: ObjectKey,
    uid: String,
    /// The object for people.
    pub(crate) what: String,
}

/// Why an object is not deleted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DeletionError {
    /// The host refused, or could not be asked.
    #[error("{what}: {}", said(source))]
    Call { what: String, source: Box<Error> },
    /// Each time that it was to be deleted, somebody had changed it since it was read, or its version is unknown.
    #[error("{what} changes too often to be deleted as it was read")]
    Changing { what: String },
}

impl Deletion {
    /// Asks for the deletion of an object as it is. Nothing to wait for if it is not there, is another one by now, or in a dry
    /// run.
    pub(crate) async fn delete(
        &self,
        client: &Client,
        key: &ObjectKey,
        is_dry_run: bool,
        report: &mut RemovalReport<'_>,
    ) -> Result<Option<DeletedObject>, DeletionError> {
        let (api, what) = (self.scope.api_of(client, key), self.scope.name_of(key));
        let failed = |source| DeletionError::Call { what: what.clone(), source: Box::new(source) };
        let mut unserved = None;
        for _ in 0..MAX_TRIES {
            if let Some(error) = unserved.take() {
                report.progress(&format!("{what} is tried again: {}", said(&error)));
                wait_for_host(&error).await;
            }
            let object = match find(&api, &key.name).await {
                Ok(Some(object)) => object,
                Ok(None) => return Ok(None),
                Err(error) if is_unserved(&error) => {
                    unserved = Some(error);
                    continue;
                }
                Err(error) => return Err(failed(error)),
            };
            if !(self.is_meant)(&object) {
                return Ok(None);
            }
            let Some(seen) = SeenVersion::of(&object.metadata) else { break };
            if is_dry_run {
                report.change(&format!("would delete {what}"));
                return Ok(None);
            }
            match api.delete(&key.name, &self.params(&seen)).await {
                Ok(_) => {
                    report.change(&format!("deleted {what}"));
                    let uid = seen.uid().to_owned();
                    return Ok(Some(DeletedObject { api, key: key.clone(), uid, what }));
                }
                Err(error) => match classify(&error) {
                    ApiErrorKind::NotFound => return Ok(None),
                    ApiErrorKind::Conflict => {}
                    ApiErrorKind::Throttled | ApiErrorKind::Unavailable => unserved = Some(error),
                    _ => return Err(failed(error)),
                },
            }
        }
        Err(unserved.map_or_else(|| DeletionError::Changing { what: what.clone() }, failed))
    }

    fn params(&self, seen: &SeenVersion) -> DeleteParams {
        let params = if self.foreground { DeleteParams::foreground() } else { DeleteParams::default() };
        params.preconditions(seen.preconditions())
    }
}

impl DeletedObject {
    /// Waits until it is gone, or another object has its name. A watch that fails is opened again.
    async fn until_gone(&self) {
        let mut states = pin!(watcher::watch_object(self.api.clone(), &self.key.name).default_backoff());
        while let Some(state) = states.next().await {
            let is_gone = |object: &Option<DynamicObject>| {
                object.as_ref().is_none_or(|object| object.metadata.uid.as_deref() != Some(&self.uid))
            };
            if state.as_ref().is_ok_and(is_gone) {
                return;
            }
        }
    }
}

/// Waits until all are gone. The first that is still there after the limit, if there is one.
pub(crate) async fn wait_until_gone(deleted: &[DeletedObject], limit: Duration) -> Option<&DeletedObject> {
    let end = tokio::time::Instant::now() + limit;
    for object in deleted {
        if tokio::time::timeout_at(end, object.until_gone()).await.is_err() {
            return Some(object);
        }
    }
    None
}
