//! Which IPv6 route an address goes by: `RTM_GETROUTE` with `RTM_F_FIB_MATCH`, many in one call.
//!
//! ```text
//!   lookup, lookup, lookup … ──► one send          NEWROUTE: the table's route, whole
//!                            ◄── an answer each    NLMSG_ERROR: none, or one that refuses (blackhole, prohibit, unreachable)
//! ```

use std::net::Ipv6Addr;

use super::consts::{
    NLMSG_ERROR, RTA_DST, RTA_OIF, RTA_SRC, RTM_F_FIB_MATCH, RTM_GETROUTE, RTM_NEWROUTE,
};
use super::socket::{Protocol, Requests, Result, extack, recv};
use super::types::{Family, Object, Route};
use super::wire::{Msg, Msgs, Writer, u32_at};
use super::{Error, route};

/// Lookups that one send holds: the kernel answers all of them before the first answer is read, with 4 KiB and more of the socket's
/// memory each (net/ipv6/route.c `inet6_rtm_getroute`).
const AT_ONCE: usize = 64;

/// An address to look up, from where, and by which device (0: by any; a VRF's device: in its table).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookup {
    /// To where.
    pub dst: Ipv6Addr,
    /// From where, for routes that have sources.
    pub src: Option<Ipv6Addr>,
    /// By which device.
    pub oif: u32,
}

/// The route, or what the kernel says instead.
pub type Found = std::result::Result<Route, Error>;

impl Lookup {
    fn write(&self, w: &mut Writer, seq: u32) {
        let mut fixed = [0; route::RTMSG];
        fixed[0] = Family::V6.raw();
        fixed[1] = 128;
        fixed[2] = self.src.map_or(0, |_| 128);
        fixed[8..12].copy_from_slice(&RTM_F_FIB_MATCH.to_ne_bytes());
        w.begin(RTM_GETROUTE, 0, seq, &fixed);
        w.attr_ip(RTA_DST, &self.dst.into());
        if let Some(src) = self.src {
            w.attr_ip(RTA_SRC, &src.into());
        }
        if self.oif != 0 {
            w.attr_u32(RTA_OIF, self.oif);
        }
    }
}

/// An answer; none: no answer to a lookup.
fn found(request: &'static str, msg: &Msg<'_>) -> Option<Found> {
    match msg.kind {
        NLMSG_ERROR => Some(Err(Error {
            request,
            errno: (u32_at(msg.payload, 0) as i32).unsigned_abs() as i32,
            extack: extack(msg),
        })),
        RTM_NEWROUTE => Some(match route::decode(msg.payload) {
            Some(Object::Route(r)) => Ok(r),
            _ => Err(Error::protocol(request, "no route")),
        }),
        _ => None,
    }
}

impl Requests {
    /// Lookups as many as one send holds, from the first one on: each answer goes to `each`, with its number. Gives how many those
    /// were.
    ///
    /// # Errors
    /// Only when the socket itself fails.
    pub fn lookups(&mut self, all: &[Lookup], mut each: impl FnMut(usize, Found)) -> Result<usize> {
        const REQUEST: &str = "look up routes";
        let some = all.get(..AT_ONCE.min(all.len())).unwrap_or_default();
        let mut w = Writer::new();
        let mut asked = Vec::with_capacity(some.len());
        for lookup in some {
            let seq = self.next_seq();
            lookup.write(&mut w, seq);
            asked.push(seq);
        }
        if asked.is_empty() {
            return Ok(0);
        }
        let mut buf = std::mem::take(&mut self.buf);
        let result = self.socket(Protocol::Route).and_then(|socket| {
            let sent = socket.send(w.bytes(), 0);
            sent.map_err(|e| Error::io(REQUEST, &e))?;
            let mut left = some.len();
            while left > 0 {
                let n = recv(socket, &mut buf, REQUEST)?;
                for msg in Msgs::new(buf.get(..n).unwrap_or(&[])) {
                    let of = asked.iter().position(|seq| *seq == msg.seq);
                    if let Some((i, found)) = of.zip(found(REQUEST, &msg)) {
                        left = left.saturating_sub(1);
                        each(i, found);
                    }
                }
            }
            Ok(some.len())
        });
        self.buf = buf;
        result
    }
}
