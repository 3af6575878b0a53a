import { describe, expect, it } from 'vitest';
import {
  envoyBuildOf,
  envoySupport,
  envoyVersionIn,
  type ReportedEnvoy,
  unsupportedEnvoyText,
  wasmUnsupportedReason,
} from './envoy-build.ts';

const v8 = { name: 'envoy.wasm.runtime.v8' };
const router = { name: 'envoy.filters.http.router' };

function reportedEnvoy(minor: number, extensions = [router, v8], userAgentName = 'envoy'): ReportedEnvoy {
  const version = { majorNumber: 1, minorNumber: minor, patch: 3 };
  return {
    userAgentName,
    extensions,
    userAgentVersionType: { case: 'userAgentBuildVersion', value: { version } },
  };
}

describe('the Envoy build of a node', () => {
  it("is read from the node's build version and extensions", () => {
    expect(envoyBuildOf(reportedEnvoy(38))).toEqual({ version: [1, 38, 3], hasV8: true });
    expect(envoyBuildOf(reportedEnvoy(38, [router]))).toEqual({ version: [1, 38, 3], hasV8: false });
    expect(envoyBuildOf(reportedEnvoy(38, []))).toEqual({ version: [1, 38, 3], hasV8: undefined });
  });

  it('counts standard metrics itself from version 1.40 on if it contains the access logger', () => {
    const stats = { name: 'envoy.access_loggers.stats' };
    expect(envoyBuildOf(reportedEnvoy(40, [router, stats]))).toEqual({
      version: [1, 40, 3],
      hasV8: false,
      hasStatsLogger: true,
    });
    expect(envoyBuildOf(reportedEnvoy(39, [router, stats]))).not.toHaveProperty('hasStatsLogger');
    expect(envoyBuildOf(reportedEnvoy(40))).not.toHaveProperty('hasStatsLogger');
  });

  it('is parsed from a version string', () => {
    const of = (value: string): unknown =>
      envoyBuildOf({ ...reportedEnvoy(0, []), userAgentVersionType: { case: 'userAgentVersion', value } });
    expect(of('1.36.2')).toEqual({ version: [1, 36, 2], hasV8: undefined });
    expect(of('nonsense')).toBeUndefined();
  });

  it.each(['gRPC Go', 'gRPC C-core', ''])('is undefined for the user agent %j, regardless of the version', (name) => {
    expect(envoyBuildOf(reportedEnvoy(1, [], name))).toBeUndefined();
  });

  it.each([
    ['1.40.0', [1, 40, 0]],
    ['1.38.3-dev', [1, 38, 3]],
    ['9e5580933739775e8bce696a57a2e1bc99368f23/1.40.0/Clean/RELEASE/BoringSSL', [1, 40, 0]],
    ['1.36.2.post1', [1, 36, 2]],
  ])('has the version that %s contains', (text, version) => {
    expect(envoyVersionIn(text)).toEqual(version);
  });

  it.each(['', '1.40', 'v1', '1.40.x', 'a1.2.3', '1.2.3b', `1.${'9'.repeat(400)}.0`])(
    'has no version in %j',
    (text) => {
      expect(envoyVersionIn(text)).toBeUndefined();
    },
  );
});

describe('the supported range of Envoy versions', () => {
  it.each([
    [[1, 35, 9], 'older'],
    [[0, 99, 0], 'older'],
    [[1, 36, 0], 'supported'],
    [[1, 40, 99], 'supported'],
    [[1, 41, 0], 'newer'],
    [[2, 0, 0], 'newer'],
    [undefined, 'unknown'],
  ] as const)('classifies %j as %s', (version, support) => {
    expect(envoySupport(version)).toBe(support);
  });

  it('is reported only for unsupported versions', () => {
    expect(unsupportedEnvoyText([1, 35, 1])).toContain(
      'Envoy 1.35.1 is older than the supported versions 1.36 to 1.40',
    );
    expect(unsupportedEnvoyText([1, 41, 0])).toContain('newer');
    expect(unsupportedEnvoyText([1, 37, 0])).toBeUndefined();
    expect(unsupportedEnvoyText(undefined)).toBeUndefined();
  });
});

describe('Wasm code', () => {
  it.each([
    ['Envoy 1.36', { version: [1, 36, 4], hasV8: true }, 'Envoy 1.36.4 may crash (SIGSEGV)'],
    ['Envoy 1.37', { version: [1, 37, 0], hasV8: undefined }, 'Envoy 1.37.0 may crash (SIGSEGV)'],
    ['an older, untested version', { version: [1, 30, 0], hasV8: true }, 'Envoy 1.30.0 may crash'],
    [
      'a build without V8',
      { version: [1, 38, 3], hasV8: false },
      'Envoy 1.38.3 was built without envoy.wasm.runtime.v8',
    ],
    [
      'a build without V8 and without a version',
      { version: undefined, hasV8: false },
      'Envoy unknown was built without',
    ],
  ] as const)('is not sent to %s', (_, build, reason) => {
    expect(wasmUnsupportedReason(build)).toContain(reason);
  });

  it.each([
    ['Envoy 1.38 with V8', { version: [1, 38, 2], hasV8: true }],
    ['a newer version that does not list its extensions', { version: [1, 40, 0], hasV8: undefined }],
    ['an unknown version', { version: undefined, hasV8: undefined }],
    ['a client that is not an Envoy', undefined],
  ] as const)('is sent to %s', (_, build) => {
    expect(wasmUnsupportedReason(build)).toBeUndefined();
  });
});
