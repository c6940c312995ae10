//! Storm control of ports: a setting of the chip, which no table of the kernel has. The chip keeps it while it lives, switchd
//! while it does: after a restart of the one it comes from the other.

use std::collections::BTreeMap;

use tandem_abi::raw;
use tandem_sal::{Request, SalControl, SalError};
use zerocopy::IntoBytes;

use super::Core;

/// Packets a second, by port and `TND_STORM_*`.
pub(crate) type Storms = BTreeMap<(u16, u8), u64>;

/// Kinds by their names.
pub(crate) const KINDS: [(&str, u8); 3] = [
    ("broadcast", raw::TND_STORM_BROADCAST),
    ("multicast", raw::TND_STORM_MULTICAST),
    ("unknown_unicast", raw::TND_STORM_UNKNOWN_UC),
];

/// What the chip has from an earlier switchd.
pub(crate) fn left(control: &mut SalControl) -> Result<Storms, SalError> {
    let mut all = Storms::new();
    control.dump(|s: raw::tnd_storm, _| {
        if s.rate_packets > 0 {
            all.insert((s.port, s.kind), s.rate_packets);
        }
    })?;
    Ok(all)
}

fn write(control: &mut SalControl, port: u16, kind: u8, rate: u64) -> Result<(), String> {
    let body = raw::tnd_storm {
        struct_size: size_of::<raw::tnd_storm>() as u16,
        port,
        kind,
        rate_packets: rate,
        // a tenth of a second at once
        burst_packets: if rate == 0 { 0 } else { (rate / 10).max(1) },
        ..Default::default()
    };
    let request = Request {
        op: raw::TND_OP_UPDATE,
        cls: raw::TND_CLS_STORM,
        body: body.as_bytes(),
        ..Default::default()
    };
    let (cpl, _) = control
        .call("storm control", &request)
        .map_err(|e| e.to_string())?;
    let status = tandem_abi::Status::from_raw(cpl.status);
    if status.is_ok() {
        Ok(())
    } else {
        Err(format!("storm control of swp{port}: {status}"))
    }
}

impl Core {
    /// Sets a port's limit, 0 = none; the answer says what was done.
    pub(crate) fn set_storm(&mut self, port: u16, kind: u8, rate: u64) -> Result<String, String> {
        let Some(control) = self.control.as_mut() else {
            return Err("no ASIC attached: is asicd running?".into());
        };
        write(control, port, kind, rate)?;
        let name = KINDS.iter().find(|k| k.1 == kind).map_or("", |k| k.0);
        Ok(match rate {
            0 => {
                self.storms.remove(&(port, kind));
                format!("swp{port}: {name} without limit")
            }
            _ => {
                self.storms.insert((port, kind), rate);
                format!("swp{port}: {name} at most {rate} packets/s")
            }
        })
    }

    /// The chip may be a new one.
    pub(super) fn restore_storms(&mut self) {
        let Some(control) = self.control.as_mut() else {
            return;
        };
        let mut wrong = Vec::new();
        for ((port, kind), rate) in &self.storms {
            if let Err(e) = write(control, *port, *kind, *rate) {
                wrong.push(e);
            }
        }
        for text in wrong {
            self.warn(text);
        }
    }
}
