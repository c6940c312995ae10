//! Signs of queriers and multicast routers in packets that pass through the CPU: what the kernel learns from them it does
//! not tell, or tells in part.

use tandem_abi::raw;

use crate::source::Heard;

const IGMP: u8 = 2;
const PIM: u8 = 103;
const ICMPV6: u8 = 58;
const IGMP_QUERY: u8 = 0x11;
const IGMP_ROUTER: u8 = 0x30;
const MLD_QUERY: u8 = 130;
/// Of an IGMP query without a response time (version 1), ms.
const VERSION_1: u32 = 10_000;

/// Looks at a frame that the kernel has just been given.
pub fn listen(reason: u16, frame: &[u8], heard: &Heard) {
    if !matches!(reason, raw::TND_TRAP_IGMP_MLD | raw::TND_TRAP_ROUTING) {
        return;
    }
    match sign(frame) {
        Some(Sign::Query(family, delay)) => heard.query(family, delay),
        Some(Sign::Router) => heard.router(),
        None => {}
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Sign {
    /// Family (0: IGMP, 1: MLD), longest response time in ms.
    Query(usize, u32),
    Router,
}

fn u16_at(b: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*b.get(at..)?.first_chunk()?))
}

/// An Ethernet frame with at most one tag.
fn sign(frame: &[u8]) -> Option<Sign> {
    let at = match u16_at(frame, 12)? {
        0x8100 | 0x88a8 => 16,
        _ => 12,
    };
    let packet = frame.get(at + 2..)?;
    match u16_at(frame, at)? {
        0x0800 => {
            let header = usize::from(packet.first()? & 0xf) * 4;
            let end = usize::from(u16_at(packet, 2)?);
            let l4 = packet.get(header..end)?;
            match (packet.get(9)?, l4.first()?) {
                (&IGMP, &IGMP_QUERY) => Some(Sign::Query(0, igmp_delay(l4)?)),
                (&IGMP, &IGMP_ROUTER) => Some(Sign::Router),
                // to all of PIM's routers
                (&PIM, _) if packet.get(16..20)? == [224, 0, 0, 13] => Some(Sign::Router),
                _ => None,
            }
        }
        0x86dd => {
            // MLD comes behind a hop-by-hop header, or it is none
            let end = 40 + usize::from(u16_at(packet, 4)?);
            if *packet.get(6)? != 0 || *packet.get(40)? != ICMPV6 {
                return None;
            }
            let l4 = packet.get(48 + usize::from(*packet.get(41)?) * 8..end)?;
            (*l4.first()? == MLD_QUERY).then_some(Sign::Query(1, mld_delay(l4)?))
        }
        _ => None,
    }
}

/// RFC 2236 2.2, RFC 3376 4.1.1.
fn igmp_delay(l4: &[u8]) -> Option<u32> {
    let code = u32::from(*l4.get(1)?);
    Some(match (l4.len(), code) {
        (8, 0) => VERSION_1,
        (8, code) => code * 100,
        (_, code) if code < 128 => code * 100,
        (_, code) => ((code & 0xf | 0x10) << ((code >> 4 & 7) + 3)) * 100,
    })
}

/// RFC 2710 3.4, RFC 3810 5.1.3.
fn mld_delay(l4: &[u8]) -> Option<u32> {
    let code = u32::from(u16_at(l4, 4)?);
    Some(match code {
        _ if l4.len() == 24 => code,
        code if code < 0x8000 => code,
        code => (code & 0xfff | 0x1000) << ((code >> 12 & 7) + 3),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip4(protocol: u8, dst: [u8; 4], l4: &[u8], tag: bool) -> Vec<u8> {
        let mut f = vec![0; 12];
        if tag {
            f.extend([0x81, 0, 0, 5]);
        }
        f.extend([
            8,
            0,
            0x46,
            0,
            0,
            24 + l4.len() as u8,
            0,
            0,
            0,
            0,
            1,
            protocol,
        ]);
        f.extend([0, 0, 10, 0, 0, 1]);
        f.extend(dst);
        f.extend([0x94, 4, 0, 0]);
        f.extend(l4);
        // padding of a short frame is none of it
        f.extend([0xff; 9]);
        f
    }

    fn mld(kind: u8, l4: usize, code: u16) -> Vec<u8> {
        let mut f = vec![0; 12];
        f.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 8 + l4 as u8, 0, 1]);
        f.extend([0; 32]);
        f.extend([ICMPV6, 0, 5, 2, 0, 0, 1, 0]);
        let mut body = vec![0; l4];
        body[0] = kind;
        body[4..6].copy_from_slice(&code.to_be_bytes());
        f.extend(body);
        f
    }

    #[test]
    fn queries_say_how_long_members_may_take() {
        let all = [224, 0, 0, 1];
        let q = |l4: &[u8], tag| sign(&ip4(IGMP, all, l4, tag));
        assert_eq!(
            q(&[IGMP_QUERY, 0, 0, 0, 0, 0, 0, 0], false),
            Some(Sign::Query(0, 10_000))
        );
        assert_eq!(
            q(&[IGMP_QUERY, 100, 0, 0, 0, 0, 0, 0], true),
            Some(Sign::Query(0, 10_000))
        );
        let v3 = |code| [IGMP_QUERY, code, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(q(&v3(0), false), Some(Sign::Query(0, 0)));
        assert_eq!(q(&v3(0xff), false), Some(Sign::Query(0, 31 * 1024 * 100)));
        assert_eq!(sign(&mld(MLD_QUERY, 24, 400)), Some(Sign::Query(1, 400)));
        assert_eq!(
            sign(&mld(MLD_QUERY, 24, 0xffff)),
            Some(Sign::Query(1, 0xffff))
        );
        assert_eq!(
            sign(&mld(MLD_QUERY, 28, 0xffff)),
            Some(Sign::Query(1, 0x1fff << 10))
        );
        assert_eq!(sign(&mld(131, 24, 400)), None);
        assert_eq!(q(&[0x16, 0, 0, 0, 0, 0, 0, 0], false), None);
        assert_eq!(
            sign(&ip4(PIM, [224, 0, 0, 13], &[0x20; 8], false)),
            Some(Sign::Router)
        );
        assert_eq!(sign(&ip4(PIM, [224, 0, 0, 5], &[0x20; 8], false)), None);
    }

    #[test]
    fn what_is_cut_off_is_no_sign() {
        for f in [
            ip4(IGMP, [224, 0, 0, 1], &[IGMP_QUERY; 8], true),
            mld(MLD_QUERY, 28, 1),
        ] {
            for n in 0..f.len() {
                let _ = sign(&f[..n]);
            }
        }
        let heard = Heard::default();
        listen(raw::TND_TRAP_ARP, &mld(MLD_QUERY, 24, 7), &heard);
        assert_eq!(heard.take(), None);
        listen(raw::TND_TRAP_IGMP_MLD, &mld(MLD_QUERY, 24, 7), &heard);
        listen(raw::TND_TRAP_IGMP_MLD, &mld(MLD_QUERY, 24, 5), &heard);
        assert_eq!(heard.take(), Some([None, Some(7)]));
        assert_eq!(heard.take(), None);
    }
}
