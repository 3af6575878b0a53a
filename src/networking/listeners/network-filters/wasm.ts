/** Code of WasmPlugins in the way of connections. Listeners have its name; what it is, proxies ask for (ECDS). */
import { RBACSchema } from '../../../gen/envoy/extensions/filters/network/rbac/v3/rbac_pb.ts';
import { WasmSchema } from '../../../gen/envoy/extensions/filters/network/wasm/v3/wasm_pb.ts';
import { extensionName, pluginsOf, type WasmPhase } from '../../extensions/wasm-plugins.ts';
import { adsConfigSource } from '../../messages/config-source-message.ts';
import type { NetworkFilterContributor } from './contributor.ts';

const typeUrls = [WasmSchema, RBACSchema].map(({ typeName }) => `type.googleapis.com/${typeName}`);

function wasmOf(...phases: readonly WasmPhase[]): NetworkFilterContributor {
  return (context) =>
    phases
      .flatMap((phase) => pluginsOf(context, 'NETWORK', phase))
      .map((plugin) => ({
        name: extensionName(plugin),
        configType: { case: 'configDiscovery', value: { configSource: adsConfigSource, typeUrls: [...typeUrls] } },
      }));
}

/** Before it is decided whether the connection may pass. */
export const wasmBefore = wasmOf('AUTHN', 'AUTHZ');
/** After that. */
export const wasmAfter = wasmOf('STATS', 'UNSPECIFIED_PHASE');
