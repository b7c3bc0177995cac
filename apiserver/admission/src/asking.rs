//! Questions of expressions to the authorizer: an expression waits on a thread of its own, the answer comes from the
//! runtime.

use std::sync::Arc;

use drydock_server::auth::authn::Caller;
use drydock_server::auth::authz::{Attributes, Authorizer};
use drydock_server::request::user::User;
use tokio::runtime::Handle;

use crate::cel::library::Ask;

/// What the expressions ask that look at a request of this caller.
pub type Asks = Arc<dyn Fn(&Caller) -> Arc<dyn Ask> + Send + Sync>;

/// Asks the authorizer of the server for a caller.
struct Asking {
    authorizer: Arc<Authorizer>,
    runtime: Handle,
    caller: Caller,
}

/// Those that ask `authorizer`; made on the runtime that answers.
pub fn asks(authorizer: Arc<Authorizer>) -> Asks {
    let runtime = Handle::current();
    Arc::new(move |caller| {
        let (authorizer, runtime) = (authorizer.clone(), runtime.clone());
        Arc::new(Asking { authorizer, runtime, caller: caller.clone() })
    })
}

impl Ask for Asking {
    fn ask(&self, user: &User, about: &Attributes) -> Result<(bool, String), String> {
        let decision = self.runtime.block_on(self.authorizer.authorize(&self.caller, user, about));
        decision.map(|decision| (decision.allowed, decision.reason)).map_err(|error| error.to_string())
    }
}
