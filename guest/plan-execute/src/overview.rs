//! What is ready and what is blocked: the one derivation that every view uses.

use crate::plan::{Plan, Status};
use plan_guest_support::payload::{Encoding, encode};
use sha2::{Digest, Sha256};

/// A step that cannot start yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// The step.
    pub step: u32,
    /// Its prerequisites that are neither done nor skipped.
    pub waiting_for: Vec<u32>,
}

/// What a panel shows, derived from the plan alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overview {
    /// Steps that are done.
    pub completed: u32,
    /// All steps.
    pub total: u32,
    /// Pending steps whose prerequisites are all done or skipped.
    pub ready: Vec<u32>,
    /// Pending steps that wait for others.
    pub blocked: Vec<Blocked>,
}

/// Derives the overview of `plan`.
pub fn overview(plan: &Plan) -> Overview {
    let mut overview = Overview { total: plan.steps().len() as u32, ..Overview::default() };
    for step in plan.steps() {
        match step.status() {
            Status::Done => overview.completed += 1,
            Status::Pending => match plan.waiting_for(step) {
                missing if missing.is_empty() => overview.ready.push(step.id()),
                waiting_for => overview.blocked.push(Blocked { step: step.id(), waiting_for }),
            },
            Status::InProgress | Status::Skipped => {}
        }
    }
    overview
}

/// SHA-256 of the plan in deterministic CBOR, in lower-case hex.
pub fn digest(plan: &Plan) -> String {
    let hash = Sha256::digest(encode(Encoding::Cbor, plan));
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::Draft;
    use proptest::prelude::*;

    fn plan(statuses: &[Status], edges: &[(u32, Vec<u32>)]) -> Plan {
        let titles = statuses.iter().map(|_| "x".to_owned()).collect();
        let mut plan = Draft::typed("T".into(), titles, edges.iter().cloned()).into_plan().expect("valid");
        for (step, &status) in plan.steps.iter_mut().zip(statuses) {
            step.status = status;
        }
        plan
    }

    #[test]
    fn derives() {
        use Status::*;
        let plan =
            plan(&[Done, Skipped, InProgress, Pending, Pending], &[(3, vec![1, 2]), (4, vec![2, 3]), (5, vec![1, 2])]);
        let expected = Overview {
            completed: 1,
            total: 5,
            ready: vec![5],
            blocked: vec![Blocked { step: 4, waiting_for: vec![3] }],
        };
        assert_eq!(overview(&plan), expected);
    }

    /// The digest is part of the contract: other programs compare it. The value was computed with Python's hashlib over
    /// `a2 65"steps" 81 a3 62"id" 01 65"title" 61"x" 66"status" 67"pending" 65"title" 61"T"`.
    #[test]
    fn digest_is_stable() {
        assert_eq!(
            digest(&plan(&[Status::Pending], &[])),
            "893b704161458f99cfaac6cd93cf771e80d5cd7021ab073636f5bef1b5d443d7"
        );
    }

    proptest! {
        /// While steps are left, something is ready or in progress: no plan can get stuck.
        #[test]
        fn no_plan_gets_stuck(
            changes in prop::collection::vec((1u32..=8, 0usize..4), 0..60),
            edges in prop::collection::btree_map(2u32..=8, prop::collection::vec(1u32..=7, 0..4), 0..8),
        ) {
            let edges: Vec<(u32, Vec<u32>)> =
                edges.into_iter().map(|(step, on)| (step, on.into_iter().filter(|&id| id < step).collect())).collect();
            let mut plan = plan(&[Status::Pending; 8], &edges);
            for (step, status) in changes {
                plan = plan.clone().advanced(step, Status::ALL[status]).unwrap_or(plan);
                let left = plan.steps().iter().any(|step| step.status() == Status::Pending);
                let active = plan.steps().iter().any(|step| step.status() == Status::InProgress);
                prop_assert!(!left || active || !overview(&plan).ready.is_empty(), "{:?}", plan);
                let blocked = overview(&plan).blocked;
                prop_assert!(blocked.iter().all(|b| !b.waiting_for.is_empty()));
            }
        }
    }
}
