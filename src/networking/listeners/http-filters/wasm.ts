/** The filter contains a name that ECDS configures, or the plugin itself if Envoy fetches its code. */
import { RBACSchema } from '../../../gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts';
import { WasmSchema } from '../../../gen/envoy/extensions/filters/http/wasm/v3/wasm_pb.ts';
import { wasmFilter } from '../../extensions/wasm-filter.ts';
import { pluginsOf, type WasmPhase } from '../../extensions/wasm-plugins.ts';
import type { HttpFilterContributor } from './contributor.ts';

function wasmOf(phase: WasmPhase): HttpFilterContributor {
  return (context) =>
    pluginsOf(context, 'HTTP', phase).map((plugin) => wasmFilter(plugin, context, [WasmSchema, RBACSchema]));
}

export const wasmAuthn = wasmOf('AUTHN');
export const wasmAuthz = wasmOf('AUTHZ');
/** Runs after authorization, and before the statistics filters. */
export const wasmStats = wasmOf('STATS');
export const wasm = wasmOf('UNSPECIFIED_PHASE');
