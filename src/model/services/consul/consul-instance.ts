/** Ordered from worst to best. */
export type ConsulHealth = 'critical' | 'warning' | 'passing';

export interface ConsulLocality {
  readonly region: string;
  readonly zone: string;
}

export interface ConsulNode {
  readonly name: string;
  readonly address: string;
  readonly datacenter: string;
  readonly locality?: ConsulLocality;
}

export interface ConsulInstance {
  readonly node: ConsulNode;
  /** Unique on its node. */
  readonly id: string;
  readonly service: string;
  /** If empty, the node's address applies. */
  readonly address: string;
  readonly port: number;
  readonly tags: readonly string[];
  readonly meta: Readonly<Record<string, string>>;
  readonly weights: { readonly passing: number; readonly warning: number };
  readonly locality?: ConsulLocality;
  /** Worst check status of the instance and its node. */
  readonly health: ConsulHealth;
}

/** Status of failing checks by node, then by instance. An empty ID means the node itself. */
export type ConsulChecks = ReadonlyMap<string, ReadonlyMap<string, ConsulHealth>>;

const healthOrder: readonly ConsulHealth[] = ['critical', 'warning', 'passing'];

export function worstHealth(statuses: Iterable<ConsulHealth | undefined>): ConsulHealth {
  let worstStatus: ConsulHealth = 'passing';
  for (const status of statuses) {
    if (status !== undefined && healthOrder.indexOf(status) < healthOrder.indexOf(worstStatus)) worstStatus = status;
  }
  return worstStatus;
}

export function withHealthChecks(instance: ConsulInstance, checks: ConsulChecks): ConsulInstance {
  const nodeChecks = checks.get(instance.node.name);
  if (nodeChecks === undefined) return instance;
  const health = worstHealth([instance.health, nodeChecks.get(instance.id), nodeChecks.get('')]);
  return health === instance.health ? instance : { ...instance, health };
}
