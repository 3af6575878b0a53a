/** Objects of the same files that are beyond a limit which the objects of a namespace share, as the control plane finds them. */
import { type Config, configKeyOf, configKeyText } from '../../model/config/config.ts';
import { type ConfigSet, configSetOf } from '../../model/config/config-set.ts';
import type { Problem } from '../../model/config/problem.ts';
import { kinds } from '../../model/kinds/index.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import { translateGatewayApi } from '../../model/translation/gateway-api/translate.ts';
import { translateIngresses } from '../../model/translation/ingress.ts';
import { atOnce } from '../../runtime/turns.ts';
import { selectKeySources } from '../jwks/key-sources.ts';
import type { LimitedObject } from './limited-objects.ts';
import { NamespaceBudgets, type NamespaceLimits } from './namespace-budgets.ts';

export interface BudgetProblemSettings {
  readonly mesh: MeshConfig;
  /** `cluster.local`. */
  readonly domain: string;
}

/**
 * @param configs of which a cluster may have more: only limits that these alone exceed are found. Without a `creationTimestamp` they are of
 *   the same age, so that a cluster may limit others of them.
 */
export function budgetProblems(
  configs: readonly Config[],
  limits: NamespaceLimits,
  { mesh, domain }: BudgetProblemSettings,
): Problem[] {
  const set = configSetOf(configs);
  const written = new Map(configs.map((config) => [keyOf(config), config]));
  const gatewayApi = translateGatewayApi(set, domain);
  const objects = new Map([...translateIngresses(set, mesh, { domain }), ...gatewayApi.objects, ...written]);
  const { limited } = atOnce(
    new NamespaceBudgets(limits).limiting(objects.keys(), (key) => objects.get(key), mesh, new Map()),
  );
  const found = [
    ...[...limited.values()].map((one) => limitedProblem(one, written)),
    ...[...gatewayApi.problems.values()].filter(({ code }) => code === 'LIMIT_EXCEEDED'),
    ...issuerProblems(set),
  ];
  // Several objects that are made of one have the same problem.
  return [...new Map(found.map((problem) => [`${problem.object} ${problem.message}`, problem])).values()];
}

function limitedProblem(
  { original, problem: { field, message } }: LimitedObject,
  written: ReadonlyMap<string, Config>,
): Problem {
  const origin = Object.values(original.madeOf ?? {})[0]?.[0];
  const config = (origin && written.get(configKeyText(origin.key))) ?? original;
  return problemOf(config, origin === undefined ? field : '', message);
}

function issuerProblems({ RequestAuthentication }: Pick<ConfigSet, 'RequestAuthentication'>): Problem[] {
  const { rejected } = atOnce(selectKeySources(RequestAuthentication));
  const byKey = new Map(RequestAuthentication.map((config) => [keyOf(config), config]));
  return [...rejected].map(([key, reason]) => problemOf(byKey.get(key)!, 'spec.jwtRules', reason));
}

function problemOf(config: Config, field: string, message: string): Problem {
  const { kind, namespace, name, source } = config;
  const row = kinds[kind as keyof typeof kinds];
  const writtenAs = 'writtenAs' in row && row.writtenAs !== undefined ? row.writtenAs : kind;
  return {
    ...{ severity: 'error', file: source?.file ?? '', line: source?.line ?? 1 },
    ...{ object: `${writtenAs} ${namespace}/${name}`, key: configKeyOf(config) },
    ...{ field, message, code: 'LIMIT_EXCEEDED' },
  };
}

const keyOf = (config: Config): string => configKeyText(configKeyOf(config));
