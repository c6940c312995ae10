// SPDX-License-Identifier: Apache-2.0
//! Errors of 1.0 (1.0 §5.4.4): six types, with fewer codes.

use crate::Error;

const BAD_REQUEST: u16 = 1;
const BAD_ACTION: u16 = 2;
const FLOW_MOD_FAILED: u16 = 3;
const PORT_MOD_FAILED: u16 = 4;
const QUEUE_OP_FAILED: u16 = 5;
/// `OFPFMFC_UNSUPPORTED`: actions or, for want of anything nearer, a match that can't be done.
const UNSUPPORTED: (u16, u16) = (FLOW_MOD_FAILED, 5);
/// `OFPBRC_EPERM`.
const EPERM: (u16, u16) = (BAD_REQUEST, 5);
/// `OFPBRC_BAD_TYPE`.
const BAD_TYPE: (u16, u16) = (BAD_REQUEST, 1);
/// `OFPBRC_BAD_LEN`.
const BAD_LEN: (u16, u16) = (BAD_REQUEST, 6);

/// Type and code of what 1.0 has for it, or of what is nearest.
pub(super) const fn translate(error: Error) -> (u16, u16) {
    match (error.kind, error.code) {
        // HELLO_FAILED; BAD_REQUEST up to BUFFER_UNKNOWN and BAD_ACTION up to BAD_QUEUE have the same numbers
        (0, code) => (0, code),
        (1, code @ 0..=8) => (BAD_REQUEST, code),
        (2, code @ 0..=8) => (BAD_ACTION, code),
        // BAD_PORT: of a packet-out
        (1, 11) => (BAD_ACTION, 4),
        // BAD_TABLE_ID, IS_SLAVE, BAD_PACKET, MULTIPART_BUFFER_OVERFLOW
        (1, _) => EPERM,
        // MATCH_INCONSISTENT, UNSUPPORTED_ORDER
        (2, 10 | 11) => UNSUPPORTED,
        // BAD_SET_TYPE, BAD_SET_LEN
        (2, 13) => (BAD_ACTION, 0),
        (2, 14) => (BAD_ACTION, 1),
        // BAD_OUT_GROUP, BAD_TAG, BAD_SET_ARGUMENT
        (2, _) => (BAD_ACTION, 5),
        // BAD_MATCH_BAD_LEN
        (4, 1) => BAD_LEN,
        // BAD_INSTRUCTION, BAD_MATCH
        (3 | 4, _) => UNSUPPORTED,
        // FLOW_MOD_FAILED: TABLE_FULL, OVERLAP, EPERM, BAD_TIMEOUT, BAD_COMMAND
        (5, 1) => (FLOW_MOD_FAILED, 0),
        (5, 3) => (FLOW_MOD_FAILED, 1),
        (5, 4) => (FLOW_MOD_FAILED, 2),
        (5, 5) => (FLOW_MOD_FAILED, 3),
        (5, 6) => (FLOW_MOD_FAILED, 4),
        (5, _) => UNSUPPORTED,
        // PORT_MOD_FAILED: BAD_PORT, BAD_HW_ADDR
        (7, code @ 0..=1) => (PORT_MOD_FAILED, code),
        (7, _) => EPERM,
        (9, code) => (QUEUE_OP_FAILED, code),
        // SWITCH_CONFIG_FAILED
        (10, _) => EPERM,
        // groups, meters, table features, roles: messages that 1.0 does not have
        _ => BAD_TYPE,
    }
}
