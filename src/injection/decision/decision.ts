import type { LabelSelector } from '../../model/kinds/label-selector.ts';
import { annotationOf, labelOf, type Pod } from '../pod/pod.ts';
import { matchesPod } from './label-selection.ts';

export interface InjectionPolicy {
  /** `enabled` or `disabled`, for pods that no label, annotation or selector decides. Any other value prevents every injection. */
  readonly policy: string;
  readonly neverInjectSelector: readonly LabelSelector[];
  readonly alwaysInjectSelector: readonly LabelSelector[];
}

export interface Decision {
  readonly inject: boolean;
  /** The rule that decided, such as `label sidecar.istio.io/inject is "false"`. */
  readonly rule: string;
  /** Value of the label or annotation that is neither true nor false. */
  readonly ignoredWord?: string;
}

export const injectKey = 'sidecar.istio.io/inject';

export const systemNamespaces: ReadonlySet<string> = new Set([
  ...['kube-system', 'kube-public', 'kube-node-lease', 'local-path-storage'],
]);

/** Includes the values that Istio 1.16 and earlier accepted; upper and lower case are equal. */
const booleanValues: ReadonlyMap<string, boolean> = new Map([
  ...['true', 'y', 'yes', 'on'].map((value) => [value, true] as const),
  ...['false', 'n', 'no', 'off'].map((value) => [value, false] as const),
]);

export function decideInjection(
  pod: Pod,
  namespace: string,
  { policy, neverInjectSelector, alwaysInjectSelector }: InjectionPolicy,
): Decision {
  if (pod.spec.hostNetwork === true) {
    return { inject: false, rule: 'spec.hostNetwork is true: a sidecar would redirect traffic of the node' };
  }
  if (pod.spec.os?.name === 'windows')
    return { inject: false, rule: 'spec.os.name is windows: the sidecar needs Linux' };
  if (systemNamespaces.has(namespace)) {
    return { inject: false, rule: `namespace ${namespace} belongs to the cluster` };
  }
  if (policy !== 'enabled' && policy !== 'disabled') {
    return {
      inject: false,
      rule: `policy of the injector is ${JSON.stringify(policy)}, which is not enabled or disabled`,
    };
  }
  const { decision, ignoredWord } = decideByPod(pod);
  if (decision !== undefined) return decision;
  return {
    ...decideBySelectors(pod, { policy, neverInjectSelector, alwaysInjectSelector }),
    ...(ignoredWord && { ignoredWord }),
  };
}

/** The label has priority even if it is empty; the annotation applies only without the label. */
function decideByPod(pod: Pod): { readonly decision?: Decision; readonly ignoredWord?: string } {
  const label = labelOf(pod, injectKey);
  const value = label ?? annotationOf(pod, injectKey) ?? '';
  if (value === '') return {};
  const inject = booleanValues.get(value.toLowerCase());
  if (inject === undefined) return { ignoredWord: value };
  const rule = `${label === undefined ? 'annotation' : 'label'} ${injectKey} is ${JSON.stringify(value)}`;
  return { decision: { inject, rule } };
}

function decideBySelectors(pod: Pod, { policy, neverInjectSelector, alwaysInjectSelector }: InjectionPolicy): Decision {
  const { labels = {} } = pod.metadata;
  const neverIndex = neverInjectSelector.findIndex((selector) => matchesPod(selector, labels));
  if (neverIndex >= 0)
    return { inject: false, rule: `neverInjectSelector[${neverIndex}] matches the labels of the pod` };
  const alwaysIndex = alwaysInjectSelector.findIndex((selector) => matchesPod(selector, labels));
  if (alwaysIndex >= 0)
    return { inject: true, rule: `alwaysInjectSelector[${alwaysIndex}] matches the labels of the pod` };
  return { inject: policy === 'enabled', rule: `policy of the injector is ${policy}` };
}
