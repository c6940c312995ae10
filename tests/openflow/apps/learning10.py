# SPDX-License-Identifier: Apache-2.0
"""An OpenFlow 1.0 learning switch for os-ken: each miss comes here by itself, its packet perhaps kept in a buffer."""

import os

from os_ken.base import app_manager
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib import mac
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_0

IDLE = int(os.environ.get("LEARNING_IDLE", "60"))  # seconds


class Learning10(app_manager.OSKenApp):
    OFP_VERSIONS = [ofproto_v1_0.OFP_VERSION]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.stations = {}  # (datapath, address): port

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def on_switch(self, ev):
        self.logger.info("a switch: %x", ev.msg.datapath.id)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def on_packet(self, ev):
        msg = ev.msg
        dp = msg.datapath
        ofp, parser = dp.ofproto, dp.ofproto_parser
        eth = packet.Packet(msg.data).get_protocol(ethernet.ethernet)
        self.stations[dp.id, eth.src] = msg.in_port
        out_port = self.stations.get((dp.id, eth.dst), ofp.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(out_port)]
        if out_port != ofp.OFPP_FLOOD:
            match = parser.OFPMatch(in_port=msg.in_port, dl_src=mac.haddr_to_bin(eth.src),
                                    dl_dst=mac.haddr_to_bin(eth.dst))
            dp.send_msg(parser.OFPFlowMod(datapath=dp, match=match, cookie=0, command=ofp.OFPFC_ADD, idle_timeout=IDLE,
                                          hard_timeout=0, priority=ofp.OFP_DEFAULT_PRIORITY,
                                          flags=ofp.OFPFF_SEND_FLOW_REM, actions=actions))
        data = msg.data if msg.buffer_id == ofp.OFP_NO_BUFFER else None
        dp.send_msg(parser.OFPPacketOut(datapath=dp, buffer_id=msg.buffer_id, in_port=msg.in_port, actions=actions,
                                        data=data))

    @set_ev_cls(ofp_event.EventOFPFlowRemoved, MAIN_DISPATCHER)
    def on_removed(self, ev):
        match = ev.msg.match
        self.logger.info("removed %s %s reason %d packets %d", mac.haddr_to_str(match.dl_src),
                         mac.haddr_to_str(match.dl_dst), ev.msg.reason, ev.msg.packet_count)

    @set_ev_cls(ofp_event.EventOFPErrorMsg, MAIN_DISPATCHER)
    def on_error(self, ev):
        self.logger.error("error type %d code %d", ev.msg.type, ev.msg.code)
