//! Routes that go with what they lead to.

use super::super::aliases::{Alias, Key};
use super::{Change, Emit, Family};

/// `doubt`: one of them had taken another's place, which may still be there, and so many of its key are left.
pub(super) fn drop_from<K: Key>(
    family: &mut Family<K>,
    hits: &[bool],
    which: &impl Fn(&Alias) -> bool,
    gone: &mut Vec<u32>,
    mut doubt: impl FnMut(usize),
    emit: &mut Emit<'_>,
) -> usize {
    let mut n = 0;
    gone.resize(hits.len().max(gone.len()), 0);
    let displaced = &family.displaced;
    let mut doubted = Vec::new();
    family.aliases.retain(|key, a| {
        let dies = hits.get(a.content as usize) == Some(&true) && which(a);
        if dies {
            n += 1;
            if displaced.contains(key) {
                doubted.push(*key);
            }
            if let Some(count) = gone.get_mut(a.content as usize) {
                *count += 1;
            }
            if let Some(route) = key.route() {
                emit(Change::Remove(&route, a.position));
            }
        }
        !dies
    });
    for key in doubted {
        doubt(family.aliases.list(&key).len());
    }
    n
}
