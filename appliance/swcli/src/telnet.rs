// SPDX-License-Identifier: Apache-2.0
//! As much of telnet (RFC 854, 857, 858, 1073) as a console wants: the switch echoes, each key comes by itself, and the
//! window's size is asked for. Everything else is refused, once for each time that it is asked.

const IAC: u8 = 255;
const DONT: u8 = 254;
const DO: u8 = 253;
const WONT: u8 = 252;
const WILL: u8 = 251;
const SB: u8 = 250;
const SE: u8 = 240;
/// Interrupt process, break: what `^C` is.
const IP: u8 = 244;
const BRK: u8 = 243;
const ECHO: u8 = 1;
const SGA: u8 = 3;
const NAWS: u8 = 31;

/// Said first: WILL ECHO, WILL SUPPRESS-GO-AHEAD, DO SUPPRESS-GO-AHEAD, DO NAWS.
pub const OFFER: &[u8] = &[IAC, WILL, ECHO, IAC, WILL, SGA, IAC, DO, SGA, IAC, DO, NAWS];

/// Where in what a client sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    #[default]
    Text,
    Iac,
    /// Behind DO, DONT, WILL or WONT.
    Option(u8),
    /// Behind SB, and behind an IAC in there.
    Sub,
    SubIac,
}

/// What a client sends, taken apart.
#[derive(Clone, Debug, Default)]
pub struct Telnet {
    at: At,
    /// A subnegotiation, so much of it as one of NAWS has.
    sub: Vec<u8>,
    size: Option<(u16, u16)>,
}

impl Telnet {
    /// Width and height of the client's window, once it has said so.
    #[must_use]
    pub fn size(&self) -> Option<(u16, u16)> {
        self.size
    }

    /// Takes octets: what is typed is added to `typed`; what is to be answered.
    pub fn feed(&mut self, bytes: &[u8], typed: &mut Vec<u8>) -> Vec<u8> {
        let mut reply = Vec::new();
        for byte in bytes {
            self.at = match (self.at, *byte) {
                (At::Text, IAC) => At::Iac,
                (At::Text, byte) => {
                    typed.push(byte);
                    At::Text
                }
                (At::Iac, verb @ (WILL | WONT | DO | DONT)) => At::Option(verb),
                (At::Iac, SB) => {
                    self.sub.clear();
                    At::Sub
                }
                (At::Iac, IP | BRK) => {
                    typed.push(0x03);
                    At::Text
                }
                // an octet 255 that was typed is none of the console's; other commands want nothing
                (At::Iac, _) => At::Text,
                (At::Option(verb), option) => {
                    // what we have offered ourselves is agreed upon by that
                    let refused = match (verb, option) {
                        (DO, ECHO | SGA) | (WILL, SGA | NAWS) => None,
                        (DO, _) => Some(WONT),
                        (WILL, _) => Some(DONT),
                        _ => None,
                    };
                    reply.extend(refused.iter().flat_map(|no| [IAC, *no, option]));
                    At::Text
                }
                (At::Sub, IAC) => At::SubIac,
                (At::Sub, byte) => {
                    self.add(byte);
                    At::Sub
                }
                (At::SubIac, SE) => {
                    self.end();
                    At::Text
                }
                (At::SubIac, byte) => {
                    self.add(byte);
                    At::Sub
                }
            };
        }
        reply
    }

    fn add(&mut self, byte: u8) {
        if self.sub.len() <= 5 {
            self.sub.push(byte);
        }
    }

    fn end(&mut self) {
        if let [NAWS, a, b, c, d] = *self.sub.as_slice() {
            self.size = Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])));
        }
    }
}

/// What is shown, as it goes over the wire.
#[must_use]
pub fn escaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        out.push(*byte);
        if *byte == IAC {
            out.push(IAC);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(bytes: &[u8]) -> (Vec<u8>, Vec<u8>, Option<(u16, u16)>) {
        let (mut whole, mut typed) = (Telnet::default(), Vec::new());
        let reply = whole.feed(bytes, &mut typed);
        // octet by octet it is the same
        let (mut parts, mut again, mut said) = (Telnet::default(), Vec::new(), Vec::new());
        for byte in bytes {
            said.extend(parts.feed(&[*byte], &mut again));
        }
        assert_eq!(
            (&reply, &typed, whole.size()),
            (&said, &again, parts.size())
        );
        (typed, reply, whole.size())
    }

    #[test]
    fn what_is_typed_and_what_is_telnets() {
        assert_eq!(
            fed(b"show vlan\r\0"),
            (b"show vlan\r\0".to_vec(), vec![], None)
        );
        let naws = [b'a', IAC, SB, NAWS, 0, 132, 0, 50, IAC, SE, b'b'];
        assert_eq!(fed(&naws), (b"ab".to_vec(), vec![], Some((132, 50))));
        // 255 columns have an octet that is doubled
        let wide = [IAC, SB, NAWS, 0, IAC, IAC, 0, 50, IAC, SE];
        assert_eq!(fed(&wide).2, Some((255, 50)));
        assert_eq!(
            fed(&[b'a', IAC, IP, IAC, BRK, IAC, IAC, IAC, 241]).0,
            [b'a', 3, 3]
        );
    }

    /// Line mode, terminal type, and whatever else: refused. What was offered is not answered, or two would answer for ever.
    #[test]
    fn what_is_not_there_is_refused_once() {
        let answer = |bytes: &[u8]| fed(bytes).1;
        let nothing: [u8; 0] = [];
        assert_eq!(
            answer(&[IAC, DO, 34, IAC, WILL, 24]),
            [IAC, WONT, 34, IAC, DONT, 24]
        );
        assert_eq!(
            answer(&[IAC, DO, ECHO, IAC, DO, SGA, IAC, WILL, NAWS, IAC, WILL, SGA]),
            nothing
        );
        assert_eq!(answer(&[IAC, DONT, ECHO, IAC, WONT, NAWS]), nothing);
        assert_eq!(answer(&[IAC, WILL, ECHO]), [IAC, DONT, ECHO]);
    }

    proptest::proptest! {
        /// Whatever a client sends: no more is typed than came, no more is answered, and in pieces it is the same.
        #[test]
        fn any_octets(bytes in proptest::collection::vec(
            proptest::prop_oneof![240u8..=255, proptest::prelude::any::<u8>()], 0..200)) {
            let (typed, reply, _) = fed(&bytes);
            assert!(typed.len() <= bytes.len() && reply.len() <= bytes.len());
            assert!(typed.iter().all(|b| bytes.contains(b) || *b == 3));
        }
    }

    #[test]
    fn a_subnegotiation_without_an_end_takes_no_memory() {
        let mut telnet = Telnet::default();
        let mut typed = Vec::new();
        telnet.feed(&[IAC, SB], &mut typed);
        telnet.feed(&vec![7; 1 << 20], &mut typed);
        assert!(typed.is_empty() && telnet.sub.len() < 16);
        assert_eq!(escaped(&[1, 255, 2]), [1, 255, 255, 2]);
    }
}
