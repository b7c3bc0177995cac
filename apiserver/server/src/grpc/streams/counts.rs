//! How many streams and different questions each user has.

use std::collections::HashMap;

use drydock_machinery::ApiError;

/// Open streams of one user (a [flow](crate::request::user::User::flow)).
pub(in crate::grpc) const MAX_STREAMS: usize = 4096;
/// Different questions that are reviewed for the open streams of one user.
pub(in crate::grpc) const MAX_QUESTIONS: usize = 512;

/// What each user has; users who have nothing are not listed.
#[derive(Default)]
pub(super) struct Counts(HashMap<String, Count>);

/// What one user has.
#[derive(Default)]
pub(super) struct Count {
    pub(super) streams: usize,
    pub(super) questions: usize,
}

impl Counts {
    /// Refuses one more stream, with so many new questions, to a user who has too many.
    pub(super) fn check(&self, user: &str, new: usize) -> Result<(), ApiError> {
        let (streams, questions) = self.0.get(user).map_or((0, 0), |user| (user.streams, user.questions));
        if streams >= MAX_STREAMS {
            let why = format!("a user may have {MAX_STREAMS} open streams: close some of them");
            return Err(ApiError::too_many_requests(why, 10));
        }
        if questions + new > MAX_QUESTIONS {
            let why = format!(
                "the open streams of a user may need {MAX_QUESTIONS} different access reviews: close some of them, or \
                 watch all namespaces in one stream"
            );
            return Err(ApiError::too_many_requests(why, 10));
        }
        Ok(())
    }

    /// Changes what a user has.
    pub(super) fn change(&mut self, user: &str, change: impl FnOnce(&mut Count)) {
        if !self.0.contains_key(user) {
            self.0.insert(user.to_owned(), Count::default());
        }
        let Some(count) = self.0.get_mut(user) else { return };
        change(count);
        if count.streams + count.questions == 0 {
            self.0.remove(user);
        }
    }

    /// Open streams of all users.
    #[cfg(test)]
    pub(super) fn streams(&self) -> usize {
        self.0.values().map(|user| user.streams).sum()
    }
}
