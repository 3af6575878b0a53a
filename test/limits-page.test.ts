/** docs/operations.md has the limits of both programs with their values in the code. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { defaultTableLimits } from '../src/agent/access-logs/metric-table.ts';
import { maxCacheBytes, maxModuleBytes } from '../src/agent/wasm/module-cache.ts';
import { signingLimits } from '../src/discovery/ca/issuing/certificate-signer.ts';
import { defaultHistoryLimits } from '../src/discovery/changes/change-history.ts';
import { configLimitsOf, defaultConfigLimits, maxDirectoryDepth } from '../src/discovery/config/files/config-limits.ts';
import { xdsSourceLimitsOf } from '../src/discovery/config/xds/xds-source-limits.ts';
import { Environment } from '../src/discovery/environment.ts';
import { maxSourcesOfMesh, maxSourcesOfNamespace } from '../src/discovery/jwks/key-sources.ts';
import { maxReferencedNamespaceBytes } from '../src/discovery/kubernetes/readers/referenced-objects.ts';
import { defaultWebhookLimits } from '../src/discovery/webhooks/webhook-server.ts';
import { addressPaceLimits } from '../src/discovery/xds/admission/address-pace.ts';
import { unidentifiedLimits } from '../src/discovery/xds/admission/unidentified-connections.ts';
import { defaultMaxNames, maxGrpcNames, maxNodeBytes } from '../src/discovery/xds/ads-limits.ts';
import { defaultHttpLimits } from '../src/runtime/fences/http-fence.ts';
import { maxProxyLevels } from '../src/runtime/output/log-levels.ts';
import { packageRoot } from '../src/runtime/package-root.ts';

const update = process.env.UPDATE_TABLES === '1';
const file = join(packageRoot(), 'docs/operations.md');
const startMarker = '<!-- generated: UPDATE_TABLES=1 vitest run test/limits-page.test.ts -->\n';
const end = '<!-- end -->';

const [mebibyte, kibibyte] = [1024 * 1024, 1024];
const bytes = (count: number): string =>
  count % mebibyte === 0 ? `${count / mebibyte} MiB` : `${count / kibibyte} KiB`;
const number = (count: number): string => count.toLocaleString('en-US');
const seconds = (ms: number): string => `${ms / 1_000} s`;
const fixed = '';

/** Limited resource, setting, default, and behavior beyond the limit. */
type Row = readonly [limited: string, setting: string, value: string, beyond: string];

const config = defaultConfigLimits;
const source = xdsSourceLimitsOf(new Environment({}, () => {}), config);

const controlPlane: readonly Row[] = [
  [
    'xDS connections',
    'PILOT_XDS_MAX_CONNECTIONS',
    number(unidentifiedLimits.maxConnections),
    'new ones are refused, those without an identified client first',
  ],
  [
    'of one address',
    'PILOT_XDS_MAX_CONNECTIONS_PER_ADDRESS',
    number(unidentifiedLimits.maxPerAddress),
    'new ones of the address are refused',
  ],
  [
    'of one address, without an identified client',
    'PILOT_XDS_MAX_UNIDENTIFIED_PER_ADDRESS',
    number(unidentifiedLimits.maxIdlePerAddress),
    'new ones of the address are refused',
  ],
  ['time until a client identifies itself', fixed, seconds(unidentifiedLimits.silentMs), 'the connection is closed'],
  [
    'new streams of one address a second, without result',
    'PILOT_XDS_UNIDENTIFIED_RATE_PER_ADDRESS',
    number(addressPaceLimits.perSecond),
    `the address is refused for ${seconds(addressPaceLimits.firstHoldMs)}, then up to ${seconds(addressPaceLimits.maxHoldMs)}`,
  ],
  [
    'resource names of a stream',
    'PILOT_XDS_MAX_NAMES_PER_STREAM',
    number(defaultMaxNames),
    'the stream ends with RESOURCE_EXHAUSTED',
  ],
  ['of a gRPC program', fixed, number(maxGrpcNames), 'the same'],
  ['node of a client', fixed, bytes(maxNodeBytes), 'the stream ends with INVALID_ARGUMENT'],
  [
    'one configuration file',
    'PILOT_CONFIG_MAX_FILE_BYTES',
    bytes(config.maxFileBytes),
    'the file is rejected, its last valid objects apply',
  ],
  ['all configuration files', 'PILOT_CONFIG_MAX_BYTES', bytes(config.maxBytes), 'files beyond it are rejected'],
  [
    'names in configuration directories',
    'PILOT_CONFIG_MAX_ENTRIES',
    number(config.maxEntries),
    'the directory is rejected, its last objects apply',
  ],
  ['directories in each other', fixed, number(maxDirectoryDepth), 'deeper ones are rejected'],
  [
    'clusters and routes that a namespace exports',
    'PILOT_MAX_EXPORTED_PER_NAMESPACE',
    number(config.maxExportedPerNamespace),
    'the newest objects are not exported',
  ],
  [
    'gateway routes of a namespace',
    'PILOT_MAX_GATEWAY_ROUTES_PER_NAMESPACE',
    number(config.maxGatewayRoutesPerNamespace),
    'the newest routes are not attached',
  ],
  [
    'endpoints of a namespace',
    'PILOT_MAX_ENDPOINTS_PER_NAMESPACE',
    number(config.maxEndpointsPerNamespace),
    'the newest objects have no endpoints',
  ],
  [
    'response of a source over xDS',
    'PILOT_XDS_SOURCE_MAX_MESSAGE_BYTES',
    bytes(source.maxMessageBytes),
    'the stream ends, the last objects apply',
  ],
  ['objects of such a source', 'PILOT_XDS_SOURCE_MAX_OBJECTS', number(source.maxObjects), 'the response is rejected'],
  ['its responses a second', 'PILOT_XDS_SOURCE_MAX_RESPONSES', number(source.maxResponsesPerSecond), 'later ones wait'],
  [
    'Secrets and ConfigMaps that proxies of a namespace use',
    fixed,
    bytes(maxReferencedNamespaceBytes),
    'the newest are not read',
  ],
  [
    'issuers of tokens in a namespace, in the mesh',
    fixed,
    `${number(maxSourcesOfNamespace)}, ${number(maxSourcesOfMesh)}`,
    'keys of the newest are not fetched, their tokens are rejected',
  ],
  ['certificate requests that wait', fixed, number(signingLimits.maxWaiting), 'RESOURCE_EXHAUSTED; agents try again'],
  ['of one connection', fixed, number(signingLimits.maxOfConnection), 'the same'],
  [
    'body of a webhook request',
    fixed,
    bytes(defaultWebhookLimits.maxBodyBytes),
    'HTTP 413; the failure policy of the webhook applies',
  ],
  [
    'pushes that are remembered',
    fixed,
    `${number(defaultHistoryLimits.configuration.maxRecords)} in ${bytes(defaultHistoryLimits.configuration.maxBytes)}`,
    'the oldest is evicted',
  ],
  [
    'pushes of endpoints alone that are remembered',
    fixed,
    `${number(defaultHistoryLimits.endpoints.maxRecords)} in ${bytes(defaultHistoryLimits.endpoints.maxBytes)}`,
    'the oldest is evicted',
  ],
  ['proxies with a log level', fixed, number(maxProxyLevels), 'another one is rejected'],
];

const commonRows: readonly Row[] = [
  ['headers of an HTTP request', fixed, bytes(defaultHttpLimits.maxHeaderBytes), 'HTTP 431'],
  ['time for an HTTP request', fixed, seconds(defaultHttpLimits.requestMs), 'the connection is closed'],
  ['HTTP connections of one address', fixed, number(defaultHttpLimits.maxPerAddress), 'new ones are closed'],
];

const agent: readonly Row[] = [
  [
    'label sets of one standard metric',
    'STANDARD_METRICS_MAX_LABEL_SETS',
    number(defaultTableLimits.maxLabelSets),
    'counted as one label set of `unknown`, the idle ones are evicted',
  ],
  ['page of standard metrics', fixed, bytes(defaultTableLimits.maxPageBytes), 'the same'],
  [
    'one Wasm module, the cache of modules',
    fixed,
    `${bytes(maxModuleBytes)}, ${bytes(maxCacheBytes)}`,
    'the module is rejected; unused modules are evicted',
  ],
];

function table(): string {
  const rows = (of: readonly Row[], program: string): string[] =>
    of.map(
      ([limitedResource, setting, value, overLimitEffect]) =>
        `| ${program} | ${limitedResource} | ${setting === fixed ? 'fixed' : `\`${setting}\``} | ${value} | ${overLimitEffect} |`,
    );
  return [
    '| program | limit | setting | default | beyond it |',
    '|---|---|---|---|---|',
    ...rows(controlPlane, 'pilot-discovery'),
    ...rows(commonRows, 'both'),
    ...rows(agent, 'pilot-agent'),
  ].join('\n');
}

test('docs/operations.md lists the limits with the values in the code', () => {
  const text = readFileSync(file, 'utf8');
  const from = text.indexOf(startMarker);
  expect(from).toBeGreaterThan(0);
  const current = `${text.slice(0, from + startMarker.length)}\n${table()}\n\n${text.slice(text.indexOf(end, from))}`;
  if (update) writeFileSync(file, current);
  expect(readFileSync(file, 'utf8'), 'run with UPDATE_TABLES=1').toBe(current);
});

test('each setting in the table of limits is read by a program', () => {
  const read = new Set<string>();
  const environment = new Environment(new Proxy({}, { get: (_, name) => void read.add(String(name)) }), () => {});
  configLimitsOf(environment);
  xdsSourceLimitsOf(environment, config);
  const sourceSettings = controlPlane
    .map(([, setting]) => setting)
    .filter((name) => /PILOT_(CONFIG|XDS_SOURCE|MAX)_/.test(name));
  expect(sourceSettings.filter((name) => !read.has(name))).toEqual([]);
});
