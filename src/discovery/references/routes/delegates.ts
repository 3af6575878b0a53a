/** Reports delegates that a VirtualService refers to but that do not exist, or whose matches conflict with its matches. */
import type { Config } from '../../../model/config/config.ts';
import type { HttpRoute, VirtualService } from '../../../model/kinds/virtual-service/virtual-service.ts';
import { mergeDelegateRoutes } from '../../../model/push-context/merge-delegates.ts';
import { exportSet, isExportedTo } from '../../../model/services/visibility.ts';
import { type CheckSources, type ConfigCheck, type ConfigWarning, isWrittenConfig } from '../config-warning.ts';

export const checkDelegates: ConfigCheck = function* (sources) {
  const delegateByName = new Map<string, Config<VirtualService>>();
  for (const config of sources.configs.VirtualService) {
    delegateByName.set(`${config.namespace}/${config.name}`, config);
    yield undefined;
  }
  for (const config of sources.configs.VirtualService) {
    yield undefined;
    if (!isWrittenConfig(config)) continue;
    for (const [index, root] of (config.spec.http ?? []).entries()) {
      if (root.delegate === undefined) continue;
      const { name, namespace = config.namespace } = root.delegate;
      const delegate = delegateByName.get(`${namespace}/${name}`);
      const reason = unusableReasonOf(config, delegate, `${namespace}/${name}`, sources);
      if (reason !== undefined) {
        const message = `${reason.problem}, so the route has no effect: ${reason.advice}`;
        const relatedObject = delegate && { other: { config: delegate } };
        yield { code: 'DELEGATE_NOT_FOUND', config, field: `spec.http[${index}].delegate`, message, ...relatedObject };
      } else if (delegate !== undefined) yield* conflicts(config, index, root, delegate);
    }
  }
};

interface UnusableDelegate {
  readonly problem: string;
  readonly advice: string;
}

/** `undefined` if a delegate exists or may exist. */
function unusableReasonOf(
  root: Config<VirtualService>,
  delegate: Config<VirtualService> | undefined,
  name: string,
  { knownObjects, context: { mesh } }: CheckSources,
): UnusableDelegate | undefined {
  if (delegate === undefined) {
    const isMissing = knownObjects.isComplete('VirtualService', name.slice(0, name.indexOf('/')));
    return isMissing
      ? { problem: `there is no VirtualService ${name}`, advice: 'correct the name, or create it' }
      : undefined;
  }
  const { namespace, spec } = delegate;
  if (spec.hosts.length > 0)
    return { problem: `VirtualService ${name} has hosts, and a delegate must have none`, advice: 'remove them' };
  if (
    isExportedTo(
      exportSet(namespace, spec.exportTo, mesh.defaultVirtualServiceExportTo, mesh),
      namespace,
      root.namespace,
    )
  )
    return undefined;
  return {
    problem: `VirtualService ${name} is not exported to namespace ${root.namespace}`,
    advice: 'add the namespace to its exportTo',
  };
}

function* conflicts(
  config: Config<VirtualService>,
  rootIndex: number,
  root: HttpRoute,
  delegate: Config<VirtualService>,
): Generator<ConfigWarning | undefined> {
  for (const [index, route] of (delegate.spec.http ?? []).entries()) {
    yield undefined;
    if (mergeDelegateRoutes(root, [route]).length > 0) continue;
    const field = `spec.http[${rootIndex}]`;
    yield {
      ...{ code: 'DELEGATE_CONFLICT', config: delegate, field: `spec.http[${index}].match` },
      message: `a match lies outside the matches of VirtualService ${config.namespace}/${config.name} ${field}, so the whole route is left out there: give each match the conditions of the root, or narrower ones`,
      other: { config, field },
    };
  }
}
