//! Takes back what one object has of Drydock: reads it, plans, writes, and plans again on what the write has left, until
//! nothing remains. An object that never comes to that end is given up after a few tries.

use drydock_runtime::{ApiErrorKind, ObjectKey, classify, find};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::{Client, Error};

use crate::host_wait::wait_for_host;
use crate::listing::ObjectScope;
use crate::plan::{ObjectPart, RemovalPlan, UndoWrite};
use crate::report::{RemovalReport, said};

/// The field manager of the writes.
const FIELD_MANAGER: &str = "drydock-removal";
/// Plans of one object. It needs two and the last one, which finds nothing; others may change it meanwhile.
const MAX_PLANS: usize = 8;

/// A kind of objects that have something of Drydock, and what is to be done to one of them.
pub(crate) struct Undoing {
    pub(crate) scope: ObjectScope,
    pub(crate) plan: fn(&DynamicObject) -> RemovalPlan,
}

/// What follows a call.
enum NextTry {
    /// Plan on this object, which the call has left.
    On(Box<DynamicObject>),
    /// Read the object again.
    Again,
    /// The object needs no more.
    Done,
}

impl Undoing {
    /// Takes back what the object has of Drydock, or in a dry run says what would be taken back. Reports what cannot be done.
    pub(crate) async fn undo(
        &self,
        client: &Client,
        key: &ObjectKey,
        is_dry_run: bool,
        report: &mut RemovalReport<'_>,
    ) {
        let (api, what) = (self.scope.api_of(client, key), self.scope.name_of(key));
        let mut known = None;
        for _ in 0..MAX_PLANS {
            let object = match known.take() {
                Some(object) => object,
                None => match read(&api, key, &what, report).await {
                    NextTry::On(object) => object,
                    NextTry::Again => continue,
                    NextTry::Done => return,
                },
            };
            let writes = match (self.plan)(&object) {
                RemovalPlan::Nothing => return,
                RemovalPlan::Leave(why) => {
                    return report.progress(&format!("{what} is left as it is: {why}"));
                }
                RemovalPlan::Write(writes) => writes,
            };
            if is_dry_run {
                let would = |write: &UndoWrite| format!("would change {what}: {}", write.effect);
                return writes.iter().for_each(|write| report.change(&would(write)));
            }
            let Some(write) = writes.first() else { return };
            match send(&api, key, &what, write, report).await {
                NextTry::On(object) => known = Some(object),
                NextTry::Again => {}
                NextTry::Done => return,
            }
        }
        report.problem(&format!("{what} still has something of Drydock after {MAX_PLANS} tries"));
    }
}

async fn read(
    api: &Api<DynamicObject>,
    key: &ObjectKey,
    what: &str,
    report: &mut RemovalReport<'_>,
) -> NextTry {
    match find(api, &key.name).await {
        Ok(Some(object)) => NextTry::On(Box::new(object)),
        Ok(None) => gone(what, report),
        Err(error) => after(&error, what, report).await,
    }
}

async fn send(
    api: &Api<DynamicObject>,
    key: &ObjectKey,
    what: &str,
    write: &UndoWrite,
    report: &mut RemovalReport<'_>,
) -> NextTry {
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let sent = match write.part {
        ObjectPart::Main => api.patch(&key.name, &params, &Patch::Merge(&write.patch)).await,
        ObjectPart::Status => api.patch_status(&key.name, &params, &Patch::Strategic(&write.patch)).await,
    };
    match sent {
        Ok(object) => {
            report.change(&format!("changed {what}: {}", write.effect));
            NextTry::On(Box::new(object))
        }
        Err(error) => after(&error, what, report).await,
    }
}

fn gone(what: &str, report: &mut RemovalReport<'_>) -> NextTry {
    report.progress(&format!("{what} has gone in the meantime"));
    NextTry::Done
}

/// What follows a call that failed.
async fn after(error: &Error, what: &str, report: &mut RemovalReport<'_>) -> NextTry {
    match classify(error) {
        ApiErrorKind::NotFound => gone(what, report),
        ApiErrorKind::Conflict => {
            report.progress(&format!("{what} has changed in the meantime"));
            NextTry::Again
        }
        ApiErrorKind::Throttled | ApiErrorKind::Unavailable => {
            report.progress(&format!("{what} is tried again: {}", said(error)));
            wait_for_host(error).await;
            NextTry::Again
        }
        ApiErrorKind::AlreadyExists
        | ApiErrorKind::RefusedToken
        | ApiErrorKind::Forbidden
        | ApiErrorKind::Invalid => {
            report.problem(&format!("{what}: {}", said(error)));
            NextTry::Done
        }
    }
}

#[cfg(test)]
#[path = "undo_tests.rs"]
mod tests;
