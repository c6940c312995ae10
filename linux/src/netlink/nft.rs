//! Which base chains nftables has: `NETLINK_NETFILTER`, subsystem nf_tables
//! (`linux/netfilter/nf_tables.h`). Numbers in attributes are big endian here.
//!
//! Rules are not looked at: a base chain in a forwarding hook makes interfaces trap, whatever it does.

use super::consts::NLM_F_DUMP;
use super::types::{BaseChain, Event, NewMode, Object};
use super::wire::{Attrs, Msg, Writer, text, u8_at};

/// Bytes of `struct nfgenmsg`.
const NFGEN: usize = 4;
const SUBSYS_NFTABLES: u16 = 10;
const NFT_MSG_DELTABLE: u16 = 2;
const NFT_MSG_NEWCHAIN: u16 = 3;
const NFT_MSG_GETCHAIN: u16 = 4;
const NFT_MSG_DELCHAIN: u16 = 5;
const NFTA_TABLE_NAME: u16 = 1;
const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_HOOK_HOOKNUM: u16 = 1;
const NFTA_HOOK_DEV: u16 = 3;
const NFTA_HOOK_DEVS: u16 = 4;
/// The beginning of a name, for all devices that have it (Linux 6.16).
const NFTA_DEVICE_PREFIX: u16 = 2;

/// Decodes one message of an nfnetlink socket; rules, sets and the rest are nothing to us.
pub(super) fn decode(msg: &Msg<'_>) -> Option<Event> {
    if msg.kind >> 8 != SUBSYS_NFTABLES {
        return None;
    }
    let family = u8_at(msg.payload, 0);
    let attrs = Attrs::after(msg.payload, NFGEN);
    match msg.kind & 0xff {
        NFT_MSG_NEWCHAIN => {
            let chain = chain(family, &attrs)?;
            // a chain without a hook is only jumped to
            chain
                .hook
                .is_some()
                .then_some(Event::New(Object::BaseChain(chain), NewMode::Plain))
        }
        NFT_MSG_DELCHAIN => Some(Event::Del(Object::BaseChain(chain(family, &attrs)?))),
        NFT_MSG_DELTABLE => Some(Event::Del(Object::NftTable {
            family,
            name: attrs.get(NFTA_TABLE_NAME).map(text),
        })),
        _ => None,
    }
}

fn chain(family: u8, attrs: &Attrs<'_>) -> Option<BaseChain> {
    let hook = attrs.get(NFTA_CHAIN_HOOK).map(Attrs::new);
    let mut devices = Vec::new();
    if let Some(hook) = &hook {
        devices.extend(hook.get(NFTA_HOOK_DEV).map(text));
        if let Some(list) = hook.get(NFTA_HOOK_DEVS) {
            devices.extend(Attrs::new(list).map(|(kind, v)| match kind {
                NFTA_DEVICE_PREFIX => text(v) + "*",
                _ => text(v),
            }));
            devices.sort();
            devices.dedup();
        }
    }
    Some(BaseChain {
        family,
        table: text(attrs.get(NFTA_CHAIN_TABLE)?),
        name: text(attrs.get(NFTA_CHAIN_NAME)?),
        hook: hook
            .as_ref()
            .and_then(|h| h.get(NFTA_HOOK_HOOKNUM))
            .and_then(|v| v.first_chunk())
            .map(|b| u32::from_be_bytes(*b)),
        devices,
    })
}

/// The request that dumps all chains of all families.
pub(super) fn dump(w: &mut Writer, seq: u32) {
    w.begin(
        SUBSYS_NFTABLES << 8 | NFT_MSG_GETCHAIN,
        NLM_F_DUMP,
        seq,
        &[0; NFGEN],
    );
}
