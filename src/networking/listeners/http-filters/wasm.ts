/** Code of WasmPlugins in the way of requests. Listeners have its name, for which proxies ask (ECDS), or the plugin itself where its code is fetched. */
import { RBACSchema } from '../../../gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts';
import { WasmSchema } from '../../../gen/envoy/extensions/filters/http/wasm/v3/wasm_pb.ts';
import { wasmFilter } from '../../extensions/wasm-filter.ts';
import { pluginsOf, type WasmPhase } from '../../extensions/wasm-plugins.ts';
import type { HttpFilterContributor } from './contributor.ts';

function wasmOf(phase: WasmPhase): HttpFilterContributor {
  return (context) =>
    pluginsOf(context, 'HTTP', phase).map((plugin) => wasmFilter(plugin, context, [WasmSchema, RBACSchema]));
}

/** Before the request's token is looked at. */
export const wasmAuthn = wasmOf('AUTHN');
/** Before it is decided whether the request may pass. */
export const wasmAuthz = wasmOf('AUTHZ');
/** After that, before the request is counted. */
export const wasmStats = wasmOf('STATS');
export const wasm = wasmOf('UNSPECIFIED_PHASE');
