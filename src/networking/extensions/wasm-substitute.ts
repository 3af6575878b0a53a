/** The filter that stands for Wasm code that a proxy does not get: everything passes, or nothing does. */
import type { Any } from '@bufbuild/protobuf/wkt';
import { RBAC_Action } from '../../gen/envoy/config/rbac/v3/rbac_pb.ts';
import { RBACSchema as HttpRbacSchema } from '../../gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts';
import { RBACSchema as NetworkRbacSchema } from '../../gen/envoy/extensions/filters/network/rbac/v3/rbac_pb.ts';
import { pack } from '../messages/any.ts';
import type { WasmLevel } from './wasm-plugins.ts';

/** @param failsOpen requests or connections pass; otherwise they get 403, or are closed */
export function wasmSubstitute(level: WasmLevel, failsOpen: boolean): Any {
  const rules = failsOpen ? undefined : { action: RBAC_Action.ALLOW, policies: {} };
  return level === 'NETWORK'
    ? pack(NetworkRbacSchema, { statPrefix: 'wasm.', ...(rules && { rules }) })
    : pack(HttpRbacSchema, rules && { rules });
}
