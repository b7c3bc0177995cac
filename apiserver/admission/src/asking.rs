//! Questions of expressions to the authorizer: an expression waits on a thread of its own, the answer comes from the
//! runtime.

use std::sync::Arc;

use drydock_server::authz::{Attributes, Authorizer};
use drydock_server::user::User;
use tokio::runtime::Handle;

use crate::cel::library::Ask;

/// Asks the authorizer of the server.
pub struct Asking {
    authorizer: Arc<Authorizer>,
    runtime: Handle,
}

impl Asking {
    /// Made on the runtime that answers.
    pub fn new(authorizer: Arc<Authorizer>) -> Self {
        Self { authorizer, runtime: Handle::current() }
    }
}

impl Ask for Asking {
    fn ask(&self, user: &User, about: &Attributes) -> Result<(bool, String), String> {
        let decision = self.runtime.block_on(self.authorizer.authorize(user, about));
        decision.map(|decision| (decision.allowed, decision.reason)).map_err(|error| error.to_string())
    }
}
