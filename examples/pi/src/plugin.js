// The Cordis plugin for Pi Harness.

import { PlanComponent, PlanError, aborted } from "./component.js";
import { Branch } from "./journal.js";

export const name = "plan-execute";
export const inject = ["piSession", "piPluginUi", "piTools"];

const PACKAGE = "plan-execute-pi";
const DISPOSED = "The plan plugin was disposed, so nothing was saved: load it again.";

/** Calls every disposer, the last first; what one of them throws keeps none of the others. */
function release(disposers) {
	const thrown = [];
	for (const dispose of disposers.splice(0).reverse()) {
		try {
			dispose();
		} catch (error) {
			thrown.push(error);
		}
	}
	if (thrown.length > 0) throw thrown[0];
}

/**
 * @param {import("@deepseek-ai/cordis").Context} ctx
 * @param {object} [config] an object without keys, yet
 */
export function apply(ctx, config) {
	const plan = new PlanComponent(config);
	let disposed = false;

	// Taken once: each use of a property of `ctx` records a stack trace, which is a fifth of a call.
	const get = ctx.get.bind(ctx);
	const { fiber, piSession } = ctx;
	const manager = () => get("piRuntime")?.session?.sessionManager ?? piSession.manager;
	const append = (manager, customType, data) => manager.appendCustomEntry(customType, data);

	const check = (signal) => {
		// Cordis takes the number away when disposal begins, and runs the disposers some microtasks later.
		if (disposed || fiber.uid === null) throw new PlanError("disposed", DISPOSED);
		if (signal?.aborted) throw aborted(signal);
	};

	const toolOf = (definition) => ({
		...definition,
		async execute(_callId, params, signal) {
			check(signal);
			const branch = new Branch(manager, append);
			// One microtask later, as the harness expects it: of two calls made at once the second finds the branch changed.
			await undefined;
			check(signal);
			return plan.call(branch, definition.name, params);
		},
	});

	const panel = {
		id: "plan-execute-panel",
		pluginId: PACKAGE,
		title: "Plan",
		description: "The plan of this conversation branch and how far it is.",
		icon: "list-checks",
		read() {
			check();
			const { title, completed, total, steps } = plan.overview(new Branch(manager, append));
			return { title, completed, total, steps };
		},
	};

	ctx.effect(() => {
		const disposers = [];
		try {
			for (const definition of plan.tools) disposers.push(ctx.piTools.register(toolOf(definition)));
			disposers.push(ctx.piPluginUi.register(panel));
		} catch (error) {
			disposed = true;
			try {
				release(disposers);
			} catch {
				// The first error is the one to tell.
			}
			throw error;
		}
		return () => {
			disposed = true;
			release(disposers);
		};
	}, "plan-execute");
}

export default { name, inject, apply };
