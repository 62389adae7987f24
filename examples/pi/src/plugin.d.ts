import type { Context } from "@deepseek-ai/cordis";

export declare const name: "plan-execute";
/** The services that the plugin needs; `piRuntime` is used where it is there. */
export declare const inject: string[];
/** Registers the three plan tools and the plan panel. Throws where `config` has a key. */
export declare function apply(ctx: Context, config?: Record<string, never>): void;

declare const plugin: { name: typeof name; inject: typeof inject; apply: typeof apply };
export default plugin;
