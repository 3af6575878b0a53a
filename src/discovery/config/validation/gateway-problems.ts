import { type Config, configKeyText, fieldText } from '../../../model/config/config.ts';
import { configSetOf } from '../../../model/config/config-set.ts';
import type { Problem } from '../../../model/config/problem.ts';
import type { Gateway } from '../../../model/kinds/gateway/gateway.ts';
import { defaultFeatures } from '../../../model/mesh/features.ts';
import { buildPushContext } from '../../../model/push-context/build-push-context.ts';
import { emptyRegistry } from '../../../model/services/service-registry.ts';
import { mergeGateways } from '../../../networking/gateway/merge-gateways.ts';
import { selectorShapes } from '../../../networking/gateway/selector-shapes.ts';
import { problemFieldsOf } from './about-object.ts';
import type { TranslatedFiles } from './translated-files.ts';

/** Checks one gateway for each selector, with exactly its labels. Other gateways merge fewer objects. */
export function gatewayProblems({
  configs,
  mesh,
  domain,
  generatedConfigs: generatedByKey,
}: TranslatedFiles): Problem[] {
  const writtenByKey = new Map(configs.map((config) => [configKeyText(config), config]));
  const gateways = [...configs, ...generatedByKey.values()].filter(isGateway);
  if (gateways.length === 0) return [];
  const contextOptions = {
    version: '',
    mesh,
    domain,
    kubernetes: true,
    features: defaultFeatures,
  };
  const context = buildPushContext({ ...contextOptions, configs: configSetOf(gateways), ...emptyRegistry });
  const gatewayByName = new Map(gateways.map((gateway) => [configKeyText(gateway), gateway]));
  const problemsByKey = new Map<string, Problem>();
  for (const shape of selectorShapes(gateways, context)) {
    if (shape === undefined) continue;
    const { rejectionMessages, overlapMessages } = mergeGateways(shape, context);
    for (const text of [...rejectionMessages, ...overlapMessages]) {
      const gateway = gatewayByName.get(text.slice(0, text.indexOf(' ')));
      if (gateway === undefined) continue;
      const [origin] = Object.values(gateway.partOrigins ?? {})[0] ?? [];
      const object = (origin && writtenByKey.get(configKeyText(origin.key))) ?? gateway;
      problemsByKey.set(text, {
        severity: 'warning',
        code: 'SERVER_NOT_SERVED',
        ...problemFieldsOf(object),
        field: origin?.path === undefined ? 'spec.servers' : fieldText(origin.path),
        message: text.slice(text.indexOf(' ') + 1),
      });
    }
  }
  return [...problemsByKey.values()];
}

function isGateway(config: Config): config is Config<Gateway> {
  return config.kind === 'Gateway';
}
