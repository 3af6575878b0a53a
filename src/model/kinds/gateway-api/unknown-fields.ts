/**
 * Decoding of kinds whose API grows: a field that is not known keeps nothing out of force, as in a cluster, which takes
 * the rest; but it is told, for more often than not it is a known one with a letter missing.
 */
import * as E from 'fp-ts/lib/Either.js';
import { type Decoded, type Decoder, type FieldError, forgivingUnknown } from '../../decode.ts';

const unknownOf = new WeakMap<object, readonly FieldError[]>();

/** Decodes, and remembers for {@link unknownFields} what was passed over. */
export function decodeKnown<A extends object>(decoder: Decoder<A>, value: unknown): Decoded<A> {
  return E.map(({ value: decoded, unknown }: { value: A; unknown: FieldError[] }) => {
    if (unknown.length > 0) unknownOf.set(decoded, unknown);
    return decoded;
  })(forgivingUnknown(decoder)(value));
}

/** A warning for each field of an object that was passed over when it was decoded. */
export function unknownFields(spec: object): readonly FieldError[] {
  return (unknownOf.get(spec) ?? []).map(({ path, message }) => ({ path, message: `${message} (it is ignored)` }));
}
