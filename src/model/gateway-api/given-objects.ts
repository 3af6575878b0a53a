/** For tests: the Gateway API's objects from their YAML, translated. Throws when one is not valid. */
import { type ConfigSet, configSetOf } from '../build-push-context.ts';
import type { Config } from '../config.ts';
import { readConfigFile } from '../config-file.ts';
import type { Gateway } from '../kinds/gateway.ts';
import type { VirtualService } from '../kinds/virtual-service.ts';
import { problemText } from '../problem.ts';
import { type GatewayApiTranslation, translateGatewayApi } from './translate.ts';

export interface Translated {
  readonly translation: GatewayApiTranslation;
  readonly gateways: readonly Config<Gateway>[];
  readonly virtualServices: readonly Config<VirtualService>[];
  /** `HTTPRoute shop/cart spec.parentRefs[0]: …`. */
  readonly told: readonly string[];
}

/** Objects are as old as their `creationTimestamp` says. */
export function setOf(yaml: string): ConfigSet {
  const { configs, problems } = readConfigFile('given.yaml', yaml, { creationTimestamp: 0 });
  const errors = problems.filter(({ severity }) => severity === 'error');
  if (errors.length > 0) throw new Error(errors.map(problemText).join('\n'));
  return configSetOf(configs);
}

export function translated(yaml: string, before?: GatewayApiTranslation): Translated {
  const translation = translateGatewayApi(setOf(yaml), 'cluster.local', before);
  const objects = [...translation.objects.values()];
  return {
    translation,
    gateways: objects.filter(({ kind }) => kind === 'Gateway') as Config<Gateway>[],
    virtualServices: objects.filter(({ kind }) => kind === 'VirtualService') as Config<VirtualService>[],
    told: [...translation.problems.values()].map(({ object, field, message }) => `${object} ${field}: ${message}`),
  };
}

/** An object as one document in flow style. */
export function document(
  kind: string,
  name: string,
  spec: string,
  { namespace = 'shop', created = '' }: { readonly namespace?: string; readonly created?: string } = {},
): string {
  const [apiVersion, body] = kind === 'Service' ? ['v1', spec] : ['gateway.networking.k8s.io/v1', spec];
  const time = created && `, creationTimestamp: ${created}`;
  return `---\napiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}${time}}\nspec: ${body}\n`;
}

export const service = (name: string, namespace = 'shop', ports = '[{name: http, port: 80}]'): string =>
  document('Service', name, `{clusterIP: 10.1.0.1, ports: ${ports}}`, { namespace });
