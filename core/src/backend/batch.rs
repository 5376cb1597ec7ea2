//! Batches by sessions: a session of each member.

use super::{Session, check_field, check_fields, check_values, check_window};
use crate::error::Result;
use crate::plan::Plan;
use crate::program::Problem;
use crate::real::Array;

/// Advances all of some sessions by as many steps, and returns the seconds that the device took.
pub type Advance = dyn Fn(&mut [Box<dyn Session>], u64) -> Result<f64> + Send;

/// The batch of a backend that has no kernel for a whole batch: one session per member, and a function that advances
/// these sessions.
///
/// Every member is the session that it would be alone, so it has the same bits. What a session of a batch
/// takes and gives, here as in any backend, has the members one after another.
pub struct MemberSessions {
    problem: Problem,
    plan: Plan,
    sessions: Vec<Box<dyn Session>>,
    advance: Box<Advance>,
}

impl MemberSessions {
    /// Opens a session for each member by `open`; they advance one after another.
    pub fn open(
        problem: &Problem,
        plan: &Plan,
        fields: Vec<Array>,
        mut open: impl FnMut(&Problem, &Plan, Vec<Array>) -> Result<Box<dyn Session>>,
    ) -> Result<MemberSessions> {
        plan.check(problem)?;
        check_fields(problem, &fields)?;
        let of_member = plan.of_member();
        let sessions = divide(problem, fields)?.into_iter().enumerate();
        let sessions = sessions.map(|(member, fields)| open(&problem.member(member), &of_member, fields));
        let sessions: Vec<_> = sessions.collect::<Result<_>>()?;
        // A session's own plan may differ from the given one.
        let ran = sessions.first().map_or(&of_member, |session| session.plan());
        let plan = Plan { batch: plan.batch, ..ran.clone() };
        Ok(MemberSessions { problem: problem.clone(), plan, sessions, advance: Box::new(in_turn) })
    }

    /// Returns the same batch, whose members advance in another way.
    pub fn advancing(self, advance: Box<Advance>) -> MemberSessions {
        MemberSessions { advance, ..self }
    }

    /// Concatenates what the sessions return: `len` values.
    fn join(
        &mut self,
        len: usize,
        read: impl FnMut(&mut Box<dyn Session>) -> Result<Array>,
    ) -> Result<Array> {
        Array::join(self.problem.dtype, len, self.sessions.iter_mut().map(read))
    }
}

/// Divides the fields of a batch, whose number and sizes have been checked, into those of each member.
pub fn divide(problem: &Problem, fields: Vec<Array>) -> Result<Vec<Vec<Array>>> {
    let mut own: Vec<Vec<Array>> = (0..problem.members()).map(|_| Vec::new()).collect();
    // A field is given back before the next is divided: two copies of all fields would be many bytes.
    for (number, field) in fields.into_iter().enumerate() {
        let values = problem.values_of(number);
        for (member, own) in own.iter_mut().enumerate() {
            own.push(field.part(member * values..(member + 1) * values)?);
        }
    }
    Ok(own)
}

fn in_turn(sessions: &mut [Box<dyn Session>], steps: u64) -> Result<f64> {
    sessions.iter_mut().try_fold(0.0, |seconds, session| Ok(seconds + session.advance(steps)?))
}

impl Session for MemberSessions {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn advance(&mut self, steps: u64) -> Result<f64> {
        (self.advance)(&mut self.sessions, steps)
    }

    fn read(&mut self, field: usize) -> Result<Array> {
        let values = self.problem.values_of(field);
        self.join(values * self.problem.members(), |session| session.read(field))
    }

    fn read_window(&mut self, field: usize, low: [usize; 3], high: [usize; 3]) -> Result<Array> {
        let window = check_window(self.problem.extents_of(field), low, high)?;
        let values = window.iter().product::<usize>() * self.problem.members();
        self.join(values, |session| session.read_window(field, low, high))
    }

    fn write(&mut self, field: usize, values: &Array) -> Result<()> {
        check_field(&self.problem, field, values)?;
        let own = self.problem.values_of(field);
        let mut sessions = self.sessions.iter_mut().enumerate();
        sessions.try_for_each(|(at, session)| session.write(field, &values.part(at * own..(at + 1) * own)?))
    }

    fn write_window(
        &mut self,
        field: usize,
        low: [usize; 3],
        high: [usize; 3],
        values: &Array,
    ) -> Result<()> {
        let own = check_values(&self.problem, field, low, high, values)?.iter().product::<usize>();
        let mut sessions = self.sessions.iter_mut().enumerate();
        sessions.try_for_each(|(at, session)| {
            session.write_window(field, low, high, &values.part(at * own..(at + 1) * own)?)
        })
    }

    fn non_finite(&mut self, field: usize) -> Result<u64> {
        self.sessions.iter_mut().try_fold(0, |sum, session| Ok(sum + session.non_finite(field)?))
    }

    fn scalars(&mut self) -> Result<Vec<f64>> {
        let all = self.sessions.iter_mut().map(|session| session.scalars()).collect::<Result<Vec<_>>>()?;
        Ok(all.concat())
    }

    fn set_parameter(&mut self, parameter: usize, value: f64) -> Result<()> {
        self.sessions.iter_mut().try_for_each(|session| session.set_parameter(parameter, value))
    }
}
