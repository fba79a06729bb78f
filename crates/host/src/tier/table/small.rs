//! What is on its way, by page or frame: as much as there are requests inside.

/// No key.
const NONE: u32 = u32::MAX;

/// A map from numbers to a few values, which grows with what it has to hold and
/// then stays.
#[derive(Clone, Default)]
pub(super) struct Small<T> {
    keys: Vec<u32>,
    values: Vec<T>,
    count: usize,
}

impl<T: Copy + Default> Small<T> {
    fn home(&self, key: u32) -> usize {
        let mixed = u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (self.keys.len() - 1)
    }

    fn find(&self, key: u32) -> Result<usize, usize> {
        let mut place = self.home(key);
        loop {
            match self.keys[place] {
                found if found == key => return Ok(place),
                NONE => return Err(place),
                _ => place = (place + 1) & (self.keys.len() - 1),
            }
        }
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: u32) -> Option<&T> {
        if self.count == 0 {
            return None;
        }
        self.find(key).ok().map(|place| &self.values[place])
    }

    /// The value of a key, to change.
    #[inline]
    pub fn get_mut(&mut self, key: u32) -> Option<&mut T> {
        if self.count == 0 {
            return None;
        }
        self.find(key).ok().map(|place| &mut self.values[place])
    }

    /// The value of a key, which gets the default one if it has none.
    pub fn entry(&mut self, key: u32) -> &mut T {
        if self.count * 2 >= self.keys.len() {
            self.grow();
        }
        let place = match self.find(key) {
            Ok(place) => place,
            Err(place) => {
                self.count += 1;
                (self.keys[place], self.values[place]) = (key, T::default());
                place
            }
        };
        &mut self.values[place]
    }

    fn grow(&mut self) {
        let places = (self.keys.len() * 2).max(64);
        let keys = std::mem::replace(&mut self.keys, vec![NONE; places]);
        let values = std::mem::replace(&mut self.values, vec![T::default(); places]);
        for (key, value) in keys.into_iter().zip(values).filter(|(key, _)| *key != NONE) {
            let (Ok(place) | Err(place)) = self.find(key);
            (self.keys[place], self.values[place]) = (key, value);
        }
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: u32) {
        let Ok(mut hole) = self.find(key) else { return };
        self.count -= 1;
        let mask = self.keys.len() - 1;
        let mut place = hole;
        loop {
            place = (place + 1) & mask;
            let moved = self.keys[place];
            if moved == NONE {
                break;
            }
            let distance = |from: usize| place.wrapping_sub(from) & mask;
            if distance(self.home(moved)) >= distance(hole) {
                (self.keys[hole], self.values[hole]) = (moved, self.values[place]);
                hole = place;
            }
        }
        self.keys[hole] = NONE;
    }

    /// Takes all out.
    pub fn clear(&mut self) {
        self.keys.fill(NONE);
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use flashkeel_engine::Stream;

    use super::*;

    #[test]
    fn the_map_is_a_map() {
        let mut random = Stream::new(1, "small");
        let (mut small, mut map) = (Small::<u64>::default(), BTreeMap::new());
        for round in 0..100_000u64 {
            let key = random.below(if round < 50_000 { 40 } else { 900 }) as u32 * 32;
            if random.chance(0.5) {
                *small.entry(key) = round;
                map.insert(key, round);
            } else if map.remove(&key).is_some() {
                small.remove(key);
            }
            let other = random.below(900) as u32 * 32;
            assert_eq!(small.get(other), map.get(&other));
            assert_eq!(small.count, map.len());
        }
    }
}
