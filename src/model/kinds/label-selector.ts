/** How Kubernetes selects objects by their labels. */
import { ownValue } from '../../runtime/json-object.ts';

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    readonly values?: readonly string[];
  }[];
}

/** Whether an object with the labels is selected. A selector without requirements selects all. */
export function selectsLabels(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Readonly<Record<string, string>>,
): boolean {
  if (!Object.entries(matchLabels).every(([key, value]) => ownValue(labels, key) === value)) return false;
  return matchExpressions.every(({ key, operator, values = [] }) => {
    const value = ownValue(labels, key);
    if (operator === 'Exists') return value !== undefined;
    if (operator === 'DoesNotExist') return value === undefined;
    // A label that is not there is in no list.
    return (value !== undefined && values.includes(value)) === (operator === 'In');
  });
}
