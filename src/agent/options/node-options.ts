/** Flags of `pilot-agent bootstrap` that override detected settings of the node. */
import { isIP } from 'node:net';
import * as E from 'fp-ts/lib/Either.js';
import { dictionary, text } from '../../model/fields/decode.ts';
import { mustBe } from '../../model/fields/violation.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { OptionErrors } from '../../runtime/option-errors.ts';
import type { ProxyOptions } from './options.ts';
import type { ProxyFlags } from './proxy-flags.ts';

export function nodeFromFlags(
  flags: ProxyFlags,
  errors: OptionErrors,
): Pick<ProxyOptions, 'nodeId' | 'pilotSans' | 'platformMetadata'> {
  return {
    nodeId: nodeIdOf(flags.nodeId, errors),
    pilotSans: commaList(flags.pilotSAN),
    platformMetadata: platformMetadata(flags.platformMetadata, errors),
  };
}

export function parseAddresses(text: string | undefined, errors: OptionErrors): string[] | undefined {
  const addresses = commaList(text);
  for (const address of addresses ?? []) {
    if (isIP(address) === 0) errors.addFlagError('--instanceIPs', mustBe('a list of IP addresses', address));
  }
  return addresses;
}

/** `type~address~name~domain`, which the control plane parses. */
function nodeIdOf(text: string | undefined, errors: OptionErrors): string | undefined {
  if (text !== undefined && !/^(sidecar|router)~[^~]+~[^~]+~[^~]*$/.test(text)) {
    errors.addFlagError('--nodeId', mustBe('TYPE~ADDRESS~NAME~DOMAIN with TYPE sidecar or router', text));
  }
  return text;
}

function platformMetadata(json: string | undefined, errors: OptionErrors): Record<string, string> | undefined {
  if (json === undefined || json === '') return undefined;
  try {
    const decoded = dictionary(text)(JSON.parse(json), '');
    if (E.isRight(decoded)) return decoded.right;
    for (const error of decoded.left) errors.addFlagError({ source: '--platformMetadata', field: error.path }, error);
  } catch (error) {
    errors.addFlagError('--platformMetadata', mustBe('a JSON object of strings', json, { hint: messageOf(error) }));
  }
  return undefined;
}

function commaList(text: string | undefined): string[] | undefined {
  const items = text?.split(',').flatMap((item) => item.trim() || []) ?? [];
  return items.length > 0 ? items : undefined;
}
