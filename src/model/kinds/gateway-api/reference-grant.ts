import { type Decoder, optional, required, restrictingField, restrictions, struct } from '../../fields/decode.ts';
import { group, kindName, listOf, namespace, objectName } from './fields.ts';

export interface ReferenceGrant {
  readonly from: readonly { readonly group: string; readonly kind: string; readonly namespace: string }[];
  /** A target without a name permits all objects of its kind. */
  readonly to: readonly { readonly group: string; readonly kind: string; readonly name?: string }[];
}

export const referenceGrant: Decoder<ReferenceGrant> = struct<ReferenceGrant>({
  from: required(
    listOf(
      struct<ReferenceGrant['from'][number]>({
        group: required(group),
        kind: required(kindName),
        namespace: required(namespace),
      }),
      1,
      16,
    ),
  ),
  to: restrictingField(
    required(
      listOf(
        struct<ReferenceGrant['to'][number]>(
          restrictions({
            group: required(group),
            kind: required(kindName),
            name: optional(objectName),
          }),
        ),
        1,
        16,
      ),
    ),
  ),
});
