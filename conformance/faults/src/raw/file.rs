//! What a file holds.

// SAFETY: each block says why it holds; there is no other way to be called by SQLite.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};

use rusqlite::ffi;

use super::{RawFile, of};
use crate::disk::disk;

pub unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: the box that `open` made; SQLite closes a file once, and does not use it after.
    let open = unsafe { Box::from_raw((*file.cast::<RawFile>()).open) };
    disk().close(&open.path, open.who);
    if open.remove {
        let _ = disk().delete(&open.path, true);
    }
    ffi::SQLITE_OK
}

pub unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    into: *mut c_void,
    count: c_int,
    at: i64,
) -> c_int {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: SQLite's buffer has `count` bytes, which it has initialised or does not read before we have written them.
    let (open, into) = unsafe { (of(file), std::slice::from_raw_parts_mut(into.cast::<u8>(), count)) };
    into.fill(0);
    match disk().read(&open.path, at.unsigned_abs(), into) {
        Ok(read) if read == count => ffi::SQLITE_OK,
        Ok(_) => ffi::SQLITE_IOERR_SHORT_READ,
        Err(code) => code,
    }
}

pub unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    count: c_int,
    at: i64,
) -> c_int {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: SQLite's buffer has `count` bytes.
    let (open, from) = unsafe { (of(file), std::slice::from_raw_parts(from.cast::<u8>(), count)) };
    code(disk().write(&open.path, at.unsigned_abs(), from))
}

pub unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, to: i64) -> c_int {
    // SAFETY: an open file.
    let open = unsafe { of(file) };
    code(disk().truncate(&open.path, to.unsigned_abs()))
}

pub unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, _flags: c_int) -> c_int {
    // SAFETY: an open file.
    let open = unsafe { of(file) };
    code(disk().sync(&open.path))
}

pub unsafe extern "C" fn size(file: *mut ffi::sqlite3_file, out: *mut i64) -> c_int {
    // SAFETY: an open file.
    let open = unsafe { of(file) };
    let state = disk().state();
    let shown = state.nodes.get(&open.path).and_then(|node| node.shown.metadata().ok());
    let Some(size) = shown.and_then(|data| i64::try_from(data.len()).ok()) else {
        return ffi::SQLITE_IOERR_FSTAT;
    };
    // SAFETY: SQLite's own to write to.
    unsafe { *out = size };
    ffi::SQLITE_OK
}

pub unsafe extern "C" fn control(_file: *mut ffi::sqlite3_file, _what: c_int, _with: *mut c_void) -> c_int {
    ffi::SQLITE_NOTFOUND
}

pub unsafe extern "C" fn sector(_file: *mut ffi::sqlite3_file) -> c_int {
    4096
}

/// Reports what the system's own VFS reports, and no more: SQLite asks a disk that promises atomic or ordered
/// writes for less.
pub unsafe extern "C" fn characteristics(_file: *mut ffi::sqlite3_file) -> c_int {
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

fn code(result: Result<(), i32>) -> c_int {
    result.err().unwrap_or(ffi::SQLITE_OK)
}
