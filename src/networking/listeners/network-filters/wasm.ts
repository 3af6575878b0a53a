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

export const wasmBeforeRbac = wasmOf('AUTHN', 'AUTHZ');
export const wasmAfter = wasmOf('STATS', 'UNSPECIFIED_PHASE');
