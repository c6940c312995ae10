//! Are there IPsec policies: `NETLINK_XFRM` (`linux/xfrm.h`). Forwarded packets are checked against them, and some leave
//! encrypted. Only whether there are any is asked: one question, one answer.

use super::socket::{Requests, Result};
use super::wire::{Attrs, Msg, Writer, u8_at, u32_at};

const XFRM_MSG_NEWSPDINFO: u16 = 0x24;
const XFRM_MSG_GETSPDINFO: u16 = 0x25;
const XFRM_MSG_GETDEFAULT: u16 = 0x28;
const XFRMA_SPD_INFO: u16 = 1;
/// `XFRM_USERPOLICY_BLOCK`: what no policy speaks of is dropped.
const BLOCK: u8 = 1;

impl Requests {
    /// Whether IPsec policies decide about packets here: there is one for some direction (those of single sockets don't
    /// count), or what no policy speaks of is dropped. A kernel without IPsec has none.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn ipsec_policies(&mut self) -> Result<bool> {
        let spd = |w: &mut Writer, seq| w.begin(XFRM_MSG_GETSPDINFO, 0, seq, &[0xff; 4]);
        let default = |w: &mut Writer, seq| w.begin(XFRM_MSG_GETDEFAULT, 0, seq, &[0; 3]);
        Ok(self
            .ask_xfrm("count IPsec policies", spd, counted)?
            .unwrap_or(false)
            || self
                .ask_xfrm("read IPsec default policies", default, blocked)?
                .unwrap_or(false))
    }
}

/// `struct xfrmu_spdinfo`: in, out, forward, then the same of sockets.
fn counted(msg: &Msg<'_>) -> Option<bool> {
    if msg.kind != XFRM_MSG_NEWSPDINFO {
        return None;
    }
    let attrs = Attrs::after(msg.payload, 4);
    let info = attrs.get(XFRMA_SPD_INFO)?;
    Some((0..3).any(|i| u32_at(info, i * 4) != 0))
}

/// `struct xfrm_userpolicy_default`: in, forward, out.
fn blocked(msg: &Msg<'_>) -> Option<bool> {
    (msg.kind == XFRM_MSG_GETDEFAULT).then(|| (0..3).any(|i| u8_at(msg.payload, i) == BLOCK))
}
