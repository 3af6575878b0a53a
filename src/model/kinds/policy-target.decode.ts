/** `selector` and `targetRef(s)` of policies (§4.5 "workload selectors"). */
import {
  type Aliases,
  type Decoder,
  type FieldError,
  list,
  mapped,
  name,
  optional,
  required,
  restricting,
  struct,
  text,
  withDefault,
} from '../decode.ts';
import { mistakeAt, selectorLabels } from './field-rules.ts';
import type { PolicyScope, PolicyTargetReference } from './policy-target.ts';

const targetReference: Decoder<PolicyTargetReference> = struct<PolicyTargetReference>({
  group: withDefault(text, ''),
  kind: required(name),
  name: required(name),
  namespace: optional(name),
});

/** `{matchLabels}`. */
const matchLabels: Decoder<Readonly<Record<string, string>>> = mapped(
  struct<{ labels: Readonly<Record<string, string>> }>({ labels: withDefault(selectorLabels, {}, 'matchLabels') }),
  ({ labels }) => labels,
);

/** Fields of every kind that has a {@link PolicyScope}. */
export const scopeFields = {
  selector: restricting(optional(matchLabels)),
  targetRefs: restricting(optional(list(targetReference))),
};

/** The form with one reference. */
export function scopeAliases<T extends PolicyScope>(): Aliases<T> {
  const aliases: Aliases<PolicyScope> = {
    targetRef: ['targetRefs', mapped(targetReference, (reference) => [reference])],
  };
  // What is an alias of a scope's field is one of every spec that has the scope's fields.
  return aliases as unknown as Aliases<T>;
}

export function scopeMistakes(scope: PolicyScope, path: string): FieldError[] {
  const { selector, targetRefs = [] } = scope;
  return mistakeAt(
    path,
    selector !== undefined && targetRefs.length > 0 ? 'must have only one of selector and targetRefs' : undefined,
  );
}

/** What is allowed and probably not meant. */
export function scopeWarnings({ selector }: PolicyScope): FieldError[] {
  const selectsAll = selector !== undefined && Object.keys(selector).length === 0;
  return mistakeAt('selector', selectsAll ? 'has no labels: the object holds for the whole namespace' : undefined);
}

/** Of several fields of which one is to be given. */
export function onlyOneOf<T extends object>(
  value: T,
  fields: readonly (keyof T & string)[],
  path: string,
): FieldError[] {
  const given = fields.filter((field) => value[field] !== undefined);
  return given.length > 1 ? [{ path, message: `must have only one of ${given.join(', ')}` }] : [];
}
