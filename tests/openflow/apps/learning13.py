# SPDX-License-Identifier: Apache-2.0
"""An OpenFlow 1.3 learning switch for os-ken: a miss comes here, what is learned becomes a flow that times out."""

import os

from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_3

IDLE = int(os.environ.get("LEARNING_IDLE", "60"))  # seconds


class Learning13(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_3.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.stations = {}  # (datapath, address): port

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def on_switch(self, ev):
        dp = ev.msg.datapath
        ofp, parser = dp.ofproto, dp.ofproto_parser
        to_us = parser.OFPActionOutput(ofp.OFPP_CONTROLLER, ofp.OFPCML_NO_BUFFER)
        self.add(dp, 0, parser.OFPMatch(), [to_us])
        self.logger.info("a switch: %x", dp.id)

    def add(self, dp, priority, match, actions, **more):
        ofp, parser = dp.ofproto, dp.ofproto_parser
        todo = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, actions)]
        dp.send_msg(parser.OFPFlowMod(datapath=dp, priority=priority, match=match, instructions=todo, **more))

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_packet(self, ev):
        msg = ev.msg
        dp = msg.datapath
        ofp, parser = dp.ofproto, dp.ofproto_parser
        in_port = msg.match["in_port"]
        eth = packet.Packet(msg.data).get_protocol(ethernet.ethernet)
        self.stations[dp.id, eth.src] = in_port
        out_port = self.stations.get((dp.id, eth.dst), ofp.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(out_port)]
        if out_port != ofp.OFPP_FLOOD:
            match = parser.OFPMatch(in_port=in_port, eth_src=eth.src, eth_dst=eth.dst)
            self.add(dp, 1, match, actions, idle_timeout=IDLE, flags=ofp.OFPFF_SEND_FLOW_REM)
        data = msg.data if msg.buffer_id == ofp.OFP_NO_BUFFER else None
        dp.send_msg(parser.OFPPacketOut(datapath=dp, buffer_id=msg.buffer_id, in_port=in_port, actions=actions,
                                        data=data))

    @set_ev_cls(ofp_event.EventOFPFlowRemoved, MAIN_DISPATCHER)
    def on_removed(self, ev):
        match = ev.msg.match
        self.logger.info("removed %s %s reason %d packets %d", match["eth_src"], match["eth_dst"], ev.msg.reason,
                         ev.msg.packet_count)

    @set_ev_cls(ofp_event.EventOFPErrorMsg, MAIN_DISPATCHER)
    def on_error(self, ev):
        self.logger.error("error type %d code %d", ev.msg.type, ev.msg.code)
