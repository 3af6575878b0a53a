/**
 * Decoding of kinds whose API grows: a field that is not known keeps nothing out of force, as in a cluster, whose API server may
 * know more than this control plane; but it is told.
 */
import * as E from 'fp-ts/lib/Either.js';
import { type Decoded, type Decoder, type FieldError, forgivingUnknown, type UnknownField } from '../fields/decode.ts';
import * as violation from '../fields/violation.ts';
import type { Kind } from './kind.ts';

const unknownOf = new WeakMap<object, readonly FieldError[]>();

/**
 * Decodes, and remembers for {@link unknownFields} what was passed over.
 *
 * @param forgiven which fields that are not known are; absent: all
 * @param adapted makes what was decoded safe without them
 */
export function decodeKnown<A extends object>(
  decoder: Decoder<A>,
  value: unknown,
  forgiven?: readonly UnknownField[],
  adapted: Adapt<A> = (known) => known,
): Decoded<A> {
  const decoded = forgivingUnknown(decoder, forgiven)(value);
  if (E.isLeft(decoded)) return decoded;
  const { unknown } = decoded.right;
  if (unknown.length === 0) return E.right(decoded.right.value);
  const known = adapted(decoded.right.value, unknown);
  unknownOf.set(known, unknown);
  return E.right(known);
}

type Adapt<A> = (known: A, unknown: readonly FieldError[]) => A;

/** A warning for each field of an object that was passed over when it was decoded. */
export function unknownFields(spec: object): readonly FieldError[] {
  return (unknownOf.get(spec) ?? []).map((error) => violation.withConsequence(error, 'it is ignored'));
}

/**
 * A kind of Istio's own, fields that a newer Istio may know passed over. What nearly is a known name is none of them: nobody's
 * API server knows it, and what was meant would not hold.
 */
export function growing<Name extends string, Spec extends object>(
  kind: Kind<Name, Spec>,
  adapted?: Adapt<Spec>,
): Kind<Name, Spec> {
  return {
    ...kind,
    decode: (body, namespace) => decodeKnown((value) => kind.decode(value, namespace), body, ['strange'], adapted),
    warnings: (spec) => [...unknownFields(spec), ...kind.warnings(spec)],
  };
}
