//! What the server offers: the tools of its plugins, and the plan as a resource.

use super::requests::Requests;
use plan_execute_host::{Attached, Event, Saved, Session, Subscription, ToolDefinition, ToolError, ToolResult, plans};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
        Implementation, JsonObject, ListResourcesResult, ListToolsResult, MetaObject, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, RequestId, Resource, ResourceContents,
        ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter,
        Tool, ToolAnnotations, UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde_json::{Value, value::RawValue};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering},
};
use tokio::{
    sync::{Mutex as AsyncMutex, watch},
    task::AbortHandle,
};

/// The plan of the branch that the session stands on, as a resource.
const PLAN: &str = "plan-execute://plan";
/// Where this server's calls left the session.
#[derive(Default)]
struct Left {
    leaf: Option<Arc<str>>,
    /// Calls that may still move it.
    running: usize,
}

/// A call that runs, for [`Left`].
struct Runs<'a>(&'a Server);

/// How many streams of notifications a client may have open.
const MAX_LISTENERS: usize = 16;

/// The server. It serves one client.
pub(super) struct Server {
    session: Session,
    /// In order. No two of them have tools of one name.
    plugins: Vec<Attached>,
    requests: Requests,
    tools: Vec<Tool>,
    /// The first plugin that keeps plans. Only with such a one there is a resource.
    plans: Option<Attached>,
    /// Held while a call finds its place in the queue, so that calls keep the order in which they came.
    queueing: AsyncMutex<()>,
    left: Mutex<Left>,
    /// How often the session was found elsewhere than this server's calls left it.
    moved: watch::Sender<u64>,
    /// Tells a client of the older protocol of changes.
    notifier: Mutex<Option<AbortHandle>>,
    listeners: AtomicUsize,
}

impl Server {
    /// `plugins`: on that session, without tools of one name.
    pub(super) fn new(session: Session, plugins: Vec<Attached>, requests: Requests) -> Server {
        let left = Mutex::new(Left { leaf: session.known_position().leaf, running: 0 });
        Server {
            session,
            tools: plugins.iter().flat_map(|attached| attached.plugin().tools()).map(tool).collect(),
            plans: plugins.iter().find(|attached| attached.plans().is_ok()).cloned(),
            plugins,
            requests,
            queueing: AsyncMutex::default(),
            left,
            moved: watch::Sender::default(),
            notifier: Mutex::default(),
            listeners: AtomicUsize::new(0),
        }
    }

    /// Calls a tool. After a write of unknown outcome the session is opened again first: its storage is ours.
    async fn call(
        &self,
        plugin: &Attached,
        name: &str,
        arguments: &str,
    ) -> Result<Result<ToolResult, ToolError>, String> {
        let queueing = self.queueing.lock().await;
        if self.session.reopen_required().is_some() {
            self.session.reopen().await.map_err(|e| {
                format!("a write failed, and the session cannot be reopened yet ({e}): call again in a moment")
            })?;
        }
        let queued = plugin.queue(name, arguments).await.map_err(|e| e.to_string())?;
        let _runs = self.begin();
        drop(queueing);
        queued.await.map_err(|e| e.to_string())
    }

    /// A call was queued, and so the session looked at. Where it is not where the calls before left it, others were there, or a
    /// write whose outcome was unknown was kept.
    fn begin(&self) -> Runs<'_> {
        let leaf = self.session.known_position().leaf;
        let mut left = self.left();
        if left.running == 0 && left.leaf != leaf {
            left.leaf = leaf;
            self.moved.send_modify(|times| *times += 1);
        }
        left.running += 1;
        Runs(self)
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What may change the plan from now on.
    fn changes(&self) -> Changes {
        Changes { saved: self.session.subscribe(), moved: self.moved.subscribe() }
    }

    /// The plan as JSON text; `null` where there is none.
    async fn plan(&self) -> Result<String, ErrorData> {
        let Some(plugin) = &self.plans else { return Ok("null".into()) };
        match self.call(plugin, "plan_get", "{}").await {
            Ok(Ok(plan)) => Ok(plan.text),
            Ok(Err(error)) if error.code == "no-plan" => Ok("null".into()),
            Ok(Err(error)) => Err(ErrorData::internal_error(error.message, None)),
            Err(error) => Err(ErrorData::internal_error(error, None)),
        }
    }

    fn success(&self, result: ToolResult, id: &RequestId) -> CallToolResult {
        if let Some(details) = details(result.details) {
            self.requests.put_by(id, details);
        }
        CallToolResult::success(vec![ContentBlock::text(result.text)])
    }

    fn check_uri(&self, uri: &str) -> Result<(), ErrorData> {
        if self.plans.is_some() && uri == PLAN {
            return Ok(());
        }
        let known = if self.plans.is_some() { PLAN } else { "none" };
        Err(ErrorData::resource_not_found(format!("there is no resource {uri:?}: this server has {known}"), None))
    }

    fn set_notifier(&self, notifier: Option<AbortHandle>) {
        let mut held = self.notifier.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = std::mem::replace(&mut *held, notifier) {
            before.abort();
        }
    }
}

impl Drop for Runs<'_> {
    fn drop(&mut self) {
        let mut left = self.0.left();
        left.running -= 1;
        left.leaf = self.0.session.known_position().leaf;
    }
}

/// Changes of the plan.
struct Changes {
    saved: Subscription,
    moved: watch::Receiver<u64>,
}

impl Changes {
    /// Waits for the next one; false at the end.
    async fn next(&mut self) -> bool {
        loop {
            tokio::select! {
                event = self.saved.next() => match event {
                    Some(event) if changes_plan(&event) => return true,
                    Some(_) => {}
                    None => return false,
                },
                moved = self.moved.changed() => return moved.is_ok(),
            }
        }
    }
}

/// Does this change the plan, or may it have?
fn changes_plan(event: &Event) -> bool {
    match event {
        Event::Saved(Saved { custom_type, .. }) => custom_type == plans::CUSTOM_TYPE,
        Event::Missed(_) => true,
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.set_notifier(None);
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder().enable_tools().build();
        if self.plans.is_some() {
            capabilities.resources =
                ServerCapabilities::builder().enable_resources().enable_resources_subscribe().build().resources;
        }
        let mut server = match &self.plugins[..] {
            [attached] => Implementation::new(&attached.plugin().info().name, &attached.plugin().info().version),
            // With several plugins, it is the program that the client talks to.
            _ => Implementation::new("plan-execute", env!("CARGO_PKG_VERSION")),
        };
        let mut config = ServerConfig::new(capabilities);
        if self.plans.is_some() {
            server = server.with_title("Plans kept in the session");
            config = config.with_instructions(
                "Lay out work of several steps with plan_create, record progress with plan_advance, and look at the plan with \
                 plan_get. The plan is saved in the session and outlives this conversation.",
            );
        }
        config.with_server_info(server)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let having = |attached: &&Attached| attached.plugin().tool(&request.name).is_some();
        let Some(plugin) = self.plugins.iter().find(having) else {
            let names: Vec<&str> = self.tools.iter().map(|tool| &*tool.name).collect();
            let message = format!("there is no tool {:?}: this server has {}", request.name, names.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let arguments = request.arguments.map_or_else(|| "{}".into(), |arguments| Value::Object(arguments).to_string());
        let answer = tokio::select! {
            answer = self.call(plugin, &request.name, &arguments) => answer,
            // Nobody waits for it any more. A write that is under way ends all the same.
            () = context.ct.cancelled() => Err("the call was cancelled".into()),
        };
        Ok(CallToolResponse::Complete(match answer {
            Ok(Ok(result)) => self.success(result, &context.id),
            Ok(Err(error)) => refusal(error),
            Err(error) => CallToolResult::error(vec![ContentBlock::text(error)]),
        }))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let plan = Resource::new(PLAN, "plan")
            .with_title("Plan")
            .with_description("The plan of this session, as plan_get gives it; null while there is none.")
            .with_mime_type("application/json");
        Ok(ListResourcesResult::with_all_items(if self.plans.is_some() { vec![plan] } else { Vec::new() }))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.check_uri(&request.uri)?;
        let plan = tokio::select! {
            plan = self.plan() => plan?,
            // Nobody waits for it any more.
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("the request was cancelled", None)),
        };
        let contents = ResourceContents::text(plan, PLAN).with_mime_type("application/json");
        Ok(ReadResourceResponse::Complete(ReadResourceResult::new(vec![contents])))
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.check_uri(&request.uri)?;
        let (mut changes, peer) = (self.changes(), context.peer);
        let notifier = tokio::spawn(async move {
            while changes.next().await {
                if peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(PLAN)).await.is_err() {
                    break;
                }
            }
        });
        self.set_notifier(Some(notifier.abort_handle()));
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.check_uri(&request.uri)?;
        self.set_notifier(None);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        if self.listeners.load(Ordering::Relaxed) >= MAX_LISTENERS {
            return None;
        }
        let mut accepted = SubscriptionFilter::new();
        let plan = requested.resource_subscriptions.iter().flatten().any(|uri| uri == PLAN);
        accepted.resource_subscriptions = (self.plans.is_some() && plan).then(|| vec![PLAN.to_owned()]);
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes();
        self.listeners.fetch_add(1, Ordering::Relaxed);
        // A client that asked for nothing of this hears nothing of it.
        let asked = context.accepted().resource_subscriptions.is_some();
        loop {
            tokio::select! {
                () = context.cancelled() => break,
                () = self.requests.input_ended() => break,
                more = changes.next() => {
                    if !more || (asked && context.sink().notify_resource_updated(PLAN).await.is_err()) {
                        break;
                    }
                }
            }
        }
        self.listeners.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }

    /// What no method of the protocol took: an unknown one, or one with wrong parameters.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        const SERVED: [&str; 8] = [
            "initialize",
            "tools/list",
            "tools/call",
            "resources/list",
            "resources/read",
            "resources/subscribe",
            "resources/unsubscribe",
            "subscriptions/listen",
        ];
        let method = request.method;
        if SERVED.contains(&method.as_str()) {
            let message = format!("the parameters of {method} are not those that the protocol asks for");
            return Err(ErrorData::invalid_params(message, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method {method:?}"), None))
    }
}

/// A tool as the protocol describes it.
fn tool(definition: &ToolDefinition) -> Tool {
    let annotations = ToolAnnotations::with_title(&definition.label)
        .read_only(definition.read_only)
        .destructive(definition.destructive)
        .idempotent(definition.idempotent)
        // A plugin reaches the journal and nothing else.
        .open_world(false);
    Tool::new(definition.name.clone(), definition.description.clone(), schema(&definition.input_schema))
        .with_title(&definition.label)
        .with_raw_output_schema(schema(&definition.output_schema))
        .with_annotations(annotations)
}

/// A schema, which was found to be a JSON object when the plugin was loaded.
fn schema(text: &str) -> Arc<JsonObject> {
    Arc::new(serde_json::from_str(text).unwrap_or_default())
}

/// Details as one line of JSON; `None` where they are no JSON.
fn details(details: String) -> Option<Box<RawValue>> {
    let details = RawValue::from_string(details).ok()?;
    if !details.get().contains(['\n', '\r']) {
        return Some(details);
    }
    // They stand between values: no string in JSON holds one.
    RawValue::from_string(details.get().replace(['\n', '\r'], " ")).ok()
}

/// The sentence is for the model; the code and the particulars are for a client that wants to act on them.
fn refusal(error: ToolError) -> CallToolResult {
    let mut answer = CallToolResult::error(vec![ContentBlock::text(error.message)]);
    let mut meta = MetaObject::default();
    meta.0.insert("plan-execute/code".into(), error.code.into());
    if let Some(data) = error.data.and_then(|data| serde_json::from_str::<Value>(&data).ok()) {
        meta.0.insert("plan-execute/data".into(), data);
    }
    answer.meta = Some(meta);
    answer
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use super::*;
    use plan_execute_host::{
        Grants, Host, components,
        journal::{
            Journal, Memory, Payload,
            fault::{Faulty, How, Operation},
        },
    };

    #[test]
    fn details_are_one_line() {
        for (text, line) in [
            ("{}", Some("{}")),
            ("{\r\n \"a\": \"\\n\"\n}\n", Some("{   \"a\": \"\\n\" }")),
            ("{\"a\": \"\n\"}", None),
            ("{", None),
            ("", None),
        ] {
            assert_eq!(details(text.into()).as_deref().map(RawValue::get), line, "{text:?}");
        }
    }

    #[tokio::test]
    async fn after_a_failed_write_the_next_call_opens_the_session_again() {
        let cache = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tmp/compiled");
        let host = Host::builder().cache(cache).build().unwrap();
        let component = host.load(components::PLAN_EXECUTE).await.unwrap();
        for kept in [true, false] {
            let journal = Faulty::new(Memory::default());
            let session = host.open(journal.clone()).await.unwrap();
            let plugin = session.attach(&component, "{}", Grants::Declared).await.unwrap();
            let server = Server::new(session, vec![plugin.clone()], Requests::new());
            server.call(&plugin, "plan_create", r#"{"title":"T","steps":["a"]}"#).await.unwrap().unwrap();
            journal.next(Operation::Append, How::Middle { kept });
            let refused =
                server.call(&plugin, "plan_advance", r#"{"step":1,"status":"done"}"#).await.unwrap().unwrap_err();
            assert_eq!(refused.code, "reopen-required");
            let status = if kept { "done" } else { "pending" };
            let mut changes = server.changes();
            assert!(server.plan().await.unwrap().contains(status), "what the storage holds counts");
            assert_eq!(changes.moved.has_changed().unwrap(), kept, "a write that was kept changes the plan");
            changes.moved.mark_unchanged();
            server.call(&plugin, "plan_advance", r#"{"step":1,"status":"skipped"}"#).await.unwrap().unwrap();
            assert!(server.plan().await.unwrap().contains("skipped"));
            assert!(changes.next().await, "saved");
            assert!(!changes.moved.has_changed().unwrap());
            // Someone else appends.
            let at = journal.inner().position().await.unwrap();
            let payload =
                Payload::json("{\"title\":\"Theirs\",\"steps\":[{\"id\":1,\"title\":\"a\",\"status\":\"pending\"}]}");
            journal.inner().append(&at, plans::CUSTOM_TYPE, &payload.check().unwrap()).await.unwrap();
            assert!(server.plan().await.unwrap().contains("Theirs"));
            assert!(changes.next().await, "moved by someone else");
            server.plan().await.unwrap();
            assert!(!changes.moved.has_changed().unwrap());
        }
    }
}
