import {
  type Decoder,
  dictionary,
  fieldPath,
  mapDecoder,
  oneOf,
  optional,
  refine,
  restrictions,
  struct,
  withDefault,
} from '../../fields/decode.ts';
import { withSchemaValidation } from '../../fields/description.ts';
import * as violation from '../../fields/violation.ts';
import { maxPortModes } from '../object-limits.ts';
import type { MutualTlsMode, PeerAuthentication } from './peer-authentication.ts';
import { scopeFields } from './policy-target.decode.ts';

export const mutualTls: Decoder<MutualTlsMode> = mapDecoder(
  struct<{ mode: MutualTlsMode }>(
    restrictions({ mode: withDefault(oneOf(['UNSET', 'DISABLE', 'PERMISSIVE', 'STRICT']), 'UNSET') }),
  ),
  ({ mode }) => mode,
);

const portLevelSchema = {
  minProperties: 1,
  rules: [
    {
      rule: "self.all(port, port.matches('^[1-9][0-9]{0,4}$') && int(port) <= 65535)",
      message: 'must have ports from 1 to 65535 as keys',
    },
  ],
};

export const peerAuthentication: Decoder<PeerAuthentication> = withSchemaValidation(
  refine(
    struct<PeerAuthentication>(
      restrictions({
        selector: scopeFields.selector,
        mtls: optional(mutualTls),
        portLevelMtls: optional(withSchemaValidation(dictionary(mutualTls, maxPortModes), portLevelSchema)),
      }),
    ),
    ({ selector, portLevelMtls }, path) => {
      if (portLevelMtls === undefined) return [];
      const portsPath = fieldPath(path, 'portLevelMtls');
      const ports = Object.keys(portLevelMtls);
      return [
        ...violation.errorsAt(portsPath, ports.length === 0 ? violation.emptyValue() : undefined),
        ...violation.errorsAt(
          portsPath,
          Object.keys(selector ?? {}).length === 0 ? violation.conflict('needs a selector with labels') : undefined,
        ),
        ...ports.flatMap((port) =>
          violation.errorsAt(
            fieldPath(portsPath, port),
            isPort(port) ? undefined : violation.outOfRange('a port from 1 to 65535', port),
          ),
        ),
      ];
    },
  ),
  {
    rules: [
      {
        rule: '!has(self.portLevelMtls) || (has(self.selector) && has(self.selector.matchLabels) && size(self.selector.matchLabels) > 0)',
        message: violation.conflict('needs a selector with labels').message,
        fieldPath: '.portLevelMtls',
      },
    ],
  },
);

function isPort(text: string): boolean {
  return /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65535;
}
