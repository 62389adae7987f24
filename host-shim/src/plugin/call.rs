//! What a plugin sees of the session during one call: the host's side of `session-journal`.

use super::{
    bindings::plan_execute::plugin::session_journal as wit,
    grants::Grants,
    queue::{Handle, Queue},
};
use crate::{
    Kept, Limit, Limits,
    journal::{AppendError, Encoding, Entry, Guard, Payload, Position, ReadError},
    sandbox::{Meter, Metered},
};
use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use wasmtime::component::{HasData, Linker, Resource, ResourceTable};

/// The longest custom type or entry id that a plugin may name, in bytes.
pub(super) const MAX_NAME: usize = 256;

/// May a custom type be called so? Not every storage keeps every control character.
pub(super) fn is_type_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && !name.contains(char::is_control)
}

/// The data of the store of one call.
pub(crate) struct CallState {
    meter: Meter,
    table: ResourceTable,
    limits: Arc<Limits>,
    encoding: Encoding,
    operations: usize,
    appends: usize,
    /// What became of the appends of this call, for whoever looks when the call is gone.
    kept: Arc<Mutex<Kept>>,
}

/// The branch that a call was queued at.
#[expect(unreachable_pub, reason = "the generated bindings re-export it, in a private module")]
pub struct BranchHandle {
    access: Access,
    /// Was it looked at whether the session still stands there?
    checked: bool,
}

/// Is it the first operation of its call?
struct First(bool);

/// What a call may reach.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) guard: Arc<Guard>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) handle: Arc<Handle>,
    pub(crate) grants: Arc<Grants>,
    /// The plugin's name.
    pub(crate) plugin: Arc<str>,
}

impl CallState {
    pub(crate) fn new(limits: &Arc<Limits>, encoding: Encoding, kept: Arc<Mutex<Kept>>) -> CallState {
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        CallState {
            meter: Meter::new(Arc::clone(limits)),
            table,
            limits: Arc::clone(limits),
            encoding,
            operations: 0,
            appends: 0,
            kept,
        }
    }

    /// The handle that a call is made with.
    pub(crate) fn lend(&mut self, access: Access) -> wasmtime::Result<Resource<BranchHandle>> {
        let limit = Limit::Handles(self.limits.handles);
        let handle = self.table.push(BranchHandle { access, checked: false }).map_err(|_| self.meter.reach(limit))?;
        Ok(Resource::new_borrow(handle.rep()))
    }

    /// Counts one operation.
    fn operation(&mut self) -> wasmtime::Result<()> {
        self.operations += 1;
        if self.operations > self.limits.operations {
            return Err(self.meter.reach(Limit::Operations(self.limits.operations)));
        }
        Ok(())
    }

    /// Begins an operation that looks at the branch.
    fn begin(
        &mut self,
        branch: &Resource<BranchHandle>,
        custom_type: &str,
    ) -> wasmtime::Result<Result<(Access, bool), ReadError>> {
        self.operation()?;
        let branch = self.table.get(branch)?;
        let plugin = &branch.access.plugin;
        if !is_type_name(custom_type) {
            let bytes = custom_type.len();
            let reason = format!(
                "the plugin {plugin} named a custom type of {bytes} bytes, and one has 1 to {MAX_NAME} without control characters"
            );
            return Ok(Err(ReadError::Denied(reason)));
        }
        if !branch.access.grants.cover(custom_type) {
            let reason = format!("the plugin {plugin} was not granted the custom type {custom_type:?}");
            return Ok(Err(ReadError::Denied(reason)));
        }
        Ok(Ok((branch.access.clone(), branch.checked)))
    }

    /// Waits for the journal. That time does not count as the plugin's.
    async fn outside<T>(&mut self, operation: impl Future<Output = T>) -> T {
        self.meter.pause();
        let result = operation.await;
        self.meter.resume();
        result
    }

    /// Reads. The first operation of a call looks whether the session still stands where the call was queued.
    async fn read<T, F: Future<Output = Result<T, ReadError>>>(
        &mut self,
        branch: &Resource<BranchHandle>,
        custom_type: &str,
        read: impl FnOnce(Arc<Guard>, Position, First) -> F,
    ) -> wasmtime::Result<Result<T, ReadError>> {
        let (access, checked) = match self.begin(branch, custom_type)? {
            Ok(begun) => begun,
            Err(error) => return Ok(Err(error)),
        };
        let result = self
            .outside(async { read(Arc::clone(&access.guard), access.handle.known()?, First(!checked)).await })
            .await;
        if result.is_ok() {
            self.table.get_mut(branch)?.checked = true;
        }
        Ok(result)
    }

    /// The entry, where it is not larger than the plugin may read.
    fn readable(&self, entry: Entry) -> Result<Entry, ReadError> {
        let (bytes, limit) = (entry.payload.bytes.len(), self.limits.payload_read);
        if bytes > limit {
            return Err(ReadError::Other(format!(
                "the entry {} holds {bytes} bytes, and a plugin reads at most {limit}: branch before it, or start a new session",
                entry.id
            )));
        }
        Ok(entry)
    }

    fn handle(&mut self, branch: &Resource<BranchHandle>) -> wasmtime::Result<Arc<Handle>> {
        self.operation()?;
        Ok(Arc::clone(&self.table.get(branch)?.access.handle))
    }
}

/// What became of the appends so far.
pub(super) fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Metered for CallState {
    fn meter(&mut self) -> &mut Meter {
        &mut self.meter
    }
}

struct Data;

impl HasData for Data {
    type Data<'a> = &'a mut CallState;
}

/// Puts `session-journal` into a linker.
pub(crate) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<CallState, Data>(linker, |state| state)
}

impl wit::Host for CallState {
    async fn preferred_encoding(&mut self) -> wasmtime::Result<wit::Encoding> {
        self.operation()?;
        Ok(self.encoding.into())
    }
}

impl wit::HostBranch for CallState {
    async fn session_id(&mut self, branch: Resource<BranchHandle>) -> wasmtime::Result<String> {
        Ok(self.handle(&branch)?.position().session_id.to_string())
    }

    async fn session_token(&mut self, branch: Resource<BranchHandle>) -> wasmtime::Result<String> {
        Ok(self.handle(&branch)?.position().token())
    }

    async fn leaf(&mut self, branch: Resource<BranchHandle>) -> wasmtime::Result<Option<String>> {
        Ok(self.handle(&branch)?.position().leaf.map(|leaf| leaf.to_string()))
    }

    async fn queued_at_ms(&mut self, branch: Resource<BranchHandle>) -> wasmtime::Result<u64> {
        Ok(self.handle(&branch)?.queued_at_ms)
    }

    async fn call_id(&mut self, branch: Resource<BranchHandle>) -> wasmtime::Result<String> {
        Ok(self.handle(&branch)?.call_id.clone())
    }

    async fn latest(
        &mut self,
        branch: Resource<BranchHandle>,
        custom_type: String,
    ) -> wasmtime::Result<Result<Option<wit::Entry>, wit::ReadError>> {
        let ty = custom_type.clone();
        let read = |guard: Arc<Guard>, at, First(first)| async move {
            match first {
                true => guard.check_latest(&at, &ty).await,
                false => guard.latest(&at, &ty).await,
            }
        };
        let entry = self.read(&branch, &custom_type, read).await?;
        let entry = entry.and_then(|entry| entry.map(|entry| self.readable(entry)).transpose());
        Ok(entry.map(|entry| entry.map(Into::into)).map_err(Into::into))
    }

    async fn entries(
        &mut self,
        branch: Resource<BranchHandle>,
        custom_type: String,
        before: Option<String>,
        limit: u32,
    ) -> wasmtime::Result<Result<Vec<wit::Entry>, wit::ReadError>> {
        if before.as_ref().is_some_and(|id| id.len() > MAX_NAME || id.contains('\0')) {
            self.operation()?;
            let reason = format!("no entry has an id of more than {MAX_NAME} bytes, or with a NUL in it");
            return Ok(Err(ReadError::NotFound(reason).into()));
        }
        let ty = custom_type.clone();
        let read = |guard: Arc<Guard>, at, First(first)| async move {
            if first {
                guard.check(&at).await?;
            }
            guard.entries(&at, &ty, before.as_deref(), limit).await
        };
        let entries = self.read(&branch, &custom_type, read).await?;
        let entries = entries.and_then(|page| {
            page.into_iter().map(|entry| self.readable(entry).map(Into::into)).collect::<Result<_, _>>()
        });
        Ok(entries.map_err(Into::into))
    }

    async fn append(
        &mut self,
        branch: Resource<BranchHandle>,
        custom_type: String,
        payload: wit::Payload,
    ) -> wasmtime::Result<Result<wit::Appended, wit::AppendError>> {
        let access = match self.begin(&branch, &custom_type)? {
            Ok((access, _)) => access,
            Err(error) => return Ok(Err(AppendError::from(error).into())),
        };
        self.appends += 1;
        if self.appends > self.limits.appends {
            return Err(self.meter.reach(Limit::Appends(self.limits.appends)));
        }
        let payload = Payload { encoding: payload.encoding.into(), bytes: payload.bytes };
        let most = self.limits.payload;
        let kept = Arc::clone(&self.kept);
        let unknown = lock(&kept).unknown;
        let result = self
            .outside(async {
                let position = access.handle.known()?;
                let saved = access.queue.saver(&position, &custom_type, &access.plugin, access.guard.durability());
                let begun = || lock(&kept).unknown = true;
                let payload = match payload.bytes.len() > most {
                    true => Err(AppendError::TooLarge(most.try_into().unwrap_or(u32::MAX))),
                    false => payload.check(),
                };
                access.guard.append(&position, &custom_type, payload, begun, saved).await
            })
            .await;
        let mut kept = lock(&kept);
        // What an earlier append of this call left unknown stays so.
        kept.unknown = unknown || matches!(result, Err(AppendError::Failed(_)));
        if let Ok(appended) = &result {
            kept.entries.push(appended.id.clone());
        }
        drop(kept);
        Ok(result.map(Into::into).map_err(Into::into))
    }

    async fn drop(&mut self, branch: Resource<BranchHandle>) -> wasmtime::Result<()> {
        self.table.delete(branch)?;
        Ok(())
    }
}

impl From<wit::Encoding> for Encoding {
    fn from(encoding: wit::Encoding) -> Self {
        match encoding {
            wit::Encoding::Json => Encoding::Json,
            wit::Encoding::Cbor => Encoding::Cbor,
        }
    }
}

impl From<Encoding> for wit::Encoding {
    fn from(encoding: Encoding) -> Self {
        match encoding {
            Encoding::Json => wit::Encoding::Json,
            Encoding::Cbor => wit::Encoding::Cbor,
        }
    }
}

impl From<Entry> for wit::Entry {
    fn from(entry: Entry) -> Self {
        let payload = wit::Payload { encoding: entry.payload.encoding.into(), bytes: entry.payload.bytes };
        wit::Entry { id: entry.id, timestamp_ms: entry.timestamp_ms, payload }
    }
}

impl From<crate::journal::Appended> for wit::Appended {
    fn from(appended: crate::journal::Appended) -> Self {
        let durability = match appended.durability {
            crate::journal::Durability::Memory => wit::Durability::Memory,
            crate::journal::Durability::Stored => wit::Durability::Stored,
        };
        wit::Appended { id: appended.id, timestamp_ms: appended.timestamp_ms, durability }
    }
}

impl From<ReadError> for wit::ReadError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::SessionChanged => Self::SessionChanged,
            ReadError::BranchChanged => Self::BranchChanged,
            ReadError::ReopenRequired(reason) => Self::ReopenRequired(reason),
            ReadError::Denied(reason) => Self::Denied(reason),
            ReadError::NotFound(reason) => Self::NotFound(reason),
            ReadError::Unavailable(reason) => Self::Unavailable(reason),
            ReadError::Other(reason) => Self::Other(reason),
        }
    }
}

impl From<AppendError> for wit::AppendError {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::SessionChanged => Self::SessionChanged,
            AppendError::BranchChanged => Self::BranchChanged,
            AppendError::ReopenRequired(reason) => Self::ReopenRequired(reason),
            AppendError::Denied(reason) => Self::Denied(reason),
            AppendError::TooLarge(limit) => Self::TooLarge(limit),
            AppendError::InvalidPayload(reason) => Self::InvalidPayload(reason),
            AppendError::Unavailable(reason) => Self::Unavailable(reason),
            AppendError::Failed(reason) => Self::Failed(reason),
            AppendError::Other(reason) => Self::Other(reason),
        }
    }
}
