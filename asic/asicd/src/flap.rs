//! A fault: links that go down and up again, as a bad transceiver's do. What they are cabled to stays as it is.

/// One port's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flap {
    /// Its number.
    pub port: u16,
    /// How often it will still come up.
    pub left: u32,
    down: bool,
    half_ns: u64,
    due_ns: u64,
}

/// All that are under way, one per port at most.
#[derive(Debug, Default)]
pub struct Flaps(Vec<Flap>);

impl Flaps {
    /// Down now, up after `half_ns`, and again, `count` times (at least once). Replaces what the port was told before.
    pub fn add(&mut self, port: u16, count: u32, half_ns: u64, now_ns: u64) {
        self.0.retain(|f| f.port != port);
        self.0.push(Flap {
            port,
            left: count.max(1),
            down: true,
            half_ns,
            due_ns: now_ns.saturating_add(half_ns),
        });
    }

    /// Those under way.
    pub fn iter(&self) -> impl Iterator<Item = &Flap> {
        self.0.iter()
    }

    /// Is this port's link kept down?
    pub fn is_down(&self, port: u16) -> bool {
        self.0.iter().any(|f| f.port == port && f.down)
    }

    /// When the next one changes.
    pub fn due(&self) -> Option<u64> {
        self.0.iter().map(|f| f.due_ns).min()
    }

    /// A port whose time has come: its link has changed.
    pub fn turn(&mut self, now_ns: u64) -> Option<u16> {
        let at = self.0.iter().position(|f| f.due_ns <= now_ns)?;
        let flap = self.0.get_mut(at)?;
        let port = flap.port;
        flap.left -= u32::from(flap.down);
        flap.down = !flap.down;
        flap.due_ns = now_ns.saturating_add(flap.half_ns);
        if flap.left == 0 {
            self.0.remove(at);
        }
        Some(port)
    }

    /// Ends all; gives their ports.
    pub fn clear(&mut self) -> Vec<u16> {
        std::mem::take(&mut self.0).iter().map(|f| f.port).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn down_and_up_so_often() {
        let mut f = Flaps::default();
        f.add(3, 2, 10, 100);
        assert!(f.is_down(3) && !f.is_down(4));
        assert_eq!((f.due(), f.turn(109)), (Some(110), None));
        let mut seen = Vec::new();
        for now in [110, 120, 130, 140] {
            if let Some(port) = f.turn(now) {
                seen.push((port, f.is_down(port)));
            }
        }
        assert_eq!(seen, [(3, false), (3, true), (3, false)]);
        assert_eq!(f.due(), None);
        f.add(3, 0, 10, 0);
        f.add(3, 5, 10, 0);
        f.add(4, 1, 10, 0);
        assert_eq!(f.clear(), [3, 4]);
        assert!(!f.is_down(3));
    }
}
