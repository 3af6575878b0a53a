/** Random PEM files of certificates and keys. */
import type { Draw } from '../../random-config/draw.ts';
import { mutatedBytes, randomBytes } from './bytes.ts';

/** @param originals valid files */
export function randomPem(draw: Draw, originals: readonly Buffer[]): Buffer {
  return draw.one(
    () => mutatedBytes(draw, draw.pick(originals)),
    () => mutatedBytes(draw, draw.pick(originals)),
    () => Buffer.concat(draw.list(1, 4, () => draw.pick(originals))),
    () => withBrokenBase64(draw, draw.pick(originals)),
    () => armoured(draw, randomBytes(draw, draw.int(0, 200))),
    () => randomBytes(draw, draw.int(0, 300)),
    () => Buffer.alloc(draw.pick([0, 1, 100_000])),
    () => Buffer.concat([draw.pick(originals), Buffer.from('-----BEGIN CERTIFICATE-----\n')]),
  );
}

function withBrokenBase64(draw: Draw, pem: Buffer): Buffer {
  const lines = pem.toString('latin1').split('\n');
  const at = draw.int(0, lines.length - 1);
  lines.splice(
    at,
    draw.int(0, 3),
    draw.pick(['====', '', '-----END', '\u0000', ' '.repeat(80), lines[at]!.toLowerCase()]),
  );
  return Buffer.from(lines.join(draw.pick(['\n', '\r\n', '\r'])), 'latin1');
}

function armoured(draw: Draw, der: Buffer): Buffer {
  const label = draw.pick([
    'CERTIFICATE',
    'PRIVATE KEY',
    'EC PRIVATE KEY',
    'RSA PRIVATE KEY',
    'ENCRYPTED PRIVATE KEY',
    'X',
    '',
  ]);
  return Buffer.from(`-----BEGIN ${label}-----\n${der.toString('base64')}\n-----END ${label}-----\n`);
}
