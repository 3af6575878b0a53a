import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { servedHttp } from '../../../test/fixtures/served-http.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { isAlive } from '../../../test/harness/process-alive.ts';
import { type ProbedHost, parseWorkloadProbe, probeWorkload, type WorkloadProbe } from './workload-probe.ts';

const host: ProbedHost = { destination: '127.0.0.1', source: '127.0.0.6', statusPort: 0, localhost: '127.0.0.1' };
const neverAborted = new AbortController().signal;

function probeOf(message: object): WorkloadProbe {
  const parsed = parseWorkloadProbe(message);
  if ('error' in parsed) throw new Error(parsed.error.field, { cause: parsed.error });
  return parsed.probe!;
}

const runProbe = (message: object, at: Partial<ProbedHost> = {}): Promise<string> =>
  probeWorkload(probeOf(message), { ...host, ...at }, neverAborted);

describe('workload probe configuration', () => {
  it("has Istio's defaults", () => {
    expect(probeOf({ tcpSocket: { port: 80 } }).times).toEqual({
      ...{ initialDelayMs: 0, periodMs: 10_000, timeoutMs: 1_000 },
      ...{ successThreshold: 1, failureThreshold: 1 },
    });
    const configuredProbe = {
      initialDelaySeconds: 2,
      periodSeconds: 3,
      timeoutSeconds: 4,
      successThreshold: 5,
      failureThreshold: 6,
    };
    expect(probeOf({ ...configuredProbe, tcpSocket: { port: 80 } }).times).toEqual({
      ...{ initialDelayMs: 2_000, periodMs: 3_000, timeoutMs: 4_000 },
      ...{ successThreshold: 5, failureThreshold: 6 },
    });
  });

  it.each([
    [{ tcpSocket: { port: 80 }, httpGet: { port: 80 } }, '', 'FIELDS_EXCLUSIVE', 'httpGet and tcpSocket'],
    [{ tcpSocket: { port: 80 }, exec: { command: ['true'] } }, '', 'FIELDS_EXCLUSIVE', 'tcpSocket and exec'],
    [{ tcpSocket: { port: '80' } }, 'tcpSocket.port', 'FIELD_TYPE_INVALID', '"80"'],
    [{ tcpSocket: { port: 80 }, periodSeconds: -1 }, 'periodSeconds', 'FIELD_OUT_OF_RANGE', '-1'],
    [{ tcpSocket: { port: 80 }, timeoutSeconds: 1e12 }, 'timeoutSeconds', 'FIELD_OUT_OF_RANGE', '1000000000000'],
    [{ exec: {} }, 'exec.command', 'FIELD_TYPE_INVALID', 'null'],
    [{ exec: { command: [] } }, 'exec.command', 'FIELD_TYPE_INVALID', 'a list'],
    [{ exec: { command: 'rm -rf /' } }, 'exec.command', 'FIELD_TYPE_INVALID', '"rm -rf /"'],
    [{ httpGet: { port: 80, host: 7 } }, 'httpGet.host', 'FIELD_TYPE_INVALID', '7'],
  ])('is rejected if invalid: %j', (message, field, code, gotText) => {
    expect(parseWorkloadProbe(message)).toMatchObject({ error: { field, violation: { code, got: gotText } } });
  });
});

it('a workload without a probe is not probed', () => {
  expect([{}, { periodSeconds: 3 }, { httpGet: null }].map(parseWorkloadProbe)).toEqual(
    Array.from({ length: 3 }, () => ({ probe: undefined })),
  );
});

it.each([200, 204, 302, 399])('a workload is healthy if it responds with status %i', async (status) => {
  const seenRequests: unknown[] = [];
  const port = await servedHttp((request, response) => {
    seenRequests.push([request.url, request.headers['user-agent'], request.socket.remoteAddress]);
    response.writeHead(status).end();
  });
  expect(await runProbe({ httpGet: { port } })).toBe('');
  expect(seenRequests).toEqual([['/', 'istio-probe/1.0', '127.0.0.6']]);
});

it.each([400, 404, 500, 503])('a workload is unhealthy if it responds with status %i', async (status) => {
  const port = await servedHttp((_, response) => void response.writeHead(status).end());
  expect(await runProbe({ httpGet: { port, path: '/health' } })).toBe(`response status ${status}`);
});

it('a TCP port is healthy if it is open, and unhealthy if it is closed', async () => {
  const port = await servedHttp(() => {});
  expect(await runProbe({ tcpSocket: { port } })).toBe('');
  expect(await runProbe({ tcpSocket: { port: 1 } })).toMatch(/ECONNREFUSED/);
  expect(await runProbe({ tcpSocket: { port, host: '127.0.0.1' } }, { destination: '127.0.0.2' })).toBe('');
});

it('a workload is unhealthy if it does not respond within the timeout', async () => {
  const port = await servedHttp(() => {});
  expect(await runProbe({ httpGet: { port } })).toBe('no response within 1000 ms');
});

describe('command of a workload probe', () => {
  it('is healthy if it exits with code 0', async () => {
    expect(await runProbe({ exec: { command: ['true'] } })).toBe('');
    expect(await runProbe({ exec: { command: ['sh', '-c', 'exit 3'] } })).toBe('command ended with exit code 3');
    expect(await runProbe({ exec: { command: ['/no/such/program'] } })).toMatch(/ENOENT/);
  });

  it('is killed after its timeout with its child processes', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'cp-probe-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, 'pid');
    const command = ['sh', '-c', `sleep 600 & echo $! > ${file}.new; mv ${file}.new ${file}; wait`];
    expect(await runProbe({ exec: { command }, timeoutSeconds: 2 })).toBe('no response within 2000 ms');
    expect(existsSync(file)).toBe(true);
    await eventually('it is gone', () => !isAlive(Number(readFileSync(file, 'utf8'))));
  });
});

describe('a workload with an Envoy', () => {
  it('is unhealthy and not probed if Envoy is not ready', async () => {
    let requests = 0;
    const port = await servedHttp((_, response) => void response.writeHead(200).end(String(requests++)));
    const statusPort = await servedHttp(({ url }, response) => {
      response.writeHead(url === '/healthz/ready' ? 503 : 200).end();
    });
    expect(await runProbe({ httpGet: { port } }, { statusPort })).toBe('Envoy is not ready');
    expect(await runProbe({ httpGet: { port } }, { statusPort: 1 })).toMatch(/^Envoy is not ready: .*ECONNREFUSED/);
    expect(requests).toBe(0);
  });

  it('has the health of its own probe if Envoy is ready', async () => {
    const statusPort = await servedHttp((_, response) => void response.writeHead(200).end());
    const port = await servedHttp((_, response) => void response.writeHead(500).end());
    expect(await runProbe({ httpGet: { port } }, { statusPort })).toBe('response status 500');
  });
});
