// The Pi extension.

import { PlanComponent, aborted } from "./component.js";
import { Branch, wordsOf } from "./journal.js";
import { visible, widgetLines } from "./widget.js";

const WIDGET = "plan-execute";

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function planExecute(pi) {
	const plan = new PlanComponent();

	// Taken anew for each call: a context is valid for its own session alone.
	const branchOf = (ctx) =>
		new Branch(
			() => ctx.sessionManager,
			(manager, customType, data) => {
				const before = manager.getLeafId();
				pi.appendEntry(customType, data);
				return childOf(manager, before);
			},
		);

	// A view: that it cannot be shown must stop neither a call nor another handler.
	const refresh = (ctx) => {
		try {
			if (!ctx.hasUI) return;
			let lines;
			try {
				lines = widgetLines(plan.overview(branchOf(ctx)));
			} catch (error) {
				// Whole, for its end says what to do.
				lines = [`Plan: ${visible(wordsOf(error), 1000)}`];
			}
			ctx.ui.setWidget(WIDGET, lines);
		} catch {
			// The session or its user interface is gone.
		}
	};

	for (const definition of plan.tools) {
		pi.registerTool({
			...definition,
			// Without an await inside: calls made at once run one after another, each on the leaf that the one before left.
			async execute(_callId, params, signal, _onUpdate, ctx) {
				if (signal?.aborted) throw aborted(signal);
				try {
					return plan.call(branchOf(ctx), definition.name, params);
				} finally {
					refresh(ctx);
				}
			},
		});
	}

	// The plan itself is read from the branch at each call, so there is nothing else to restore.
	pi.on("session_start", (_event, ctx) => refresh(ctx));
	pi.on("session_tree", (_event, ctx) => refresh(ctx));
}

/**
 * The id of the entry that was appended below `before`. `pi.appendEntry` returns none, and a listener that it tells may have
 * appended more by now.
 */
function childOf(manager, before) {
	let id = manager.getLeafId();
	for (let steps = 0; id && id !== before && steps < 1000; steps += 1) {
		const parent = manager.getEntry(id)?.parentId ?? null;
		if (parent === (before ?? null)) return id;
		id = parent;
	}
	return undefined;
}
