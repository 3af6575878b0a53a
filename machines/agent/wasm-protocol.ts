export interface WasmModule {
  readonly id: number;
  /** The response on this xDS stream refers to the module. */
  readonly stream: number;
  /** `namespace.name` of the WasmPlugin. */
  readonly extension: string;
  readonly url: string;
  /** SHA-256 in hexadecimal of the module, or of the manifest of the image; empty if any module is valid. */
  readonly sha256: string;
  /** Version of the plugin if each version fetches its module again; otherwise empty. */
  readonly version: string;
}

/** xds-stream-N/upstream → xds-stream-N → xds-proxy. A response of the control plane refers to a module that Envoy cannot fetch. */
export type ModuleRequired = { type: 'module.required' } & WasmModule;
/** xds-stream-N/upstream → xds-stream-N → xds-proxy. A newer response replaced the one that refers to the module. */
export type ModuleReleased = { type: 'module.released'; id: number };
/** wasm-module-N → xds-proxy → xds-stream-N → xds-stream-N/upstream. Envoy can read the module from this file. */
export type ModuleFetched = { type: 'module.fetched'; id: number; stream: number; file: string };
/** wasm-module-N → xds-proxy → xds-stream-N → xds-stream-N/upstream. Several attempts failed; more follow. */
export type ModuleFailed = { type: 'module.failed'; id: number; stream: number; reason: string };
