import { expect, it } from 'vitest';
import type { LogEntry } from '../../../runtime/log-events/log-events.ts';
import { type SecurePortFlags, securePortOf } from './secure-port.ts';

const files = { caCertFile: 'ca.pem', tlsCertFile: 'cert.pem', tlsKeyFile: 'key.pem' };

function resolve(flags: SecurePortFlags) {
  const noteEntries: LogEntry[] = [];
  const warnings: LogEntry[] = [];
  const port = securePortOf(flags, {
    hasAuthority: false,
    mayHaveAuthority: false,
    writeEntry: (text) => noteEntries.push(text),
    warn: (text) => warnings.push(text),
  });
  return { port, notes: noteEntries, warnings };
}

it('the secure port opens if all three files are configured', () => {
  expect(resolve(files)).toEqual({
    port: {
      address: { host: '', port: 15012 },
      files: { caFile: 'ca.pem', certificateFile: 'cert.pem', keyFile: 'key.pem' },
      cipherSuites: [],
      minVersion: 'TLSv1.2',
    },
    notes: [],
    warnings: [],
  });
  expect(resolve({ ...files, secureGRPCAddr: '127.0.0.1:1' }).port?.address).toEqual({ host: '127.0.0.1', port: 1 });
});

it('the secure port stays closed without files, with a log line, or with a warning if a flag requests the port', () => {
  expect(resolve({})).toMatchObject({
    port: undefined,
    notes: [{ event: 'option.securePortDisabled' }],
    warnings: [],
  });
  const { tlsKeyFile: _, ...withoutKeyFile } = files;
  for (const flags of [withoutKeyFile, { secureGRPCAddr: ':15012' }]) {
    expect(resolve(flags)).toMatchObject({ port: undefined, warnings: [{ event: 'option.securePortIncomplete' }] });
  }
});

it('the secure port stays closed if its address is empty, regardless of other flags', () => {
  for (const secureGRPCAddr of ['', true]) {
    expect(resolve({ ...files, secureGRPCAddr })).toEqual({ port: undefined, notes: [], warnings: [] });
  }
});

it('the secure port accepts cipher suites by their Go names, and ignores those of TLS 1.3', () => {
  const tlsCipherSuites = 'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_AES_128_GCM_SHA256';
  expect(resolve({ ...files, tlsCipherSuites }).port?.cipherSuites).toEqual(['ECDHE-RSA-AES128-GCM-SHA256']);
  expect(() => resolve({ tlsCipherSuites: 'TLS_NULL' })).toThrow('--tls-cipher-suites: unknown cipher suite TLS_NULL');
});

it('the secure port supports two minimum TLS versions', () => {
  expect(resolve({ ...files, tlsMinVersion: '1.3' }).port?.minVersion).toBe('TLSv1.3');
  expect(() => resolve({ tlsMinVersion: '1.1' })).toThrow('--tls-min-version: must be 1.2 or 1.3, got "1.1"');
});
