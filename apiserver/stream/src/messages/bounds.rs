//! Limits of the size of messages. gRPC clients accept 4 MiB by default; an object, or all objects that concern one
//! node, may be larger.

use prost::Message;

/// Maximum bytes of a text for people, as of the message of a condition in Kubernetes.
const TEXT: usize = 32 << 10;
/// Maximum bytes of a name in Kubernetes.
const NAME: usize = 253;
/// Maximum bytes of the list of pods left by plan entry.
pub(super) const LEFT: usize = 256 << 10;
/// Maximum bytes of the progress of all maintenances on a node.
pub(super) const PROGRESS: usize = 3 << 20;

/// Returns a text for people, cut if it is too long.
pub(super) fn text(text: &str) -> String {
    text[..text.floor_char_boundary(TEXT)].to_owned()
}

/// Returns a name, cut if it is too long for one.
pub(super) fn name(name: &str) -> String {
    name[..name.floor_char_boundary(NAME)].to_owned()
}

/// Whether a name is not too long for one.
pub fn is_name(name: &str) -> bool {
    name.len() <= NAME
}

/// Returns as many of the first messages as have at most `most` bytes together.
pub(super) fn first<M: Message>(messages: impl IntoIterator<Item = M>, most: usize) -> Vec<M> {
    let mut bytes = 0;
    let has_room = |message: &M| {
        // Its tag and its length.
        bytes += message.encoded_len() + 6;
        bytes <= most
    };
    messages.into_iter().take_while(has_room).collect()
}
