//! The operations on the plan of a branch, in the order of their checks: session, branch and latch; then the saved plan;
//! then the arguments.

use crate::{
    CUSTOM_TYPE,
    draft::Draft,
    error::PlanError,
    journal::{AppendError, Branch, ReadError},
    overview::{Overview, digest, overview},
    plan::{Plan, Status},
    saved,
};
use plan_guest_support::payload::encode;
use std::collections::VecDeque;

/// What a panel shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// The plan, where there is one.
    pub plan: Option<Plan>,
    /// The journal entry that holds it.
    pub revision: Option<String>,
    /// Its digest: [`digest`].
    pub digest: Option<String>,
    /// What is ready and what is blocked.
    pub overview: Overview,
}

/// The plan operations. It keeps nothing of a plan; only which openings had a write of unknown outcome.
#[derive(Debug, Default)]
pub struct Planner {
    latch: Latch,
}

impl Planner {
    /// Makes `draft` the plan of the branch.
    ///
    /// # Errors
    ///
    /// Those of reading, of [`Draft::into_plan`] and of saving.
    pub fn create<B: Branch>(
        &mut self,
        on: &B,
        draft: impl FnOnce() -> Result<Draft, PlanError>,
    ) -> Result<Plan, PlanError> {
        self.read(on)?;
        let plan = draft()?.into_plan()?;
        self.save(on, plan)
    }

    /// Changes the status of one step. `change` names both once the saved plan is known to be there.
    ///
    /// # Errors
    ///
    /// [`PlanError::NoPlan`], and those of reading, of [`Plan::advanced`] and of saving.
    pub fn advance<B: Branch>(
        &mut self,
        on: &B,
        change: impl FnOnce(&Plan) -> Result<(u32, Status), PlanError>,
    ) -> Result<Plan, PlanError> {
        let plan = self.get(on)?;
        let (step, status) = change(&plan)?;
        self.save(on, plan.advanced(step, status)?)
    }

    /// The plan as it stands.
    ///
    /// # Errors
    ///
    /// [`PlanError::NoPlan`], and those of reading.
    pub fn get<B: Branch>(&self, on: &B) -> Result<Plan, PlanError> {
        self.read(on)?.map(|(_, plan)| plan).ok_or(PlanError::NoPlan)
    }

    /// The plan with what a panel shows of it. A branch without a plan is no error.
    ///
    /// # Errors
    ///
    /// Those of reading.
    pub fn overview<B: Branch>(&self, on: &B) -> Result<Summary, PlanError> {
        let Some((revision, plan)) = self.read(on)? else { return Ok(Summary::default()) };
        let (digest, overview) = (digest(&plan), overview(&plan));
        Ok(Summary { plan: Some(plan), revision: Some(revision), digest: Some(digest), overview })
    }

    /// The saved plan and the entry that holds it. Only the newest entry counts, also where it is invalid.
    fn read<B: Branch>(&self, on: &B) -> Result<Option<(String, Plan)>, PlanError> {
        let newest = on.latest(CUSTOM_TYPE)?;
        self.latch.check(on)?;
        let Some(entry) = newest else { return Ok(None) };
        match saved::read(entry.encoding, &entry.bytes) {
            Ok(plan) => Ok(Some((entry.id, plan))),
            Err(fault) => Err(PlanError::SavedPlanInvalid { entry: entry.id, fault }),
        }
    }

    fn save<B: Branch>(&mut self, on: &B, plan: Plan) -> Result<Plan, PlanError> {
        let encoding = on.preferred_encoding();
        match on.append(CUSTOM_TYPE, encoding, encode(encoding, &plan)) {
            Ok(()) => Ok(plan),
            Err(AppendError::Refused(reason)) => Err(reason.into()),
            Err(AppendError::TooLarge(limit)) => Err(PlanError::TooLarge(limit)),
            Err(AppendError::Failed(reason)) => {
                self.latch.close(on.session_token(), &reason);
                Err(PlanError::ReopenRequired(reason))
            }
        }
    }
}

impl From<ReadError> for PlanError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::SessionChanged => PlanError::SessionChanged,
            ReadError::BranchChanged => PlanError::BranchChanged,
            ReadError::ReopenRequired(reason) => PlanError::ReopenRequired(reason),
            ReadError::Denied(reason) => PlanError::Denied(reason),
            ReadError::Unavailable(reason) => PlanError::Unavailable(reason),
            ReadError::Other(reason) => PlanError::Other(reason),
        }
    }
}

/// The openings that had a write of unknown outcome.
///
/// The host keeps such a latch too. This one counts where an instance lives long and its host is a thin layer over another
/// program's journal, as in JavaScript.
#[derive(Debug, Default)]
struct Latch {
    closed: VecDeque<(String, String)>,
}

impl Latch {
    /// More openings than any host has at once; tokens are never used again, so the oldest may go.
    const MOST: usize = 256;

    fn close(&mut self, token: String, reason: &str) {
        if self.closed.len() == Self::MOST {
            self.closed.pop_front();
        }
        self.closed.push_back((token, reason.to_owned()));
    }

    fn check<B: Branch>(&self, on: &B) -> Result<(), PlanError> {
        if self.closed.is_empty() {
            return Ok(());
        }
        let token = on.session_token();
        match self.closed.iter().find(|(closed, _)| *closed == token) {
            Some((_, reason)) => Err(PlanError::ReopenRequired(reason.clone())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Entry;
    use plan_guest_support::payload::Encoding;
    use std::cell::RefCell;

    /// One branch whose answers can be scripted.
    #[derive(Default)]
    struct Double {
        token: String,
        entries: RefCell<Vec<Vec<u8>>>,
        read: Option<ReadError>,
        append: Option<AppendError>,
    }

    impl Branch for Double {
        fn session_token(&self) -> String {
            self.token.clone()
        }
        fn preferred_encoding(&self) -> Encoding {
            Encoding::Json
        }
        fn latest(&self, custom_type: &str) -> Result<Option<Entry>, ReadError> {
            assert_eq!(custom_type, CUSTOM_TYPE);
            if let Some(error) = &self.read {
                return Err(error.clone());
            }
            let newest = self.entries.borrow().last().cloned();
            Ok(newest.map(|bytes| Entry { id: "e".into(), encoding: Encoding::Json, bytes }))
        }
        fn append(&self, _: &str, encoding: Encoding, bytes: Vec<u8>) -> Result<(), AppendError> {
            assert_eq!(encoding, Encoding::Json);
            if let Some(error) = &self.append {
                return Err(error.clone());
            }
            self.entries.borrow_mut().push(bytes);
            Ok(())
        }
    }

    fn draft() -> Result<Draft, PlanError> {
        Ok(Draft::typed("T".into(), vec!["a".into()], []))
    }

    fn blank() -> Result<Draft, PlanError> {
        Ok(Draft::typed("".into(), vec![], []))
    }

    #[test]
    fn what_reading_says_comes_before_the_arguments() {
        for error in [
            ReadError::SessionChanged,
            ReadError::BranchChanged,
            ReadError::ReopenRequired("r".into()),
            ReadError::Denied("r".into()),
            ReadError::Unavailable("r".into()),
            ReadError::Other("r".into()),
        ] {
            let on = Double { read: Some(error.clone()), ..Double::default() };
            let expected = PlanError::from(error);
            let mut planner = Planner::default();
            assert_eq!(planner.create(&on, blank), Err(expected.clone()));
            assert_eq!(planner.advance(&on, |_| panic!("arguments were looked at")), Err(expected.clone()));
            assert_eq!(planner.get(&on), Err(expected.clone()));
            assert_eq!(planner.overview(&on), Err(expected));
        }
    }

    #[test]
    fn no_plan_comes_before_the_arguments() {
        let on = Double::default();
        let mut planner = Planner::default();
        assert_eq!(planner.advance(&on, |_| panic!("arguments were looked at")), Err(PlanError::NoPlan));
        assert_eq!(planner.get(&on), Err(PlanError::NoPlan));
        assert_eq!(planner.overview(&on), Ok(Summary::default()));
    }

    #[test]
    fn an_invalid_saved_plan_stays_untouched() {
        let on = Double { entries: RefCell::new(vec![b"null".to_vec()]), ..Double::default() };
        let mut planner = Planner::default();
        for result in [
            planner.create(&on, draft),
            planner.create(&on, blank),
            planner.advance(&on, |_| panic!()),
            planner.get(&on),
        ] {
            assert!(matches!(result, Err(PlanError::SavedPlanInvalid { ref entry, .. }) if entry == "e"), "{result:?}");
        }
        assert_eq!(on.entries.borrow().len(), 1);
    }

    #[test]
    fn refusals_of_an_append_cost_one_call() {
        for (error, expected) in [
            (AppendError::Refused(ReadError::BranchChanged), PlanError::BranchChanged),
            (AppendError::Refused(ReadError::Unavailable("full".into())), PlanError::Unavailable("full".into())),
            (AppendError::TooLarge(7), PlanError::TooLarge(7)),
        ] {
            let mut on = Double { append: Some(error), ..Double::default() };
            let mut planner = Planner::default();
            assert_eq!(planner.create(&on, draft), Err(expected));
            on.append = None;
            assert!(planner.create(&on, draft).is_ok());
        }
    }

    #[test]
    fn a_failed_append_closes_this_opening_alone() {
        let mut on = Double { token: "s#1".into(), ..Double::default() };
        let mut planner = Planner::default();
        planner.create(&on, draft).expect("nothing is wrong yet");
        on.append = Some(AppendError::Failed("cut off".into()));
        let expected = PlanError::ReopenRequired("cut off".into());
        assert_eq!(planner.create(&on, draft), Err(expected.clone()));
        on.append = None;
        assert_eq!(planner.get(&on), Err(expected.clone()));
        assert_eq!(planner.overview(&on), Err(expected.clone()));
        assert_eq!(planner.create(&on, blank), Err(expected.clone()));
        // Session and branch come before the latch.
        on.read = Some(ReadError::BranchChanged);
        assert_eq!(planner.get(&on), Err(PlanError::BranchChanged));
        on.read = None;
        // Another opening is another matter, and does not open this one.
        on.token = "s#2".into();
        assert!(planner.get(&on).is_ok());
        on.token = "s#1".into();
        assert_eq!(planner.get(&on), Err(expected));
    }
}
