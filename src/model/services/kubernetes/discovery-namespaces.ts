/** Which namespaces take part in the mesh: `discoverySelectors` (spec/discovery.md §3.2). */
import { ownValue } from '../../../runtime/json-object.ts';
import type { LabelSelector } from '../../kinds/label-selector.ts';

type Labels = Readonly<Record<string, string>>;

/** Without selectors every namespace takes part; with several, one that any of them selects. */
export function isDiscovered(
  namespace: string,
  labels: Labels | undefined,
  selectors: readonly LabelSelector[],
): boolean {
  if (selectors.length === 0) return true;
  // Clusters label each namespace with its name; one that no object describes has that label alone.
  const known = { 'kubernetes.io/metadata.name': namespace, ...labels };
  return selectors.some((selector) => selects(selector, known));
}

function selects({ matchLabels = {}, matchExpressions = [] }: LabelSelector, labels: Labels): boolean {
  if (!Object.entries(matchLabels).every(([key, value]) => ownValue(labels, key) === value)) return false;
  return matchExpressions.every(({ key, operator, values = [] }) => {
    const value = ownValue(labels, key);
    if (operator === 'Exists') return value !== undefined;
    if (operator === 'DoesNotExist') return value === undefined;
    // A label that is not there is in no list.
    return (value !== undefined && values.includes(value)) === (operator === 'In');
  });
}
