import { type Decoder, text, withDefault } from '../../fields/decode.ts';
import { partialStruct } from './lenient.ts';

export interface KubernetesObjectReference {
  readonly kind: string;
  readonly name: string;
  /** Empty for the namespace of the referring object. */
  readonly namespace: string;
}

export const objectReference: Decoder<KubernetesObjectReference> = partialStruct<KubernetesObjectReference>(
  {
    kind: withDefault(text, ''),
    name: withDefault(text, ''),
    namespace: withDefault(text, ''),
  },
  ['apiVersion', 'fieldPath', 'resourceVersion', 'uid'],
);
