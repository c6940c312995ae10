// SPDX-License-Identifier: Apache-2.0
//! One frame's way on paper.

use tandem_ofpipeline::flows::Flow;
use tandem_ofpipeline::{PacketIn, Sink};
use tandem_packet::Frame;

/// One thing that happens to a frame.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Step {
    /// There is no controller: an ordinary switch sends it to a port, to all (`FLOOD`), nowhere.
    Alone { to: Option<u32> },
    /// It meets a flow of a table, by its number, or none.
    Met {
        table: u8,
        flow: Option<(u32, Box<Flow>)>,
    },
    /// It leaves by a port.
    Output {
        port: u32,
        queue: Option<u32>,
        bytes: Vec<u8>,
    },
    /// It goes to the controllers.
    Controller {
        reason: &'static str,
        table: u8,
        cookie: u64,
        max_len: u16,
        bytes: Vec<u8>,
    },
    /// It goes where an ordinary switch would send it.
    Normal { bytes: Vec<u8> },
}

/// What happened, in order.
#[derive(Debug, Default)]
pub(crate) struct Steps(pub(crate) Vec<Step>);

impl Sink for Steps {
    const WATCHES: bool = true;

    fn met(&mut self, table: u8, flow: Option<(u32, &Flow)>) {
        let flow = flow.map(|(n, f)| (n, Box::new(f.clone())));
        self.0.push(Step::Met { table, flow });
    }

    fn output(&mut self, port: u32, queue: Option<u32>, frame: &Frame<'_>) {
        let bytes = frame.bytes().to_vec();
        self.0.push(Step::Output { port, queue, bytes });
    }

    fn packet_in(&mut self, about: &PacketIn<'_>, frame: &Frame<'_>) {
        use tandem_ofpipeline::Why;
        self.0.push(Step::Controller {
            reason: match about.why {
                Why::NoMatch => "no_match",
                Why::Action => "action",
                Why::InvalidTtl => "invalid_ttl",
            },
            table: about.table,
            cookie: about.cookie,
            max_len: about.max_len,
            bytes: frame.bytes().to_vec(),
        });
    }

    fn normal(&mut self, _in_port: u32, frame: &Frame<'_>) {
        self.0.push(Step::Normal {
            bytes: frame.bytes().to_vec(),
        });
    }
}
