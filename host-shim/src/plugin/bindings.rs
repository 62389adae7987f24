//! The bindings of the contract in `wit/`.

#![allow(missing_docs, reason = "generated; the documentation stands in the WIT")]
#![allow(unreachable_pub, reason = "generated")]
#![allow(unsafe_code, reason = "generated")]

wasmtime::component::bindgen!({
    path: "wit",
    world: "plan-execute",
    imports: { default: async | trappable },
    exports: { default: async },
    with: { "plan-execute:plugin/session-journal.branch": super::call::BranchHandle },
    additional_derives: [PartialEq, Eq],
});
