import { type Decoder, text, withDefault } from '../../fields/decode.ts';
import { reading } from './lenient.ts';

/** Which object stands behind an address. */
export interface ObjectReference {
  readonly kind: string;
  readonly name: string;
  /** Empty: that of the object that refers. */
  readonly namespace: string;
}

export const objectReference: Decoder<ObjectReference> = reading<ObjectReference>(
  {
    kind: withDefault(text, ''),
    name: withDefault(text, ''),
    namespace: withDefault(text, ''),
  },
  ['apiVersion', 'fieldPath', 'resourceVersion', 'uid'],
);
