/** Code of WasmPlugins in the way of requests. Listeners have its name; what it is, proxies ask for (ECDS). */
import { RBACSchema } from '../../../gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts';
import { WasmSchema } from '../../../gen/envoy/extensions/filters/http/wasm/v3/wasm_pb.ts';
import { extensionName, pluginsOf, type WasmPhase } from '../../extensions/wasm-plugins.ts';
import { adsConfigSource } from '../../messages/config-source-message.ts';
import type { HttpFilterContributor } from './contributor.ts';

const typeUrls = [WasmSchema, RBACSchema].map(({ typeName }) => `type.googleapis.com/${typeName}`);

function wasmOf(phase: WasmPhase): HttpFilterContributor {
  return (context) =>
    pluginsOf(context, 'HTTP', phase).map((plugin) => ({
      name: extensionName(plugin),
      configType: { case: 'configDiscovery', value: { configSource: adsConfigSource, typeUrls: [...typeUrls] } },
    }));
}

/** Before the request's token is looked at. */
export const wasmAuthn = wasmOf('AUTHN');
/** Before it is decided whether the request may pass. */
export const wasmAuthz = wasmOf('AUTHZ');
/** After that, before the request is counted. */
export const wasmStats = wasmOf('STATS');
export const wasm = wasmOf('UNSPECIFIED_PHASE');
