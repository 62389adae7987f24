//! What the server offers: the tools of its plugins, and the plan as a resource.

use plan_execute_host::{Attached, Event, Saved, Session, ToolDefinition, ToolError, ToolResult, plans};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
        Implementation, JsonObject, ListResourcesResult, ListToolsResult, MetaObject, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents,
        ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter,
        Tool, ToolAnnotations, UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde_json::Value;
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};
use tokio::{sync::Mutex as AsyncMutex, task::AbortHandle};

/// The plan of the branch that the session stands on, as a resource.
const PLAN: &str = "plan-execute://plan";
/// How many streams of notifications a client may have open.
const MAX_LISTENERS: usize = 16;

/// The server. It serves one client.
pub(super) struct Server {
    session: Session,
    /// In order. No two of them have tools of one name.
    plugins: Vec<Attached>,
    tools: Vec<Tool>,
    /// The first plugin that keeps plans. Only with such a one there is a resource.
    plans: Option<Attached>,
    /// Held while a call finds its place in the queue, so that calls keep the order in which they came.
    queueing: AsyncMutex<()>,
    /// Tells a client of the older protocol of changes.
    notifier: Mutex<Option<AbortHandle>>,
    listeners: AtomicUsize,
}

impl Server {
    /// `plugins`: on that session, without tools of one name.
    pub(super) fn new(session: Session, plugins: Vec<Attached>) -> Server {
        Server {
            session,
            tools: plugins.iter().flat_map(|attached| attached.plugin().tools()).map(tool).collect(),
            plans: plugins.iter().find(|attached| attached.plans().is_ok()).cloned(),
            plugins,
            queueing: AsyncMutex::default(),
            notifier: Mutex::default(),
            listeners: AtomicUsize::new(0),
        }
    }

    fn session(&self) -> &Session {
        &self.session
    }

    /// Calls a tool. After a write of unknown outcome the session is opened again first: its storage is ours.
    async fn call(
        &self,
        plugin: &Attached,
        name: &str,
        arguments: &str,
    ) -> Result<Result<ToolResult, ToolError>, String> {
        let queueing = self.queueing.lock().await;
        if self.session().reopen_required().is_some() {
            self.session().reopen().await.map_err(|e| {
                format!("a write failed, and the session cannot be reopened yet ({e}): call again in a moment")
            })?;
        }
        let queued = plugin.queue(name, arguments).await.map_err(|e| e.to_string())?;
        drop(queueing);
        queued.await.map_err(|e| e.to_string())
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
            Ok(Ok(result)) => success(result),
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
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.check_uri(&request.uri)?;
        let contents = ResourceContents::text(self.plan().await?, PLAN).with_mime_type("application/json");
        Ok(ReadResourceResponse::Complete(ReadResourceResult::new(vec![contents])))
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.check_uri(&request.uri)?;
        let (mut events, peer) = (self.session().subscribe(), context.peer);
        let notifier = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                if changes_plan(&event)
                    && peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(PLAN)).await.is_err()
                {
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
        let mut events = self.session().subscribe();
        self.listeners.fetch_add(1, Ordering::Relaxed);
        loop {
            tokio::select! {
                () = context.cancelled() => break,
                event = events.next() => match event {
                    Some(event) if changes_plan(&event) => {
                        // A client that asked for nothing of this hears nothing of it.
                        if context.accepted().resource_subscriptions.is_some()
                            && context.sink().notify_resource_updated(PLAN).await.is_err()
                        {
                            break;
                        }
                    }
                    Some(_) => {}
                    None => break,
                },
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

fn success(result: ToolResult) -> CallToolResult {
    let mut answer = CallToolResult::success(vec![ContentBlock::text(result.text)]);
    answer.structured_content = serde_json::from_str(&result.details).ok();
    answer
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

#[cfg(test)]
mod tests {
    use super::*;
    use async_trait::async_trait;
    use plan_execute_host::{
        Grants, Host, components,
        journal::{
            AppendError, Appended, CheckedPayload, Durability, Encoding, Entry, Journal, Memory, Position, ReadError,
        },
    };
    use std::sync::atomic::AtomicBool;

    /// A journal in memory whose next write is kept, or not, while nobody hears of it.
    #[derive(Clone, Default)]
    struct Doubtful {
        memory: Memory,
        doubt: Arc<AtomicBool>,
        keeps: bool,
    }

    #[async_trait]
    impl Journal for Doubtful {
        fn durability(&self) -> Durability {
            self.memory.durability()
        }
        fn preferred_encoding(&self) -> Encoding {
            self.memory.preferred_encoding()
        }
        async fn position(&self) -> Result<Position, ReadError> {
            self.memory.position().await
        }
        async fn latest(&self, at: &Position, custom_type: &str) -> Result<Option<Entry>, ReadError> {
            self.memory.latest(at, custom_type).await
        }
        async fn entries(
            &self,
            at: &Position,
            custom_type: &str,
            before: Option<&str>,
            limit: u32,
        ) -> Result<Vec<Entry>, ReadError> {
            self.memory.entries(at, custom_type, before, limit).await
        }
        async fn append(
            &self,
            at: &Position,
            custom_type: &str,
            payload: &CheckedPayload,
        ) -> Result<Appended, AppendError> {
            let doubt = self.doubt.swap(false, Ordering::Relaxed);
            if !doubt || self.keeps {
                let appended = self.memory.append(at, custom_type, payload).await?;
                if !doubt {
                    return Ok(appended);
                }
            }
            Err(AppendError::Failed("the line went dead".into()))
        }
        async fn branch(&self, entry: Option<&str>) -> Result<Position, ReadError> {
            self.memory.branch(entry).await
        }
        async fn reopen(&self) -> Result<Position, ReadError> {
            self.memory.reopen().await
        }
    }

    #[tokio::test]
    async fn after_a_failed_write_the_next_call_opens_the_session_again() {
        let cache = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tmp/compiled");
        let host = Host::builder().cache(cache).build().unwrap();
        let plugin = host.load(components::PLAN_EXECUTE).await.unwrap();
        for keeps in [true, false] {
            let journal = Doubtful { keeps, ..Doubtful::default() };
            let session = host.open(journal.clone()).await.unwrap();
            let plans = session.attach(&plugin, "{}", Grants::Declared).await.unwrap();
            let server = Server::new(session, vec![plans.clone()]);
            server.call(&plans, "plan_create", r#"{"title":"T","steps":["a"]}"#).await.unwrap().unwrap();
            journal.doubt.store(true, Ordering::Relaxed);
            let refused =
                server.call(&plans, "plan_advance", r#"{"step":1,"status":"done"}"#).await.unwrap().unwrap_err();
            assert_eq!(refused.code, "reopen-required");
            let status = if keeps { "done" } else { "pending" };
            assert!(server.plan().await.unwrap().contains(status), "what the storage holds counts");
            server.call(&plans, "plan_advance", r#"{"step":1,"status":"skipped"}"#).await.unwrap().unwrap();
            assert!(server.plan().await.unwrap().contains("skipped"));
        }
    }
}
