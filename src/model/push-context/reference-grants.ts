import type { Config } from '../config/config.ts';
import { gatewayApiGroup } from '../kinds/gateway-api/fields.ts';
import type { ReferenceGrant } from '../kinds/gateway-api/reference-grant.ts';

export interface ReferenceSource {
  readonly kind: string;
  readonly namespace: string;
}

export interface ReferenceTarget {
  readonly group: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

export class ReferenceGrants {
  static readonly empty = new ReferenceGrants([]);
  readonly #grantsByNamespace: ReadonlyMap<string, readonly Config<ReferenceGrant>[]>;

  constructor(grants: readonly Config<ReferenceGrant>[]) {
    this.#grantsByNamespace = Map.groupBy(grants, ({ namespace }) => namespace);
  }

  /** Always true within one namespace. */
  allows(source: ReferenceSource, target: ReferenceTarget): boolean {
    if (source.namespace === target.namespace) return true;
    return this.#grantsOf(source, target.namespace).some(({ spec }) =>
      spec.to.some(
        ({ group, kind, name = target.name }) => group === target.group && kind === target.kind && name === target.name,
      ),
    );
  }

  allowsSecret(gatewayNamespace: string, namespace: string, name: string): boolean {
    return this.allows(
      { kind: 'Gateway', namespace: gatewayNamespace },
      { group: '', kind: 'Secret', namespace, name },
    );
  }

  grantsToGateways(gatewayNamespace: string, namespace: string): boolean {
    return this.#grantsOf({ kind: 'Gateway', namespace: gatewayNamespace }, namespace).length > 0;
  }

  #grantsOf(source: ReferenceSource, namespace: string): readonly Config<ReferenceGrant>[] {
    return (this.#grantsByNamespace.get(namespace) ?? []).filter(({ spec }) =>
      spec.from.some(
        (grantSource) =>
          grantSource.group === gatewayApiGroup &&
          grantSource.kind === source.kind &&
          grantSource.namespace === source.namespace,
      ),
    );
  }
}
