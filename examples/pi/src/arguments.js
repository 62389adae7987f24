// What callers hand in, as JSON text for the component. Arguments come from a model, yet a caller may put anything in.

/** The values that JSON has no word for, by their JSON Pointers, each with what it is called. @typedef {Map<string, string>} Odd */

/** What a value is called that JSON has no word for. A key whose value is undefined is one that was not given. */
function oddity(value, inList) {
	switch (typeof value) {
		case "number":
			return Number.isFinite(value) ? undefined : `${value}`;
		case "bigint":
			return "a BigInt";
		case "function":
		case "symbol":
			return `a ${typeof value}`;
		case "undefined":
			return inList ? "undefined" : undefined;
	}
}

/**
 * Arguments as JSON text.
 *
 * What JSON has no word for becomes `true`, which no argument can be, so that the component refuses it at its place.
 * JSON.stringify would leave it out or make it null, and null in place of the dependencies means none.
 *
 * @param {unknown} params
 * @returns {{ text: string, odd: Odd }} text that is no JSON where the arguments cannot be read at all
 */
export function argumentsText(params) {
	const odd = new Map();
	const paths = new Map();
	function plain(key, value) {
		const above = paths.get(this);
		const path = above === undefined ? "" : `${above}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
		const bare = value instanceof Number || value instanceof BigInt ? value.valueOf() : value;
		const words = oddity(bare, Array.isArray(this));
		if (words !== undefined) {
			odd.set(path, words);
			return true;
		}
		if (typeof bare === "object") paths.set(bare, path);
		return bare;
	}
	try {
		return { text: JSON.stringify(params === undefined ? {} : params, plain) ?? "", odd };
	} catch {
		return { text: "", odd };
	}
}

/**
 * Names what the component saw as `true`: in its sentence, which is returned, and in the faults that the sentence tells.
 *
 * @param {string} sentence
 * @param {{ path: string, message: string }[]} faults
 * @param {Odd} odd
 */
export function withNames(sentence, faults, odd) {
	let told = sentence;
	for (const fault of faults) {
		const words = odd.get(fault.path);
		if (words === undefined) continue;
		const seen = fault.path ? `not true (at ${fault.path})` : "not true.";
		told = told.replace(seen, () => seen.replace("true", words));
		fault.message = fault.message.replace(/not true$/, `not ${words}`);
	}
	return told;
}

/**
 * A configuration as JSON text. A key counts whatever its value is.
 *
 * @param {unknown} config
 * @returns {{ text: string, odd: Odd }}
 */
export function configText(config) {
	if (typeof (config ?? {}) !== "object" || Array.isArray(config)) return argumentsText(config);
	// Key by key: a value that cannot be read must not hide the others.
	const pair = (key) => {
		let value;
		try {
			value = JSON.stringify(config[key]);
		} catch {
			// As good as null.
		}
		return `${JSON.stringify(key)}:${value ?? null}`;
	};
	return { text: `{${Object.keys(config ?? {}).map(pair).join(",")}}`, odd: new Map() };
}
