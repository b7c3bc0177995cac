//! Positions in the order of changes, and the resume tokens that contain them.

use bytes::BufMut;

/// First byte of a token: the version of its format.
const VERSION: u8 = 1;
/// Bytes of a token.
pub const TOKEN_LEN: usize = 1 + 5 * 8;

/// The position of a change in a hub's order. All hubs order by revision first, so that a revision alone is a position
/// in the order of any hub.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The newest revision that the entity may contain.
    pub revision: u64,
    /// Counts the changes of one hub; 0 before the first.
    pub serial: u64,
}

impl Position {
    /// Before every change.
    pub const START: Self = Self { revision: 0, serial: 0 };

    /// After every change at this revision, in the order of any hub.
    pub fn after_revision(revision: u64) -> Self {
        Self { revision, serial: u64::MAX }
    }
}

/// The contents of a resume token. It is not signed: a client that changes one harms only its own stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The hub that made it.
    pub hub: u64,
    /// Every change up to here was sent; a position in that hub's order.
    pub position: Position,
    /// Every change up to this revision was sent, in any hub's order; 0 if there is no such revision.
    pub floor: u64,
    /// Digest of the method and the filter that it belongs to.
    pub filter: u64,
}

impl Token {
    /// Encodes the token.
    pub fn encode(&self, mut out: impl BufMut) {
        out.put_u8(VERSION);
        out.put_u64(self.hub);
        out.put_u64(self.position.revision);
        out.put_u64(self.position.serial);
        out.put_u64(self.floor);
        out.put_u64(self.filter);
    }

    /// Decodes a token; returns `None` if the bytes are not a token of this version.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (version, rest) = bytes.split_first()?;
        let (words, tail) = rest.as_chunks::<8>();
        let [hub, revision, serial, floor, filter] = *words else { return None };
        let read = u64::from_be_bytes;
        (*version == VERSION && tail.is_empty()).then(|| Self {
            hub: read(hub),
            position: Position { revision: read(revision), serial: read(serial) },
            floor: read(floor),
            filter: read(filter),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written_and_nothing_else_is_one() {
        let position = Position { revision: u64::MAX, serial: 2 };
        let token = Token { hub: 1, position, floor: 3, filter: 4 };
        let mut bytes = Vec::new();
        token.encode(&mut bytes);
        assert_eq!(bytes.len(), TOKEN_LEN);
        assert_eq!(Token::decode(&bytes), Some(token));
        for wrong in
            [&[][..], &bytes[1..], &bytes[..40], &[&bytes[..], &[0]].concat(), &[&[2], &bytes[1..]].concat()]
        {
            assert_eq!(Token::decode(wrong), None, "{wrong:?}");
        }
    }
}
