//! Evaluations on threads of their own, while the request waits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use drydock_admission::cel::library::{BlockingAuthorizer, UserAuthorizer, authorizer};
use drydock_admission::cel::{Activation, Expression, stack};
use drydock_serving::auth::authz::AuthorizationAttributes;
use drydock_serving::request::user::User;

use super::VARIABLES;

/// Reports each check, and waits for permission to answer.
struct Slow(SyncSender<()>, Mutex<Receiver<()>>, Arc<AtomicUsize>);

impl BlockingAuthorizer for Slow {
    fn authorize(&self, _: &User, _: &AuthorizationAttributes) -> Result<(bool, String), String> {
        self.2.fetch_add(1, Ordering::Relaxed);
        self.0.send(()).unwrap();
        let _ = self.1.lock().unwrap().recv();
        Ok((false, String::new()))
    }
}

/// Reports when it is dropped.
struct Ends(SyncSender<()>);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[tokio::test]
async fn what_nobody_waits_for_ends_at_the_next_thing_that_costs() {
    let ((asked, is_asked), (answer, may_answer), (ended, has_ended)) =
        (sync_channel(64), sync_channel(64), sync_channel(64));
    let count = Arc::new(AtomicUsize::new(0));
    let user_authorizer =
        UserAuthorizer::new(Arc::default(), Arc::new(Slow(asked, Mutex::new(may_answer), count.clone())));
    let text = "authorizer.path('/').check('get').allowed() || [1, 2].exists(i, authorizer.path('/').check('get').allowed())";
    let expression = Expression::compile(text, &VARIABLES).unwrap();
    let ends = Ends(ended);
    let waiting =
        tokio::spawn(stack::on_evaluation_thread(Instant::now() + Duration::from_secs(600), move || {
            let _ends = ends;
            let mut activation =
                Activation::new(vec![("authorizer", authorizer(user_authorizer))], Arc::new([]), 10_000_000)?;
            activation.evaluate(&expression).map(|_| ())
        }));
    tokio::task::spawn_blocking(move || is_asked.recv().unwrap()).await.unwrap();
    waiting.abort();
    waiting.await.unwrap_err();
    drop(answer);
    tokio::task::spawn_blocking(move || has_ended.recv().unwrap()).await.unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn no_more_is_evaluated_at_a_time_than_there_are_turns_and_none_waits_past_its_deadline() {
    let (release, released) = sync_channel::<()>(64);
    let released = Arc::new(Mutex::new(released));
    let far = Instant::now() + Duration::from_secs(600);
    let (begun, has_begun) = sync_channel(64);
    let holding = (0..64).map(|_| {
        let (begun, released) = (begun.clone(), released.clone());
        tokio::spawn(stack::on_evaluation_thread(far, move || {
            begun.send(()).unwrap();
            let _ = released.lock().unwrap().recv();
        }))
    });
    let holding: Vec<_> = holding.collect();
    tokio::task::spawn_blocking(move || (0..64).for_each(|_| has_begun.recv().unwrap())).await.unwrap();
    let refused = stack::on_evaluation_thread(Instant::now(), || ()).await.unwrap_err();
    assert!(refused.ends_with("it took longer than the request may take"), "{refused}");
    drop(release);
    for held in holding {
        held.await.unwrap().unwrap();
    }
    assert_eq!(stack::on_evaluation_thread(far, || 7).await, Ok(7));
}

#[test]
fn what_is_compiled_within_deep_work_needs_no_thread_of_its_own_and_its_panic_is_its_own() {
    let of = || std::thread::current().id();
    let (outer, inner) = stack::on_large_stack(|| (of(), stack::on_large_stack(of))).unwrap();
    assert_eq!(inner, Ok(outer));
    let panicking = stack::on_large_stack(|| stack::on_large_stack(|| panic!("a fault")).is_err());
    assert_eq!(panicking, Ok(true));
    assert_ne!(stack::on_large_stack(of), Ok(of()));
}
