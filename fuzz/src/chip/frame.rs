//! Frames of a script, and the addresses of the configured chip.

use tandem_packet::checksum;

use crate::input::Input;

pub(super) fn router_mac(rif: u16) -> [u8; 6] {
    [2, 0xaa, 0, 0, 0, rif as u8]
}

pub(super) fn station(n: u16) -> [u8; 6] {
    [2, 0, 0, 0, 0, n as u8]
}

pub(super) fn ip4(a: [u8; 4]) -> [u8; 16] {
    let mut out = [0; 16];
    for (to, from) in out.iter_mut().zip(a) {
        *to = from;
    }
    out
}

pub(super) fn ip6(net: u16, host: u8) -> [u8; 16] {
    [
        0x20, 1, 0xd, 0xb8, 0, net as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, host,
    ]
}

/// A frame whose addresses mean something to the configuration, and whose rest is the fuzzer's.
pub(super) fn composed(input: &mut Input<'_>, how: u8, port: u16) -> Vec<u8> {
    let (to, from) = (input.u8(), input.u8());
    let mut f = Vec::new();
    f.extend(match to % 8 {
        0 => [0xff; 6],
        1 => [1, 0x80, 0xc2, 0, 0, to >> 3],
        2 => [1, 0, 0x5e, 1, 1, 1],
        3 => [0x33, 0x33, 0, 0, 0, to >> 3],
        4 => station(u16::from(to >> 3)),
        5 => router_mac(3),
        6 => router_mac(4),
        // ports 5 and 6 have the interfaces 1 and 2
        _ => router_mac(port.saturating_sub(4)),
    });
    f.extend(station(u16::from(from % 8)));
    for _ in 0..how & 3 {
        let tag = input.u8();
        f.extend(if tag & 0x80 == 0 {
            [0x81, 0]
        } else {
            [0x88, 0xa8]
        });
        f.extend([tag & 0x60, if tag & 0x10 == 0 { 10 } else { tag & 0xf }]);
    }
    let n = usize::from(input.u8());
    match how >> 2 & 3 {
        0 => f.extend(input.take(n + 2)),
        1 => {
            f.extend([8, 6]);
            f.extend(input.take(n));
        }
        2 => {
            let (a, b, kind) = (input.u8(), input.u8(), input.u8());
            let payload = input.take(n);
            f.extend([8, 0]);
            let at = f.len();
            let options = if kind & 0x80 != 0 { 4 } else { 0 };
            let len = (20 + options + payload.len()) as u16;
            f.extend([if options > 0 { 0x46 } else { 0x45 }, 0]);
            f.extend(len.to_be_bytes());
            let fragment = if kind & 0x40 != 0 { 0x20 } else { 0 };
            f.extend([0, 1, fragment, 0, [64, 1, 0, 255][usize::from(kind & 3)]]);
            f.extend([[6, 17, 1, 2][usize::from(kind >> 2 & 3)], 0, 0]);
            f.extend([10, 0, a >> 4, a & 0xf]);
            match b {
                0xff => f.extend([239, 1, 1, 1]),
                0xfe => f.extend([224, 0, 0, 1]),
                _ => f.extend([10, 0, b >> 4, b & 0xf]),
            }
            f.extend([1, 1, 1, 0].iter().take(options));
            if let Some(header) = f.get_mut(at..) {
                checksum::ip4_set(header);
            }
            f.extend(payload);
        }
        _ => {
            let (a, b, kind) = (input.u8(), input.u8(), input.u8());
            let payload = input.take(n);
            f.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            f.extend((payload.len() as u16).to_be_bytes());
            let next = [6, 17, 58, 0, 43, 44, 60, 59][usize::from(kind >> 2 & 7)];
            f.extend([next, [64, 1, 0, 255][usize::from(kind & 3)]]);
            f.extend(ip6(u16::from(a >> 4), a & 0xf));
            match b {
                0xff => f.extend([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
                0xfe => f.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
                _ => f.extend(ip6(u16::from(b >> 4), b & 0xf)),
            }
            f.extend(payload);
        }
    }
    f
}
