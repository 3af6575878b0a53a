import { list, name, oneOf, optional, required, struct, text } from '../fields/decode.ts';
import { labels } from './field-rules.ts';
import type { LabelSelector } from './label-selector.ts';

export const labelSelector = struct<LabelSelector>({
  matchLabels: optional(labels),
  matchExpressions: optional(
    list(
      struct<NonNullable<LabelSelector['matchExpressions']>[number]>({
        key: required(name),
        operator: required(oneOf(['In', 'NotIn', 'Exists', 'DoesNotExist'])),
        values: optional(list(text)),
      }),
    ),
  ),
});
