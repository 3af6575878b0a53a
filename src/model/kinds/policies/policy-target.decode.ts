import { isObject } from '../../../runtime/json-object.ts';
import {
  type Aliases,
  type Decoded,
  type Decoder,
  type FieldError,
  list,
  mapped,
  name,
  optional,
  refine,
  required,
  restricting,
  restrictions,
  struct,
  text,
  withDefault,
} from '../../fields/decode.ts';
import { inSchema, type SchemaRule } from '../../fields/description.ts';
import { withRejection } from '../../fields/effect.ts';
import * as violation from '../../fields/violation.ts';
import { selectorLabels } from '../field-rules.ts';
import type { PolicyScope, PolicyTargetReference } from './policy-target.ts';

/** Kinds to which a policy may be attached, including Istio's own Gateway. */
const targets: readonly { readonly group: string; readonly kind: string; readonly heldBy: 'gateways' | 'waypoints' }[] =
  [
    { group: 'gateway.networking.k8s.io', kind: 'Gateway', heldBy: 'gateways' },
    { group: 'networking.istio.io', kind: 'Gateway', heldBy: 'gateways' },
    { group: '', kind: 'Service', heldBy: 'waypoints' },
    { group: 'networking.istio.io', kind: 'ServiceEntry', heldBy: 'waypoints' },
    { group: 'gateway.networking.k8s.io', kind: 'GatewayClass', heldBy: 'waypoints' },
  ];

/** Rejects unsupported targets, because they would remain unprotected. */
const targetReference: Decoder<PolicyTargetReference> = refine(
  struct<PolicyTargetReference>({
    // The core group has an empty name; users write `core`.
    group: withDefault(
      inSchema(
        mapped(text, (group) => (group === 'core' ? '' : group)),
        { enum: ['core', ...new Set(targets.map(({ group }) => group))] },
      ),
      '',
    ),
    kind: required(inSchema(name, { enum: [...new Set(targets.map(({ kind }) => kind))] })),
    name: required(name),
    // Decoded so that a rejected policy can fail closed at the intended target.
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

const matchLabels: Decoder<Readonly<Record<string, string>>> = mapped(
  struct<{ labels: Readonly<Record<string, string>> }>(
    restrictions({ labels: withDefault(selectorLabels, {}, 'matchLabels') }),
  ),
  ({ labels }) => labels,
);

export const scopeFields = {
  selector: restricting(optional(matchLabels)),
  targetRefs: restricting(optional(list(targetReference))),
};

export function scopeAliases<T extends PolicyScope>(): Aliases<T> {
  const aliases: Aliases<PolicyScope> = {
    targetRef: ['targetRefs', mapped(targetReference, (reference) => [reference])],
  };
  // The cast is safe for every spec that contains the fields of PolicyScope.
  return aliases as unknown as Aliases<T>;
}

export const selectorRule: SchemaRule = {
  rule: '!has(self.selector) || !has(self.targetRefs) || size(self.targetRefs) == 0',
  message: violation.exclusive(['selector', 'targetRefs']).message,
};

export const scopeRules: readonly SchemaRule[] = [
  selectorRule,
  {
    rule: '!has(self.targetRef) || !has(self.selector)',
    message: violation.exclusive(['selector', 'targetRef']).message,
  },
  {
    rule: '!has(self.targetRef) || !has(self.targetRefs)',
    message: violation.excluded('together with targetRefs').message,
    fieldPath: '.targetRef',
  },
];

export function scopeErrors(scope: PolicyScope, path: string): FieldError[] {
  const { selector, targetRefs = [] } = scope;
  return violation.errorsAt(
    path,
    selector !== undefined && targetRefs.length > 0 ? violation.exclusive(['selector', 'targetRefs']) : undefined,
  );
}

/** The targets must be in the object's namespace. */
export function decodeScoped<A extends Pick<PolicyScope, 'targetRefs'>>(
  decoder: Decoder<A>,
  spec: unknown,
  namespace: string,
): Decoded<A> {
  const writtenSpec = isObject(spec) ? spec : {};
  const isPresent = (field: string): boolean => writtenSpec[field] !== undefined && writtenSpec[field] !== null;
  const hasBoth = isPresent('targetRef') && isPresent('targetRefs');
  const path = (index: number): string => (isPresent('targetRefs') ? `targetRefs[${index}]` : 'targetRef');
  return refine(
    decoder,
    () => violation.errorsAt('targetRef', hasBoth ? violation.excluded('together with targetRefs') : undefined),
    ({ targetRefs = [] }) =>
      targetRefs.flatMap((reference, index) =>
        violation.errorsAt(
          `${path(index)}.namespace`,
          reference.namespace === undefined
            ? undefined
            : violation.notAllowed(`must not be set: the target must be in the namespace of the object, ${namespace}`),
        ),
      ),
  )(spec, '');
}

export function scopeWarnings({ selector, targetRefs }: PolicyScope): FieldError[] {
  const selectsAll = selector !== undefined && Object.keys(selector).length === 0;
  return [
    ...violation.errorsAt(
      'selector',
      selectsAll ? violation.doubtful('has no labels: the object applies to the whole namespace') : undefined,
    ),
    ...targetWarnings(targetRefs),
  ];
}

/** A policy with only unsupported targets applies nowhere. */
export function targetWarnings(targetRefs: PolicyScope['targetRefs']): FieldError[] {
  if (targetRefs === undefined) return [];
  const gatewayReferences = targetRefs.filter((reference) => targetOf(reference)?.heldBy === 'gateways');
  const consequenceText =
    gatewayReferences.length === 0 ? 'the object applies to nothing' : 'the reference has no effect';
  return [
    ...violation.errorsAt(
      'targetRefs',
      targetRefs.length === 0
        ? violation.doubtful('the list is empty: the object applies to the whole namespace')
        : undefined,
    ),
    ...targetRefs.flatMap((reference, index) =>
      violation.errorsAt(
        `targetRefs[${index}].kind`,
        targetOf(reference)?.heldBy === 'waypoints'
          ? violation.unsupported(
              `targets of kind ${reference.kind} need waypoints, which are not supported, and ${consequenceText}: use a selector`,
            )
          : undefined,
      ),
    ),
  ];
}

export function onlyOneOf<T extends object>(
  value: T,
  fields: readonly (keyof T & string)[],
  path: string,
): FieldError[] {
  const setFields = fields.filter((field) => value[field] !== undefined);
  return setFields.length > 1 ? [violation.fieldError(path, violation.exclusive(setFields))] : [];
}
