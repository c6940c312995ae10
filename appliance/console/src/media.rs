// SPDX-License-Identifier: Apache-2.0
//! `speed` and `duplex`: the chip has one of each for a port, so what says that is accepted, and is the same as nothing.

use tandem_swconfig::{Kind, Name};
use tandem_swgrammar::{Form, Id, Parsed};

/// The speeds that a kind of port may be told, Mb/s.
fn own(kind: Kind) -> Option<u32> {
    Some(match kind {
        Kind::Gigabit => 1000,
        Kind::TenGigabit => 10_000,
        Kind::TwentyFiveGig => 25_000,
        Kind::FortyGigabit => 40_000,
        Kind::HundredGig => 100_000,
        _ => return None,
    })
}

/// Changes nothing, or says why not.
pub(crate) fn of_interface(name: &Name, parsed: &Parsed) -> Result<(), String> {
    let Some(own) = own(name.kind) else {
        return Err(format!(
            "% {name} is no port: it has neither speed nor duplex"
        ));
    };
    if parsed.form != Form::Plain || parsed.has("auto") {
        return Ok(());
    }
    match (parsed.id, parsed.number()) {
        (Id::Speed, Some(mbps)) if mbps != own => Err(format!(
            "% {name} has {own} Mb/s and no other speed: `speed auto`, or what is at the other end has to have that"
        )),
        (Id::Duplex, _) if parsed.has("half") => {
            Err(format!("% {name} has full duplex and no other"))
        }
        _ => Ok(()),
    }
}
