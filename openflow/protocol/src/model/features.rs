// SPDX-License-Identifier: Apache-2.0
//! `ofp_table_features` (§7.3.5.5).

use crate::Field;

/// A field, and whether a mask may be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldId {
    /// Which.
    pub field: Field,
    /// `oxm_hasmask`.
    pub masked: bool,
}

/// `ofp_table_feature_prop_header` and what follows. `miss`: of the table-miss flow alone; `write`: of the action set,
/// else of those that are applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Property {
    /// Numbers of `ofp_instruction_type`.
    #[allow(missing_docs)]
    Instructions { miss: bool, kinds: Vec<u16> },
    /// Tables that a goto may name.
    #[allow(missing_docs)]
    NextTables { miss: bool, tables: Vec<u8> },
    /// Numbers of `ofp_action_type`.
    #[allow(missing_docs)]
    Actions {
        miss: bool,
        write: bool,
        kinds: Vec<u16>,
    },
    /// What can be matched.
    Match(Vec<FieldId>),
    /// What need not be matched.
    Wildcards(Vec<FieldId>),
    /// What can be set.
    #[allow(missing_docs)]
    SetField {
        miss: bool,
        write: bool,
        fields: Vec<FieldId>,
    },
}

/// `ofp_table_features`: of what a table is capable, or what a controller wishes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFeatures {
    /// Number.
    pub table: u8,
    /// Up to 31 bytes are sent.
    pub name: String,
    /// Bits of the metadata that it can match.
    pub metadata_match: u64,
    /// Bits of the metadata that it can write.
    pub metadata_write: u64,
    /// `ofp_table_config`: 0.
    pub config: u32,
    /// Flows at most.
    pub max_entries: u32,
    /// In their order.
    pub properties: Vec<Property>,
}
