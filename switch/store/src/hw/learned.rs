//! What the chip does with its FDB by itself.

use super::bodies::Fdb;
use super::table::Sent;
use super::{Cls, Hw, Ref};

impl Hw {
    /// The chip made this entry by itself.
    pub fn adopt_fdb(&mut self, id: u32, body: Fdb, now: u64) {
        let o = self.fdb.at(id);
        o.want = Some(body.clone());
        o.since = now;
        let failed = o.recovered();
        // A command on its way finds out by its answer.
        if matches!(o.sent, Sent::Nothing) {
            o.unsure = false;
            let old = o.have.replace(body.clone());
            self.hold_deps(&body, 1);
            if let Some(old) = old {
                self.hold_deps(&old, -1);
            }
        }
        // It had no room before: its domain need not trap for it any more.
        if failed {
            self.changed.push(Ref::new(Cls::Fdb, id));
        }
        self.queue(Ref::new(Cls::Fdb, id));
    }

    /// The chip removed this entry by itself.
    pub fn gone_fdb(&mut self, id: u32) {
        let o = self.fdb.at(id);
        if matches!(o.sent, Sent::Nothing)
            && let Some(old) = o.have.take()
        {
            o.unsure = false;
            self.hold_deps(&old, -1);
        }
        self.queue(Ref::new(Cls::Fdb, id));
    }
}
