/** Defines all differences between Envoy versions (docs/envoy-versions.md). */

export type EnvoyVersion = readonly [major: number, minor: number, patch: number];

export interface EnvoyBuild {
  /** `undefined` if the node reports no version, or is not an Envoy. */
  readonly version: EnvoyVersion | undefined;
  /** Whether the build contains the Wasm runtime V8; `undefined` if the node does not list its extensions. */
  readonly hasV8: boolean | undefined;
  readonly hasStatsLogger?: true;
}

/** Supported versions, including all patch versions. `test/e2e/envoy-versions.test.ts` sends every generated resource to each. */
export const oldestEnvoy = [1, 36] as const;
export const newestEnvoy = [1, 40] as const;

/** `unknown` if the node reports no version; treated as supported. */
export type EnvoySupport = 'supported' | 'older' | 'newer' | 'unknown';

export interface ReportedEnvoy {
  readonly userAgentName: string;
  readonly userAgentVersionType:
    | { readonly case: 'userAgentVersion'; readonly value: string }
    | {
        readonly case: 'userAgentBuildVersion';
        readonly value: {
          readonly version?:
            | { readonly majorNumber: number; readonly minorNumber: number; readonly patch: number }
            | undefined;
        };
      }
    | { readonly case: undefined };
  readonly extensions: readonly { readonly name: string }[];
}

const wasmRuntime = 'envoy.wasm.runtime.v8';

/** @returns `undefined` for clients such as gRPC, and for an Envoy that reports nothing */
export function envoyBuildOf({
  userAgentName,
  userAgentVersionType,
  extensions,
}: ReportedEnvoy): EnvoyBuild | undefined {
  if (userAgentName !== 'envoy') return undefined;
  const version = versionOf(userAgentVersionType);
  const hasV8 = extensions.length === 0 ? undefined : extensions.some(({ name }) => name === wasmRuntime);
  if (version === undefined && hasV8 === undefined) return undefined;
  return { version, hasV8, ...(hasStatsLogger(version, extensions) && { hasStatsLogger: true }) };
}

function versionOf(reportedVersion: ReportedEnvoy['userAgentVersionType']): EnvoyVersion | undefined {
  if (reportedVersion.case === 'userAgentVersion') return envoyVersionIn(reportedVersion.value);
  if (reportedVersion.case !== 'userAgentBuildVersion' || reportedVersion.value.version === undefined) return undefined;
  const { majorNumber, minorNumber, patch } = reportedVersion.value.version;
  return [majorNumber, minorNumber, patch];
}

/** @param text `1.40.0`, `1.40.0-dev`, or a build such as `SHA/1.40.0/Clean/RELEASE/BoringSSL` */
export function envoyVersionIn(text: string): EnvoyVersion | undefined {
  const versionMatch = /(?:^|\/)(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?:[-/.+]|$)/.exec(text);
  return versionMatch === null
    ? undefined
    : [Number(versionMatch[1]), Number(versionMatch[2]), Number(versionMatch[3])];
}

export function envoyVersionText(version: EnvoyVersion | undefined): string {
  return version === undefined ? 'unknown' : version.join('.');
}

export function envoySupport(version: EnvoyVersion | undefined): EnvoySupport {
  if (version === undefined) return 'unknown';
  if (isOlderVersion(version, oldestEnvoy)) return 'older';
  return isOlderVersion(newestEnvoy, version) ? 'newer' : 'supported';
}

export function unsupportedEnvoyText(version: EnvoyVersion | undefined): string | undefined {
  const support = envoySupport(version);
  if (support === 'supported' || support === 'unknown') return undefined;
  const range = `${oldestEnvoy.join('.')} to ${newestEnvoy.join('.')}`;
  return (
    `Envoy ${envoyVersionText(version)} is ${support} than the supported versions ${range}: configuration that it rejects is ` +
    'reported per proxy; use a supported version (docs/envoy-versions.md)'
  );
}

/** In earlier minor versions, V8 crashes on processors with memory protection keys. */
const firstWithSafeWasm = [1, 38] as const;

export function wasmUnsupportedReason(build: EnvoyBuild | undefined): string | undefined {
  const { version, hasV8 } = build ?? {};
  if (hasV8 === false)
    return `Envoy ${envoyVersionText(version)} was built without ${wasmRuntime} and would reject Wasm code`;
  if (version === undefined || !isOlderVersion(version, firstWithSafeWasm)) return undefined;
  return `Envoy ${envoyVersionText(version)} may crash (SIGSEGV) when it runs Wasm code; use version ${firstWithSafeWasm.join('.')} or later`;
}

/** First minor version that supports format strings as custom tags of access logs. */
const firstWithFormatTags = [1, 37] as const;

/** Returns false for an unknown version, because an older Envoy rejects a listener with such a tag. */
export function hasFormatTags(build: EnvoyBuild | undefined): boolean {
  return build?.version !== undefined && !isOlderVersion(build.version, firstWithFormatTags);
}

const firstWithStatsLimits = [1, 40] as const;
const statsLogger = 'envoy.access_loggers.stats';

function hasStatsLogger(version: EnvoyVersion | undefined, extensions: ReportedEnvoy['extensions']): boolean {
  if (version === undefined || isOlderVersion(version, firstWithStatsLimits)) return false;
  return extensions.some(({ name }) => name === statsLogger);
}

function isOlderVersion([majorA, minorA]: readonly number[], [majorB, minorB]: readonly number[]): boolean {
  return majorA! < majorB! || (majorA === majorB && minorA! < minorB!);
}
