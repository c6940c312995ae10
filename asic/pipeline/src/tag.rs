//! The tag that chose a frame's domain, and where it is.

use tandem_packet::Tag;

/// The tag by which a frame belongs to its forwarding domain. Within the domain it is no part of the frame: each port says
/// whether the frame leaves with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DomainTag {
    /// No tag has chosen it. What the bytes may have is payload.
    None,
    /// This one, and the bytes have it.
    Present(Tag),
    /// This one; the bytes have another in its place.
    Replacing(Tag),
    /// This one; the bytes have none.
    Absent(Tag),
    /// The frame is in no domain, and the bytes have a tag: that of a router interface, or a priority.
    Foreign,
}

impl DomainTag {
    /// A rule gives a frame `tag`, which came with `own`, if with any.
    pub(crate) fn given(tag: Tag, own: Option<Tag>) -> DomainTag {
        match own {
            None => DomainTag::Absent(tag),
            Some(own) if own == tag => DomainTag::Present(tag),
            Some(_) => DomainTag::Replacing(tag),
        }
    }

    /// The tag, wherever it is.
    #[inline]
    pub(crate) fn tag(self) -> Option<Tag> {
        match self {
            DomainTag::Present(t) | DomainTag::Replacing(t) | DomainTag::Absent(t) => Some(t),
            DomainTag::None | DomainTag::Foreign => None,
        }
    }

    /// Do the bytes have a tag that is not payload?
    #[inline]
    pub(crate) fn in_bytes(self) -> bool {
        match self {
            DomainTag::Present(_) | DomainTag::Replacing(_) | DomainTag::Foreign => true,
            DomainTag::None | DomainTag::Absent(_) => false,
        }
    }

    /// After the bytes have lost it.
    #[inline]
    pub(crate) fn removed(self) -> DomainTag {
        self.tag().map_or(DomainTag::None, DomainTag::Absent)
    }
}
