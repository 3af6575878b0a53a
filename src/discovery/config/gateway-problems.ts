/** Servers of Gateway objects in the same files that stand in each other's way at a gateway (spec/discovery.md §8.7). */
import type { Config } from '../../model/config/config.ts';
import { configSetOf } from '../../model/config/config-set.ts';
import type { Problem } from '../../model/config/problem.ts';
import type { ReachSettings } from '../../model/isolation/cross-namespace-reach.ts';
import type { Gateway } from '../../model/kinds/gateway.ts';
import { defaultFeatures } from '../../model/mesh/features.ts';
import { defaultMeshConfig } from '../../model/mesh/mesh-config.ts';
import { buildPushContext } from '../../model/push-context/build-push-context.ts';
import { emptyRegistry } from '../../model/services/service-registry.ts';
import { mergeGateways } from '../../networking/gateway/merge-gateways.ts';
import { selectorShapes } from '../../networking/gateway/selector-shapes.ts';

/** Warnings for a gateway that has exactly the labels of a selector: others merge fewer objects. */
export function gatewayProblems(configs: readonly Config[], { mesh, domain }: ReachSettings): Problem[] {
  const gateways = configs.filter(({ kind }) => kind === 'Gateway') as readonly Config<Gateway>[];
  if (gateways.length === 0) return [];
  const about = {
    version: '',
    mesh: { ...defaultMeshConfig, ...mesh },
    domain,
    kubernetes: true,
    features: defaultFeatures,
  };
  const context = buildPushContext({ ...about, configs: configSetOf(gateways), ...emptyRegistry });
  const byName = new Map(gateways.map((gateway) => [`Gateway/${gateway.namespace}/${gateway.name}`, gateway]));
  const found = new Map<string, Problem>();
  for (const shape of selectorShapes(gateways, context)) {
    for (const rejected of shape === undefined ? [] : mergeGateways(shape, context).rejected) {
      const object = byName.get(rejected.slice(0, rejected.indexOf(' ')));
      if (object === undefined) continue;
      found.set(rejected, {
        ...{ severity: 'warning', file: object.source?.file ?? '', line: object.source?.line ?? 1 },
        object: `Gateway ${object.namespace}/${object.name}`,
        key: { kind: 'Gateway', namespace: object.namespace, name: object.name },
        field: 'spec.servers',
        message: rejected.slice(rejected.indexOf(' ') + 1),
      });
    }
  }
  return [...found.values()];
}
