/** Policies that are to be tried, and to have no effect (spec/discovery.md §8.10). */

import type { FieldError } from '../../fields/decode.ts';
import { booleanOf } from '../../fields/go-boolean.ts';
import * as violation from '../../fields/violation.ts';
import type { MetadataTexts } from '../kind.ts';
import type { AuthorizationPolicy } from './authorization-policy.ts';

export const dryRunAnnotation = 'istio.io/dry-run';

export function isDryRun({ annotations }: { readonly annotations: Readonly<Record<string, string>> }): boolean {
  const said = annotations[dryRunAnnotation];
  // A value that cannot be read is refused with its object; should it come all the same, the policy is in force.
  return said !== undefined && booleanOf(said) === true;
}

/** What was written to be tried and can only be in force, or be nothing, is refused: neither may be what was meant. */
export function dryRunErrors(
  { action }: AuthorizationPolicy,
  { annotations }: Pick<MetadataTexts, 'annotations'>,
): FieldError[] {
  if (annotations[dryRunAnnotation] === undefined || action === 'ALLOW' || action === 'DENY') return [];
  return [
    violation.fieldError(`annotations["${dryRunAnnotation}"]`, {
      ...violation.unsupported(
        `dry run is not supported with action ${action}, only with ALLOW and DENY: remove the annotation`,
      ),
      got: violation.shownValue(action),
    }),
  ];
}
