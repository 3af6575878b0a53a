/** Alternative values of a field. Some are invalid; the decoder decides. */

import { type Describable, descriptionOf } from '../../src/model/fields/description.ts';
import { isObject } from '../../src/runtime/json-object.ts';
import { createAuthority } from '../certs/authority.ts';
import { shapeOf } from './schema-fields.ts';

export function otherValues(decoder: Describable, value: unknown, path: string): readonly unknown[] {
  const names = namesOf(decoder);
  if (names !== undefined) return names.filter((name) => name !== value);
  const shape = shapeOf(decoder, path);
  switch (shape.type) {
    case 'boolean':
      return [value !== true];
    case 'integer':
      return otherNumbers(Number(value), [shape.min, shape.max]);
    case 'decimal':
      return otherNumbers(Number(value), [0, 50, 100]);
    case 'text':
      return otherTexts(String(value));
    case 'list':
      return Array.isArray(value) ? otherLists(shape.item, value, path) : [];
    case 'map':
      return isObject(value) ? otherMaps(shape.item, value, path) : [];
    case 'anything':
    case 'any object':
      return typeof value === 'string' ? otherTexts(value) : isObject(value) ? otherObjects(value) : [];
    case 'object':
      return [];
  }
}

/** Values of an enumeration. */
function namesOf(decoder: Describable): readonly unknown[] | undefined {
  const description = descriptionOf(decoder);
  if (description?.type !== 'narrowed') return undefined;
  return description.validation.enum ?? namesOf(description.decoder);
}

function otherNumbers(value: number, bounds: readonly number[]): readonly number[] {
  return [value + 1, value - 1, value * 2, ...bounds].filter((number) => number !== value && Number.isFinite(number));
}

const protocols = ['HTTP', 'UDP', 'TCP', 'HTTPS', 'TLS', 'HTTP2', 'GRPC'];

/** From a different authority: a modified certificate would be invalid and rejected. */
const { certificate: otherCertificate } = createAuthority();

function otherTexts(value: string): readonly string[] {
  if (value.startsWith('-----BEGIN CERTIFICATE-----\n')) return [otherCertificate];
  if (protocols.includes(value)) return protocols.filter((protocol) => protocol !== value);
  const [, amount, unit] = /^(\d+)(ms|s|m|h)$/.exec(value) ?? [];
  if (amount !== undefined) return [`${Number(amount) + 1}${unit}`, `${Number(amount) * 2}${unit}`, '1s', '7s'];
  if (/^\d+$/.test(value)) return [String(Number(value) + 1)];
  const [, network, host, suffix] = /^(\d+\.\d+\.\d+\.)(\d+)(.*)$/.exec(value) ?? [];
  if (network !== undefined) return [`${network}${(Number(host) + 1) % 256}${suffix}`, `10.77.0.0${suffix}`];
  return [
    `${value}x`,
    value.replace(/\w(\W*)$/, 'x$1'),
    `x${value}`,
    `${value}/x`,
    `x.${value}`,
    'Other',
    value.slice(0, -1),
    value.replace(/[a-z]/, 'x'),
  ];
}

function otherLists(item: Describable, value: readonly unknown[], path: string): readonly unknown[] {
  const [first, ...rest] = value;
  const changedFirsts = value.length === 0 ? [] : otherValues(item, first, path);
  return [
    ...changedFirsts.map((other) => [other, ...rest]),
    ...changedFirsts.map((other) => [...value, other]),
    ...(value.length > 1 ? [rest, value.toReversed()] : []),
  ];
}

function otherMaps(item: Describable, value: Readonly<Record<string, unknown>>, path: string): readonly unknown[] {
  const [key] = Object.keys(value);
  if (key === undefined) return [];
  const { [key]: first, ...rest } = value;
  return [
    ...otherValues(item, first, path).map((other) => ({ ...value, [key]: other })),
    { ...rest, [`${key}x`]: first },
    rest,
  ];
}

function otherObjects(value: Readonly<Record<string, unknown>>): readonly unknown[] {
  const [key] = Object.keys(value);
  if (key === undefined) return [];
  const { [key]: _, ...rest } = value;
  return [rest, { ...value, other: 'x' }];
}
