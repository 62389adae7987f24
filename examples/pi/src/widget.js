// The plan as a few lines of text.

/** How many steps are listed; Pi shows ten lines of a widget at most. */
const MOST_STEPS = 6;
/** How much of a title is shown. */
const MOST_CHARACTERS = 100;

// C0, DEL, C1, the bidirectional marks and the line and paragraph separators: what could redraw a terminal or hide text.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** Text on one line of a terminal: control characters made visible, the end cut off where it is long. */
export function visible(text, most = MOST_CHARACTERS) {
	const shown = text.replace(CONTROL, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);
	const characters = Array.from(shown);
	return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : shown;
}

/**
 * What is being worked on, what can start, and how far the plan is.
 *
 * @param {ReturnType<import("./component.js").PlanComponent["overview"]>} overview
 * @returns {string[] | undefined} nothing where there is no plan
 */
export function widgetLines({ title, completed, total, steps, ready, blocked }) {
	if (title === null) return undefined;
	const skipped = steps.filter((step) => step.status === "skipped").length;
	const done = `${completed} of ${total} done${skipped > 0 ? `, ${skipped} skipped` : ""}`;
	const active = steps.filter((step) => step.status === "in_progress").map((step) => `[>] ${step.id} ${visible(step.title)}`);
	const startable = ready.map((id) => `[ ] ${id} ${visible(steps[id - 1].title)}`);
	const listed = [...active, ...startable];
	const more = [];
	if (listed.length > MOST_STEPS) more.push(`${listed.length - MOST_STEPS} more in progress or ready`);
	if (blocked.length > 0) more.push(`${blocked.length} waiting for others`);
	return [`Plan: ${visible(title)} (${done})`, ...listed.slice(0, MOST_STEPS), ...(more.length > 0 ? [`    ${more.join(", ")}`] : [])];
}
