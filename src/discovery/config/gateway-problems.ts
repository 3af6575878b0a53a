/** Servers of Gateway objects in the same files that stand in each other's way at a gateway (spec/discovery.md §8.7). */
import { type Config, configKeyOf, configKeyText } from '../../model/config/config.ts';
import { configSetOf } from '../../model/config/config-set.ts';
import type { Problem } from '../../model/config/problem.ts';
import type { ReachSettings } from '../../model/isolation/cross-namespace-reach.ts';
import type { Gateway } from '../../model/kinds/gateway.ts';
import { kinds } from '../../model/kinds/index.ts';
import { defaultFeatures } from '../../model/mesh/features.ts';
import { defaultMeshConfig, type MeshConfig } from '../../model/mesh/mesh-config.ts';
import { buildPushContext } from '../../model/push-context/build-push-context.ts';
import { emptyRegistry } from '../../model/services/service-registry.ts';
import { translateGatewayApi } from '../../model/translation/gateway-api/translate.ts';
import { translateIngresses } from '../../model/translation/ingress.ts';
import { mergeGateways } from '../../networking/gateway/merge-gateways.ts';
import { selectorShapes } from '../../networking/gateway/selector-shapes.ts';

/** Warnings for a gateway that has exactly the labels of a selector: others merge fewer objects. */
export function gatewayProblems(configs: readonly Config[], { mesh: settings, domain }: ReachSettings): Problem[] {
  const mesh = { ...defaultMeshConfig, ...settings };
  const written = new Map(configs.map((config) => [configKeyText(configKeyOf(config)), config]));
  const gateways = gatewaysOf(configs, mesh, domain);
  if (gateways.length === 0) return [];
  const about = {
    version: '',
    mesh,
    domain,
    kubernetes: true,
    features: defaultFeatures,
  };
  const context = buildPushContext({ ...about, configs: configSetOf(gateways), ...emptyRegistry });
  const byName = new Map(gateways.map((gateway) => [configKeyText(configKeyOf(gateway)), gateway]));
  const found = new Map<string, Problem>();
  for (const shape of selectorShapes(gateways, context)) {
    if (shape === undefined) continue;
    const { rejected, overlapping } = mergeGateways(shape, context);
    for (const text of [...rejected, ...overlapping]) {
      const gateway = byName.get(text.slice(0, text.indexOf(' ')));
      if (gateway === undefined) continue;
      const [origin] = Object.values(gateway.madeOf ?? {})[0] ?? [];
      const object = (origin && written.get(configKeyText(origin.key))) ?? gateway;
      found.set(text, {
        ...{ severity: 'warning', file: object.source?.file ?? '', line: object.source?.line ?? 1 },
        object: `${writtenKind(object)} ${object.namespace}/${object.name}`,
        key: { kind: object.kind, namespace: object.namespace, name: object.name },
        field: origin?.path === undefined ? 'spec.servers' : origin.path.reduce<string>(fieldText, ''),
        message: text.slice(text.indexOf(' ') + 1),
      });
    }
  }
  return [...found.values()];
}

/** Gateways as they are written, and those that listeners of the Gateway API and Ingresses are translated to. */
function gatewaysOf(configs: readonly Config[], mesh: MeshConfig, domain: string): readonly Config<Gateway>[] {
  const set = configSetOf(configs);
  const made = [
    ...translateIngresses(set, mesh, { domain }).values(),
    ...translateGatewayApi(set, domain).objects.values(),
  ];
  return [...configs, ...made].filter(({ kind }) => kind === 'Gateway') as readonly Config<Gateway>[];
}

function writtenKind({ kind }: Config): string {
  const row = kinds[kind as keyof typeof kinds];
  return ('writtenAs' in row && row.writtenAs) || kind;
}

function fieldText(text: string, step: string | number): string {
  if (typeof step === 'number') return `${text}[${step}]`;
  return text === '' ? step : `${text}.${step}`;
}
