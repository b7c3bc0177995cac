//! Authorizer checks in expressions: the expression blocks its own thread, while the check runs on the async runtime.

use std::sync::Arc;

use drydock_serving::auth::authn::Caller;
use drydock_serving::auth::authz::{AuthorizationAttributes, Authorizer};
use drydock_serving::request::user::User;
use tokio::runtime::Handle;

use crate::cel::library::BlockingAuthorizer;

/// Returns the authorizer for the expressions about a request of this caller.
pub type AuthorizerFactory = Arc<dyn Fn(&Caller) -> Arc<dyn BlockingAuthorizer> + Send + Sync>;

/// Asks the server's authorizer on behalf of a caller.
struct CallerAuthorizer {
    authorizer: Arc<Authorizer>,
    runtime: Handle,
    caller: Caller,
}

/// Returns a function that creates the authorizer of each caller. Must be called on the runtime that runs the checks.
pub fn authorizer_factory(authorizer: Arc<Authorizer>) -> AuthorizerFactory {
    let runtime = Handle::current();
    Arc::new(move |caller| {
        let (authorizer, runtime) = (authorizer.clone(), runtime.clone());
        Arc::new(CallerAuthorizer { authorizer, runtime, caller: caller.clone() })
    })
}

impl BlockingAuthorizer for CallerAuthorizer {
    fn authorize(&self, user: &User, about: &AuthorizationAttributes) -> Result<(bool, String), String> {
        let decision = self.runtime.block_on(self.authorizer.authorize(&self.caller, user, about));
        decision.map(|decision| (decision.allowed, decision.reason)).map_err(|error| error.to_string())
    }
}
