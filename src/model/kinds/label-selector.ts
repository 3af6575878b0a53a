import { ownValue } from '../../runtime/json-object.ts';

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    readonly values?: readonly string[];
  }[];
}

/** A selector without requirements selects everything. */
export function selectsLabels(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Readonly<Record<string, string>>,
): boolean {
  if (!Object.entries(matchLabels).every(([key, value]) => ownValue(labels, key) === value)) return false;
  return matchExpressions.every(({ key, operator, values = [] }) => {
    const value = ownValue(labels, key);
    if (operator === 'Exists') return value !== undefined;
    if (operator === 'DoesNotExist') return value === undefined;
    // `NotIn` matches if the label is absent.
    return (value !== undefined && values.includes(value)) === (operator === 'In');
  });
}
