//! The disk as SQLite calls it (sqlite.org/c3ref/vfs.html, sqlite.org/c3ref/io_methods.html).
//!
//! What each block rests on: SQLite hands every method the `sqlite3_file` that `open` filled in, between `open` and
//! `close`, from one thread at a time; buffers are as long as it says; names are NUL-terminated and outlive the call.

// SAFETY: each block says why it holds; there is no other way to be called by SQLite.
#![allow(unsafe_code)]

mod file;
mod shared;

use std::ffi::{CStr, c_char, c_int};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::ffi;

use crate::disk::disk;

/// A file as SQLite holds it: it knows the beginning, we the rest.
#[repr(C)]
struct RawFile {
    base: ffi::sqlite3_file,
    open: *mut OpenDisk,
}

/// An open file.
struct OpenDisk {
    path: PathBuf,
    who: u64,
    remove: bool,
}

/// Puts the disk under every connection that this process opens from now on.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: NULL asks for the default, which every build of SQLite has and never frees.
        let system = unsafe { *ffi::sqlite3_vfs_find(std::ptr::null()) };
        let vfs = ffi::sqlite3_vfs {
            szOsFile: size_of::<RawFile>() as c_int,
            pNext: std::ptr::null_mut(),
            zName: c"drydock-disk".as_ptr(),
            xOpen: Some(open),
            xDelete: Some(delete),
            // The other methods (clock, randomness, names) use none of the fields above.
            ..system
        };
        // SAFETY: it lives forever, and was made of one that is whole.
        let registered = unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(vfs)), 1) };
        assert_eq!(registered, ffi::SQLITE_OK, "SQLite takes a VFS");
    });
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(file::close),
    xRead: Some(file::read),
    xWrite: Some(file::write),
    xTruncate: Some(file::truncate),
    xSync: Some(file::sync),
    xFileSize: Some(file::size),
    xLock: Some(shared::lock),
    xUnlock: Some(shared::unlock),
    xCheckReservedLock: Some(shared::reserved),
    xFileControl: Some(file::control),
    xSectorSize: Some(file::sector),
    xDeviceCharacteristics: Some(file::characteristics),
    xShmMap: Some(shared::map),
    xShmLock: Some(shared::lock_slots),
    xShmBarrier: Some(shared::barrier),
    xShmUnmap: Some(shared::unmap),
    xFetch: None,
    xUnfetch: None,
};

unsafe extern "C" fn open(
    _vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let who = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = match name.is_null() {
        true => std::env::temp_dir().join(format!("drydock-disk-{}-{who}", std::process::id())),
        // SAFETY: a name that is there is NUL-terminated.
        false => unsafe { text(name) },
    };
    let create = flags & ffi::SQLITE_OPEN_CREATE != 0 || name.is_null();
    let opened = disk().open(&path, create);
    let remove = flags & ffi::SQLITE_OPEN_DELETEONCLOSE != 0 || name.is_null();
    let raw = match &opened {
        Ok(()) => RawFile {
            base: ffi::sqlite3_file { pMethods: &METHODS },
            open: Box::into_raw(Box::new(OpenDisk { path, who, remove })),
        },
        // Without methods SQLite does not close it.
        Err(_) => {
            RawFile { base: ffi::sqlite3_file { pMethods: std::ptr::null() }, open: std::ptr::null_mut() }
        }
    };
    // SAFETY: SQLite allocated szOsFile bytes at `file`, aligned for any struct of pointers.
    unsafe { file.cast::<RawFile>().write(raw) };
    if !out.is_null() {
        // SAFETY: it is there, and SQLite's own to write to.
        unsafe { *out = flags };
    }
    if opened.is_ok() { ffi::SQLITE_OK } else { ffi::SQLITE_CANTOPEN }
}

unsafe extern "C" fn delete(_vfs: *mut ffi::sqlite3_vfs, name: *const c_char, durably: c_int) -> c_int {
    // SAFETY: a name is NUL-terminated.
    let path = unsafe { text(name) };
    match disk().delete(&path, durably != 0) {
        Ok(()) => ffi::SQLITE_OK,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => ffi::SQLITE_IOERR_DELETE_NOENT,
        Err(_) => ffi::SQLITE_IOERR_DELETE,
    }
}

/// # Safety
/// `name` is NUL-terminated.
unsafe fn text(name: *const c_char) -> PathBuf {
    // SAFETY: as the caller says.
    let name = unsafe { CStr::from_ptr(name) };
    Path::new(&*name.to_string_lossy()).to_owned()
}

/// # Safety
/// `file` was filled in by `open`, is not closed, and no other thread uses it during the call.
unsafe fn of<'f>(file: *mut ffi::sqlite3_file) -> &'f OpenDisk {
    // SAFETY: it is a `RawFile` whose `open` came from a box that `close` has not taken back.
    unsafe { &*(*file.cast::<RawFile>()).open }
}
