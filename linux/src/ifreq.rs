//! Interface ioctls (netdevice(7)) on a socket of the wanted network namespace.
//!
//! They answer from the namespace in which the *socket* was opened, whatever namespace the
//! calling thread is in: that is why ports use them and not sysfs.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType};

const SIZE: usize = 40; // struct ifreq on 64-bit Linux

// linux/ethtool.h
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GLINK: u32 = 0x0a;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_SFLAGS: u32 = 0x26;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETH_FLAG_RXVLAN: u32 = 1 << 8;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
const ETH_SS_FEATURES: u32 = 4;
const ETH_GSTRING_LEN: usize = 32;

/// `struct ifreq`: the name, then a union of which we use the first bytes.
#[repr(C, align(8))]
pub struct IfReq([u8; SIZE]);

impl IfReq {
    /// For requests that only answer.
    pub fn empty() -> Self {
        IfReq([0; SIZE])
    }

    /// For the interface `name` (1 to 15 bytes).
    pub fn new(name: &str) -> io::Result<Self> {
        let bytes = name.as_bytes();
        if bytes.is_empty() || bytes.len() >= libc::IFNAMSIZ || bytes.contains(&0) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("'{name}' is no interface name (1 to 15 bytes)"),
            ));
        }
        let mut req = Self::empty();
        for (to, from) in req.0.iter_mut().zip(bytes) {
            *to = *from;
        }
        Ok(req)
    }

    /// The name in it.
    pub fn name(&self) -> String {
        let name: Vec<u8> = self
            .0
            .iter()
            .take(libc::IFNAMSIZ)
            .copied()
            .take_while(|b| *b != 0)
            .collect();
        String::from_utf8_lossy(&name).into_owned()
    }

    /// Sets the union's 16-bit member (flags).
    pub fn set_u16(&mut self, v: u16) {
        for (to, from) in self.0.iter_mut().skip(16).zip(v.to_ne_bytes()) {
            *to = from;
        }
    }

    /// Sets the union's 32-bit member (MTU, index).
    pub fn set_u32(&mut self, v: u32) {
        for (to, from) in self.0.iter_mut().skip(16).zip(v.to_ne_bytes()) {
            *to = from;
        }
    }

    fn set_pointer(&mut self, p: *mut u8) {
        for (to, from) in self
            .0
            .iter_mut()
            .skip(16)
            .zip((p as usize as u64).to_ne_bytes())
        {
            *to = from;
        }
    }

    fn union<const N: usize>(&self) -> [u8; N] {
        let mut out = [0; N];
        for (to, from) in out.iter_mut().zip(self.0.iter().skip(16)) {
            *to = *from;
        }
        out
    }

    /// The union's 16-bit member (flags).
    pub fn get_u16(&self) -> u16 {
        u16::from_ne_bytes(self.union())
    }

    /// The union's 32-bit member (MTU, index).
    pub fn get_u32(&self) -> u32 {
        u32::from_ne_bytes(self.union())
    }

    /// The MAC in the union's `sockaddr`.
    pub fn get_mac(&self) -> [u8; 6] {
        let all: [u8; 8] = self.union();
        let mut mac = [0; 6];
        for (to, from) in mac.iter_mut().zip(all.iter().skip(2)) {
            *to = *from;
        }
        mac
    }
}

/// An ioctl whose argument is a `struct ifreq` without pointers.
pub(crate) fn ioctl(fd: BorrowedFd<'_>, op: libc::Ioctl, req: &mut IfReq) -> io::Result<()> {
    // SAFETY: `req` is as large and as aligned as struct ifreq and outlives the call; the
    // requests used with this function read and write nothing beyond it.
    let ret = unsafe { libc::ioctl(fd.as_raw_fd(), op, req.0.as_mut_ptr()) };
    if ret < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// What `ethtool -k` says that decides how frames may be handed to a netdev.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Segments TCP over IPv4 (`tx-tcp-segmentation`).
    pub tso4: bool,
    /// Segments TCP over IPv6 (`tx-tcp6-segmentation`).
    pub tso6: bool,
    /// Segments TCP with CWR set (`tx-tcp-ecn-segmentation`).
    pub tso_ecn: bool,
    /// Segments UDP (`tx-udp-segmentation`).
    pub uso: bool,
    /// Completes checksums of any protocol (`tx-checksum-ip-generic`).
    pub csum: bool,
}

/// State of a netdev.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkState {
    /// Interface index.
    pub ifindex: u32,
    /// Administratively up (IFF_UP).
    pub admin_up: bool,
    /// Operationally up (IFF_RUNNING).
    pub running: bool,
}

/// A datagram socket that interface ioctls are sent through.
#[derive(Debug)]
pub struct ControlSocket(OwnedFd);

impl ControlSocket {
    /// Opens one in the calling thread's network namespace.
    pub fn open() -> io::Result<Self> {
        Ok(ControlSocket(rustix::net::socket_with(
            AddressFamily::INET,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            None,
        )?))
    }

    /// The name that interface `ifindex` has now.
    pub fn name(&self, ifindex: u32) -> io::Result<String> {
        Ok(rustix::net::netdevice::index_to_name(&self.0, ifindex)?)
    }

    /// Index, administrative and operational state of `name`.
    pub fn link(&self, name: &str) -> io::Result<LinkState> {
        let mut req = IfReq::new(name)?;
        self.ioctl(libc::SIOCGIFINDEX, &mut req)?;
        let ifindex = req.get_u32();
        let mut req = IfReq::new(name)?;
        self.ioctl(libc::SIOCGIFFLAGS, &mut req)?;
        let flags = i32::from(req.get_u16());
        Ok(LinkState {
            ifindex,
            admin_up: flags & libc::IFF_UP != 0,
            running: flags & libc::IFF_RUNNING != 0,
        })
    }

    /// MTU in bytes.
    pub fn mtu(&self, name: &str) -> io::Result<u32> {
        let mut req = IfReq::new(name)?;
        self.ioctl(libc::SIOCGIFMTU, &mut req)?;
        Ok(req.get_u32())
    }

    /// Hardware address.
    pub fn mac(&self, name: &str) -> io::Result<[u8; 6]> {
        let mut req = IfReq::new(name)?;
        self.ioctl(libc::SIOCGIFHWADDR, &mut req)?;
        Ok(req.get_mac())
    }

    /// Sets the interface administratively up or down.
    pub fn set_up(&self, name: &str, up: bool) -> io::Result<()> {
        let mut req = IfReq::new(name)?;
        self.ioctl(libc::SIOCGIFFLAGS, &mut req)?;
        let flags = req.get_u16();
        let bit = libc::IFF_UP as u16;
        req.set_u16(if up { flags | bit } else { flags & !bit });
        self.ioctl(libc::SIOCSIFFLAGS, &mut req)
    }

    /// Sets the MTU in bytes.
    pub fn set_mtu(&self, name: &str, mtu: u32) -> io::Result<()> {
        let mut req = IfReq::new(name)?;
        req.set_u32(mtu);
        self.ioctl(libc::SIOCSIFMTU, &mut req)
    }

    /// Speed in Mbit/s as the driver reports it; `None` when unknown (veth says 10 Gbit/s,
    /// TAP 10 Mbit/s or what was set).
    pub fn speed_mbps(&self, name: &str) -> io::Result<Option<u32>> {
        // struct ethtool_link_settings, asked twice: the first answer is the negative number
        // of mask words, the second is the data (linux/ethtool.h)
        let mut buf = [0u8; 48 + 3 * 4 * 127];
        put(&mut buf, 0, ETHTOOL_GLINKSETTINGS);
        self.ethtool(name, &mut buf)?;
        let words = buf.get(15).copied().unwrap_or(0) as i8;
        if words >= 0 {
            return Ok(None);
        }
        let words = words.unsigned_abs();
        buf.fill(0);
        put(&mut buf, 0, ETHTOOL_GLINKSETTINGS);
        if let Some(b) = buf.get_mut(15) {
            *b = words;
        }
        self.ethtool(name, &mut buf)?;
        let speed = get(&buf, 4);
        Ok((speed != 0 && speed != u32::MAX).then_some(speed))
    }

    /// The driver's name: `veth`, `tun`, `mlx5_core`, …
    pub fn driver(&self, name: &str) -> io::Result<String> {
        let mut info = [0u8; 196]; // struct ethtool_drvinfo
        put(&mut info, 0, ETHTOOL_GDRVINFO);
        self.ethtool(name, &mut info)?;
        let driver: Vec<u8> = info
            .iter()
            .skip(4)
            .take(32)
            .copied()
            .take_while(|b| *b != 0)
            .collect();
        Ok(String::from_utf8_lossy(&driver).into_owned())
    }

    /// Carrier now. IFF_RUNNING follows it only after the kernel's link watch has run, which may
    /// take a second; this question makes it run.
    pub fn carrier(&self, name: &str) -> io::Result<bool> {
        let mut value = [0u8; 8]; // struct ethtool_value
        put(&mut value, 0, ETHTOOL_GLINK);
        self.ethtool(name, &mut value)?;
        Ok(get(&value, 4) != 0)
    }

    /// Generic receive offload on or off. On a veth it gives the interface a NAPI ring, which XDP needs at the far
    /// end of a redirect.
    #[cfg(feature = "testing")]
    pub fn set_gro(&self, name: &str, on: bool) -> io::Result<()> {
        const ETHTOOL_SGRO: u32 = 0x2c;
        let mut value = [0u8; 8]; // struct ethtool_value
        put(&mut value, 0, ETHTOOL_SGRO);
        put(&mut value, 4, u32::from(on));
        self.ethtool(name, &mut value)
    }

    /// Receive queues in use; 1 for a driver that can't be asked.
    pub fn rx_queues(&self, name: &str) -> io::Result<u32> {
        // struct ethtool_channels: max_rx, max_tx, max_other, max_combined, then what is set, in the same order
        let mut data = [0u8; 36];
        put(&mut data, 0, ETHTOOL_GCHANNELS);
        match self.ethtool(name, &mut data) {
            Ok(()) => Ok((get(&data, 20) + get(&data, 32)).max(1)),
            Err(e) if e.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(1),
            Err(e) => Err(e),
        }
    }

    /// Does the netdev take VLAN tags out of frames that it receives (`rx-vlan-hw-parse`)?
    pub fn rx_vlan_offload(&self, name: &str) -> io::Result<bool> {
        Ok(self.flags(name)? & ETH_FLAG_RXVLAN != 0)
    }

    /// Makes it do so, or not.
    pub fn set_rx_vlan_offload(&self, name: &str, on: bool) -> io::Result<()> {
        let flags = self.flags(name)? & !ETH_FLAG_RXVLAN;
        let mut value = [0u8; 8]; // struct ethtool_value
        put(&mut value, 0, ETHTOOL_SFLAGS);
        put(
            &mut value,
            4,
            if on { flags | ETH_FLAG_RXVLAN } else { flags },
        );
        self.ethtool(name, &mut value)
    }

    fn flags(&self, name: &str) -> io::Result<u32> {
        let mut value = [0u8; 8]; // struct ethtool_value
        put(&mut value, 0, ETHTOOL_GFLAGS);
        self.ethtool(name, &mut value)?;
        Ok(get(&value, 4))
    }

    /// Offload features that are active on `name`.
    pub fn features(&self, name: &str) -> io::Result<Features> {
        let mut info = [0u8; 24];
        put(&mut info, 0, ETHTOOL_GSSET_INFO);
        put(&mut info, 8, 1 << ETH_SS_FEATURES);
        self.ethtool(name, &mut info)?;
        let count = get(&info, 16).min(1024) as usize;
        let mut strings = vec![0u8; 12 + count * ETH_GSTRING_LEN];
        put(&mut strings, 0, ETHTOOL_GSTRINGS);
        put(&mut strings, 4, ETH_SS_FEATURES);
        put(&mut strings, 8, count as u32);
        self.ethtool(name, &mut strings)?;
        let blocks = count.div_ceil(32);
        let mut bits = vec![0u8; 8 + blocks * 16];
        put(&mut bits, 0, ETHTOOL_GFEATURES);
        put(&mut bits, 4, blocks as u32);
        self.ethtool(name, &mut bits)?;
        let mut out = Features::default();
        for (i, s) in strings
            .get(12..)
            .unwrap_or_default()
            .chunks_exact(ETH_GSTRING_LEN)
            .enumerate()
        {
            // struct ethtool_get_features_block: available, requested, active, never_changed
            let active = get(&bits, 8 + (i / 32) * 16 + 8) >> (i % 32) & 1 != 0;
            let len = s.iter().position(|b| *b == 0).unwrap_or(s.len());
            match s.get(..len).unwrap_or_default() {
                b"tx-tcp-segmentation" => out.tso4 = active,
                b"tx-tcp6-segmentation" => out.tso6 = active,
                b"tx-tcp-ecn-segmentation" => out.tso_ecn = active,
                b"tx-udp-segmentation" => out.uso = active,
                b"tx-checksum-ip-generic" => out.csum = active,
                _ => {}
            }
        }
        Ok(out)
    }

    fn ioctl(&self, op: libc::c_ulong, req: &mut IfReq) -> io::Result<()> {
        ioctl(self.0.as_fd(), op as libc::Ioctl, req)
    }

    /// `data` must be as long as the command in it makes the kernel read and write.
    fn ethtool(&self, name: &str, data: &mut [u8]) -> io::Result<()> {
        let mut req = IfReq::new(name)?;
        req.set_pointer(data.as_mut_ptr());
        // SAFETY: struct ifreq with a pointer to `data`; the callers above size `data` by the
        // counts that they put into it, which the kernel respects (it copies no more than the
        // count in the request says).
        let ret = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SIOCETHTOOL as libc::Ioctl,
                req.0.as_mut_ptr(),
            )
        };
        if ret < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

impl AsFd for ControlSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn put(buf: &mut [u8], at: usize, v: u32) {
    if let Some(to) = buf.get_mut(at..at + 4) {
        to.copy_from_slice(&v.to_ne_bytes());
    }
}

fn get(buf: &[u8], at: usize) -> u32 {
    buf.get(at..at + 4)
        .and_then(|b| b.try_into().ok())
        .map_or(0, u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_answers() {
        let c = ControlSocket::open().unwrap();
        let l = c.link("lo").unwrap();
        assert_eq!(l.ifindex, 1);
        assert!(c.mtu("lo").unwrap() >= 1280);
        let f = c.features("lo").unwrap();
        assert!(f.tso4 && f.csum, "lo always segments and checksums: {f:?}");
        let _ = c.speed_mbps("lo");
    }

    #[test]
    fn bad_names_are_refused() {
        assert!(IfReq::new("").is_err());
        assert!(IfReq::new("sixteen-bytes-xx").is_err());
        let c = ControlSocket::open().unwrap();
        assert!(c.link("tandem-none").is_err());
    }
}
