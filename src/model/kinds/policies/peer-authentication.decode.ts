import {
  type Decoder,
  dictionary,
  fieldPath,
  mapped,
  oneOf,
  optional,
  refine,
  restrictions,
  struct,
  withDefault,
} from '../../fields/decode.ts';
import { inSchema } from '../../fields/description.ts';
import { mistakeAt } from '../field-rules.ts';
import { maxPortModes } from '../object-limits.ts';
import type { MutualTlsMode, PeerAuthentication } from './peer-authentication.ts';
import { scopeFields } from './policy-target.decode.ts';

/** `{mode}`. */
export const mutualTls: Decoder<MutualTlsMode> = mapped(
  struct<{ mode: MutualTlsMode }>(
    restrictions({ mode: withDefault(oneOf(['UNSET', 'DISABLE', 'PERMISSIVE', 'STRICT']), 'UNSET') }),
  ),
  ({ mode }) => mode,
);

const ofPorts = {
  minProperties: 1,
  rules: [
    {
      rule: "self.all(port, port.matches('^[1-9][0-9]{0,4}$') && int(port) <= 65535)",
      message: 'must be ports from 1 to 65535',
    },
  ],
};

/** A PeerAuthentication's `spec`. */
export const peerAuthentication: Decoder<PeerAuthentication> = inSchema(
  refine(
    struct<PeerAuthentication>(
      restrictions({
        selector: scopeFields.selector,
        mtls: optional(mutualTls),
        portLevelMtls: optional(inSchema(dictionary(mutualTls, maxPortModes), ofPorts)),
      }),
    ),
    ({ selector, portLevelMtls }, path) => {
      if (portLevelMtls === undefined) return [];
      const at = fieldPath(path, 'portLevelMtls');
      const ports = Object.keys(portLevelMtls);
      return [
        ...mistakeAt(at, ports.length === 0 ? 'must not be empty' : undefined),
        ...mistakeAt(
          at,
          Object.keys(selector ?? {}).length === 0
            ? 'needs a selector with labels: ports are those of a workload'
            : undefined,
        ),
        ...ports.flatMap((port) =>
          mistakeAt(fieldPath(at, port), isPort(port) ? undefined : 'must be a port from 1 to 65535'),
        ),
      ];
    },
  ),
  {
    rules: [
      {
        rule: '!has(self.portLevelMtls) || (has(self.selector) && has(self.selector.matchLabels) && size(self.selector.matchLabels) > 0)',
        message: 'needs a selector with labels: ports are those of a workload',
        fieldPath: '.portLevelMtls',
      },
    ],
  },
);

function isPort(text: string): boolean {
  return /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65535;
}
