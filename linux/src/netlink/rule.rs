//! Policy rules: RTM_*RULE (`linux/fib_rules.h`).

use std::fmt::Write as _;

use super::consts::{FR_ACT_TO_TBL, NLM_F_DUMP, RTM_GETRULE};
use super::types::{Family, Object, Rule};
use super::wire::{Attrs, Writer, ip, text, u8_at, u16_at, u32_at};

/// Bytes of `struct fib_rule_hdr`.
const RULE: usize = 12;
const FRA_PRIORITY: u16 = 6;
const FRA_SUPPRESS_IFGROUP: u16 = 13;
const FRA_SUPPRESS_PREFIXLEN: u16 = 14;
const FRA_TABLE: u16 = 15;
const FRA_PROTOCOL: u16 = 21;
const FIB_RULE_INVERT: u32 = 2;
/// Flags that say how a rule fares, not what it matches: permanent, unresolved, detached.
const FIB_RULE_STATUS: u32 = 1 | 4 | 8 | 0x10;

pub(super) fn decode(payload: &[u8]) -> Option<Object> {
    if payload.len() < RULE {
        return None;
    }
    let family = Family::from_raw(u8_at(payload, 0))?; // mroute rules have families of their own
    let (dst_len, src_len, tos) = (u8_at(payload, 1), u8_at(payload, 2), u8_at(payload, 3));
    let action = u8_at(payload, 7);
    let flags = u32_at(payload, 8);
    let (mut priority, mut table) = (0, u32::from(u8_at(payload, 4)));
    let mut selectors = String::new();
    let mut iif = String::new();
    if flags & FIB_RULE_INVERT != 0 {
        selectors.push_str(" not");
    }
    if tos != 0 {
        let _ = write!(selectors, " tos {tos:#x}");
    }
    for (kind, v) in Attrs::after(payload, RULE) {
        let _ = match kind {
            FRA_PRIORITY => {
                priority = u32_at(v, 0);
                Ok(())
            }
            FRA_TABLE => {
                table = u32_at(v, 0);
                Ok(())
            }
            FRA_PROTOCOL => Ok(()), // who installed it
            FRA_SUPPRESS_IFGROUP | FRA_SUPPRESS_PREFIXLEN if u32_at(v, 0) == u32::MAX => Ok(()),
            1 => write!(selectors, " to {}/{dst_len}", addr(v)),
            2 => write!(selectors, " from {}/{src_len}", addr(v)),
            3 => {
                iif = text(v);
                write!(selectors, " iif {iif}")
            }
            4 => write!(selectors, " goto {}", u32_at(v, 0)),
            10 => write!(selectors, " fwmark {:#x}", u32_at(v, 0)),
            11 => write!(selectors, " realms {:#x}", u32_at(v, 0)),
            FRA_SUPPRESS_IFGROUP => write!(selectors, " suppress_ifgroup {}", u32_at(v, 0)),
            FRA_SUPPRESS_PREFIXLEN => write!(selectors, " suppress_prefixlength {}", u32_at(v, 0)),
            16 => write!(selectors, " fwmask {:#x}", u32_at(v, 0)),
            17 => write!(selectors, " oif {}", text(v)),
            19 => write!(selectors, " l3mdev {}", u8_at(v, 0)),
            20 => write!(selectors, " uidrange {}-{}", u32_at(v, 0), u32_at(v, 4)),
            22 => write!(selectors, " ipproto {}", u8_at(v, 0)),
            23 => write!(selectors, " sport {}-{}", u16_at(v, 0), u16_at(v, 2)),
            24 => write!(selectors, " dport {}-{}", u16_at(v, 0), u16_at(v, 2)),
            18 => Ok(()), // padding
            other => write!(selectors, " attribute{other} {v:02x?}"),
        };
    }
    let _ = write!(
        selectors,
        "{}",
        if flags & !(FIB_RULE_INVERT | FIB_RULE_STATUS) != 0 {
            " flags"
        } else {
            ""
        }
    );
    let text = match (selectors.is_empty(), action) {
        (true, FR_ACT_TO_TBL) => format!("from all lookup {table}"),
        (false, FR_ACT_TO_TBL) => format!("{} lookup {table}", selectors.trim_start()),
        (_, other) => format!("{} action {other}", selectors.trim_start()),
    };
    Some(Object::Rule(Rule {
        family,
        priority,
        table,
        action,
        matches_all: selectors.is_empty(),
        l3mdev: selectors == " l3mdev 1",
        // turned round it looks at everything else
        iif: if flags & FIB_RULE_INVERT != 0 {
            String::new()
        } else {
            iif
        },
        text,
    }))
}

fn addr(v: &[u8]) -> String {
    ip(v).map_or_else(|| format!("{v:02x?}"), |a| a.to_string())
}

/// The request that dumps the rules of a family.
pub(super) fn dump(w: &mut Writer, seq: u32, family: Family) {
    let mut fixed = [0; RULE];
    fixed[0] = family.raw();
    w.begin(RTM_GETRULE, NLM_F_DUMP, seq, &fixed);
}
