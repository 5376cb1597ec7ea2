//! The lengths of a matrix's rows, by which the layout for its product is chosen.

/// The rows whose lengths are in one range between powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// The longest row length of the bucket, a power of two; the shortest is one more than half of it.
    pub longest: usize,
    /// The number of rows of such lengths.
    pub rows: usize,
    /// The number of entries of these rows.
    pub entries: usize,
}

/// A histogram of row lengths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowLengths {
    /// The number of rows.
    pub rows: usize,
    /// The number of entries.
    pub entries: usize,
    /// Entries of the shortest row; 0 if there are no rows.
    pub min: usize,
    /// Entries of the longest row; 0 if there are no rows.
    pub max: usize,
    /// The number of rows without entries.
    pub empty: usize,
    /// The rows that have entries, by length: 1, 2, 3–4, 5–8, 9–16 and so on up to the longest row.
    pub buckets: Vec<Bucket>,
}

impl RowLengths {
    /// Makes the histogram of these lengths.
    pub fn of(lengths: impl IntoIterator<Item = usize>) -> Self {
        let mut all =
            RowLengths { rows: 0, entries: 0, min: usize::MAX, max: 0, empty: 0, buckets: Vec::new() };
        for length in lengths {
            all.rows += 1;
            all.entries += length;
            all.min = all.min.min(length);
            all.max = all.max.max(length);
            if length == 0 {
                all.empty += 1;
                continue;
            }
            let number = length.next_power_of_two().trailing_zeros() as usize;
            while all.buckets.len() <= number {
                all.buckets.push(Bucket { longest: 1 << all.buckets.len(), rows: 0, entries: 0 });
            }
            all.buckets[number].rows += 1;
            all.buckets[number].entries += length;
        }
        if all.rows == 0 {
            all.min = 0;
        }
        all
    }

    /// Returns the average number of entries per row; 0 if there are no rows.
    pub fn mean(&self) -> f64 {
        share(self.entries, self.rows)
    }

    /// Returns the share of all rows that a bucket holds, 0 to 1.
    pub fn share_of_rows(&self, bucket: &Bucket) -> f64 {
        share(bucket.rows, self.rows)
    }

    /// Returns the share of all entries that are in a bucket's rows, 0 to 1.
    pub fn share_of_entries(&self, bucket: &Bucket) -> f64 {
        share(bucket.entries, self.entries)
    }
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
