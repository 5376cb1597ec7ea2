//! Turns in lanes, as text: those of a tree sum, by one thread lane by lane or by the threads of a team, and those that a team
//! shares because they only store.

use abide_core::expr::{Loop, Tap};

use super::{Writer, counter};

impl<'a, T, C> Writer<'a, T, C>
where
    T: FnMut(Tap) -> String,
    C: FnMut(Tap, [i64; 2], &str) -> Option<String>,
{
    /// Writes the turns of a tree sum, one lane after another. Of each size of blocks of lanes one waits for its neighbour.
    pub(super) fn lane_by_lane(&mut self, number: u16) {
        let looped = self.looped;
        let Loop { turns, carried: all, .. } = &looped.loops[usize::from(number)];
        let (lanes, levels, lane) = (turns.lanes(), turns.levels(), format!("l{number}"));
        let waiting = |name: &str, level: usize| format!("before_{}_{level}", &name[1..]);
        let sums: Vec<String> = (0..all.len()).map(|k| self.carried(number, k)).collect();
        let real = self.language.real(self.dtype);
        for sum in &sums {
            for name in (0..levels).map(|level| waiting(sum, level)).chain([sum.clone()]) {
                let (c, wgsl) = (format!("{real} {name};"), format!("var {name}: {real};"));
                self.statements.push(self.language.own(&c, &wgsl).to_owned());
            }
        }
        let c = format!("#pragma unroll 1\nfor (int {lane} = 0; {lane} < {lanes}; ++{lane}) {{");
        let wgsl = format!("for (var {lane}: i32 = 0; {lane} < {lanes}; {lane}++) {{");
        self.statements.push(self.language.own(&c, &wgsl).to_owned());
        for (sum, one) in sums.iter().zip(all) {
            let start = &self.names[one.start as usize];
            self.statements.push(format!("{sum} = {start};"));
        }
        self.each_turn(number, Some((&lane, lanes)));
        // As many blocks as the number of the lane ends in ones are complete with it.
        for level in 0..levels {
            self.statements.push(format!("if (({lane} & {}) != 0) {{", 1 << level));
            let join = |sum: &String| format!("{sum} = {} + {sum};", waiting(sum, level));
            self.statements.extend(sums.iter().map(join));
        }
        for level in (0..levels).rev() {
            self.statements.push("} else {".to_owned());
            self.statements.extend(sums.iter().map(|sum| format!("{} = {sum};", waiting(sum, level))));
            self.statements.push("}".to_owned());
        }
        self.statements.push("}".to_owned());
    }

    /// Writes the turns of a loop that the threads of a team share.
    pub(super) fn by_team(&mut self, number: u16) {
        let looped = self.looped;
        let all = &looped.loops[usize::from(number)].carried;
        self.starts(number, all);
        self.is_shared_around = true;
        self.each_turn(number, Some(("lane_of_team()", self.team)));
        self.is_shared_around = false;
        for k in 0..all.len() {
            let sum = self.carried(number, k);
            self.statements.push(format!("{sum} = team_sum({sum});"));
        }
    }

    /// Writes the turns of a loop one by one: all of them or, of a lane and a number of lanes, each of the lane's.
    pub(super) fn each_turn(&mut self, number: u16, lane: Option<(&str, usize)>) {
        let looped = self.looped;
        let Loop { turns, body, .. } = &looped.loops[usize::from(number)];
        let (together, i) = (self.turns_together(body), counter(number));
        let (mut from, to) = (self.index(turns.from, 0), turns.to);
        let mut step = self.language.own(&format!("++{i}"), &format!("{i}++")).to_owned();
        if let Some((lane, lanes)) = lane {
            from = format!("{from} + {lane}");
            step = format!("{i} += {lanes}");
        }
        let c = format!("#pragma unroll {together}\nfor (int {i} = {from}; {i} < {to}; {step}) {{");
        let wgsl = format!("for (var {i}: i32 = {from}; {i} < {to}; {step}) {{");
        self.statements.push(self.language.own(&c, &wgsl).to_owned());
        self.items(body);
        self.replace(number);
        self.statements.push("}".to_owned());
    }
}
