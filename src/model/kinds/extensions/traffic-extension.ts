import type { PolicyScope } from '../policies/policy-target.ts';
import type { WasmMatch, WasmPlugin } from './wasm-plugin.ts';

export interface TrafficExtension extends PolicyScope {
  readonly phase?: 'UNSPECIFIED' | 'AUTHN' | 'AUTHZ' | 'STATS';
  /** Extensions with higher values come first within a phase. */
  readonly priority?: number;
  readonly match?: readonly WasmMatch[];
  readonly wasm?: WasmCode;
  readonly lua?: { readonly inlineCode: string };
}

export type WasmCode = Pick<
  WasmPlugin,
  | ('url' | 'sha256' | 'imagePullPolicy' | 'imagePullSecret' | 'verificationKey')
  | ('pluginConfig' | 'pluginName' | 'failStrategy' | 'type' | 'vmConfig')
>;
