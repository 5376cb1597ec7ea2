//! The handover of cells between threads, for the planes that wait at the levels: through slots of workgroup
//! memory, or by shuffles.

use abide_core::plan::streaming::portable::Handover;

use super::Writer;
use crate::text::Text;
use crate::wgsl::moved;
use crate::wgsl::overlapped::declare_slots;

impl Writer<'_> {
    /// Returns the entry point's argument that numbers the threads. Where cells are shuffled, a window is one
    /// subgroup, and the numbers are those that shuffles use.
    pub(super) fn thread(&self) -> Text {
        let builtin = match self.streaming.configuration.handover {
            Handover::Shuffles => "subgroup_invocation_id",
            Handover::Slots | Handover::DoubleSlots => "local_invocation_index",
        };
        [format!("@builtin({builtin}) thread: u32,")].into_iter().collect()
    }

    /// Returns the words of all levels' slots, and the words of padding before and behind them. Taps beyond
    /// the window land in the padding.
    fn slots(&self) -> [usize; 2] {
        let copies = self.streaming.configuration.handover.copies();
        let pad = self.arrivals.iter().map(|arrival| arrival.exchange.pad).max().unwrap_or(0);
        if copies == 0 { [0, 0] } else { [self.first_slot(self.levels()) * self.threads(), pad] }
    }

    /// Returns the number of a level's first slot.
    fn first_slot(&self, level: usize) -> usize {
        (0..level).map(|before| self.arrival(before).exchange.slots).sum()
    }

    /// Returns the declarations through which cells are handed over: the shuffling function or the slots.
    pub(super) fn declared(&self) -> Text {
        let mut text = Text::default();
        let [words, pad] = self.slots();
        let handover = self.streaming.configuration.handover;
        if handover == Handover::Shuffles {
            text.push("// The value of a thread further on; a subgroup's threads are a power of two.");
            text.push("fn shuffled(value: real, thread: u32, further: u32) -> real {");
            text.push(format!(
                "return subgroupShuffle(value, (thread + further) & {}u);",
                self.threads() - 1
            ));
            text.push("}");
            text.blank();
        } else if words > 0 {
            declare_slots(&mut text, handover.copies() * words + 2 * pad);
        }
        text
    }

    /// Writes where the thread's own slots begin, and the stores of the cells that wait first.
    pub(super) fn first_slots(&self, text: &mut Text) {
        let [words, pad] = self.slots();
        if words > 0 {
            let renewed = self.streaming.configuration.handover == Handover::DoubleSlots;
            text.push(format!("{} here = t + {pad};", if renewed { "var" } else { "let" }));
            self.publish(text);
        }
    }

    /// Writes the barrier before a plane's cells are read, after which all of them are there.
    pub(super) fn wait(&self, text: &mut Text) {
        if self.slots()[0] > 0 {
            text.push("workgroupBarrier();");
        }
    }

    /// Writes the stores into slots after a plane, of the cells that wait now. Slots that other threads still
    /// read are not overwritten.
    pub(super) fn renew(&self, text: &mut Text) {
        let [words, pad] = self.slots();
        if words == 0 {
            return;
        }
        match self.streaming.configuration.handover {
            Handover::DoubleSlots => text.push(format!("here = 2 * t + {} - here;", 2 * pad + words)),
            Handover::Slots | Handover::Shuffles => text.push("workgroupBarrier();"),
        }
        self.publish(text);
    }

    /// Writes the stores into the thread's slots of those cells of the waiting planes that other threads
    /// need.
    fn publish(&self, text: &mut Text) {
        for level in 0..self.levels() {
            let first = self.first_slot(level);
            for (field, given) in self.arrival(level).exchange.fields.iter().enumerate() {
                let Some(given) = given else { continue };
                let ranks = given.ranks.iter().enumerate().filter_map(|(cell, rank)| Some((cell, (*rank)?)));
                text.extend(ranks.map(|(cell, rank)| {
                    let offset = moved(((first + given.first + rank) * self.threads()) as isize);
                    format!("slots[here{offset}] = u{level}_{field}_{cell};")
                }));
            }
        }
    }

    /// Returns the expression for the cell of this rank that waits at a level, in the thread at distance
    /// `thread` from this one. Beyond the window the expression may have any value, because what is made of
    /// that value is wrong already and not kept.
    pub(super) fn given(&self, level: usize, field: usize, rank: usize, thread: isize) -> String {
        let given = self.arrival(level).exchange.fields[field].as_ref();
        if self.streaming.configuration.handover == Handover::Shuffles {
            let ranks = given.map_or(&[][..], |given| &given.ranks);
            let cell = ranks.iter().position(|&other| other == Some(rank)).unwrap_or_default();
            let further = thread.rem_euclid(self.threads() as isize);
            return format!("shuffled(u{level}_{field}_{cell}, thread, {further}u)");
        }
        let first = self.first_slot(level) + given.map_or(0, |given| given.first);
        format!("slots[here{}]", moved(((first + rank) * self.threads()) as isize + thread))
    }
}
