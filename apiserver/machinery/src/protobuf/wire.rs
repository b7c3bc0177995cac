//! The wire format: reads fields from untrusted bytes, and writes tags, varints and lengths.

/// A field's value in its wire format.
pub(super) enum WireValue<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// Four or eight bytes, a format that no Kubernetes type uses.
    Fixed,
}

/// Iterates over the fields of a message.
pub(super) struct WireReader<'a> {
    rest: &'a [u8],
}

impl<'a> WireReader<'a> {
    pub fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// Returns the next field's number and value; `None` at the end.
    pub fn next(&mut self) -> Result<Option<(u32, WireValue<'a>)>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).ok().filter(|n| *n > 0 && *n < 1 << 29);
        let number = number.ok_or_else(|| format!("proto: illegal tag {}", key >> 3))?;
        let wire = match key & 7 {
            0 => WireValue::Varint(self.varint()?),
            1 => self.take(8).map(|_| WireValue::Fixed)?,
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| eof())?;
                WireValue::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| WireValue::Fixed)?,
            other => return Err(format!("proto: illegal wireType {other}")),
        };
        Ok(Some((number, wire)))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or_else(eof)?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = *self.take(1)?.first().ok_or_else(eof)?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("proto: integer overflow".to_owned())
    }
}

fn eof() -> String {
    "unexpected EOF".to_owned()
}

/// Writes a length-delimited field.
pub(crate) fn write_bytes(out: &mut Vec<u8>, number: u32, value: &[u8]) {
    write_varint(out, u64::from(number) << 3 | 2);
    write_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Writes an integer field.
pub(crate) fn write_integer(out: &mut Vec<u8>, number: u32, value: i64) {
    write_varint(out, u64::from(number) << 3);
    // Negative numbers take ten bytes, also 32-bit ones.
    write_varint(out, value.cast_unsigned());
}

/// Writes a field of eight bytes.
pub(crate) fn write_double(out: &mut Vec<u8>, number: u32, value: f64) {
    write_varint(out, u64::from(number) << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Writes seven bits in each byte, the lowest first.
fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
