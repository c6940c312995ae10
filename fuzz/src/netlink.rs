//! What the kernel says, if it were not the kernel.

use tandem_linux::netlink::{self as nl, Event, Protocol};

/// Any datagram: decoded or skipped, in a time that its length bounds. A decoder must not depend on what else is in
/// the datagram.
pub(crate) fn decode(data: &[u8]) {
    for protocol in [Protocol::Route, Protocol::Netfilter] {
        let mut whole: Vec<Event> = Vec::new();
        nl::decode(protocol, data, |event| whole.push(event));
        // a header is 16 bytes; a message of none would be one that the walk never leaves behind
        let messages = nl::wire::Msgs::new(data).count();
        assert!(messages <= data.len() / nl::wire::HEADER_LEN);
        assert!(whole.len() <= messages);
        // message by message: the same events
        let (mut single, mut rest) = (Vec::new(), data);
        while rest.len() >= nl::wire::HEADER_LEN {
            let len = nl::wire::u32_at(rest, 0) as usize;
            let Some(message) = rest.get(..len).filter(|m| m.len() >= nl::wire::HEADER_LEN) else {
                break;
            };
            nl::decode(protocol, message, |event| single.push(event));
            rest = rest.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        }
        assert_eq!(whole, single);
    }
}
