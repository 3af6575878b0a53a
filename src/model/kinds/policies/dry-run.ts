import type { FieldError } from '../../fields/decode.ts';
import { booleanOf } from '../../fields/go-boolean.ts';
import * as violation from '../../fields/violation.ts';
import type { MetadataTexts } from '../kind.ts';
import type { AuthorizationPolicy } from './authorization-policy.ts';

export const dryRunAnnotation = 'istio.io/dry-run';

export function isDryRun({ annotations }: { readonly annotations: Readonly<Record<string, string>> }): boolean {
  const annotation = annotations[dryRunAnnotation];
  // An invalid value rejects the object. If an object has one anyway, the policy applies.
  return annotation !== undefined && booleanOf(annotation) === true;
}

/** If the action does not support dry run, it is unclear whether the policy should apply. */
export function dryRunErrors(
  { action }: AuthorizationPolicy,
  { annotations }: Pick<MetadataTexts, 'annotations'>,
): FieldError[] {
  if (annotations[dryRunAnnotation] === undefined || action === 'ALLOW' || action === 'DENY') return [];
  return [
    violation.fieldError(`annotations["${dryRunAnnotation}"]`, {
      ...violation.unsupportedFeature(
        `dry run is not supported with action ${action}, only with ALLOW and DENY: remove the annotation`,
      ),
      got: violation.quotedValue(action),
    }),
  ];
}
