//! Small codes of 64-bit keys.

/// The first slot for a key: the top bits of a product, which depend on all bits of the key.
#[inline]
fn place(key: u64, slots: usize) -> usize {
    let mixed = (key ^ (key >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> (64 - slots.trailing_zeros())) as usize
}

/// Codes of keys in the order of their first row: open addressing on 64-bit keys.
#[derive(Debug, Clone)]
pub(super) struct Dictionary {
    /// (key, code + 1); 0 marks a free slot.
    slots: Vec<(u64, u32)>,
    /// Key and first row of each code.
    pub(super) entries: Vec<(u64, usize)>,
}

impl Dictionary {
    pub(super) fn new() -> Self {
        Self { slots: vec![(0, 0); 16], entries: Vec::new() }
    }

    #[inline]
    pub(super) fn code(&mut self, key: u64, row: usize, same: impl Fn(usize, usize) -> bool) -> u32 {
        let mask = self.slots.len() - 1;
        let mut at = place(key, self.slots.len());
        loop {
            let (slot_key, code) = self.slots[at];
            if code == 0 {
                return self.insert(key, row, at);
            }
            if slot_key == key && same(self.entries[code as usize - 1].1, row) {
                return code - 1;
            }
            at = (at + 1) & mask;
        }
    }

    /// The code of a key that is there.
    #[inline]
    pub(super) fn find(&self, key: u64, row: usize, same: impl Fn(usize, usize) -> bool) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = place(key, self.slots.len());
        loop {
            let (slot_key, code) = self.slots[at];
            if code == 0 {
                return None;
            }
            if slot_key == key && same(self.entries[code as usize - 1].1, row) {
                return Some(code - 1);
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn insert(&mut self, key: u64, row: usize, at: usize) -> u32 {
        self.entries.push((key, row));
        let code = self.entries.len() as u32;
        self.slots[at] = (key, code);
        if self.entries.len() * 2 > self.slots.len() {
            let mask = self.slots.len() * 4 - 1;
            self.slots = vec![(0, 0); mask + 1];
            for (index, &(key, _)) in self.entries.iter().enumerate() {
                let mut at = place(key, self.slots.len());
                while self.slots[at].1 != 0 {
                    at = (at + 1) & mask;
                }
                self.slots[at] = (key, index as u32 + 1);
            }
        }
        code - 1
    }
}
