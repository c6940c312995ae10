//! What objects cost, and how many more fit: from the rows that each class has ([`Object::COSTS`](crate::object::Object)).

use crate::Firmware;
use crate::classes;
use crate::pools::{Need, PoolId};
use tandem_abi::raw;
use tandem_tables::exact::Kind;

/// Slots that one object takes of a pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pool: PoolId,
    /// Whatever its key is.
    worst: u32,
    /// As most are.
    usual: u32,
    /// It finds its place by a hash: free slots alone do not say how many fit.
    hashed: Option<Kind>,
}

impl Cost {
    /// As many for each.
    pub(crate) fn of(pool: PoolId, slots: u32) -> Self {
        Cost {
            pool,
            worst: slots,
            usual: slots,
            hashed: None,
        }
    }

    /// At worst `most`, but `usual` for most of them.
    pub(crate) fn up_to(pool: PoolId, most: u32, usual: u32) -> Self {
        Cost {
            usual: usual.min(most),
            ..Cost::of(pool, most)
        }
    }

    /// An entry of the exact-match table.
    pub(crate) fn hashed(fw: &Firmware, kind: Kind) -> Self {
        Cost {
            hashed: Some(kind),
            ..Cost::of(PoolId::ExactMatch, fw.state.exact.widths().of(kind))
        }
    }
}

/// What objects of a class cost, or those of one family; `TND_CLS_COST` has a record for each.
pub(crate) struct CostRow {
    /// `TND_AF_*` or `TND_ACL_WIDTH_*`. Of a class with one row: any.
    pub(crate) family: u8,
    /// Name in JSON.
    pub(crate) name: &'static str,
    /// Slots of one. The first pool is the one that the record tells.
    pub(crate) slots: fn(&Firmware) -> Vec<Cost>,
}

impl CostRow {
    /// The only row of a class.
    pub(crate) const fn only(name: &'static str, slots: fn(&Firmware) -> Vec<Cost>) -> CostRow {
        CostRow {
            family: 0,
            name,
            slots,
        }
    }
}

impl Firmware {
    /// Slots that `n` objects of a class take at worst: whatever their keys, and a group with all members. `None`: there are
    /// no such objects, or they cost nothing.
    pub(crate) fn worst_case(&self, cls: u16, family: u8, n: u32) -> Option<Vec<Need>> {
        let row = match classes::of(cls)?.costs {
            [only] => only,
            rows => rows.iter().find(|r| r.family == family)?,
        };
        let need = |c: &Cost| Need {
            pool: c.pool,
            slots: c.worst.saturating_mul(n),
        };
        Some((row.slots)(self).iter().map(need).collect())
    }

    /// Objects that still fit: guaranteed whatever their keys, and expected if they are as usual.
    fn room(&self, costs: &[Cost]) -> (u32, u32) {
        let free = |c: &Cost| self.pools.get(&self.state, c.pool).free();
        let guaranteed = |c: &Cost| match c.hashed {
            Some(kind) => self.state.exact.free_guaranteed(kind),
            None => free(c).checked_div(c.worst).unwrap_or(0),
        };
        let expected = |c: &Cost| match c.hashed {
            Some(kind) => self.state.exact.free_expected(kind),
            None => free(c).checked_div(c.usual).unwrap_or(u32::MAX),
        };
        let sure = costs.iter().map(guaranteed).min().unwrap_or(0);
        let likely = costs.iter().map(expected).min().unwrap_or(0);
        (sure, likely.max(sure))
    }

    /// A record of `TND_CLS_COST`.
    pub(crate) fn cost_row(&self, cls: u16, r: &CostRow) -> raw::tnd_class_cost {
        let costs = (r.slots)(self);
        let (pool, cost) = costs.first().map_or((0, 0), |c| (c.pool as u16, c.worst));
        let (free_guaranteed, free_expected) = self.room(&costs);
        let mut row = raw::tnd_class_cost {
            struct_size: size_of::<raw::tnd_class_cost>() as u16,
            cls,
            family: r.family,
            pool,
            cost,
            free_guaranteed,
            free_expected,
            ..Default::default()
        };
        tandem_abi::set_name(&mut row.name, r.name);
        row
    }

    /// Slots that a CREATE takes if its object is not there yet.
    pub(crate) fn create_needs(&self, cmd: &raw::tnd_cmd, body: &[u8]) -> Vec<Need> {
        match classes::of(cmd.cls) {
            Some(class) if cmd.op == raw::TND_OP_CREATE => {
                let mut needs = (class.needs)(self, body);
                needs.retain(|n| n.slots > 0);
                needs
            }
            _ => Vec::new(),
        }
    }

    /// All pools and all class costs, from one instant: what SNAPSHOT and a DUMP of `TND_CLS_COST` tell.
    #[must_use]
    pub fn resources(&self) -> (Vec<raw::tnd_pool>, Vec<raw::tnd_class_cost>) {
        let pools = PoolId::ALL.iter().map(|id| self.pool_row(*id)).collect();
        let rows = classes::cost_rows();
        (pools, rows.map(|(cls, r)| self.cost_row(cls, r)).collect())
    }
}
