//! Locks, and the memory that connections share.

// SAFETY: each block says why it holds; there is no other way to be called by SQLite.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::sync::atomic::{Ordering, fence};

use rusqlite::ffi;

use super::of;
use crate::disk::{State, disk};

pub unsafe extern "C" fn lock(file: *mut ffi::sqlite3_file, to: c_int) -> c_int {
    // SAFETY: an open file.
    let open = unsafe { of(file) };
    let mut state = disk().state();
    let raised = state.nodes.get_mut(&open.path).is_some_and(|node| node.locks.raise(open.who, to));
    if raised { ffi::SQLITE_OK } else { ffi::SQLITE_BUSY }
}

pub unsafe extern "C" fn unlock(file: *mut ffi::sqlite3_file, to: c_int) -> c_int {
    // SAFETY: an open file.
    let open = unsafe { of(file) };
    if let Some(node) = disk().state().nodes.get_mut(&open.path) {
        node.locks.lower(open.who, to);
    }
    ffi::SQLITE_OK
}

pub unsafe extern "C" fn reserved(file: *mut ffi::sqlite3_file, out: *mut c_int) -> c_int {
    // SAFETY: an open file.
    let open = unsafe { of(file) };
    let reserved = disk().state().nodes.get(&open.path).is_some_and(|node| node.locks.reserved());
    // SAFETY: SQLite's own to write to.
    unsafe { *out = c_int::from(reserved) };
    ffi::SQLITE_OK
}

pub unsafe extern "C" fn map(
    file: *mut ffi::sqlite3_file,
    index: c_int,
    size: c_int,
    extend: c_int,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: an open file.
    let open = unsafe { of(file) };
    let (index, size) = (usize::try_from(index).unwrap_or(0), usize::try_from(size).unwrap_or(0));
    let mut state = disk().state();
    let State { nodes, pool, .. } = &mut *state;
    let Some(node) = nodes.get_mut(&open.path) else { return ffi::SQLITE_IOERR_SHMMAP };
    while extend != 0 && node.memory.len() <= index {
        node.memory.push(pool.take(size));
    }
    // The region is never freed, and its bytes are cells, so that SQLite may write through what is shared.
    let region = node.memory.get(index).and_then(|region| region.first());
    let pointer = region.map_or(std::ptr::null_mut(), |first| first.as_ptr());
    // SAFETY: SQLite's own to write to.
    unsafe { *out = pointer.cast() };
    ffi::SQLITE_OK
}

pub unsafe extern "C" fn lock_slots(
    file: *mut ffi::sqlite3_file,
    from: c_int,
    count: c_int,
    how: c_int,
) -> c_int {
    // SAFETY: an open file.
    let open = unsafe { of(file) };
    let (from, count) = (usize::try_from(from).unwrap_or(0), usize::try_from(count).unwrap_or(0));
    let mut state = disk().state();
    let Some(node) = state.nodes.get_mut(&open.path) else { return ffi::SQLITE_IOERR_SHMLOCK };
    if how & ffi::SQLITE_SHM_UNLOCK != 0 {
        node.locks.unlock_slots(open.who, from, count);
        return ffi::SQLITE_OK;
    }
    let exclusive = how & ffi::SQLITE_SHM_EXCLUSIVE != 0;
    let locked = node.locks.lock_slots(open.who, from, count, exclusive);
    if locked { ffi::SQLITE_OK } else { ffi::SQLITE_BUSY }
}

pub unsafe extern "C" fn barrier(_file: *mut ffi::sqlite3_file) {
    fence(Ordering::SeqCst);
}

/// The memory stays until the last connection closes: others may still look into it.
pub unsafe extern "C" fn unmap(_file: *mut ffi::sqlite3_file, _delete: c_int) -> c_int {
    ffi::SQLITE_OK
}
