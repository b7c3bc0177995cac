//! Writes tags, varints and lengths.

/// Writes a length-delimited field.
pub(super) fn bytes(out: &mut Vec<u8>, number: u32, value: &[u8]) {
    varint(out, u64::from(number) << 3 | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Writes an integer field.
pub(super) fn integer(out: &mut Vec<u8>, number: u32, value: i64) {
    varint(out, u64::from(number) << 3);
    // Negative numbers take ten bytes, also 32-bit ones.
    varint(out, value.cast_unsigned());
}

/// Writes seven bits in each byte, the lowest first.
pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
