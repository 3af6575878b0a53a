/** What `validate` says of objects that affect other namespaces (SECURITY.md, "What Istio's model lets tenants do to each other"). */
import type { Config } from '../../model/config/config.ts';
import { configSetOf } from '../../model/config/config-set.ts';
import type { Problem } from '../../model/config/problem.ts';
import { crossNamespaceReach, type ReachSettings } from '../../model/isolation/cross-namespace-reach.ts';
import { kinds } from '../../model/kinds/index.ts';

/** Warnings, each with its code. */
export function crossNamespaceProblems(configs: readonly Config[], settings: ReachSettings): Problem[] {
  const found = [...crossNamespaceReach(configSetOf(configs), settings)].filter((reach) => reach !== undefined);
  return found.map(({ code, config, field, message }): Problem => {
    const { kind, namespace, name, source } = config;
    const row = kinds[kind as keyof typeof kinds];
    const writtenAs = 'writtenAs' in row && row.writtenAs !== undefined ? row.writtenAs : kind;
    return {
      ...{ severity: 'warning', file: source?.file ?? '', line: source?.line ?? 1 },
      ...{ object: `${writtenAs} ${namespace}/${name}`, key: { kind, namespace, name } },
      ...{ field, message, code },
    };
  });
}
