//! What a subscriber costs while its reader does not read.

use super::*;

/// Bytes of a subscriber: all that it holds, but for its timer, its place in the view, and names that are shared.
const MOST: usize = 1024;

#[test]
fn a_subscriber_holds_no_changes_however_slow_its_reader_is() {
    // No part of it grows: it has positions, handles that are shared, and one timer.
    let size = size_of::<Subscriber>() + size_of::<Sleep>();
    assert!(size <= MOST, "{size} bytes");
}
