import type { ParentReference } from '../../kinds/gateway-api/http-route.ts';

export interface GatewayApiCondition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

interface ConditionedStatus {
  readonly generation?: number;
  readonly conditions: readonly GatewayApiCondition[];
}

export interface ClassStatus extends ConditionedStatus {
  readonly supportedFeatures: readonly string[];
}

export interface GatewayStatus extends ConditionedStatus {
  readonly addresses: readonly { readonly type: 'IPAddress' | 'Hostname'; readonly value: string }[];
  /** In the order of the spec. */
  readonly listeners: readonly ListenerStatus[];
}

export interface ListenerStatus {
  readonly name: string;
  readonly supportedKinds: readonly { readonly group: string; readonly kind: string }[];
  readonly attachedRoutes: number;
  readonly conditions: readonly GatewayApiCondition[];
}

export interface RouteStatus {
  readonly generation?: number;
  /** In the order of references. If empty, this control plane writes no status. */
  readonly parents: readonly {
    readonly parentRef: ParentReference;
    readonly conditions: readonly GatewayApiCondition[];
  }[];
}

export function condition(type: string, isStatusTrue: boolean, reason: string, message: string): GatewayApiCondition {
  return { type, status: isStatusTrue ? 'True' : 'False', reason, message };
}
