/** Valid templates use each name once, `**` only last, and complete segments. Each of `noTemplates` has one error. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { readConfigFile } from '../../src/model/config/config-file.ts';
import { uriTemplateViolation } from '../../src/model/fields/uri-template.ts';
import { envoyBinary } from '../fixtures/real-envoy.ts';
import { httpListener, oneRoute, validateWithEnvoy } from '../harness/envoy-validation.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { Program } from '../harness/program.ts';

const extension = (name: string, extraFields: object): object => ({
  '@type': `type.googleapis.com/envoy.extensions.${name}`,
  ...extraFields,
});
const filter = (name: string, extraFields: object): object => ({
  name: 'odd',
  typed_config: extension(`filters.http.${name}`, extraFields),
});
const template = (text: string): object => ({
  name: 'envoy.path.match.uri_template.uri_template_matcher',
  typed_config: extension('path.match.uri_template.v3.UriTemplateMatchConfig', { path_template: text }),
});
const policyOf = (typedTemplate: object): object => ({
  policies: { p: { permissions: [{ uri_template: typedTemplate }], principals: [{ any: true }] } },
});
const wrapped = {
  name: 'odd',
  typed_config: {
    '@type': 'type.googleapis.com/xds.type.v3.TypedStruct',
    type_url: 'type.googleapis.com/envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig',
    value: { path_template: 'no slash' },
  },
};
const zstd = (direction: 'compressor' | 'decompressor', extraFields: object): object => ({
  name: 'zstd',
  typed_config: extension(`compression.zstd.${direction}.v3.Zstd`, extraFields),
});
const noDictionary = { inline_bytes: 'AAAA' };

const immediateCrashes: Readonly<Record<string, object>> = {
  'a template of a policy': filter('rbac.v3.RBAC', { rules: policyOf(template('/{a}/{a}')) }),
  'a template of a shadow policy': filter('rbac.v3.RBAC', { shadow_rules: policyOf(template('/**/*')) }),
  'a template as JSON': filter('rbac.v3.RBAC', { rules: policyOf(wrapped) }),
  'a dictionary of a compressor': filter('compressor.v3.Compressor', {
    compressor_library: zstd('compressor', { chunk_size: 4096, compression_level: 1, dictionary: noDictionary }),
  }),
  'a dictionary of a decompressor': filter('decompressor.v3.Decompressor', {
    decompressor_library: zstd('decompressor', { dictionaries: [noDictionary] }),
  }),
};

const withRequest: Readonly<Record<string, object>> = {
  'an authorizer without a service': filter('ext_authz.v3.ExtAuthz', { transport_api_version: 'V3' }),
  'an unknown credentials factory': filter('ext_authz.v3.ExtAuthz', {
    transport_api_version: 'V3',
    grpc_service: { google_grpc: { target_uri: 'x', stat_prefix: 'x', credentials_factory_name: 'nobody' } },
  }),
  'a window of less than a second': filter('admission_control.v3.AdmissionControl', {
    success_criteria: {},
    sampling_window: '0.999s',
  }),
};

const route = { match: { prefix: '/' }, direct_response: { status: 200 } };

describe('values that crash Envoy', () => {
  it.each(Object.entries(immediateCrashes))(
    'end Envoy immediately, and validation rejects them: %s',
    async (_, crashingFilter) => {
      expect(await validateWithEnvoy({ listeners: [httpListener(oneRoute(route), [crashingFilter])] })).toMatchObject({
        result: 'ended',
      });
      expect(refusalsOf(crashingFilter)).toHaveLength(1);
    },
  );

  it.each(Object.entries(withRequest))(
    'end Envoy on a request, and validation rejects them: %s',
    async (_, crashingFilter) => {
      expect(await endOfServing(crashingFilter)).toMatch(/^SIG(?:ABRT|FPE)$/);
      expect(refusalsOf(crashingFilter)).toHaveLength(1);
    },
  );

  it('validation does not reject a merge patch for a missing field that the merged object can have', () => {
    const { 'an authorizer without a service': crashingFilter } = withRequest;
    expect(refusalsOf(crashingFilter!, 'MERGE')).toEqual([]);
  });

  it('Envoy and validation reject an invalid path template in a route', () => {
    const oddRoute = { ...route, match: { path_match_policy: template('/{a}{b}') } };
    expect(problemsOf({ applyTo: 'HTTP_ROUTE', patch: { operation: 'ADD', value: oddRoute } })).toEqual([
      expect.stringContaining('UriTemplateMatchConfig.path_template must be a template such as'),
    ]);
  });
});

/** Names once, `**` last, complete segments: each template of the second list has one error. */
const templates = [
  ...['/', '/a', '/a/', '/*', '/**', '/*/', '/**/a', '/*/a/**', '/*.m3u8', '/**.m3u8', '/{a}', '/{a}/{b}/{c}/{d}/{e}'],
  ...['/{a=*}', '/{a=**}', '/{a=b/*}/c', '/{a=b/**}/c', '/{a=**}.c', '/{a=*/**}', '/{a=b=c}', '/{a234567890123456}'],
  ...["/~._-!$&'()+,;:@=%41", `/${'a'.repeat(255)}`],
];
const noTemplates = [
  ...['', 'a', '//', '/a//b', '/**/*', '/**/**', '/{a}/{a}', '/{a=**}/{b}', '/{a=**/*}', '/{a=***}', '/{a=*.b}'],
  ...['/**.m3u8/x', '/{a}{b}', '/{}', '/{1}', '/{a', '/a}', '/{a={b}}', '/{a=/b}', '/{a=b/}', '/{a-b}'],
  ...['/{a2345678901234567}', '/{a}/{b}/{c}/{d}/{e}/{f}', '/a b', '/a|', '/ü', '/a?b', '/a#b', '/{a}-{b}', '/*a/'],
  `/${'a'.repeat(256)}`,
];

describe('a path template', () => {
  it('is accepted by Envoy if validation accepts it', async () => {
    expect(templates.filter((text) => uriTemplateViolation(text) !== undefined)).toEqual([]);
    const routes = templates.map((text) => ({ ...route, match: { path_match_policy: template(text) } }));
    const configuration = { virtual_hosts: [{ name: 'all', domains: ['*'], routes }] };
    expect(await validateWithEnvoy({ listeners: [httpListener(configuration)] })).toEqual({ result: 'accepted' });
  });

  it.each(noTemplates)('is rejected by Envoy if validation rejects it: %j', async (text) => {
    expect(uriTemplateViolation(text)?.code).toMatch(/^FIELD_(FORMAT_INVALID|TOO_LARGE)$/);
    const oddRoute = { ...route, match: { path_match_policy: template(text) } };
    expect(await validateWithEnvoy({ listeners: [httpListener(oneRoute(oddRoute))] })).not.toEqual({
      result: 'accepted',
    });
  });
});

function refusalsOf(value: object, operation = 'INSERT_FIRST'): readonly string[] {
  const manager = { name: 'envoy.filters.network.http_connection_manager', subFilter: { name: 'odd' } };
  const match = { listener: { filterChain: { filter: manager } } };
  return problemsOf({ applyTo: 'HTTP_FILTER', match, patch: { operation, value } });
}

function problemsOf(patch: object): readonly string[] {
  const object = {
    apiVersion: 'networking.istio.io/v1alpha3',
    kind: 'EnvoyFilter',
    metadata: { name: 'odd', namespace: 'shop' },
    spec: { configPatches: [patch] },
  };
  const { problems } = readConfigFile('case.yaml', stringify(object), { creationTimestamp: 0 });
  return problems.filter(({ severity }) => severity === 'error').map(({ message }) => message);
}

/** @returns the signal that ended an Envoy while it handled a request */
async function endOfServing(crashingFilter: object): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-crashing-'));
  const [port] = (await freePorts(1)) as [number];
  const address = { socket_address: { address: '127.0.0.1', port_value: port } };
  const listener = { ...httpListener(oneRoute(route), [crashingFilter]), address };
  writeFileSync(join(folder, 'envoy.json'), JSON.stringify({ static_resources: { listeners: [listener] } }));
  const args = ['-c', join(folder, 'envoy.json'), '--disable-hot-restart', '--concurrency', '1', '-l', 'critical'];
  const envoy = Program.run('envoy', envoyBinary(), { args, env: process.env, cwd: folder });
  try {
    const sendOneRequest = async (): Promise<boolean> => {
      if (envoy.exit !== undefined) return true;
      await fetch(`http://127.0.0.1:${port}/`, { signal: AbortSignal.timeout(500) }).catch(() => {});
      return envoy.exit !== undefined;
    };
    await eventually('Envoy ends', sendOneRequest);
    return envoy.exit?.signal ?? `exit code ${envoy.exit?.code}`;
  } finally {
    await envoy.stop({ signal: 'SIGKILL' });
    rmSync(folder, { recursive: true, force: true });
  }
}
