//! TND_CLS_ACL_TABLE: rules by priority. Its rules and its bindings keep it.

use crate::Firmware;
use crate::costs::{Cost, CostRow};
use crate::dump::slots;
use crate::object::{EXISTS, Failure, INVALID, Object, UNSUPPORTED, body};
use crate::pools::PoolId;
use tandem_abi::raw;
use tandem_pipeline::state::{AclStage, AclTable as State};
use zerocopy::IntoBytes;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AclTable(raw::tnd_acl_table);

impl AclTable {
    pub(crate) fn from_state(t: &State) -> Self {
        Self(raw::tnd_acl_table {
            struct_size: size_of::<raw::tnd_acl_table>() as u16,
            stage: t.stage.to_abi(),
            table: t.id,
        })
    }
}

impl Object for AclTable {
    const CLASS: u16 = raw::TND_CLS_ACL_TABLE;
    const NAME: &'static str = "acl-table";
    const COSTS: &'static [CostRow] = &[CostRow::only("acl-table", |_| {
        vec![Cost::of(PoolId::AclTable, 1)]
    })];

    fn parse(bytes: &[u8]) -> Option<Self> {
        body(bytes, 8).map(Self)
    }
    fn normal(self, _: &Firmware) -> Result<Self, Failure> {
        if self.0.table == 0 || AclStage::from_abi(self.0.stage).is_none() {
            return Err(INVALID);
        }
        Ok(Self(raw::tnd_acl_table {
            struct_size: size_of::<raw::tnd_acl_table>() as u16,
            ..self.0
        }))
    }
    fn find(&self, fw: &Firmware) -> Option<Self> {
        fw.state.acl.table(self.0.table).map(Self::from_state)
    }
    fn write(&self, fw: &mut Firmware, old: Option<&Self>) -> Result<(), Failure> {
        // rules were checked for the stage they are in
        if old.is_some() {
            return Err(EXISTS);
        }
        let stage = AclStage::from_abi(self.0.stage).ok_or(INVALID)?;
        let can = match stage {
            AclStage::FlowClass => fw.profile().classifies_flows(),
            AclStage::FlowEgress => fw.profile().forms_flows(),
            _ => true,
        };
        if !can {
            return Err(UNSUPPORTED);
        }
        fw.take(PoolId::AclTable, 1)?;
        fw.state.acl.add_table(self.0.table, stage);
        Ok(())
    }
    fn in_use(&self, fw: &Firmware) -> bool {
        let rules = fw.state.acl.table(self.0.table);
        rules.is_some_and(|t| !t.rules.is_empty())
            || fw
                .state
                .acl
                .binds()
                .any(|(_, _, b)| b.table == self.0.table)
    }
    fn remove(&self, fw: &mut Firmware) {
        if fw.state.acl.remove_table(self.0.table) {
            fw.give(PoolId::AclTable, 1);
        }
    }
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.as_bytes());
    }
    fn position(&self, fw: &Firmware) -> Option<u64> {
        fw.state.acl.tables().slot(self.0.table).map(u64::from)
    }
    fn walk(fw: &Firmware, from: u64) -> impl Iterator<Item = (u64, Option<Self>)> {
        let all = fw.state.acl.tables();
        slots(fw, from, all.slots(), |at| all.at(at).map(Self::from_state))
    }
}
