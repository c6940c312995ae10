//! Stations for which the table has no room, and of which the CPU has heard lately.

/// Places [model]: two stations of one place are told of more often than they need be.
const PLACES: usize = 1024;

#[derive(Clone, Copy, Debug, Default)]
struct Station {
    fid: u16,
    mac: [u8; 6],
    port: u16,
    at: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Heard(Box<[Station]>);

impl Default for Heard {
    fn default() -> Heard {
        Heard(vec![Station::default(); PLACES].into_boxed_slice())
    }
}

impl Heard {
    /// Is the CPU to hear of it: that it is at this port, or that it still is, `often` nanoseconds after the last time?
    pub fn is_due(&mut self, fid: u16, mac: [u8; 6], port: u16, now: u64, often: u64) -> bool {
        let [a, b, c, d, e, f] = mac;
        let [g, h] = fid.to_be_bytes();
        let hash = u64::from_be_bytes([a, b, c, d, e, f, g, h]).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let Some(station) = self.0.get_mut((hash >> 32) as usize % PLACES) else {
            return true;
        };
        let known = (station.fid, station.mac, station.port) == (fid, mac, port);
        if known && now.saturating_sub(station.at) < often {
            return false;
        }
        *station = Station {
            fid,
            mac,
            port,
            at: now,
        };
        true
    }
}
