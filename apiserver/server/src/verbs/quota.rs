//! A kind's quota: refusals of creates in the words of ResourceQuota (k8s.io/apiserver
//! pkg/admission/plugin/resourcequota/controller.go, checkQuotas).

use drydock_machinery::ApiError;
use drydock_storage::cache::{NoRoom, Reservation};

use super::call::Call;
use crate::flow_control::PriorityLevel;

/// Room for a new object under `key`; `None` where nothing is limited. Controllers and system:masters are never refused,
/// but what they create counts.
///
/// # Errors
/// 403 if the namespace's quota is used up.
pub fn reserve(call: &Call, key: &str) -> Result<Option<Reservation>, ApiError> {
    let (Some(quota), Some(usage)) = (call.kind().quota(), &call.resource.usage) else { return Ok(None) };
    if matches!(call.levels.of(&call.user), PriorityLevel::Exempt | PriorityLevel::Controllers) {
        return Ok(None);
    }
    usage.reserve(key, quota.hard).map(Some).map_err(|refusal| match refusal {
        NoRoom::Unknown(error) => call.storage_error(error, "create"),
        NoRoom::Used(used) => {
            let names = call.names();
            let (name, hard, mend) = (quota.name, quota.hard, quota.mend);
            let what = format!("count/{}.{}", names.plural, names.group);
            let why = format!(
                "exceeded quota: {name}, requested: {what}=1, used: {what}={used}, limited: {what}={hard}; {mend}"
            );
            let object = key.rsplit('/').next().unwrap_or(key);
            ApiError::forbidden(names.group, names.plural, object, why)
        }
    })
}
