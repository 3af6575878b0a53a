import { generateKeyPairSync } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cpuMs } from '../../../test/harness/cpu-time.ts';
import { createRedactor, recordRedactor } from './redact.ts';
import { secretsIn } from './secret-texts.ts';
import type { TraceRecord } from './trace.ts';

const redact = createRedactor();
const { privateKey } = generateKeyPairSync('ec', {
  namedCurve: 'P-256',
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});
const keyBody = privateKey.split('\n')[1]!;
const jwt = `eyJhbGciOiJSUzI1NiJ9.${Buffer.from('{"sub":"demo"}').toString('base64url')}.c2lnbmF0dXJlLXRoYXQtaXMtbG9uZw`;

describe('redaction of a text', () => {
  test.each([
    ['a private key', `before ${privateKey} after`, 'before [redacted]\n after', keyBody],
    ['an incomplete key', `key: ${privateKey.slice(0, 90)}`, 'key: [redacted]', keyBody.slice(0, 40)],
    ['a key with escaped line ends', JSON.stringify({ inline: privateKey }), '{"inline":"[redacted]\\n"}', keyBody],
    ['a key in base64', Buffer.from(privateKey).toString('base64'), '[redacted]', 'LS0tLS1CRUdJTi'],
    ['a bearer token', 'Authorization was Bearer abc-def_0123', 'Authorization was Bearer [redacted]', 'abc-def'],
    ['basic credentials', 'sent Basic dXNlcjpodW50ZXIy to it', 'sent Basic [redacted] to it', 'dXNlcjpodW50ZXIy'],
    ['a JSON Web Token', `it was ${jwt}.`, 'it was [redacted]', 'eyJ'],
    ['a header line', 'Cookie: a=1; session=xyz\nHost: demo', 'Cookie: [redacted]\nHost: demo', 'session'],
    ['a header as Envoy prints it', "'x-api-key', 'k3y-of-demo'", "'x-api-key', '[redacted]'", 'k3y'],
    ['a variable', 'DB_PASSWORD=hunter22 LANG=C', 'DB_PASSWORD=[redacted] LANG=C', 'hunter22'],
    ['a quoted value', 'password: "correct horse" x', 'password: "[redacted]" x', 'horse'],
    ['a value that contains a quote', '{"password":"a\\"bcd","b":1}', '{"password":"[redacted]","b":1}', 'bcd'],
    [
      'JSON in JSON',
      '"{\\"token\\":\\"abcd1234\\",\\"b\\":1}"',
      '"{\\"token\\":\\"[redacted]\\",\\"b\\":1}"',
      'abcd1234',
    ],
    ['a password in a URL', 'at https://demo:hunter22@host/x', 'at https://demo:[redacted]@host/x', 'hunter22'],
    [
      'a password with a slash in a URL',
      'at https://demo:hun/ter/22@host:80/x',
      'at https://demo:[redacted]@host:80/x',
      'ter',
    ],
    [
      'a password with @ signs in a URL',
      'at https://demo:hun@ter@22@host/@x/y',
      'at https://demo:[redacted]@host/@x/y',
      'ter',
    ],
    [
      'a password with a slash and an @ sign in a URL',
      'at amqp://demo:1/hun@ter@host/x',
      'at amqp://demo:[redacted]@host/x',
      'ter',
    ],
    ['a token of a well-known service', 'with ghp_0123456789abcdef', 'with [redacted]', '0123456789'],
  ])('redaction removes %s', (_, text, expected, secret) => {
    expect(text).toContain(secret);
    expect(redact(text)).toBe(expected);
    expect(createRedactor({ full: true })(text)).toBe(expected);
  });

  test.each([
    'basic configuration of a cluster',
    'xstate.after.parentDue.epoch.running',
    'waiting for /etc/certs/tls.key: token is there',
    '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----',
    `inline bytes ${Buffer.from('-----BEGIN CERTIFICATE-----\nMIIB').toString('base64')}`,
    '4f3c2b1a0d9e8f7a6b5c4d3e2f1a0b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a',
    'tokenFile=/var/run/secrets/tokens/istio-token',
    'https://127.0.0.1:15020/debug/trace',
    'http://demo.example:8080/mail/a@b and http://localhost:80?to=a@b and http://[::1]:15000/a@b',
  ])('redaction keeps a text without secrets: %s', (text) => {
    expect(redact(text)).toBe(text);
  });

  test('redaction truncates a text at the standard level after removing its secrets, and states its length', () => {
    const longText = `${'x '.repeat(995)}DB_PASSWORD=hunter22hunter22 ${'y'.repeat(5_000)}`;
    const redacted = redact(longText);
    expect(redacted).toMatch(/… \(\d+ characters\)$/);
    expect(redacted.length).toBeLessThan(2_030);
    expect(redacted).not.toContain('hunter');
    expect(createRedactor({ full: true })(longText)).toBe(longText.replace('hunter22hunter22', '[redacted]'));
  });

  test('redaction takes bounded time for a text designed to be slow', () => {
    const nasty = [
      'a.'.repeat(100_000).concat('token'),
      'eyJaaaaaaaa-'.repeat(20_000),
      '-----BEGIN '.repeat(20_000),
      `password${'"'.repeat(100_000)}`,
      `password: "${'\\'.repeat(100_000)}`,
      'bearer '.repeat(30_000),
      'token'.repeat(40_000),
      '://a:'.repeat(40_000),
      '://a:@'.repeat(40_000),
      `${'://a:b/'.repeat(20_000)}@`,
      `${'://a:b/'.repeat(20_000)}${'@'.repeat(100_000)}`,
      'basic aaaaaaaaa'.repeat(20_000),
      `Basic ${'a'.repeat(200_000)}`,
    ];
    const tookMs = cpuMs(() => {
      for (const text of nasty) createRedactor({ full: true })(text);
    });
    expect(tookMs).toBeLessThan(2_000);
  });
});

describe('redaction of a value', () => {
  test('redaction removes a value by the name of its field, with all nested values', () => {
    const value = {
      password: 'a',
      apiKey: 'k',
      credentials: { user: 'demo', list: ['x', { deep: 'y' }], pin: 12_345_678 },
      tokens: 5,
      hasToken: true,
      tokenFile: '/var/run/token',
      authorization: '',
    };
    expect(redact(value)).toEqual({
      password: '[redacted]',
      apiKey: '[redacted]',
      credentials: { user: '[redacted]', list: ['[redacted]', { deep: '[redacted]' }], pin: '[redacted]' },
      tokens: 5,
      hasToken: true,
      tokenFile: '/var/run/token',
      authorization: '',
    });
  });

  test('redaction removes a value by an adjacent name: a context change, a variable, a header', () => {
    const value = {
      change: [
        { path: '/env/DB_PASSWORD', value: 'abc' },
        { path: '/tokens', value: 4 },
        { path: '/epoch', value: 'abc' },
      ],
      env: [{ name: 'API_TOKEN', value: 'abc' }],
      headers: [
        ['authorization', 'abc'],
        ['host', 'abc'],
      ],
      actions: ['takeToken', 'grant'],
    };
    expect(redact(value)).toEqual({
      change: [{ path: '/env/DB_PASSWORD', value: '[redacted]' }, value.change[1], value.change[2]],
      env: [{ name: 'API_TOKEN', value: '[redacted]' }],
      headers: [
        ['authorization', '[redacted]'],
        ['host', 'abc'],
      ],
      actions: ['takeToken', 'grant'],
    });
  });

  test('redaction removes the argument after a flag that names a secret', () => {
    const args = [
      'serve',
      '--token',
      'abc',
      '--token-file',
      '/var/run/token',
      '-api-key',
      'k3y',
      '--no-password',
      '--port',
      '80',
    ];
    const harmlessTexts = [
      'serve',
      '--token',
      '[redacted]',
      '--token-file',
      '/var/run/token',
      '-api-key',
      '[redacted]',
      ...args.slice(7),
    ];
    expect(redact({ args })).toEqual({ args: harmlessTexts });
    expect(redact(harmlessTexts)).toBe(harmlessTexts);
  });

  test('redaction removes a secret of the environment at any position and in any encoding', () => {
    const secret = 'pa"ss/wörd+1';
    const { DB_PASSWORD, ...rest } = { DB_PASSWORD: secret, PATH: '/bin' };
    const redacted = createRedactor({ secrets: secretsIn({ DB_PASSWORD, ...rest }) })({
      a: `x${secret}x`,
      json: JSON.stringify({ secret: [secret] }).slice(10),
      url: `/?q=${encodeURIComponent(secret)}&x`,
      base64: Buffer.from(secret).toString('base64').replace(/=*$/, ''),
      [`key ${secret}`]: { nested: [[secret]] },
      path: '/bin',
    });
    expect(redacted).toEqual({
      a: 'x[redacted]x',
      json: '["[redacted]"]}',
      url: '/?q=[redacted]&x',
      base64: '[redacted]',
      'key [redacted]': { nested: [['[redacted]']] },
      path: '/bin',
    });
  });

  test('redaction finds a multi-line secret line by line', () => {
    const redactKey = createRedactor({ secrets: secretsIn({ TLS_PRIVATE_KEY: privateKey }) });
    for (const line of privateKey.split('\n').filter((keyLine) => keyLine.length >= 16 && !keyLine.startsWith('-'))) {
      expect(redactKey(`  ${line}`)).toBe('  [redacted]');
    }
  });

  test('redaction truncates lists at the standard level and states their length, and redacts them at both levels', () => {
    const list = Array.from({ length: 40 }, (_, index) => (index === 3 ? 'Bearer abcdefgh1' : `item ${index}`));
    expect(redact({ list }).list).toEqual([
      ...list.slice(0, 3),
      'Bearer [redacted]',
      ...list.slice(4, 16),
      '… (40 items)',
    ]);
    expect(createRedactor({ full: true })({ list }).list).toEqual(list.with(3, 'Bearer [redacted]'));
  });

  test('redaction replaces an Error with its redacted message, names values other than plain data, and omits deeply nested values', () => {
    const deep = JSON.parse(`${'{"a":'.repeat(20)}1${'}'.repeat(20)}`) as object;
    expect(redact({ error: new Error('refused: token=abcd1234') })).toEqual({ error: 'refused: token=[redacted]' });
    expect(redact({ at: new URL('http://a:b@c'), map: new Map([['password', 'abc']]), big: 10n })).toEqual({
      at: '[URL]',
      map: '[Map]',
      big: '10',
    });
    expect(JSON.stringify(redact(deep))).toContain('[deep]');
    expect(JSON.stringify(redact({ toJSON: () => 'secret words' }))).toBe('{}');
  });

  test('redaction of a cyclic value terminates', () => {
    const circle: { self?: object } = {};
    circle.self = circle;
    expect(JSON.stringify(redact(circle))).toContain('[deep]');
  });

  test('redaction never changes its input, and returns the same object if it removes nothing', () => {
    const cleanValue = { a: { b: [1, 'two', null, undefined, true] }, c: 'text' };
    expect(redact(cleanValue)).toBe(cleanValue);
    const dirty = Object.freeze({ kept: cleanValue, list: Object.freeze([Object.freeze({ password: 'abc' })]) });
    const redacted = redact(dirty);
    expect(redacted.kept).toBe(cleanValue);
    expect(redacted.list).toEqual([{ password: '[redacted]' }]);
    expect(dirty.list[0]!.password).toBe('abc');
  });

  test('redaction removes known secrets from any value, keeps the input, and is idempotent', () => {
    const secret = 'hunter22!';
    const redactSecret = createRedactor({ secrets: [secret] });
    const text = fc.oneof(
      fc.string(),
      fc.constant(secret),
      fc.string().map((padding) => `${padding}${secret}${padding}`),
    );
    const values = fc.letrec((tie) => ({
      value: fc.oneof({ maxDepth: 4 }, text, fc.integer(), fc.boolean(), fc.array(tie('value')), tie('record')),
      record: fc.dictionary(fc.oneof(fc.constantFrom('token', 'a', 'value', 'path'), fc.string()), tie('value')),
    })).value;
    fc.assert(
      fc.property(values, (value) => {
        const original = JSON.stringify(value);
        const redactedOnce = redactSecret(value);
        expect(JSON.stringify(value)).toBe(original);
        expect(JSON.stringify(redactedOnce) ?? '').not.toContain(secret);
        // A truncated list has one item more than the limit, so it would be truncated again.
        if (!original.includes(' items)')) expect(redactSecret(redactedOnce)).toEqual(redactedOnce);
      }),
      { numRuns: 300 },
    );
  });
});

test("redaction keeps all items of a record's own lists, and redacts their contents like any other data", () => {
  const fields = Array.from({ length: 40 }, (_, i) => ({ path: `/field-${i}`, value: i }));
  const record: TraceRecord = {
    ...{ seq: 1, t: 1, kind: 'step', actor: 'a', on: 'go' },
    taken: Array.from({ length: 20 }, (_, i) => i),
    change: [...fields, { path: '/token', value: 'abc' }, { path: '/list', value: fields.map(({ value }) => value) }],
  };
  const redactedRecord = recordRedactor()(record);
  expect(redactedRecord).toMatchObject({ taken: record.kind === 'step' && record.taken });
  const { change } = redactedRecord as TraceRecord & { kind: 'step' };
  expect(change!.slice(0, 40)).toEqual(fields);
  expect(change![40]).toEqual({ path: '/token', value: '[redacted]' });
  expect(change![41]).toEqual({ path: '/list', value: [...Array(16).keys(), '… (40 items)'] });
});

test('redaction recognizes secrets of the environment by their names, and excludes switches, durations and paths', () => {
  const env = {
    DB_PASSWORD: 'one-secret',
    MYSQL_PWD: 'two-secret',
    API_TOKEN: 'three-secret',
    AWS_SECRET_ACCESS_KEY: 'four/secret',
    ISTIO_META_CLIENT_SECRET: 'five-secret',
    DATABASE_URL: 'postgres://demo:six-secret@host/db',
    BROKER_URL: 'amqp://demo:seven/sec@ret@host/db',
    PROXY_URL: 'http://proxy.example:3128/a@b',
    PWD: '/work/here',
    SECRET_TTL: '24h0m0s',
    TOKEN_FILE: '/var/run/token',
    ENABLE_TOKEN: 'true',
    HOME: '/root',
  };
  const words = ['one', 'two', 'three', 'four', 'five', 'six'];
  expect(secretsIn(env)).toEqual([
    ...words.map((word) => `${word}${word === 'four' ? '/' : '-'}secret`),
    'seven/sec@ret',
  ]);
});
