import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { codedError } from '../../../test/fixtures/error-details.ts';
import { optionsOf } from '../../../test/fixtures/generated-bootstrap.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';
import { type CloudSources, queryMetadataServer, withCloudMetadata } from './cloud-platform.ts';

type MetadataAndWarnings = readonly [metadata: unknown, warnings: readonly LogWarning[]];

async function metadataOf(env: Record<string, string>, sources: Partial<CloudSources>): Promise<MetadataAndWarnings> {
  const unavailable: CloudSources = {
    query: () => Promise.reject(new Error('nobody is to be asked')),
    firmware: () => {
      throw new Error('ENOENT');
    },
  };
  const { platformMetadata, warnings } = await withCloudMetadata(optionsOf({ env }), { ...unavailable, ...sources });
  return [platformMetadata, warnings];
}

/** Starts a metadata server. */
async function cloud(respond: RequestListener): Promise<CloudSources['query']> {
  const server = createServer(respond);
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  return (question, signal) => queryMetadataServer(question, signal, { host: '127.0.0.1', port });
}

const google = {
  project: { projectId: 'shop', numericProjectId: 42 },
  instance: {
    id: 'ID',
    name: 'vm',
    zone: 'projects/42/zones/europe-west1-b',
    attributes: { 'cluster-name': 'c', secret: 's' },
  },
};

test('reads only known strings for CLOUD_PLATFORM gcp, and keeps all digits of a large ID (agent §1.3)', async () => {
  const query = await cloud((request, response) => {
    const isQueried = request.headers['metadata-flavor'] === 'Google';
    response.writeHead(isQueried ? 200 : 403, { 'metadata-flavor': 'Google' });
    response.end(JSON.stringify(google).replace('"ID"', '9007199254740993'));
  });
  expect(await metadataOf({ CLOUD_PLATFORM: 'gcp' }, { query })).toEqual([
    {
      gcp_project: 'shop',
      gcp_project_number: '42',
      gcp_location: 'europe-west1-b',
      gcp_gke_cluster_name: 'c',
      gcp_gce_instance: 'vm',
      gcp_gce_instance_id: '9007199254740993',
    },
    [],
  ]);
});

test.each([
  ['with', true],
  ['without', false],
] as const)('reads the metadata of CLOUD_PLATFORM aws %s a token service (agent §1.3)', async (_, hasTokens) => {
  const query = await cloud(({ method, url, headers }, response) => {
    if (method === 'PUT') response.writeHead(hasTokens ? 200 : 404).end('token');
    else if (hasTokens && headers['x-aws-ec2-metadata-token'] !== 'token') response.writeHead(401).end();
    else if (url !== '/latest/dynamic/instance-identity/document') response.writeHead(404).end();
    else response.end('{"region": "eu-west-1", "availabilityZone": "eu-west-1a", "instanceId": "i-1", "version": 1}');
  });
  const metadata = { aws_region: 'eu-west-1', aws_availability_zone: 'eu-west-1a', aws_instance_id: 'i-1' };
  expect(await metadataOf({ CLOUD_PLATFORM: 'aws' }, { query })).toEqual([metadata, []]);
});

test('ignores an empty zone for CLOUD_PLATFORM azure (agent §1.3)', async () => {
  const query = await cloud(({ headers }, response) => {
    const body = { compute: { name: 'n', location: 'westeurope', vmId: 'v', zone: '' } };
    response.writeHead(headers.metadata === 'true' ? 200 : 400).end(JSON.stringify(body));
  });
  const metadata = { azure_name: 'n', azure_location: 'westeurope', azure_vm_id: 'v' };
  expect(await metadataOf({ CLOUD_PLATFORM: 'azure' }, { query })).toEqual([metadata, []]);
});

test('detects an unset CLOUD_PLATFORM by the firmware, and sends no request for `none` or with metadata from a flag (agent §1.3)', async () => {
  const query = (): Promise<string> => Promise.resolve('{"compute": {"name": "n"}}');
  const firmware = (name: string): string =>
    name === 'chassis_asset_tag' ? '7783-7084-3265-9085-8269-3286-77\n' : 'x';
  expect(await metadataOf({}, { query, firmware })).toEqual([{ azure_name: 'n' }, []]);
  expect(await metadataOf({}, {})).toEqual([undefined, []]);
  expect(await metadataOf({ CLOUD_PLATFORM: 'none' }, { query, firmware })).toEqual([undefined, []]);
  const options = optionsOf({ flags: { platformMetadata: '{"a": "b"}' }, env: { CLOUD_PLATFORM: 'azure' } });
  expect((await withCloudMetadata(options, { query, firmware })).platformMetadata).toEqual({ a: 'b' });
  await expect(metadataOf({ CLOUD_PLATFORM: 'moon' }, {})).rejects.toThrow(
    codedError('FLAG_INVALID', { path: 'CLOUD_PLATFORM', expected: 'one of aws, azure, gcp, none', got: '"moon"' }),
  );
});

test.each<[content: string, respond: RequestListener, why: RegExp]>([
  ['no data', () => {}, /no response in time/],
  ['invalid JSON', (_, response) => void response.end('<html>'), /JSON/],
  ['a JSON list', (_, response) => void response.end('[]'), /not a JSON object/],
  ['a redirect', (_, response) => void response.writeHead(302, { location: 'http://other/' }).end(), /status 302/],
  ['more than 1 MiB', (_, response) => void response.end(' '.repeat(2 ** 21)), /exceeds 1048576 bytes/],
])(
  'warns about a response with %s, and uses no metadata of the CLOUD_PLATFORM (agent §1.3)',
  async (_, respond, reason) => {
    const server = await cloud(respond);
    const query: CloudSources['query'] = (question) => server(question, AbortSignal.timeout(500));
    const [metadata, warnings] = await metadataOf({ CLOUD_PLATFORM: 'azure' }, { query });
    expect(metadata).toBeUndefined();
    expect(warnings).toEqual([
      { event: 'option.cloudMetadataUnavailable', platform: 'azure', reason: expect.stringMatching(reason) },
    ]);
  },
);

test("ignores a response without the metadata server's header for CLOUD_PLATFORM gcp (agent §1.3)", async () => {
  const query = await cloud((_, response) => void response.end(JSON.stringify(google)));
  expect((await metadataOf({ CLOUD_PLATFORM: 'gcp' }, { query }))[1]).toMatchObject([
    {
      event: 'option.cloudMetadataUnavailable',
      reason: expect.stringContaining('does not come from a metadata server'),
    },
  ]);
});
