import { memoizeByObject } from '../../../model/collections/memoize-by-object.ts';
import type { Config } from '../../../model/config/config.ts';
import { revisionLabel } from '../../../model/kinds/metadata-keys.ts';
import type { CheckSources } from '../config-warning.ts';

const injectName = 'sidecar.istio.io/inject';

/** `undefined` if neither the Pod nor its namespace determines it. */
export function isInjected(
  pod: Config,
  { Namespace }: Pick<CheckSources['configs'], 'Namespace'>,
): boolean | undefined {
  if (pod.labels['security.istio.io/tlsMode'] === 'istio') return true;
  const injectValue = pod.labels[injectName] ?? pod.annotations[injectName];
  if (injectValue !== undefined) return injectValue === 'true';
  const { labels = {} } = configByName(Namespace).get(pod.namespace) ?? {};
  if (labels['istio-injection'] !== undefined) return labels['istio-injection'] === 'enabled';
  return labels[revisionLabel] === undefined ? undefined : true;
}

const configByName = memoizeByObject(
  (configs: readonly Config[]) => new Map(configs.map((config) => [config.name, config])),
);
