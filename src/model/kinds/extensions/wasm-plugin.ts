import type { PolicyScope } from '../policies/policy-target.ts';

export interface WasmPlugin extends PolicyScope {
  /** Location with its scheme (`oci://`, `file://`, `http://` or `https://`). */
  readonly url: string;
  readonly sha256?: string;
  readonly imagePullPolicy?: 'UNSPECIFIED_POLICY' | 'IfNotPresent' | 'Always';
  readonly imagePullSecret?: string;
  readonly verificationKey?: string;
  readonly pluginConfig?: Readonly<Record<string, unknown>>;
  readonly pluginName?: string;
  readonly phase?: 'UNSPECIFIED_PHASE' | 'AUTHN' | 'AUTHZ' | 'STATS';
  /** Plugins with higher values come first within a phase. */
  readonly priority?: number;
  readonly failStrategy?: 'FAIL_CLOSE' | 'FAIL_OPEN' | 'FAIL_RELOAD';
  readonly type?: 'UNSPECIFIED_PLUGIN_TYPE' | 'HTTP' | 'NETWORK';
  readonly vmConfig?: { readonly env?: readonly WasmVariable[] };
  readonly match?: readonly WasmMatch[];
}

export interface WasmVariable {
  readonly name: string;
  /** `HOST` reads the value from the proxy's environment. */
  readonly valueFrom?: 'INLINE' | 'HOST';
  readonly value?: string;
}

export interface WasmMatch {
  readonly mode?: 'UNDEFINED' | 'CLIENT' | 'SERVER' | 'CLIENT_AND_SERVER';
  readonly ports?: readonly { readonly number: number }[];
}
