import { isObject } from '../../../runtime/json-object.ts';
import {
  type Aliases,
  type Decoded,
  type Decoder,
  type FieldError,
  list,
  mapDecoder,
  name,
  optional,
  refine,
  required,
  restrictingField,
  restrictions,
  struct,
  text,
  withDefault,
} from '../../fields/decode.ts';
import { type SchemaRule, withSchemaValidation } from '../../fields/description.ts';
import { withRejection } from '../../fields/effect.ts';
import * as violation from '../../fields/violation.ts';
import { selectorLabels } from '../field-rules.ts';
import type { PolicyScope, PolicyTargetReference } from './policy-target.ts';

/** Kinds to which a policy may be attached, including Istio's own Gateway. */
const targets: readonly {
  readonly group: string;
  readonly kind: string;
  readonly implementedBy: 'gateways' | 'waypoints';
}[] = [
  { group: 'gateway.networking.k8s.io', kind: 'Gateway', implementedBy: 'gateways' },
  { group: 'networking.istio.io', kind: 'Gateway', implementedBy: 'gateways' },
  { group: '', kind: 'Service', implementedBy: 'waypoints' },
  { group: 'networking.istio.io', kind: 'ServiceEntry', implementedBy: 'waypoints' },
  { group: 'gateway.networking.k8s.io', kind: 'GatewayClass', implementedBy: 'waypoints' },
];

/** Rejects unsupported targets, because they would remain unprotected. */
const targetReference: Decoder<PolicyTargetReference> = refine(
  struct<PolicyTargetReference>({
    // The core group has an empty name; users write `core`.
    group: withDefault(
      withSchemaValidation(
        mapDecoder(text, (group) => (group === 'core' ? '' : group)),
        { enum: ['core', ...new Set(targets.map(({ group }) => group))] },
      ),
      '',
    ),
    kind: required(withSchemaValidation(name, { enum: [...new Set(targets.map(({ kind }) => kind))] })),
    name: required(name),
    // The namespace is decoded although it is an error, so that a rejected policy can fail closed at the intended target.
    namespace: withRejection(optional(name), 'the target must be in the namespace of the object'),
  }),
  (reference, path) =>
    violation.errorsAt(path, targetOf(reference) === undefined ? unknownTarget(reference) : undefined),
);

function targetOf({ group, kind }: PolicyTargetReference): (typeof targets)[number] | undefined {
  return targets.find((target) => target.group === group && target.kind === kind);
}

function unknownTarget({ group, kind }: PolicyTargetReference): violation.FieldViolation {
  const actual = `${kind} of ${group === '' ? 'the core group' : group}`;
  const kindText = (target: { group: string; kind: string }): string =>
    target.group === '' ? target.kind : `${target.kind} of ${target.group}`;
  return violation.unknownReference(`must refer to a ${targets.map(kindText).join(', a ')}, got a ${actual}`, actual);
}

const matchLabels: Decoder<Readonly<Record<string, string>>> = mapDecoder(
  struct<{ labels: Readonly<Record<string, string>> }>(
    restrictions({ labels: withDefault(selectorLabels, {}, 'matchLabels') }),
  ),
  ({ labels }) => labels,
);

export const scopeFields = {
  selector: restrictingField(optional(matchLabels)),
  targetRefs: restrictingField(optional(list(targetReference))),
};

export function scopeAliases<T extends PolicyScope>(): Aliases<T> {
  const aliases: Aliases<PolicyScope> = {
    targetRef: ['targetRefs', mapDecoder(targetReference, (reference) => [reference])],
  };
  // The cast is safe for every spec that contains the fields of PolicyScope.
  return aliases as unknown as Aliases<T>;
}

export const selectorRule: SchemaRule = {
  rule: '!has(self.selector) || !has(self.targetRefs) || size(self.targetRefs) == 0',
  message: violation.exclusiveFields(['selector', 'targetRefs']).message,
};

export const scopeRules: readonly SchemaRule[] = [
  selectorRule,
  {
    rule: '!has(self.targetRef) || !has(self.selector)',
    message: violation.exclusiveFields(['selector', 'targetRef']).message,
  },
  {
    rule: '!has(self.targetRef) || !has(self.targetRefs)',
    message: violation.excludedField('together with targetRefs').message,
    fieldPath: '.targetRef',
  },
];

export function scopeErrors(scope: PolicyScope, path: string): FieldError[] {
  const { selector, targetRefs = [] } = scope;
  return violation.errorsAt(
    path,
    selector !== undefined && targetRefs.length > 0 ? violation.exclusiveFields(['selector', 'targetRefs']) : undefined,
  );
}

/** The targets must be in the object's namespace. */
export function decodeWithScope<A extends Pick<PolicyScope, 'targetRefs'>>(
  decoder: Decoder<A>,
  spec: unknown,
  namespace: string,
): Decoded<A> {
  const writtenSpec = isObject(spec) ? spec : {};
  const isFieldPresent = (field: string): boolean => writtenSpec[field] !== undefined && writtenSpec[field] !== null;
  const hasBothTargetFields = isFieldPresent('targetRef') && isFieldPresent('targetRefs');
  const path = (index: number): string => (isFieldPresent('targetRefs') ? `targetRefs[${index}]` : 'targetRef');
  return refine(
    decoder,
    () =>
      violation.errorsAt(
        'targetRef',
        hasBothTargetFields ? violation.excludedField('together with targetRefs') : undefined,
      ),
    ({ targetRefs = [] }) =>
      targetRefs.flatMap((reference, index) =>
        violation.errorsAt(
          `${path(index)}.namespace`,
          reference.namespace === undefined
            ? undefined
            : violation.disallowedValue(
                `must not be set: the target must be in the namespace of the object, ${namespace}`,
              ),
        ),
      ),
  )(spec, '');
}

export function scopeWarnings({ selector, targetRefs }: PolicyScope): FieldError[] {
  const hasEmptySelector = selector !== undefined && Object.keys(selector).length === 0;
  return [
    ...violation.errorsAt(
      'selector',
      hasEmptySelector
        ? violation.doubtfulValue('has no labels: the object applies to the whole namespace')
        : undefined,
    ),
    ...targetWarnings(targetRefs),
  ];
}

/** A policy with only unsupported targets applies nowhere. */
export function targetWarnings(targetRefs: PolicyScope['targetRefs']): FieldError[] {
  if (targetRefs === undefined) return [];
  const gatewayReferences = targetRefs.filter((reference) => targetOf(reference)?.implementedBy === 'gateways');
  const consequenceText =
    gatewayReferences.length === 0 ? 'the object applies to nothing' : 'the reference has no effect';
  return [
    ...violation.errorsAt(
      'targetRefs',
      targetRefs.length === 0
        ? violation.doubtfulValue('the list is empty: the object applies to the whole namespace')
        : undefined,
    ),
    ...targetRefs.flatMap((reference, index) =>
      violation.errorsAt(
        `targetRefs[${index}].kind`,
        targetOf(reference)?.implementedBy === 'waypoints'
          ? violation.unsupportedFeature(
              `targets of kind ${reference.kind} need waypoints, which are not supported, and ${consequenceText}: use a selector`,
            )
          : undefined,
      ),
    ),
  ];
}

export function exclusiveFieldErrors<T extends object>(
  value: T,
  fields: readonly (keyof T & string)[],
  path: string,
): FieldError[] {
  const setFields = fields.filter((field) => value[field] !== undefined);
  return setFields.length > 1 ? [violation.fieldError(path, violation.exclusiveFields(setFields))] : [];
}
