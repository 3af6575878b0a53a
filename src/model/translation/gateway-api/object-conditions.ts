/** What the status of the Gateway API's objects says (its types GatewayStatus, RouteParentStatus, ListenerStatus): facts, as data. */
import type { ParentReference } from '../../kinds/gateway-api/http-route.ts';

/** A condition, without when it became so. */
export interface ObjectCondition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

interface ConditionedStatus {
  readonly generation?: number;
  readonly conditions: readonly ObjectCondition[];
}

export interface ClassStatus extends ConditionedStatus {
  /** Names of features of the Gateway API. */
  readonly supportedFeatures: readonly string[];
}

export interface GatewayStatus extends ConditionedStatus {
  readonly addresses: readonly { readonly type: 'IPAddress' | 'Hostname'; readonly value: string }[];
  /** In their order. */
  readonly listeners: readonly ListenerStatus[];
}

export interface ListenerStatus {
  readonly name: string;
  readonly supportedKinds: readonly { readonly group: string; readonly kind: string }[];
  readonly attachedRoutes: number;
  readonly conditions: readonly ObjectCondition[];
}

export interface RouteStatus {
  readonly generation?: number;
  /** Of parents that are ours, in the order of the references. None: nothing of ours is in the status. */
  readonly parents: readonly { readonly parentRef: ParentReference; readonly conditions: readonly ObjectCondition[] }[];
}

export function condition(type: string, isTrue: boolean, reason: string, message: string): ObjectCondition {
  return { type, status: isTrue ? 'True' : 'False', reason, message };
}
