//! `[queues]` of a profile: slices, buffer, scheduler.

use serde::{Deserialize, Serialize};
use tandem_queues::{CLASSES, Config, Ingress, Trust};

/// What a profile says of them; what it leaves out is as in [`Config::new`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Queues {
    /// Ports of one slice, 1..=64.
    pub ports_per_slice: Option<u16>,
    /// `voq`, or `fifo` to see what head-of-line blocking is.
    pub ingress: Option<String>,
    /// What is believed of a frame: `both`, `pcp`, `dscp`, `none`.
    pub trust: Option<String>,
    /// Frame bytes that all queues together hold.
    pub buffer_bytes: Option<u64>,
    /// Of one queue before the crossbar.
    pub ingress_bytes: Option<u64>,
    /// Of one queue behind it.
    pub egress_bytes: Option<u64>,
    /// Per class, 0 to 7: 0 is strict, more is a share.
    pub weights: Option<[u16; CLASSES]>,
    /// Limit every port to its own speed from the start.
    pub shape: bool,
}

impl Queues {
    /// For a chip with so many ports; an error is one line.
    ///
    /// # Errors
    /// Which field can't be, and what it may be.
    pub fn config(&self, ports: u16) -> Result<Config, String> {
        let d = Config::new(ports);
        let config = Config {
            ports_per_slice: self.ports_per_slice.unwrap_or(d.ports_per_slice),
            ingress: match self.ingress.as_deref() {
                None | Some("voq") => Ingress::Voq,
                Some("fifo") => Ingress::Fifo,
                Some(other) => {
                    return Err(format!("queues.ingress is {other:?}, must be voq or fifo"));
                }
            },
            trust: match self.trust.as_deref() {
                None | Some("both") => Trust::Both,
                Some("pcp") => Trust::Pcp,
                Some("dscp") => Trust::Dscp,
                Some("none") => Trust::None,
                Some(other) => {
                    return Err(format!(
                        "queues.trust is {other:?}, must be both, pcp, dscp or none"
                    ));
                }
            },
            buffer_bytes: self.buffer_bytes.unwrap_or(d.buffer_bytes),
            ingress_bytes: self.ingress_bytes.unwrap_or(d.ingress_bytes),
            egress_bytes: self.egress_bytes.unwrap_or(d.egress_bytes),
            weights: self.weights.unwrap_or(d.weights),
            ..d
        };
        config.check().map_err(|e| format!("queues.{e}"))?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_has_a_default_and_nonsense_is_named() {
        assert_eq!(Queues::default().config(16), Ok(Config::new(16)));
        let of = |text: &str| {
            let q: Queues = toml::from_str(text).unwrap();
            q.config(4)
        };
        assert_eq!(of("ingress = 'fifo'").unwrap().ingress, Ingress::Fifo);
        assert_eq!(of("trust = 'dscp'").unwrap().trust, Trust::Dscp);
        assert_eq!(
            of("ports_per_slice = 65").unwrap_err(),
            "queues.ports_per_slice is 65, must be 1..64"
        );
        assert_eq!(
            of("ingress = 'heap'").unwrap_err(),
            "queues.ingress is \"heap\", must be voq or fifo"
        );
        assert!(of("egress_bytes = 0").is_err());
    }
}
