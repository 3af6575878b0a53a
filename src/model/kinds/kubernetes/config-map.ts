/** ConfigMaps are read only for CA certificates (`caCertificates` of credentials). */
import { type Decoder, dictionary, text, withDefault } from '../../fields/decode.ts';
import { partialStruct } from './lenient.ts';

export interface ConfigMap {
  readonly data: Readonly<Record<string, string>>;
  readonly binaryData: Readonly<Record<string, string>>;
}

export const configMap: Decoder<ConfigMap> = partialStruct<ConfigMap>(
  {
    data: withDefault(dictionary(text), {}),
    binaryData: withDefault(dictionary(text), {}),
  },
  ['immutable'],
);
