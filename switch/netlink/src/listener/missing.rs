//! Looks up what dumps that count have passed over, where the tables never stood still for them.

use tandem_linux::netlink::Lookup;

use super::{Listener, Stopped};

/// Lookups for one dump at most. The kernel keeps a copy of each route that it finds so, 256 bytes, until that goes.
const MOST: usize = 1 << 16;

/// What the kernel keeps of such copies at most, before Linux 6.3 no more than 4,096, with those that it forwards by: no others are
/// made then.
const COPIES: &str = "/proc/sys/net/ipv6/route/max_size";

impl Listener {
    /// IPv6 routes that were known and that none of the dumps has shown: those that a lookup shows count as dumped. That one is gone
    /// no lookup says.
    pub(super) fn look_up_missing(&mut self, device: Option<u32>) -> Result<(), Stopped> {
        let copies = self.requests.file(COPIES);
        let copies = copies.and_then(|text| text.trim().parse::<usize>().ok());
        let most = copies.map_or(MOST, |n| MOST.min(n / 4));
        let missing = self.view.missing6(device, most);
        let lookups: Vec<Lookup> = missing.iter().map(|m| m.lookup).collect();
        let mut done = 0;
        while let Some(rest) = lookups.get(done..).filter(|rest| !rest.is_empty()) {
            let (view, pipe) = (&mut self.view, &mut self.pipe);
            let got = self.requests.lookups(rest, &mut |i, found| {
                if let Some(of) = missing.get(done + i) {
                    view.looked_up6(of, found, &mut |e| pipe.push(e));
                }
            });
            self.pipe.pump();
            if self.pipe.overrun || self.pipe.finished() {
                return Err(Stopped::Lost);
            }
            match got {
                Ok(n) if n > 0 => done += n,
                Ok(_) => break,
                // what is not shown goes, as after any dump
                Err(e) => {
                    tracing::debug!("netlink source: {e}");
                    break;
                }
            }
        }
        self.pipe.pump_all();
        Ok(())
    }
}
