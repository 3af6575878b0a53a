/** If two webhook configurations select the same pod, the API server calls both, and the second replaces the sidecar of the first. */
import { type LabelSelector, selectsLabels } from '../../model/kinds/label-selector.ts';
import type { Texts } from '../pod/pod.ts';
import { callingEntries, type WebhookEntry } from './webhook-entries.ts';

export interface InjectingConfiguration {
  readonly name: string;
  /** Value of label `istio.io/rev`. */
  readonly revision: string;
  readonly entries: readonly WebhookEntry[];
}

export interface Overlap {
  readonly configurations: readonly [string, string];
  readonly entries: readonly [string, string];
  /** Both entries select a pod with these labels in a namespace with these labels. */
  readonly podLabels: Texts;
  readonly namespaceLabels: Texts;
}

/** No cluster has this many revisions; limits the pairwise comparison. */
const maxConfigurations = 100;

/** `matchConditions` are not evaluated. */
export function overlapsOf(configurations: readonly InjectingConfiguration[]): readonly Overlap[] {
  const comparedConfigurations = configurations
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .slice(0, maxConfigurations);
  return comparedConfigurations.flatMap((firstConfiguration, index) =>
    comparedConfigurations
      .slice(index + 1)
      .flatMap((otherConfiguration) => overlapOf(firstConfiguration, otherConfiguration) ?? []),
  );
}

export function callingConfigurations(
  configurations: readonly InjectingConfiguration[],
  namespace: Texts,
  pod: Texts,
): readonly string[] {
  return configurations
    .filter(({ entries }) => callingEntries(entries, namespace, pod).length > 0)
    .map(({ name }) => name)
    .sort();
}

function overlapOf(
  firstConfiguration: InjectingConfiguration,
  otherConfiguration: InjectingConfiguration,
): Overlap | undefined {
  for (const a of firstConfiguration.entries) {
    for (const b of otherConfiguration.entries) {
      const podLabels = commonLabels(a.objectSelector, b.objectSelector);
      const namespaceLabels = commonLabels(a.namespaceSelector, b.namespaceSelector);
      if (podLabels === undefined || namespaceLabels === undefined) continue;
      return {
        configurations: [firstConfiguration.name, otherConfiguration.name],
        entries: [a.name, b.name],
        podLabels,
        namespaceLabels,
      };
    }
  }
  return undefined;
}

const otherValue = 'any';

/** Requirements on different keys are independent, so each key is evaluated separately. */
export function commonLabels(a: LabelSelector, b: LabelSelector): Texts | undefined {
  const labels: Record<string, string> = {};
  for (const key of new Set([...keysOf(a), ...keysOf(b)])) {
    const keySelectors = [selectorOfKey(a, key), selectorOfKey(b, key)];
    const values = keySelectors.flatMap(({ matchLabels = {}, matchExpressions = [] }) => [
      ...Object.values(matchLabels),
      ...matchExpressions.flatMap((expression) => expression.values ?? []),
    ]);
    const candidates = [{}, ...[...values, `${otherValue}${values.length}`].map((value) => ({ [key]: value }))];
    const overlap = candidates.find((candidate) =>
      keySelectors.every((selector) => selectsLabels(selector, candidate)),
    );
    if (overlap === undefined) return undefined;
    Object.assign(labels, overlap);
  }
  return labels;
}

function keysOf({ matchLabels = {}, matchExpressions = [] }: LabelSelector): readonly string[] {
  return [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)];
}

function selectorOfKey({ matchLabels = {}, matchExpressions = [] }: LabelSelector, key: string): LabelSelector {
  return {
    ...(Object.hasOwn(matchLabels, key) && { matchLabels: { [key]: matchLabels[key]! } }),
    matchExpressions: matchExpressions.filter((expression) => expression.key === key),
  };
}
