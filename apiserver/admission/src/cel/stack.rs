//! A stack for what descends: the parser and the interpreter go as deep as an expression nests, and nobody asks them
//! how deep that is.

/// Enough to evaluate the deepest expression that is compiled; only what is used of it takes memory.
const STACK: usize = 64 << 20;
/// Enough to parse the longest text that is parsed.
const PARSING: usize = 512 << 20;

/// Does `work` on a thread of its own and waits for it; an error if it panicked or there was no thread to have.
pub fn deep<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread =
            builder().stack_size(PARSING).spawn_scoped(scope, work).map_err(|error| unexpected(&error))?;
        thread.join().map_err(|_| unexpected(&"it panicked"))
    })
}

/// The same, without keeping the caller's thread.
pub async fn deep_aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let evaluating = builder().spawn(move || {
        // Nobody waits any more for the answer to a request that has run out of time.
        let _ = tell.send(work());
    });
    evaluating.map_err(|error| unexpected(&error))?;
    told.await.map_err(|_| unexpected(&"it panicked"))
}

fn builder() -> std::thread::Builder {
    std::thread::Builder::new().name("cel".to_owned()).stack_size(STACK)
}

fn unexpected(why: &dyn std::fmt::Display) -> String {
    format!("unexpected internal error evaluating expression: {why}")
}
