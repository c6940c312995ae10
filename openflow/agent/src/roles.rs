// SPDX-License-Identifier: Apache-2.0
//! Roles of controllers (§6.3.5).

use tandem_openflow::Error;
use tandem_openflow::model::{Asks, Request, Role, RoleRequest};

use crate::agent::{Agent, ConnId};

/// Does it change the switch or send packets? A slave may not (§6.3.5).
pub(crate) fn modifies(request: &Request<'_>) -> bool {
    match request {
        Request::PacketOut(_)
        | Request::FlowMod(_)
        | Request::GroupMod(_)
        | Request::PortMod(_)
        | Request::TableMod(_)
        | Request::MeterMod(_)
        | Request::SetConfig(_) => true,
        Request::Multipart(m) => matches!(&m.asks, Asks::TableFeatures(t) if !t.is_empty()),
        _ => false,
    }
}

impl Agent {
    /// A role request; the answer.
    ///
    /// # Errors
    /// `STALE`: a master or slave of a generation that is over. Generations go round, so that half of all numbers are
    /// older than one.
    pub(crate) fn change_role(
        &mut self,
        id: ConnId,
        asked: RoleRequest,
    ) -> Result<RoleRequest, Error> {
        let Some(own) = self.conns.get(&id).map(|c| c.role) else {
            return Ok(asked);
        };
        if matches!(asked.role, Role::Master | Role::Slave) {
            if let Some(last) = self.generation
                && asked.generation.wrapping_sub(last).cast_signed() < 0
            {
                return Err(Error::ROLE_REQUEST_FAILED_STALE);
            }
            if let Some(journal) = &mut self.dp.journal {
                journal.generation(asked.generation);
            }
            self.generation = Some(asked.generation);
        }
        if asked.role == Role::Master {
            for other in self.conns.values_mut().filter(|c| c.role == Role::Master) {
                other.role = Role::Slave;
            }
        }
        let role = match asked.role {
            Role::NoChange => own,
            role => role,
        };
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.role = role;
        }
        Ok(RoleRequest {
            role,
            // none has been heard of yet: all ones
            generation: self.generation.unwrap_or(u64::MAX),
        })
    }
}
