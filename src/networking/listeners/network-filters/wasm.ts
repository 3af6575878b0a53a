/** Code of WasmPlugins in the way of connections. Listeners have its name, for which proxies ask (ECDS), or the plugin itself where its code is fetched. */
import { RBACSchema } from '../../../gen/envoy/extensions/filters/network/rbac/v3/rbac_pb.ts';
import { WasmSchema } from '../../../gen/envoy/extensions/filters/network/wasm/v3/wasm_pb.ts';
import { wasmFilter } from '../../extensions/wasm-filter.ts';
import { pluginsOf, type WasmPhase } from '../../extensions/wasm-plugins.ts';
import type { NetworkFilterContributor } from './contributor.ts';

function wasmOf(...phases: readonly WasmPhase[]): NetworkFilterContributor {
  return (context) =>
    phases
      .flatMap((phase) => pluginsOf(context, 'NETWORK', phase))
      .map((plugin) => wasmFilter(plugin, context, [WasmSchema, RBACSchema]));
}

/** Before it is decided whether the connection may pass. */
export const wasmBefore = wasmOf('AUTHN', 'AUTHZ');
/** After that. */
export const wasmAfter = wasmOf('STATS', 'UNSPECIFIED_PHASE');
