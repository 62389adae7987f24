import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

/** Registers the three plan tools and the plan widget. */
export default function planExecute(pi: ExtensionAPI): void;
