/** Replaces a Wasm filter that a proxy cannot run with a filter that allows or denies everything. */
import type { Any } from '@bufbuild/protobuf/wkt';
import { RBAC_Action } from '../../gen/envoy/config/rbac/v3/rbac_pb.ts';
import { RBACSchema as HttpRbacSchema } from '../../gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts';
import { RBACSchema as NetworkRbacSchema } from '../../gen/envoy/extensions/filters/network/rbac/v3/rbac_pb.ts';
import { pack } from '../messages/any.ts';
import type { WasmLevel } from './wasm-plugins.ts';

/** @param failsOpen if `false`, requests get 403 and connections are closed */
export function wasmSubstitute(level: WasmLevel, failsOpen: boolean): Any {
  const rules = failsOpen ? undefined : { action: RBAC_Action.ALLOW, policies: {} };
  return level === 'NETWORK'
    ? pack(NetworkRbacSchema, { statPrefix: 'wasm.', ...(rules && { rules }) })
    : pack(HttpRbacSchema, rules && { rules });
}
