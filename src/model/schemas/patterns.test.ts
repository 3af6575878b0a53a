/** Tests schema patterns with random texts of typical characters. */

import * as E from 'fp-ts/lib/Either.js';
import { expect, it } from 'vitest';
import { sized } from '../../../test/harness/size-of-run.ts';
import { Draw } from '../../../test/random-config/draw.ts';
import { durationAtLeast, durationMs, durationOrZero } from '../fields/decode.ts';
import { durationPattern, notNegativePattern, positivePattern } from '../fields/duration.ts';
import { anyHostViolation, exportTargetViolation, isCidr, isDnsLabel, isIpAddress } from '../fields/names.ts';
import * as patterns from '../fields/patterns.ts';
import type { FieldViolation } from '../fields/violation.ts';
import { gateway } from '../kinds/gateway/gateway.decode.ts';
import * as rules from '../kinds/policies/authorization-policy.rules.ts';
import { hostOrIpViolation, plainHeaderNameViolation } from '../kinds/virtual-service/virtual-service.rules.ts';
import { sidecar } from '../kinds/workloads/sidecar.decode.ts';

type Takes = (text: string) => boolean;

const decodes =
  (decoder: (value: unknown, path: string) => E.Either<unknown, unknown>): Takes =>
  (text) =>
    E.isRight(decoder(text, ''));
const unspaced = (violationOf: (text: string) => FieldViolation | undefined): Takes => {
  return (text) => text !== '' && (rules.spaceViolation(text) ?? violationOf(text)) === undefined;
};
const port = { number: 80, name: 'http', protocol: 'HTTP' };

const hostParts = [
  'a',
  'web-1',
  'A',
  '_x',
  '.',
  'com',
  '*',
  '*.',
  '*-',
  '-',
  '/',
  '~',
  'shop',
  '10.0.0.1',
  '_',
  'ü',
  ' ',
  '\n',
];
const ipParts = [
  '10',
  '.',
  '0',
  '255',
  ':',
  '::',
  'fe80',
  '1',
  'ffff',
  '/',
  '8',
  '64',
  '32',
  '%',
  'eth0',
  '%e-1.a',
  'x',
];
const timeParts = [
  '1',
  '0',
  '.',
  '5',
  'ms',
  's',
  'm',
  'h',
  'us',
  'µs',
  'μs',
  'ns',
  '-',
  '+',
  '1.5s',
  '-0s',
  '0.0ms',
  ' ',
];
const textParts = [
  'a',
  '*',
  ' ',
  '/',
  '{*}',
  '{**}',
  '{',
  '}',
  'b c',
  '\n',
  'ü',
  '%',
  '?',
  '\t',
  '/x',
  '\u2028',
  '1',
  '8080',
];

it.each<[what: string, takes: Takes, pattern: string | readonly string[], parts: readonly string[], least: number]>([
  ['a label', isDnsLabel, patterns.labelPattern, hostParts, 20],
  ['a host', (text) => anyHostViolation(text) === undefined, patterns.hostPattern, hostParts, 20],
  [
    'a host or address',
    (text) => hostOrIpViolation(text) === undefined,
    patterns.hostOrIpPattern,
    [...hostParts, ...ipParts],
    20,
  ],
  [
    'a host of a gateway',
    (text) => E.isRight(gateway({ servers: [{ port, hosts: [text] }] }, '')),
    patterns.scopedHostPattern,
    hostParts,
    5,
  ],
  [
    'a host of a sidecar',
    (text) => E.isRight(sidecar({ egress: [{ hosts: [text] }] }, '')),
    [patterns.scopedHostPattern, '/'],
    hostParts,
    5,
  ],
  ['a CIDR range', (text) => isIpAddress(text) || isCidr(text), patterns.subnetPattern, ipParts, 5],
  [
    'a target of exportTo',
    (text) => exportTargetViolation(text) === undefined,
    patterns.exportTargetPattern,
    hostParts,
    20,
  ],
  ['a port', (text) => rules.portViolation(text) === undefined, patterns.portPattern, ipParts, 20],
  ['a header', (text) => plainHeaderNameViolation(text) === undefined, patterns.headerNamePattern, hostParts, 20],
  ['a text with a wildcard', unspaced(rules.wildcardViolation), rules.wildcardPattern, textParts, 20],
  ['a path', unspaced(rules.pathViolation), rules.withoutSpacePattern, textParts, 20],
  ['a duration', decodes(durationMs), durationPattern, timeParts, 20],
  ['a non-negative duration', decodes(durationOrZero), [durationPattern, notNegativePattern], timeParts, 20],
  [
    'a positive duration',
    decodes(durationAtLeast(1)),
    [durationPattern, notNegativePattern, positivePattern],
    timeParts,
    20,
  ],
])(
  'the schema pattern for %s accepts every text that the decoder accepts',
  (_, takes, pattern, allowedParts, minRejected) => {
    const all = [pattern].flat().map((one) => new RegExp(one));
    const draw = new Draw(1);
    const texts = Array.from({ length: sized({ short: 4_000, full: 200_000 }) }, () =>
      draw.list(0, 5, () => draw.pick(allowedParts)).join(''),
    );
    const acceptedTexts = texts.filter(takes);
    expect(acceptedTexts.filter((text) => !all.every((one) => one.test(text)))).toEqual([]);
    // A pattern that accepts everything would be useless.
    expect(texts.filter((text) => !all.every((one) => one.test(text))).length).toBeGreaterThan(minRejected);
    expect(new Set(acceptedTexts).size).toBeGreaterThan(minRejected);
  },
);
