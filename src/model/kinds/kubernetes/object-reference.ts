import { type Decoder, text, withDefault } from '../../fields/decode.ts';
import { reading } from './lenient.ts';

export interface ObjectReference {
  readonly kind: string;
  readonly name: string;
  /** Empty: the namespace of the referring object. */
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
