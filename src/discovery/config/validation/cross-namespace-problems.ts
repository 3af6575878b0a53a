/** Warnings of `validate` for objects that affect other namespaces (SECURITY.md, "What Istio's model leaves open"). */
import type { Config } from '../../../model/config/config.ts';
import { configSetOf } from '../../../model/config/config-set.ts';
import type { Problem } from '../../../model/config/problem.ts';
import { crossNamespaceReach, type ReachSettings } from '../../../model/isolation/cross-namespace-reach.ts';
import { problemFieldsOf } from './about-object.ts';

export function crossNamespaceProblems(configs: readonly Config[], settings: ReachSettings): Problem[] {
  const reachWarnings = [...crossNamespaceReach(configSetOf(configs), settings)].filter((reach) => reach !== undefined);
  return reachWarnings.map(({ code, config, field, message }): Problem => {
    return { severity: 'warning', ...problemFieldsOf(config), field, message, code };
  });
}
