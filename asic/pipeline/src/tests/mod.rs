//! Packet in, packet out.

mod acl;
mod flow_class;
mod flow_egress;
mod flow_rules;
mod flows;
mod fuzz;
mod l2;
mod l3;
mod l3_ip6;
mod lag;
mod mcast;
mod model;
mod redirect;
mod stations;
mod storm;
mod vlan;
