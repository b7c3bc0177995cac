//! How large a message may become. Clients of gRPC take 4 MiB unless they are told otherwise, and an object may say the same
//! at greater length, or many objects of the same node.

use prost::Message;

/// Most bytes of a text for people: as many as Kubernetes lets the message of a condition have.
const TEXT: usize = 32 << 10;
/// Most bytes of a name, beyond which no object of Kubernetes has one.
const NAME: usize = 253;
/// Most bytes of what is left, by entry of the plan.
pub(super) const LEFT: usize = 256 << 10;
/// Most bytes of what all maintenances say of a node.
pub(super) const PROGRESS: usize = 3 << 20;

/// A text for people, cut where it is too long.
pub(super) fn text(text: &str) -> String {
    text[..text.floor_char_boundary(TEXT)].to_owned()
}

/// A name, cut where it can be none.
pub(super) fn name(name: &str) -> String {
    name[..name.floor_char_boundary(NAME)].to_owned()
}

/// Whether something of this name can be.
pub fn is_name(name: &str) -> bool {
    name.len() <= NAME
}

/// The first of these messages, as many as have at most so many bytes together.
pub(super) fn first<M: Message>(messages: impl IntoIterator<Item = M>, most: usize) -> Vec<M> {
    let mut bytes = 0;
    let has_room = |message: &M| {
        // Its tag and its length.
        bytes += message.encoded_len() + 6;
        bytes <= most
    };
    messages.into_iter().take_while(has_room).collect()
}
