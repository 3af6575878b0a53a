import { type Config, configKeyText } from '../../../model/config/config.ts';
import type { ConfigSet } from '../../../model/config/config-set.ts';
import type { Problem } from '../../../model/config/problem.ts';
import { runToEnd } from '../../../runtime/turns.ts';
import { selectKeySources } from '../../jwks/key-sources.ts';
import type { LimitedObject } from '../limits/limited-objects.ts';
import { NamespaceBudgets, type NamespaceLimits } from '../limits/namespace-budgets.ts';
import { problemFieldsOf } from './about-object.ts';
import type { TranslatedFiles } from './translated-files.ts';

/** The cluster may contain more objects than the files, so only limits that the files exceed are found. */
export function budgetProblems(
  { configs, writtenConfigs: set, mesh, gatewayApi, generatedConfigs }: TranslatedFiles,
  limits: NamespaceLimits,
): Problem[] {
  const writtenByKey = new Map(configs.map((config) => [configKeyText(config), config]));
  const objects = new Map([...generatedConfigs, ...writtenByKey]);
  const { limitedByKey } = runToEnd(
    new NamespaceBudgets(limits).limitInSteps(objects.keys(), (key) => objects.get(key), mesh, new Map()),
  );
  const limitProblems = [
    ...[...limitedByKey.values()].map((limitedObject) => limitedProblem(limitedObject, writtenByKey)),
    ...[...gatewayApi.problems.values()].filter(({ code }) => code === 'LIMIT_EXCEEDED'),
    ...issuerProblems(set),
  ];
  // Objects that are generated from one object have the same problem.
  return [...new Map(limitProblems.map((problem) => [`${problem.object} ${problem.message}`, problem])).values()];
}

function limitedProblem(
  { original, problem: { field, message } }: LimitedObject,
  writtenByKey: ReadonlyMap<string, Config>,
): Problem {
  const origin = Object.values(original.partOrigins ?? {})[0]?.[0];
  const config = (origin && writtenByKey.get(configKeyText(origin.key))) ?? original;
  return problemOf(config, origin === undefined ? field : '', message);
}

function issuerProblems({ RequestAuthentication }: Pick<ConfigSet, 'RequestAuthentication'>): Problem[] {
  const { rejectionReasons } = runToEnd(selectKeySources(RequestAuthentication));
  const configByKey = new Map(RequestAuthentication.map((config) => [configKeyText(config), config]));
  return [...rejectionReasons].map(([key, reason]) => problemOf(configByKey.get(key)!, 'spec.jwtRules', reason));
}

function problemOf(config: Config, field: string, message: string): Problem {
  return { severity: 'error', ...problemFieldsOf(config), field, message, code: 'LIMIT_EXCEEDED' };
}
