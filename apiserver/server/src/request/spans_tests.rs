//! What the levels of `-v` show of the server's own lines.

use drydock_logging::testing;
use drydock_machinery::kind::Names;
use drydock_storage::backend::BackendError;
use drydock_storage::storage::StorageError;

use super::*;
use crate::wire::storage_error;

const NAMES: Names = Names {
    group: "example.com",
    version: "v1",
    kind: "Thing",
    plural: "things",
    singular: "thing",
    short_names: &[],
    categories: &[],
    namespaced: true,
};

/// What the server logs of a write that is stored slowly, and of one that storage does not answer.
fn serve() {
    let info =
        RequestInfo { resource: "things".to_owned(), path: "/things/a".to_owned(), ..Default::default() };
    received(b"{\"spec\": 1}");
    stored(&info, "alice", "/things/a", Revision(7));
    answered(&info, "id", StatusCode::OK, SLOW * 2);
    let away = StorageError::Backend(BackendError::Unavailable("no leader".to_owned()));
    storage_error::translate(away, &NAMES, "a", "get");
}

/// Above 2 the server showed nothing more until 6.
#[test]
fn each_level_shows_a_line_of_the_server_that_the_level_below_lacks() {
    let of_levels = [
        (0, "a request was answered slowly"),
        (2, "storage is unavailable"),
        (4, "/things/a stored at revision 7"),
        (6, "answered 200 in 1.000 s"),
        (8, "received {\"spec\": 1}"),
    ];
    for level in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] {
        let (log, guard) = testing::log(&target::directives(level));
        serve();
        drop(guard);
        let text = log.lines().concat();
        for (from, line) in of_levels {
            assert_eq!(text.contains(line), from <= level, "-v {level}: {line}: {text}");
        }
    }
}
