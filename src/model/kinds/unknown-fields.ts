/** Decodes kinds whose API evolves. An unknown field does not reject the object, because a newer API may define it. */
import * as E from 'fp-ts/lib/Either.js';
import {
  type Decoded,
  type Decoder,
  decodeIgnoringUnknown,
  type FieldError,
  type UnknownField,
} from '../fields/decode.ts';
import * as violation from '../fields/violation.ts';
import type { Kind } from './kind.ts';

const unknownFieldsByObject = new WeakMap<object, readonly FieldError[]>();

/** @param adaptDecoded makes the decoded value safe without the ignored fields */
export function decodeKnown<A extends object>(
  decoder: Decoder<A>,
  value: unknown,
  ignoredKinds?: readonly UnknownField[],
  adaptDecoded: AdaptDecoded<A> = (decodedValue) => decodedValue,
): Decoded<A> {
  const decoded = decodeIgnoringUnknown(decoder, ignoredKinds)(value);
  if (E.isLeft(decoded)) return decoded;
  const { unknownFields: unknownFieldErrors } = decoded.right;
  if (unknownFieldErrors.length === 0) return E.right(decoded.right.value);
  const adaptedValue = adaptDecoded(decoded.right.value, unknownFieldErrors);
  unknownFieldsByObject.set(adaptedValue, unknownFieldErrors);
  return E.right(adaptedValue);
}

type AdaptDecoded<A> = (knownValue: A, unknownFieldErrors: readonly FieldError[]) => A;

export function unknownFields(spec: object): readonly FieldError[] {
  return (unknownFieldsByObject.get(spec) ?? []).map((error) => violation.withConsequence(error, 'it is ignored'));
}

/** Misspelled fields remain errors, because no API version defines them and the intended setting would not apply. */
export function toleratingUnknownFields<Name extends string, Spec extends object>(
  kind: Kind<Name, Spec>,
  adaptDecoded?: AdaptDecoded<Spec>,
): Kind<Name, Spec> {
  return {
    ...kind,
    decode: (body, namespace) => decodeKnown((value) => kind.decode(value, namespace), body, ['strange'], adaptDecoded),
    warnings: (spec) => [...unknownFields(spec), ...kind.warnings(spec)],
  };
}
