import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { codedError } from '../../../test/fixtures/error-details.ts';
import { optionsOf } from '../../../test/fixtures/made-bootstrap.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';
import { askMetadataServer, type CloudSurroundings, withCloudMetadata } from './cloud-platform.ts';

type Told = readonly [metadata: unknown, warnings: readonly LogWarning[]];

async function told(env: Record<string, string>, surroundings: Partial<CloudSurroundings>): Promise<Told> {
  const nobody: CloudSurroundings = {
    ask: () => Promise.reject(new Error('nobody is to be asked')),
    firmware: () => {
      throw new Error('ENOENT');
    },
  };
  const { platformMetadata, warnings } = await withCloudMetadata(optionsOf({ env }), { ...nobody, ...surroundings });
  return [platformMetadata, warnings];
}

/** A server of the test's own at the place of the cloud's. */
async function cloud(answer: RequestListener): Promise<CloudSurroundings['ask']> {
  const server = createServer(answer);
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  return (question, signal) => askMetadataServer(question, signal, { host: '127.0.0.1', port });
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

test('§1.3 CLOUD_PLATFORM gcp: named texts, the number as it is written, nothing else', async () => {
  const ask = await cloud((request, response) => {
    const isAsked = request.headers['metadata-flavor'] === 'Google';
    response.writeHead(isAsked ? 200 : 403, { 'metadata-flavor': 'Google' });
    response.end(JSON.stringify(google).replace('"ID"', '9007199254740993'));
  });
  expect(await told({ CLOUD_PLATFORM: 'gcp' }, { ask })).toEqual([
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

test.each([true, false])('§1.3 CLOUD_PLATFORM aws, by a token where there are any: %s', async (hasTokens) => {
  const ask = await cloud(({ method, url, headers }, response) => {
    if (method === 'PUT') response.writeHead(hasTokens ? 200 : 404).end('token');
    else if (hasTokens && headers['x-aws-ec2-metadata-token'] !== 'token') response.writeHead(401).end();
    else if (url !== '/latest/dynamic/instance-identity/document') response.writeHead(404).end();
    else response.end('{"region": "eu-west-1", "availabilityZone": "eu-west-1a", "instanceId": "i-1", "version": 1}');
  });
  const metadata = { aws_region: 'eu-west-1', aws_availability_zone: 'eu-west-1a', aws_instance_id: 'i-1' };
  expect(await told({ CLOUD_PLATFORM: 'aws' }, { ask })).toEqual([metadata, []]);
});

test('§1.3 CLOUD_PLATFORM azure; an empty zone is none', async () => {
  const ask = await cloud(({ headers }, response) => {
    const body = { compute: { name: 'n', location: 'westeurope', vmId: 'v', zone: '' } };
    response.writeHead(headers.metadata === 'true' ? 200 : 400).end(JSON.stringify(body));
  });
  const metadata = { azure_name: 'n', azure_location: 'westeurope', azure_vm_id: 'v' };
  expect(await told({ CLOUD_PLATFORM: 'azure' }, { ask })).toEqual([metadata, []]);
});

test('§1.3 CLOUD_PLATFORM: who is silent is read off the machine; none, and what was said as a whole, ask nobody', async () => {
  const ask = (): Promise<string> => Promise.resolve('{"compute": {"name": "n"}}');
  const firmware = (name: string): string =>
    name === 'chassis_asset_tag' ? '7783-7084-3265-9085-8269-3286-77\n' : 'x';
  expect(await told({}, { ask, firmware })).toEqual([{ azure_name: 'n' }, []]);
  expect(await told({}, {})).toEqual([undefined, []]);
  expect(await told({ CLOUD_PLATFORM: 'none' }, { ask, firmware })).toEqual([undefined, []]);
  const said = optionsOf({ flags: { platformMetadata: '{"a": "b"}' }, env: { CLOUD_PLATFORM: 'azure' } });
  expect((await withCloudMetadata(said, { ask, firmware })).platformMetadata).toEqual({ a: 'b' });
  await expect(told({ CLOUD_PLATFORM: 'moon' }, {})).rejects.toThrow(
    codedError('FLAG_INVALID', { path: 'CLOUD_PLATFORM', expected: 'one of aws, azure, gcp, none', got: '"moon"' }),
  );
});

test.each<[what: string, answer: RequestListener, why: RegExp]>([
  ['nothing', () => {}, /no response in time/],
  ['no JSON', (_, response) => void response.end('<html>'), /JSON/],
  ['a list', (_, response) => void response.end('[]'), /not a JSON object/],
  ['a redirect', (_, response) => void response.writeHead(302, { location: 'http://other/' }).end(), /status 302/],
  ['more than anybody needs', (_, response) => void response.end(' '.repeat(2 ** 21)), /exceeds 1048576 bytes/],
])('§1.3 CLOUD_PLATFORM: %s is a warning, and the proxy does without', async (_, answer, why) => {
  const server = await cloud(answer);
  const ask: CloudSurroundings['ask'] = (question) => server(question, AbortSignal.timeout(500));
  const [metadata, warnings] = await told({ CLOUD_PLATFORM: 'azure' }, { ask });
  expect(metadata).toBeUndefined();
  expect(warnings).toEqual([
    { event: 'option.cloudMetadataUnavailable', platform: 'azure', reason: expect.stringMatching(why) },
  ]);
});

test('§1.3 CLOUD_PLATFORM: an answer that does not say that it is Google’s is not', async () => {
  const ask = await cloud((_, response) => void response.end(JSON.stringify(google)));
  expect((await told({ CLOUD_PLATFORM: 'gcp' }, { ask }))[1]).toMatchObject([
    {
      event: 'option.cloudMetadataUnavailable',
      reason: expect.stringContaining('does not come from a metadata server'),
    },
  ]);
});
